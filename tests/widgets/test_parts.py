"""Selectors and panels follow the selection and show what the analyses say."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from hta_widgets import BreakdownPanel, IterationSelector, RankSelector, Scope, Selection, Trace, analysis
from hta_widgets.widgets.iteration_selector import step_times
from tests.support import shared_trace


def numbers(wire: dict[str, Any], name: str) -> list[float]:
    column = next(column for column in wire["columns"] if column["name"] == name)
    return np.frombuffer(wire["data"], "<f8", wire["rows"], column["offset"]).tolist()


def test_panel_shows_the_frame_of_the_selection(ddp: Trace, until: Any) -> None:
    selection = Selection(ranks=(1,))
    panel = BreakdownPanel(ddp, "temporal_breakdown", selection=selection)
    until(lambda: panel.status == "idle")
    expected = analysis.temporal_breakdown(ddp, Scope(ranks=(1,)))
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


def test_unknown_analysis_lists_the_known(ddp: Trace) -> None:
    with pytest.raises(ValueError, match="temporal_breakdown, comm_comp_overlap"):
        BreakdownPanel(ddp, "nonsense")


def test_a_selector_does_not_filter_itself_away(ddp: Trace, until: Any) -> None:
    ranks = RankSelector(ddp, selection={"ranks": (0,)})
    steps = IterationSelector(ddp, selection={"iterations": tuple(ddp.iterations["iteration"][:1])})
    until(lambda: ranks.status == steps.status == "idle")
    assert numbers(ranks.table, "rank") == ddp.ranks
    assert steps.table["rows"] == ddp.iterations["iteration"].nunique()


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
    frame = step_times(iterations)
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

    monkeypatch.setattr("hta_widgets.widgets.breakdown_panel.answer", broken)
    panel = BreakdownPanel(ddp)
    until(lambda: panel.status == "error")
    assert panel.message == "ZeroDivisionError: boom"


def test_repr_is_the_same_on_every_run(ddp: Trace) -> None:
    assert repr(RankSelector(ddp)).startswith("RankSelector(4 ranks, ")
    assert repr(BreakdownPanel(ddp)).startswith("BreakdownPanel('temporal_breakdown', 4 ranks, ")
