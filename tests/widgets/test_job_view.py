"""JobView without a browser: pictures first, then costs; what is sent is what the analyses say, and small."""

import math
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hta_widgets import JobView, Selection, Trace, TraceExplorer, analysis, examples
from hta_widgets.analysis.findings.story import story
from hta_widgets.analysis.job.panel import sentence
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets import job_codec, job_view
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.job_codec import packed_cells, packed_pairs
from hta_widgets.widgets.notable_ranks import notable_ranks
from hta_widgets.widgets.runtime import JOB_BUNDLE, REPORT_BUNDLES, bundle, runtime
from tests.job.many_ranks import write_job
from tests.report.reading import part
from tests.widgets.decoded import numbers as table_numbers

pytestmark = pytest.mark.slow

MEGABYTE = 1_000_000
SLOW = 5


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return Trace.open(write_job(tmp_path_factory.mktemp("jobs") / "job", 8, SLOW), cache=False)


@pytest.fixture
def view(eight: Trace) -> JobView:
    view = JobView(eight)
    settle([view])
    return view


def numbers(view: JobView, method: str) -> tuple[dict[str, Any], np.ndarray]:
    result, buffers = view.ask(method, {})
    return result, np.frombuffer(buffers[0], "<f4")


def column(view: JobView, name: str) -> list[float]:
    table = view.table
    assert table is not None
    return table_numbers(table, name)


def test_it_says_what_slowdown_says(view: JobView, eight: Trace) -> None:
    assert (view.status, view.costs, view.missing) == ("idle", "known", "")
    assert view.sentence == sentence(analysis.slowdown(eight))
    assert column(view, "cost_ns") == analysis.job_ranks(eight)["cost_ns"].tolist()
    assert view._runtime is runtime(JOB_BUNDLE) is not runtime()
    assert runtime(JOB_BUNDLE)._esm == bundle(JOB_BUNDLE)
    assert repr(view) == "JobView(8 ranks, 4 iterations)"


def test_alone_it_tells_the_story_and_in_an_explorer_not_again(view: JobView, eight: Trace) -> None:
    assert view.story == story(eight).as_dict()
    assert view.story["headline"]
    view.iterations = [1, 2]
    settle([view])
    assert view.story == story(eight, Scope(iterations=(1, 2))).as_dict()
    panel = JobView(eight, python_expression=lambda: "explorer.frame('job')")
    settle([panel])
    assert (panel.status, panel.costs, panel.story) == ("idle", "known", {})


def test_pictures_come_before_the_replay(eight: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = threading.Event()
    answer = job_view.rank_costs
    monkeypatch.setattr(job_view, "rank_costs", lambda *args: (seen.wait(60), answer(*args))[1])
    view = JobView(eight)
    deadline = time.monotonic() + 60
    while not view.version and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (view.status, view.costs, view.sentence) == ("busy", "busy", "")
    assert column(view, "caused_ns")[SLOW] > 0
    assert all(map(math.isnan, column(view, "cost_ns")))
    seen.set()
    settle([view])
    assert (view.status, view.costs, view.version) == ("idle", "known", 1)


def test_frames_are_those_of_the_analyses(view: JobView, eight: Trace) -> None:
    view.iterations = [1, 2]
    settle([view])
    scope = Scope(iterations=(1, 2))
    for picture, function in (
        ("ranks", analysis.job_ranks),
        ("iterations", analysis.job_iterations),
        ("waits", analysis.rank_waits),
        ("slowdown", analysis.slowdown),
    ):
        pd.testing.assert_frame_equal(
            view.frame(picture).reset_index(drop=True),  # type: ignore[arg-type]
            function(eight, scope),
        )
    assert column(view, "iterations") == [2] * 8
    with pytest.raises(ValueError, match="the pictures are ranks, iterations, waits, slowdown"):
        view.frame("costs")  # type: ignore[arg-type]


def test_cells_hold_every_iteration_whichever_is_selected(view: JobView, eight: Trace) -> None:
    view.iterations = [2]
    settle([view])
    layout, values = numbers(view, "cells")
    frame = analysis.job_iterations(eight)
    assert layout["ranks"] == list(range(8))
    assert layout["columns"] == [[0], [1], [2], [3]]
    cells = values.reshape(len(layout["parts"]), 8, 4)
    for at, part_ in enumerate(layout["parts"]):
        columns = list(job_codec.CELL_PARTS[part_])
        assert cells[at].ravel().tolist() == frame[columns].sum(axis=1).tolist()
    assert (cells.sum(axis=0).ravel() == frame["window_ns"]).all()


def test_pairs_are_those_of_the_selected_iterations(view: JobView, eight: Trace) -> None:
    view.iterations = [2]
    settle([view])
    layout, values = numbers(view, "pairs")
    frame = analysis.rank_waits(eight, Scope(iterations=(2,)))
    assert layout == {"pairs": len(frame), "steps": 1, "block": 1}
    assert values.reshape(-1, 3).tolist() == frame[["rank", "awaited", "wait_ns"]].to_numpy().tolist()


def test_selected_ranks_change_nothing(view: JobView) -> None:
    before = view.version, view.table
    view.ranks = [1, 2]
    settle([view])
    assert (view.version, view.table) == before


def test_a_rank_that_lacks_an_iteration_has_no_cell() -> None:
    frame = pd.DataFrame({"rank": [0, 0, 3], "iteration": [4, 5, 5]})
    frame[[column for columns in job_codec.CELL_PARTS.values() for column in columns]] = 7
    packed = packed_cells(frame)
    cells = np.frombuffer(packed.data, "<f4").reshape(4, 2, 2)
    assert cells[0].tolist()[0] == [7, 7]
    assert math.isnan(cells[0][1][0])
    assert cells[2][1][1] == 14  # copying counts as transfer


def many(ranks: int, iterations: int) -> pd.DataFrame:
    index = pd.MultiIndex.from_product([range(ranks), range(iterations)], names=["rank", "iteration"])
    frame = index.to_frame(index=False)
    for number, name in enumerate(name for columns in job_codec.CELL_PARTS.values() for name in columns):
        frame[name] = np.arange(len(frame)) % 997 + number
    return frame


def test_many_ranks_stay_below_a_megabyte() -> None:
    packed = packed_cells(many(1024, 50))
    assert len(packed.data) == 4 * 1024 * 50 * 4 < MEGABYTE
    assert packed.layout["columns"] == [[number] for number in range(50)]
    ranks = pd.MultiIndex.from_product([range(1024), range(1024)]).to_frame(index=False)
    ranks.columns = pd.Index(["rank", "awaited"])
    all_to_all = ranks[ranks["rank"] != ranks["awaited"]].assign(wait_ns=3)
    pairs = packed_pairs(all_to_all, list(range(1024)), 50)
    assert len(pairs.data) < MEGABYTE
    assert pairs.layout["block"] == 4
    values = np.frombuffer(pairs.data, "<f4").reshape(-1, 3)
    assert values[:, 2].sum() == all_to_all["wait_ns"].sum()
    assert values[(values[:, 0] == 0) & (values[:, 1] == 1), 2].tolist() == [4 * 4 * 3]


def test_more_iterations_are_added_up() -> None:
    frame = many(1024, 150)
    packed = packed_cells(frame)
    columns: Any = packed.layout["columns"]
    assert len(packed.data) < MEGABYTE
    assert [number for of in columns for number in of] == list(range(150))
    cells = np.frombuffer(packed.data, "<f4").reshape(4, 1024, len(columns))
    rows = frame[(frame["rank"] == 700) & frame["iteration"].isin(columns[1])]
    assert cells[0, 700, 1] == rows["compute_ns"].sum()


def test_unknown_culprits_stay_apart() -> None:
    frame = pd.DataFrame({"rank": [2, 2, 5], "awaited": [-1, 5, 2], "wait_ns": [1, 2, 3]})
    values = np.frombuffer(packed_pairs(frame, [2, 5], 1).data, "<f4").reshape(-1, 3)
    assert values.tolist() == [[0, -1, 1], [0, 1, 2], [1, 0, 3]]


def test_the_culprit_comes_first_with_what_shows_it(view: JobView, eight: Trace) -> None:
    first, usual = view.notable
    assert (first["rank"], first["why"], first["cause"]) == (SLOW, "culprit", "same kernels slower")
    evidence = first["evidence"]
    assert SLOW in evidence["ranks"]
    assert len(evidence["ranks"]) == 2
    rank, event = evidence["focus"]
    assert rank == SLOW
    kernels = analysis.collectives(eight)
    assert event in kernels.loc[kernels["rank"] == SLOW, "event_id"].tolist()
    assert usual["why"] == "usual"


def test_a_stage_costs_more_than_its_ranks_one_by_one() -> None:
    costs = pd.DataFrame(
        {
            "scope": ["job", "rank", "rank", "stage"],
            "key": ["all", "0", "1", "3"],
            "cost_ns": [9_000_000, 10_000, 20_000, 8_000_000],
            "culprit": [False, False, False, True],
        }
    )
    ranks = pd.DataFrame({"cost_ns": [10_000, 20_000, 50_000], "culprit": [True, True, False]})
    told = job_view._of_place(costs, ranks)
    assert told == "Repairing all of stage 3 wins 8.00 ms per step, its ranks one by one 20.0 µs at most."
    assert job_view._of_place(costs.assign(culprit=False), ranks) == ""


def test_without_costs_those_count_that_others_wait_for(eight: Trace) -> None:
    ranks = analysis.job_ranks(eight).assign(cost_ns=pd.array([pd.NA] * 8, "Int64"), culprit=False, cause="")
    first, *_ = notable_ranks(eight, Scope(), ranks)
    assert (first["rank"], first["why"]) == (SLOW, "causes")


def test_with_costs_only_those_count(eight: Trace) -> None:
    """Who is waited for may be a victim itself."""
    ranks = analysis.job_ranks(eight)
    ranks.loc[2, "caused_ns"] = ranks["caused_ns"].max()
    assert [one["why"] for one in notable_ranks(eight, Scope(), ranks)] == ["culprit", "usual"]
    ranks.loc[2, "cost_ns"] = ranks["cost_ns"].max() // 2
    ranks.loc[3, "cost_ns"] = ranks["cost_ns"].max() // 20
    told = notable_ranks(eight, Scope(), ranks)
    assert [(one["rank"], one["why"]) for one in told[:2]] == [(SLOW, "culprit"), (2, "costs")]
    assert 3 not in [one["rank"] for one in told if one["why"] == "costs"]
    # what costs just a tenth of the most does not count, a nanosecond more does
    for more, counts in ((0, False), (1, True)):
        ranks["cost_ns"] = [1000 * (rank == SLOW) for rank in ranks["rank"]]
        ranks.loc[3, "cost_ns"] = 100 + more
        told = notable_ranks(eight, Scope(), ranks)
        assert ((3, "costs") in [(one["rank"], one["why"]) for one in told]) == counts


def test_a_rank_that_waits_by_far_the_most_is_told(eight: Trace) -> None:
    ranks = analysis.job_ranks(eight)
    assert "waits" not in [one["why"] for one in notable_ranks(eight, Scope(), ranks)]
    ranks.loc[3, "waiting_ns"] *= 2
    (waits,) = [one for one in notable_ranks(eight, Scope(), ranks) if one["why"] == "waits"]
    assert waits["rank"] == 3
    assert 3 in waits["evidence"]["ranks"]


def test_it_says_why_costs_are_not_known(tmp_path: Path) -> None:
    """No replay without a common step: the pictures are there all the same."""
    job = write_job(tmp_path / "job", 4, slow=1)
    path = job / "rank3.json"
    path.write_text(path.read_text().replace("ProfilerStep#", "ProfilerStep#1"))
    view = JobView(Trace.open(job, cache=False))
    settle([view])
    assert (view.status, view.costs, view.sentence) == ("idle", "missing", "")
    assert "step that all ranks recorded" in view.missing
    assert view.missing[0].isupper()
    assert [one["why"] for one in view.notable] == ["causes", "usual"]
    layout, values = numbers(view, "cells")
    assert len(layout["columns"]) == 8
    assert np.isnan(values).sum() == values.size / 2


def test_one_rank_says_what_is_missing() -> None:
    view = JobView(examples.load("gpt2_baseline"))
    settle([view])
    assert view.status == "empty"
    assert "econd rank" in view.message


def test_an_explorer_gives_the_frames_and_says_where_there_are_none(eight: Trace) -> None:
    explorer = TraceExplorer(eight, panels=["job"], selection=Selection(iterations=[1]))
    explorer.wait()
    scope = Scope(iterations=(1,))
    pd.testing.assert_frame_equal(explorer.frame("job"), analysis.job_ranks(eight, scope))
    pd.testing.assert_frame_equal(explorer.frame("job", picture="waits"), analysis.rank_waits(eight, scope))
    shown = explorer._at_rest()["job"]
    assert isinstance(shown, JobView)
    assert shown.expression == 'explorer.frame("job")'
    assert any(answer.title == "Job" and answer.sentence for answer in explorer.snapshot().answers)
    assert "job" not in explorer.lacking
    explorer.close()
    alone = TraceExplorer(examples.load("gpt2_baseline"), panels=[])
    alone.wait()
    settle([alone])
    assert "econd rank" in alone.lacking["job"]
    alone.close()


def test_a_report_holds_the_pictures(eight: Trace, tmp_path: Path) -> None:
    explorer = TraceExplorer(eight, panels=["job"])
    html = explorer.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    saved = part(html, "job")
    assert {question["method"] for question in saved["questions"]} == {"cells", "pairs"}
    view = explorer._at_rest()["job"]
    for question in saved["questions"]:
        result, buffers = view.ask(question["method"], {})
        assert question["result"] == result
        assert question["buffers"] == [bytes(buffers[0])]
    assert saved["state"]["sentence"] == sentence(analysis.slowdown(eight))
    assert [name for name, path in REPORT_BUNDLES.items() if bundle(path) in html] == ["job"]
    explorer.close()


def test_alone_it_has_a_report_and_the_page_of_its_selection(tmp_path: Path) -> None:
    trace = examples.load("ddp_4ranks")
    view = JobView(trace)
    view.iterations = (11, 12)
    html = view.to_html(tmp_path / "job.html").read_text(encoding="utf-8")
    assert "<title>Job: " in html
    saved = part(html, "job")
    assert saved["state"]["story"]["headline"] == story(trace, Scope(iterations=(11, 12))).headline
    assert {question["method"] for question in saved["questions"]} == {"cells", "pairs"}
    page = view.to_markdown()
    assert page.startswith(f"**{saved['state']['story']['headline']}.**\n")
    view.close()
