"""Selectors and panels follow the selection and show what the analyses say."""

import io
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from traitlets import TraitError

from examples.simulator import SimulatedJob, simulate
from hta_widgets import BreakdownPanel, IterationSelector, RankSelector, Scope, Selection, Trace, analysis
from hta_widgets.analysis.device_time.step_times import slowest_steps
from hta_widgets.analysis.findings import judged_scope
from hta_widgets.analysis.findings.story import story
from hta_widgets.engine import Superseded, checkpoint
from hta_widgets.widgets.notes import notes_on
from tests.analysis.kineto_file import job, kernel
from tests.analysis.training_memory import Training
from tests.support import shared_trace
from tests.widgets.decoded import numbers

pytestmark = pytest.mark.slow


def test_panel_shows_the_frame_of_the_selection(ddp: Trace, until: Any) -> None:
    selection = Selection(ranks=(1,))
    panel = BreakdownPanel(ddp, "temporal_breakdown", selection=selection)
    until(lambda: panel.status == "idle")
    expected = analysis.temporal_breakdown(ddp, judged_scope(ddp, Scope(ranks=(1,))))
    pd.testing.assert_frame_equal(panel.frame(), expected)
    assert numbers(panel.table, "idle_ns") == expected["idle_ns"].tolist()
    selection.ranks = ()
    until(lambda: panel.status == "idle" and panel.table["rows"] == len(ddp.ranks))
    assert panel.sentence == analysis.ANALYSES["temporal_breakdown"].sentence(panel.frame())


def test_a_frame_given_away_is_a_copy(ddp: Trace) -> None:
    panel = BreakdownPanel(ddp)
    given = panel.frame()
    given["idle_ns"] = 0
    assert panel.frame()["idle_ns"].any()


def test_a_storm_of_selections_lands_on_the_last(ddp: Trace, until: Any) -> None:
    selection = Selection()
    panel = BreakdownPanel(ddp, selection=selection)
    for turn in range(40):
        selection.ranks = (ddp.ranks[turn % len(ddp.ranks)],)
    until(lambda: panel.status == "idle")
    assert numbers(panel.table, "rank") == list(selection.ranks)


def test_a_selection_without_device_time_is_empty(ddp: Trace, until: Any) -> None:
    end = ddp.extent_ns[1]
    panel = BreakdownPanel(
        ddp, selection={"window": (end + 1, end + 2), "iterations": ddp.iterations["iteration"][:1]}
    )
    until(lambda: panel.status == "empty")
    assert panel.message == "No device time lies in the selection."


def test_a_rank_that_does_not_communicate_empties_no_panel(tmp_path: Path, until: Any) -> None:
    sends = kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 50_000, 100_000, stream=20)
    trace = job(tmp_path, [kernel("gemm", 0, 100_000), sends], [kernel("gemm", 0, 150_000)])
    panel = BreakdownPanel(trace, "comm_comp_overlap")
    until(lambda: panel.status in ("idle", "empty"))
    assert (panel.status, numbers(panel.table, "exposed_ns")) == ("idle", [50_000, 0])


def test_unknown_analysis_lists_the_known(ddp: Trace) -> None:
    with pytest.raises(ValueError, match="temporal_breakdown, gpu_utilization"):
        BreakdownPanel(ddp, "nonsense")


def test_a_selector_does_not_filter_itself_away(ddp: Trace, until: Any) -> None:
    ranks = RankSelector(ddp, selection={"ranks": (0,)})
    steps = IterationSelector(ddp, selection={"iterations": tuple(ddp.iterations["iteration"][:1])})
    until(lambda: ranks.status == steps.status == "idle")
    assert numbers(ranks.table, "rank") == ddp.ranks
    assert steps.table["rows"] == ddp.iterations["iteration"].nunique()


def test_the_bars_of_iterations_are_about_the_chosen_ranks(ddp: Trace, until: Any) -> None:
    selection = Selection()
    steps = IterationSelector(ddp, selection=selection)
    until(lambda: steps.status == "idle")
    for rank in ddp.ranks:
        selection.ranks = (rank,)
        until(lambda rank=rank: set(numbers(steps.table, "slowest_rank")) == {rank})
        of_rank = ddp.rank(rank).iterations
        assert numbers(steps.table, "slowest_ns") == (of_rank["end_ns"] - of_rank["start_ns"]).tolist()
        assert set(numbers(steps.table, "ranks")) == {1}


def test_step_times_take_the_slowest_rank() -> None:
    iterations = pd.DataFrame(
        {
            "iteration": [1, 1, 2],
            "rank": [0, 1, 0],
            "start_ns": [0, 5, 100],
            "end_ns": [10, 50, 130],
            "partial": [False, True, False],
        }
    )
    frame = slowest_steps(iterations)
    assert frame.to_dict("list") == {
        "iteration": [1, 2],
        "slowest_ns": [45, 30],
        "fastest_ns": [10, 30],
        "slowest_rank": [1, 0],
        "ranks": [2, 1],
        "partial": [True, False],
    }


def test_cpu_only_says_which_flag_is_missing(until: Any) -> None:
    trace = Trace.open(shared_trace("hta/cpu_only"))
    panel, ranks = BreakdownPanel(trace), RankSelector(trace)
    until(lambda: panel.status == ranks.status == "empty")
    assert "ProfilerActivity.CUDA" in panel.message
    assert [option["rank"] for option in ranks.options] == trace.ranks


def test_an_analysis_that_fails_shows_its_error(
    ddp: Trace, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> pd.DataFrame:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr("hta_widgets.widgets.breakdown_panel.cached_analysis", broken)
    panel = BreakdownPanel(ddp)
    until(lambda: panel.status == "error")
    assert panel.message == "ZeroDivisionError: boom"


def test_the_next_answer_takes_the_error_away(
    ddp: Trace, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> pd.DataFrame:
        raise ZeroDivisionError("boom")

    with monkeypatch.context() as patched:
        patched.setattr("hta_widgets.widgets.breakdown_panel.cached_analysis", broken)
        panel = BreakdownPanel(ddp)
        until(lambda: panel.status == "error")
    panel.selection.ranks = (1,)
    until(lambda: panel.status == "idle")
    assert panel.message == ""


def test_closing_a_part_stops_its_work(ddp: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, closed, stopped = threading.Event(), threading.Event(), threading.Event()

    def working(*_: Any) -> pd.DataFrame:
        begun.set()
        assert closed.wait(20)
        try:
            checkpoint()
        except Superseded:
            stopped.set()
            raise
        return pd.DataFrame()

    monkeypatch.setattr("hta_widgets.widgets.breakdown_panel.cached_analysis", working)
    panel = BreakdownPanel(ddp)
    assert begun.wait(20)
    panel.close()
    closed.set()
    assert stopped.wait(20)


def test_repr_is_the_same_on_every_run(ddp: Trace) -> None:
    assert repr(RankSelector(ddp)).startswith("RankSelector(4 ranks, ")
    assert repr(BreakdownPanel(ddp)).startswith("BreakdownPanel('temporal_breakdown', 4 ranks, ")


def test_options_choose_and_are_checked(ddp: Trace, until: Any) -> None:
    panel = BreakdownPanel(
        ddp, "temporal_breakdown", python_expression=lambda: 'explorer.frame("temporal_breakdown")'
    )
    until(lambda: panel.status == "idle")
    assert panel.expression == 'explorer.frame("temporal_breakdown")'
    panel.options = {"by": "iteration"}
    until(lambda: panel.rows == len(ddp.iterations))
    pd.testing.assert_frame_equal(panel.frame(), analysis.temporal_breakdown(ddp, by="iteration"))
    assert panel.expression == "explorer.frame(\"temporal_breakdown\", by='iteration')"
    assert panel.drawing == "explorer.figure(\"temporal_breakdown\", by='iteration')"
    assert "iteration" in panel.marks["columns"][0]["values"][0]
    for refused in ({"by": "colour"}, {"nonsense": 1}):
        with pytest.raises(TraitError):
            panel.options = refused
    with pytest.raises(TypeError):
        BreakdownPanel(ddp, "comm_comp_overlap", by="iteration")


def test_a_long_answer_is_cut_on_the_page_and_whole_in_files(ddp: Trace, until: Any) -> None:
    panel = BreakdownPanel(ddp, "queue_length")
    until(lambda: panel.status == "idle" and panel.rows > 0)
    frame = panel.frame()
    assert panel.table["rows"] == 500 < panel.rows == len(frame)
    assert panel.marks["rows"] <= 8 * 2000
    assert panel.extent == list(ddp.extent_ns)

    def fetched(form: str) -> bytes:
        parts: list[bytes] = []
        chunks = 1
        while len(parts) < chunks:
            answer, (part,) = panel._on_file({"form": form, "key": form, "chunk": len(parts)})
            parts, chunks = [*parts, part], answer["chunks"]
        return b"".join(parts)

    pd.testing.assert_frame_equal(pd.read_csv(io.BytesIO(fetched("csv"))), frame)
    pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(fetched("parquet"))), frame)


def test_what_a_click_changes_at_once_is_one_action(ddp: Trace) -> None:
    selection = Selection()
    panel = BreakdownPanel(ddp, "stragglers", selection=selection)
    panel.set_state({"ranks": [2], "iterations": [11]})
    assert selection.to_dict() == {"ranks": (2,), "iterations": (11,)}
    selection.undo()
    assert (selection.to_dict(), panel.ranks, selection.can_undo) == ({}, (), False)


def test_a_note_leads_to_the_peak_of_memory_and_to_who_allocated(tmp_path: Path, until: Any) -> None:
    loop = Training()
    loop.step(1)
    panel = BreakdownPanel(loop.open(tmp_path), "memory_owners")
    until(lambda: panel.status == "idle" and panel.rows > 0)
    (note,) = panel.notes
    assert note["text"].startswith("Rank 0, cuda:0: 1.56 KiB at ")
    assert note["text"].endswith("; 62.5 % of it: before the recording.")
    rank, event_id = note["focus"]
    focused = panel.trace.events().set_index("event_id").loc[event_id]
    assert (rank, focused["name"], note["ranks"]) == (0, "aten::mm", [0])
    assert note["names"] == ["aten::linear", "autograd::engine::evaluate_function: AddmmBackward0"]


def test_the_overview_tells_findings_and_does_not_hide_what_it_selects(ddp: Trace, until: Any) -> None:
    selection = Selection()
    panel = BreakdownPanel(ddp, "overview", selection=selection)
    until(lambda: panel.status == "idle" and panel.rows > 0)
    assert panel.chart["type"] == "trend"
    every = ddp.iterations["iteration"].nunique()
    assert panel.marks["rows"] == every
    assert panel.sentence == f"{story(ddp).headline}."
    late, slow, stall, verdict, checked = panel.notes
    assert (verdict["severity"], verdict["kind"]) == ("verdict", "kernel_breakdown")
    assert checked["severity"] == "checked"
    assert (late["kind"], late["severity"]) == ("stragglers", "warning")
    assert late["ranks"] == slow["ranks"] == []  # their panels compare ranks
    assert slow["names"][0] in ddp.rank(2).names
    assert stall["focus"][1] in ddp.events()["event_id"].to_numpy()
    selection.ranks, selection.iterations = (2,), (11,)
    until(lambda: panel.status == "idle")
    assert panel.marks["rows"] == every
    selected = Scope(ranks=(2,), iterations=(11,))
    pd.testing.assert_frame_equal(panel.frame(), analysis.overview(ddp, selected))
    selection.window = (0, ddp.extent_ns[1] // 2)
    until(lambda: panel.status == "idle" and panel.marks["rows"] < every)


def test_an_overview_without_findings_shows_the_steps(tmp_path: Path, until: Any) -> None:
    simulate(SimulatedJob("clean", "single", steps=4, layers=6, batch=16)).write(tmp_path)
    panel = BreakdownPanel(tmp_path, "overview")
    until(lambda: panel.status == "idle")
    assert (panel.rows, [note["severity"] for note in panel.notes]) == (2, ["verdict", "checked"])
    assert panel.marks["rows"] == 4
    assert "; nothing to save stands out: the GPU computes 9" in panel.sentence
    assert panel.figure().layout.title.text == "What stands out"


def test_a_brushed_window_lists_its_longest_gaps(ddp: Trace, until: Any) -> None:
    selection = Selection()
    panel = BreakdownPanel(ddp, "idle_breakdown", selection=selection)
    until(lambda: panel.status == "idle" and panel.rows > 0)
    assert panel.notes == []
    selection.window = ddp.extent_ns
    until(lambda: len(panel.notes) == 5)
    first = panel.notes[0]
    assert first["text"].startswith("Rank ")
    assert "while the host waited for the data loader" in first["text"]
    rank, event_id = first["focus"]
    events = ddp.events(Scope(ranks=(rank,)))
    assert events.loc[events["event_id"] == event_id, "start_ns"].item() == first["window"][1]


@pytest.mark.parametrize(("ended_by", "focus"), [(-1, None), (0, [1, 0]), (7, [1, 7])])
def test_a_gap_shows_the_event_that_ended_it(
    ended_by: int, focus: list[int] | None, ddp: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one did; the first of a file is one, too."""
    gaps = analysis.idle_gaps(ddp, Scope(ranks=(1,))).assign(event_id=ended_by)
    monkeypatch.setattr("hta_widgets.widgets.notes.cached_analysis", lambda *_: gaps)
    assert [note["focus"] for note in notes_on(ddp, "idle_gaps", Scope(), gaps)] == [focus] * 5


@pytest.mark.parametrize("kind", analysis.ANALYSES)
def test_every_kind_is_a_panel(ddp: Trace, until: Any, kind: str) -> None:
    selection = Selection()
    panel = BreakdownPanel(ddp, kind, selection=selection)
    until(lambda: panel.status != "busy")
    assert panel.status in ("idle", "empty")
    selection.window = (10**15, 10**15 + 5)  # nothing lies there
    until(lambda: panel.status != "busy")
    assert panel.status in ("idle", "empty")
    panel.close()


def test_clicked_marks_choose_events_and_change_no_breakdown(ddp: Trace, until: Any) -> None:
    selection = Selection()
    panel = BreakdownPanel(ddp, "kernel_breakdown", selection=selection)
    until(lambda: panel.status == "idle")
    panel.names = ("Memset (Device)",)
    assert selection.names == ("Memset (Device)",)
    assert panel.status == "idle"
