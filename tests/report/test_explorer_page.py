"""What `TraceExplorer.to_html` saves of an explorer."""

import gc
import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from hta_widgets import TimelineScrubber, Trace, TraceExplorer, analysis
from hta_widgets.errors import MissingDataError
from hta_widgets.timeline import pack
from hta_widgets.widgets import freezing
from hta_widgets.widgets.panel import SHOWN_ROWS
from hta_widgets.widgets.part import Part
from tests.report.reading import column, content, part
from tests.support import EVERY_CASE

MEGABYTE = 1_000_000


def saved(explorer: TraceExplorer, path: Path, panels: list[str] | None = None) -> str:
    return explorer.to_html(path / "report.html", panels=panels).read_text(encoding="utf-8")


def test_figures_are_those_of_the_explorer(ddp: Trace, tmp_path: Path) -> None:
    explorer = TraceExplorer(ddp, selection={"ranks": [1, 2]})
    html = saved(explorer, tmp_path, panels=list(analysis.ANALYSES))
    for kind in analysis.ANALYSES:
        state = part(html, "breakdown", kind=kind)["state"]
        try:
            frame = explorer.frame(kind).head(SHOWN_ROWS)
        except MissingDataError as missing:
            assert state["table"] is None
            assert state["message"].casefold() == str(missing).casefold()
            continue
        numbers = frame.select_dtypes("number")
        for name in numbers:
            shown = numbers[name].to_numpy(np.float64, na_value=np.nan)
            assert np.array_equal(column(state, name), shown, equal_nan=True)
    assert part(html, "breadcrumb")["state"]["ranks"] == [1, 2]


def test_timeline_is_saved_whole(ddp: Trace, tmp_path: Path) -> None:
    questions = {
        item["method"]: item for item in part(saved(TraceExplorer(ddp), tmp_path), "timeline")["questions"]
    }
    outline = json.loads(zlib.decompress(questions["meta"]["buffers"][0]))
    assert questions["base"]["result"]["n"] == outline["n"] == ddp.summary["events"]


def test_panels_that_are_not_shown_can_be_saved(ddp: Trace, tmp_path: Path) -> None:
    explorer = TraceExplorer(ddp, panels=["temporal_breakdown"])
    before = live_parts()
    html = saved(explorer, tmp_path, panels=["comm_comp_overlap"])
    assert part(html, "explorer")["state"]["panels"] == ["comm_comp_overlap"]
    assert [entry["kind"] for entry in part(html, "explorer")["state"]["available_panels"]] == [
        "comm_comp_overlap"
    ]
    assert explorer.panels == ("temporal_breakdown",)
    assert live_parts() == before


def live_parts() -> int:
    gc.collect()
    return sum(isinstance(item, Part) and item.comm is not None for item in gc.get_objects())


@pytest.mark.parametrize(("title", "shown"), [("", "ddp_4ranks: 4 ranks"), ("Run <17>", "Run &lt;17&gt;")])
def test_a_page_has_the_title_that_it_is_given(title: str, shown: str, ddp: Trace, tmp_path: Path) -> None:
    html = TraceExplorer(ddp, panels=[]).to_html(tmp_path / "a.html", title=title).read_text(encoding="utf-8")
    assert f"<title>{shown}" in html


def test_unknown_panel_is_refused(ddp: Trace, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no analysis 'nothing'"):
        TraceExplorer(ddp).to_html(tmp_path / "report.html", panels=["nothing"])


def test_events_are_saved_as_the_table_shows_them(ddp: Trace, tmp_path: Path) -> None:
    explorer = TraceExplorer(ddp, panels=["events"], selection={"query": "nccl"})
    html = saved(explorer, tmp_path)
    (question,) = part(html, "events")["questions"]
    names = [name for table in question["result"]["tables"] for name in texts(table, "name")]
    assert names == explorer.events["name"].tolist()
    assert question["result"]["sortable"] is True
    assert question["result"]["searchable"] is False  # events that the query left out would not be found
    assert content(html)["about"]["notes"] == ["The events table holds the events of the saved search only."]


def texts(table: dict[str, object], name: str) -> list[str]:
    columns = table["columns"]
    assert isinstance(columns, list)
    (found,) = [item for item in columns if item["name"] == name]
    result: list[str] = found["values"]
    return result


def test_what_views_read_is_saved_and_nothing_else(ddp: Trace, tmp_path: Path) -> None:
    for item in content(saved(TraceExplorer(ddp), tmp_path))["parts"].values():
        kept = item["state"].keys()
        assert {name for name in kept if name.startswith("_")} == {"_view"}
        assert not kept & {"layout", "tabbable", "tooltip"}


def test_a_part_with_nothing_to_show_has_nothing_to_ask(ddp: Trace, tmp_path: Path) -> None:
    explorer = TraceExplorer(ddp, panels=["events"], selection={"query": "no such name"})
    events = part(saved(explorer, tmp_path), "events")
    assert events["state"]["status"] == "empty"
    assert events["questions"] == []


def test_answers_in_several_pieces_are_joined(
    ddp: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = part(saved(TraceExplorer(ddp), tmp_path), "timeline")["questions"]
    monkeypatch.setattr(pack, "CHUNK_BYTES", 700)
    in_pieces = part(saved(TraceExplorer(ddp), tmp_path), "timeline")["questions"]
    assert in_pieces == questions
    assert all(question["result"]["chunks"] == 1 for question in in_pieces)


def test_long_lists_are_cut_with_a_note(ddp: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freezing, "SAVED_EVENTS", 2_500)
    html = saved(TraceExplorer(ddp, panels=["events"]), tmp_path)
    table = part(html, "events")
    (question,) = table["questions"]
    assert table["state"]["rows"] == sum(item["rows"] for item in question["result"]["tables"]) == 2_500
    assert question["result"]["sortable"] is False
    (note,) = content(html)["about"]["notes"]
    assert f"2,500 of {ddp.summary['events']:,} events" in note


def test_counters_that_are_drawn_are_saved_once_for_the_whole_time(ddp: Trace, tmp_path: Path) -> None:
    explorer = TraceExplorer(ddp)
    assert "counter_values" not in {
        q["method"] for q in part(saved(explorer, tmp_path), "timeline")["questions"]
    }
    timeline = next(one for area, one in explorer.parts if area == "timeline")
    timeline.counters = ["queue length", "of another recording"]
    questions = {q["method"]: q for q in part(saved(explorer, tmp_path), "timeline")["questions"]}
    listed = questions["counter_list"]["result"]["counters"]
    assert {each["name"] for each in listed} == {"queue length"}
    assert {each["rank"] for each in listed} == set(ddp.ranks)
    values = questions["counter_values"]
    assert values["once"], "sharper values are not there"
    assert [values["result"]["t0"], values["result"]["t1"]] == list(timeline._require().lanes.extent)


def test_timeline_too_large_for_a_browser_becomes_an_overview(
    ddp: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # its default is what an explorer's timeline has
    monkeypatch.setitem(TimelineScrubber.__init__.__kwdefaults__, "client_slices", 100)
    html = saved(TraceExplorer(ddp), tmp_path)
    methods = [question["method"] for question in part(html, "timeline")["questions"]]
    assert methods[:2] == ["meta", "window"]
    once = {question["method"]: question["once"] for question in part(html, "timeline")["questions"]}
    assert once["window"] and not once["meta"], "a sharper window is not there"
    assert "too many for a report" in content(html)["about"]["notes"][0]


def test_hundred_thousand_events_fit_in_five_megabytes(tmp_path: Path) -> None:
    """By default a quarter of them, beside the front end of 0.3 MB."""
    events, most = (100_000, 5 * MEGABYTE) if EVERY_CASE else (25_000, 1.5 * MEGABYTE)
    generate(tmp_path / "rank0.json", events)
    explorer = TraceExplorer(tmp_path / "rank0.json", panels=["temporal_breakdown", "events"])
    path = explorer.to_html(tmp_path / "report.html")
    assert explorer.trace.summary["events"] >= events
    assert path.stat().st_size < most


def generate(path: Path, events: int) -> None:
    """Host calls, launches and kernels of many names and lengths, as a real trace has them."""
    random = np.random.default_rng(0)
    records: list[dict[str, object]] = []
    clock = 0.0
    for number in range(-(-events // 3)):
        clock += float(random.exponential(20))
        name = f"void gemm_{random.integers(2000)}<float, {random.integers(64)}>(Params)"
        length = round(float(random.exponential(8)) + 0.001, 3)
        device = {"correlation": number, "stream": 7, "device": 0}
        call = {"ph": "X", "pid": 1, "tid": 1}
        records += [
            {**call, "cat": "cpu_op", "name": f"aten::op_{number % 300}", "ts": clock, "dur": 9.5},
            {
                **call,
                "cat": "cuda_runtime",
                "name": "cudaLaunchKernel",
                "ts": clock + 1,
                "dur": 4.25,
                "args": {"correlation": number},
            },
            {
                "ph": "X",
                "pid": 0,
                "tid": 7,
                "cat": "kernel",
                "name": name,
                "ts": clock + 12,
                "dur": length,
                "args": device,
            },
        ]
    path.write_text(json.dumps({"traceEvents": records}))
