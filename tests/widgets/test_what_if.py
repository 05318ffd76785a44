"""WhatIf without a browser: edits move sliders, sliders make edits, `analysis.what_if` gives the answer."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import traitlets as t

from hta_widgets import Trace, WhatIf, analysis, edits, examples
from hta_widgets.analysis.replay.graph import graph_of
from hta_widgets.analysis.replay.plan import Plan
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import duration
from hta_widgets.palette import LIGHT
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets import what_if_answer
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.runtime import WHAT_IF_BUNDLE, bundle, runtime
from hta_widgets.widgets.what_if_controls import (
    CONTROLS,
    change_in_words,
    edits_of,
    effect_of,
    settings_of,
    time_class,
)
from tests.support import shared_trace

pytestmark = pytest.mark.slow

MANY = [edits.kernels(1.82), edits.host(0.5), edits.syncs(), edits.communication(0)]


@pytest.fixture(scope="module")
def stalled() -> Trace:
    return examples.load("single_gpu_dataloader_stall")


@pytest.fixture
def widget(stalled: Trace) -> WhatIf:
    widget = WhatIf(stalled)
    settle([widget])
    return widget


def test_it_begins_with_what_was_recorded(widget: WhatIf) -> None:
    answer = widget.answer
    assert widget.status == "idle"
    assert answer["before"] == answer["low"] == answer["after"] == answer["high"]
    assert sum(answer["parts_before"]) == answer["before"]
    assert answer["chain"] == []
    assert widget.expression == "analysis.what_if(trace, [])"
    assert widget._runtime is runtime(WHAT_IF_BUNDLE) is not runtime()
    assert runtime(WHAT_IF_BUNDLE)._esm == bundle(WHAT_IF_BUNDLE)


def test_edits_move_the_sliders_and_the_answer_is_that_of_the_analysis(
    widget: WhatIf, stalled: Trace
) -> None:
    widget.edits = MANY
    settle([widget])
    assert widget.settings == {"kernels": 1 / 1.82, "host": 0.5, "syncs": 0, "communication": 0}
    frame = analysis.what_if(stalled, MANY, Scope(ranks=(widget.about["rank"],)))
    whole, steps = frame.iloc[0], frame[frame["iteration"].notna()]
    answer = widget.answer
    assert [answer[name] for name in ("before", "low", "after", "high")] == [
        whole[f"{name}_ns"] for name in ("before", "low", "after", "high")
    ]
    assert answer["parts_after"] == [whole[part] for part in what_if_answer.PARTS]
    assert sum(answer["parts_after"]) == answer["after"]
    step = answer["step"]
    assert step["count"] == len(steps)
    assert [step[name] for name in ("before", "low", "after", "high")] == [
        round(steps[f"{name}_ns"].mean()) for name in ("before", "low", "after", "high")
    ]
    assert sum(step["parts_before"]) == step["before"]
    assert sum(step["parts_after"]) == step["after"] == step["chain"][-1]["together"]
    means = [steps[part].mean() for part in what_if_answer.PARTS]
    assert np.abs(np.array(step["parts_after"]) - means).max() <= 1
    assert [link["expression"] for link in step["chain"]] == [link["expression"] for link in answer["chain"]]
    assert widget.frame().equals(frame)
    assert eval(widget.expression, {"analysis": analysis, "edits": edits, "trace": stalled}).equals(frame)


def test_each_edit_is_answered_alone_and_with_those_before(widget: WhatIf, stalled: Trace) -> None:
    widget.edits = [*MANY, edits.graphs()]
    settle([widget])
    chain, before = widget.answer["chain"], widget.answer["before"]
    frame = widget.savings()
    assert frame.equals(analysis.marginal_savings(stalled, widget.edits))
    assert [link["expression"] for link in chain] == frame["edits"].tolist()
    assert [before - link["alone"] for link in chain] == frame["alone_ns"].tolist()
    assert [before - link["together"] for link in chain] == frame["together_ns"].tolist()
    by_name = {link["name"]: link for link in chain}
    assert {name: link["bound"] for name, link in by_name.items()} == {
        "host": False, "kernels": False, "communication": True, "syncs": True, "": False
    }  # fmt: skip
    assert {name: link["time_class"] for name, link in by_name.items()} == {
        "host": "host", "kernels": "compute", "communication": "communication", "syncs": "sync", "": "host"
    }  # fmt: skip
    assert chain[-1]["together"] == widget.answer["after"]
    for name, edit in (("host", edits.host(0.5)), ("kernels", edits.kernels(1.82))):
        assert by_name[name]["alone"] == analysis.what_if(stalled, edit)["after_ns"].iloc[0]


def test_the_figure_is_the_waterfall(widget: WhatIf) -> None:
    widget.edits = MANY
    frame, figure = widget.savings(), widget.figure()
    bars, alone, whole = figure.data
    adds, base = np.array(bars.x, float), np.array(bars.base, float)
    assert (adds * 1e6).round().tolist() == frame["next_ns"].tolist()
    assert ((base + adds) * 1e6).round().tolist() == frame["together_ns"].tolist()
    assert (np.array(alone.x, float) * 1e6).round().tolist() == frame["alone_ns"].tolist()
    assert round(whole.x[0] * 1e6) == frame["together_ns"].iloc[-1]
    assert list(figure.layout.yaxis.ticktext) == [*frame["edits"], "together"]
    colours = dict(zip(frame["edits"], bars.marker.color, strict=True))
    assert colours["edits.kernels(1.82)"] == LIGHT["compute"]
    assert colours["edits.syncs()"] == LIGHT["sync"]
    assert "together: " in whole.hovertemplate
    widget.edits = [edits.kernels(2.0, name="<b>*")]
    assert widget.figure().layout.yaxis.ticktext[0] == "edits.kernels(2.0, name='&lt;b&gt;*')"
    widget.edits = []
    assert len(widget.figure().data[0].x) == 0


def test_every_edit_has_a_colour() -> None:
    makers = [name for name in edits.__all__ if name not in ("Edit", "exactly")]
    assert {name for name in makers if time_class(edits.Edit(f"edits.{name}()")) == "idle"} == set()
    assert time_class(edits.Edit("edits.unheard_of()")) == "idle"


def test_the_map_marks_the_sliders(widget: WhatIf, stalled: Trace) -> None:
    widget.edits = [edits.host(0.5), edits.kernels(math.inf), edits.syncs(), edits.graphs()]
    frame = widget.speed_map()
    assert frame.equals(analysis.speed_map(stalled, beside=[edits.syncs(), edits.graphs()]))
    contour, recorded, now = widget.figure("speed_map").data
    assert (recorded.x[0], recorded.y[0]) == (0, 0)
    assert (now.x[0], now.y[0]) == (1, 2)  # the logarithms of twice and of the most
    place = (list(contour.y).index(0), list(contour.x).index(1))
    (row,) = frame.query("host_factor == 2 and device_factor == 1").to_dict("records")
    assert contour.z[place] == pytest.approx(100 * row["after_ns"] / row["before_ns"])
    assert contour.customdata[place].tolist() == [2, 1]
    with pytest.raises(ValueError, match="no figure 'pie'"):
        widget.figure("pie")


def test_the_browser_gets_the_map_of_the_whole_recording(widget: WhatIf, stalled: Trace) -> None:
    widget.edits = [edits.host(0.5), edits.kernels(2.0), edits.syncs(), edits.graphs()]
    settle([widget])
    result, _ = widget.ask("speed_map", {"rank": widget.about["rank"]})
    frame = analysis.speed_map(stalled, beside=[edits.syncs(), edits.graphs()])
    assert result == {"before": frame["before_ns"].iloc[0], "after": frame["after_ns"].tolist()}
    speeds = widget.about["speeds"]
    assert frame["host_factor"].tolist() == [host for host in speeds for _ in speeds]
    scope = {"analysis": analysis, "edits": edits, "trace": stalled}
    assert eval(widget.map_expression, scope).equals(frame)


def test_a_second_edit_of_a_slider_is_told_by_its_expression(widget: WhatIf) -> None:
    widget.edits = [edits.kernels(2.0), edits.kernels(3.0)]
    settle([widget])
    assert {(link["name"], link["expression"]) for link in widget.answer["chain"]} == {
        ("kernels", "edits.kernels(2.0)"), ("", "edits.kernels(3.0)")
    }  # fmt: skip


def test_a_moved_slider_makes_an_edit(widget: WhatIf) -> None:
    widget.set_state({"settings": {"kernels": 0.5, "launches": 0, "host": 1}})
    assert [edit.expression for edit in widget.edits] == ["edits.launches(0.0)", "edits.kernels(2.0)"]
    widget.set_state({"settings": {}})
    assert widget.edits == []


def test_what_no_slider_makes_stays_until_it_is_dropped(widget: WhatIf) -> None:
    given = [edits.graphs(), edits.kernels(2.0, name="*gemm*"), edits.host(0.5)]
    widget.edits = given
    assert widget.settings == {"host": 0.5}
    assert widget.further == [edit.expression for edit in given[:2]]
    widget.set_state({"settings": {"host": 0.25}})
    assert [edit.expression for edit in widget.edits] == ["edits.host(0.25)", *widget.further]
    widget.set_state({"further": widget.further[1:]})
    assert [edit.expression for edit in widget.edits] == ["edits.host(0.25)", given[1].expression]
    # the browser cannot make up an edit
    widget.set_state({"further": [*widget.further, "edits.host(__import__('os'))"]})
    assert len(widget.edits) == 2
    assert widget.further == [given[1].expression]


@pytest.mark.parametrize(
    "settings", [{"nothing": 0.5}, {"host": -0.1}, {"host": math.inf}, {"host": math.nan}]
)
def test_the_browser_can_set_only_shares_of_known_controls(widget: WhatIf, settings: Any) -> None:
    with pytest.raises(t.TraitError):
        widget.settings = settings


@pytest.mark.parametrize("time", [0.0, 0.05, 1 / 3, 1 / 1.82, 0.9, 2.0])
def test_settings_and_edits_are_the_same(time: float) -> None:
    settings = {control.name: 0.0 if control.off else time for control in CONTROLS}
    once = settings_of(edits_of(settings))
    assert once == settings_of(edits_of(once[0]))
    assert once[0] == pytest.approx(settings, rel=1e-11)
    assert once[1] == []


def test_of_two_edits_of_one_slider_the_second_is_no_slider(widget: WhatIf) -> None:
    assert settings_of([edits.kernels(2.0), edits.kernels(3.0)]) == ({"kernels": 0.5}, [edits.kernels(3.0)])


def test_what_a_control_does_was_read_off_its_edit(stalled: Trace) -> None:
    rank_trace = stalled.rank(stalled.ranks[0])
    graph = graph_of(rank_trace)
    assert graph is not None
    effects = {control.name: effect_of(control, graph, rank_trace) for control in CONTROLS}
    kinds = {graph.groups[group].event_class for group in effects["kernels"].scaled}
    assert {kind.label for kind in kinds if kind is not None} == {"compute"}
    assert effects["syncs"].removed
    assert not effects["syncs"].scaled
    assert effects["communication"].nothing  # one device
    edge, weight = effects["loader"].cut
    assert (weight < graph.weight[edge]).all()
    # the edges of the loader hold what it saves
    plan = Plan(graph, rank_trace)
    edits.without("*DataLoader*").apply(plan)
    assert int((graph.weight[edge] - weight).sum()) == int(
        (graph.weight + graph.residual - plan.weights(0)).sum()
    )


def test_ranks(ddp: Trace) -> None:
    widget = WhatIf(ddp, rank=2, edits=edits.kernels(2.0))
    settle([widget])
    assert widget.about["rank"] == 2
    assert set(widget.frame()["rank"]) == {2}
    assert widget.expression == "analysis.what_if(trace, [edits.kernels(2.0)], Scope(ranks=(2,)))"
    widget.rank = 1
    settle([widget])
    assert widget.about["rank"] == 1
    with pytest.raises(ValueError, match="no rank 7"):
        widget.rank = 7
    assert [option["rank"] for option in widget.options] == ddp.ranks


def test_the_graph_is_sent_in_chunks(widget: WhatIf) -> None:
    result, (first, *_) = widget.ask("graph", {"rank": widget.about["rank"], "chunk": 0})
    assert result["chunks"] == 1
    assert 0 < len(first) < 20 * widget.about["nodes"]


def test_a_large_graph_stays_in_python(stalled: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(what_if_answer, "MOST_NODES", 10)
    widget = WhatIf(stalled, edits=[edits.host(0.5)])
    settle([widget])
    assert not widget.about["live"]
    assert widget.answer["after"] < widget.answer["before"]


def test_abstention_says_why_and_what_to_record() -> None:
    widget = WhatIf(shared_trace("hta/mtia_inference_trace"))
    settle([widget])
    assert widget.status == "empty"
    assert "simulated without changes, its time is off by" in widget.message
    assert "torch.profiler.profile(" in widget.message
    with pytest.raises(MissingDataError):
        widget.frame()
    assert "simulated without changes" in widget.snapshot().to_svg()


def test_the_picture_has_the_answer(widget: WhatIf) -> None:
    assert "per step, as recorded." in widget.snapshot().to_svg()
    widget.edits = [edits.kernels(2.0)]
    svg = widget.snapshot().to_svg()
    step = widget.answer["step"]
    assert what_if_answer.headline(widget.answer) in svg
    assert duration(step["before"]) in svg and duration(step["after"]) in svg
    assert "edits.kernels(2.0)" in svg
    assert "recorded" in svg


def test_edits_of_several_ranks_are_told_of_a_step_of_the_job(ddp: Trace) -> None:
    made = [edits.faster_links(math.inf), edits.no_stragglers()]
    widget = WhatIf(ddp, rank=2, edits=made)
    settle([widget])
    assert (widget.status, widget.message) == ("idle", "")
    frame = analysis.what_if(ddp, made)
    steps = frame.groupby("iteration")
    assert frame["rank"].nunique() == 4
    assert [widget.answer[name] for name in ("before", "after")] == [
        int(np.median([rows[f"{name}_ns"].max() for _, rows in steps])) for name in ("before", "after")
    ]
    assert widget.about["job"] == f"Step of 4 ranks, median of {len(steps)}"
    # no row of the whole recording, no slider, no rank
    assert "rank" not in widget.about
    assert widget.controls == widget.answer["parts_before"] == []
    assert widget.frame().equals(frame)
    assert eval(widget.expression, {"analysis": analysis, "edits": edits, "math": math, "trace": ddp}).equals(
        frame
    )
    chain = widget.answer["chain"]
    assert {(link["expression"], link["bound"]) for link in chain} == {
        ("edits.faster_links(math.inf)", True), ("edits.no_stragglers()", False)
    }  # fmt: skip
    assert chain[-1]["together"] == widget.answer["after"]
    assert chain[0]["together"] == chain[0]["alone"] == min(link["alone"] for link in chain)
    assert {link["label"] for link in chain} == {"transfers taking no time", "no stragglers"}
    words = "per step with transfers taking no time and no stragglers"
    assert what_if_answer.headline(widget.answer).endswith(words)
    assert words in " ".join(re.findall(">([^<]+)<", widget.snapshot().to_svg()))
    # those of one rank bring its sliders back
    widget.edits = [edits.kernels(2.0)]
    settle([widget])
    assert widget.about["rank"] == 2
    assert widget.controls


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (edits.no_stragglers(), "no stragglers"),
        (edits.median_rank(2), "rank 2 as fast as the median"),
        (edits.even_operations("ffn"), "ffn as long on all ranks"),
        (edits.faster_links(2.5), "transfers 2.5× as fast"),
        (edits.faster_links(math.inf, name="all_reduce"), "transfers of all_reduce taking no time"),
        (edits.microbatches(8), "8 microbatches"),
        (edits.microbatches(8, same_size=True), "8 microbatches of the same size"),
        (edits.larger_buckets(100 << 20), "buckets of 100 MiB"),
        (edits.host(0.5), "edits.host(0.5)"),
    ],
)
def test_changes_of_several_ranks_are_words(change: edits.Edit, words: str) -> None:
    assert change_in_words(change.expression) == words


def test_the_headline_says_what_is_timed_and_what_changes() -> None:
    answer = {"settings": {}, "further": [], "before": 161, "after": 161, "parts_before": [161], "step": None}
    says = what_if_answer.headline
    assert says(answer) == "161 ns for the recording, as recorded"
    made = {"kernels": 1 / 1.82, "host": 0.0, "syncs": 0.0, "launches": 1.5}
    changed = {**answer, "settings": made, "after": 100}
    # in the order of the sliders, and two at most
    words = "host taking no time, launches 0.67× as fast and 2 more changes"
    assert says(changed) == f"161 → 100 ns for the recording with {words}"
    step = {"before": 1_500_000, "after": 800_000}
    changed |= {"settings": {"kernels": 1 / 1.82}, "further": ["edits.graphs()"], "step": step}
    assert says(changed) == "1.50 ms → 800 µs per step with compute kernels 1.82× as fast and edits.graphs()"
    assert says({**changed, "settings": {"syncs": 0.0}, "further": []}).endswith("with no synchronisation")


def test_a_job_is_told_in_a_report_without_sliders(ddp: Trace, tmp_path: Path) -> None:
    page = WhatIf(ddp, edits=edits.no_stragglers()).to_html(tmp_path / "job.html").read_text()
    assert "too many for a report" not in page


def test_edits_of_a_rank_and_of_several_are_refused_in_words(ddp: Trace) -> None:
    widget = WhatIf(ddp, edits=[edits.no_stragglers(), edits.kernels(2.0)])
    settle([widget])
    assert widget.status == "error"
    assert "apart from those within a rank, such as edits.kernels(2.0)" in widget.message
    widget.set_state({"settings": {}, "further": widget.further})
    settle([widget])
    assert (widget.status, widget.edits) == ("idle", [edits.no_stragglers()])
