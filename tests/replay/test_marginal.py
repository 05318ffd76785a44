"""What changes save one after the other: the greedy order, counted again with `what_if` alone."""

import math
from itertools import permutations

import pandas as pd
import pytest

from hta_widgets import Scope, Trace, analysis, edits, examples
from hta_widgets.errors import MissingDataError
from tests.analysis.kineto_file import job
from tests.replay.program import only_a_script, steps_of
from tests.support import shared_trace

COLUMNS = ["rank", "change", "edits", "bound", "before_ns", "alone_ns", "next_ns", "together_ns"]
MANY = [edits.copies(2.0), edits.kernels(2.0), edits.communication(0), edits.host(0.5), edits.syncs()]


def saved(trace: Trace, made: list, scope: Scope) -> int:
    rows = analysis.what_if(trace, made, scope)
    if rows["iteration"].isna().any():
        rows = rows[rows["iteration"].isna()]
    return int((rows["before_ns"] - rows["after_ns"]).sum())


def counted(trace: Trace, changes: list, scope: Scope) -> list[tuple[int, int, int, int]]:
    """(change, alone, next, together) in greedy order, every set of edits asked of `what_if`."""
    rows, made, left, together = [], [], list(range(len(changes))), 0
    while left:
        reached = {i: saved(trace, [*made, changes[i]], scope) for i in left}
        best = next(i for i in left if reached[i] == max(reached.values()))
        alone = saved(trace, [changes[best]], scope)
        rows.append((best, alone, reached[best] - together, reached[best]))
        together, made = reached[best], [*made, changes[best]]
        left.remove(best)
    return rows


@pytest.mark.parametrize("name", ["hta/trace_diff/control", "ddp_4ranks"])
@pytest.mark.parametrize("steps", [False, True])
def test_each_change_is_what_the_replays_of_all_sets_say(name, steps):
    trace = examples.load(name) if name == "ddp_4ranks" else Trace.open(shared_trace(name))
    numbers = tuple(trace.iterations["iteration"].unique().tolist()) if steps else None
    frame = analysis.marginal_savings(trace, MANY, Scope(iterations=numbers))
    assert frame.columns.tolist() == COLUMNS
    assert frame["rank"].unique().tolist() == trace.ranks
    for rank, rows in frame.groupby("rank"):
        scope = Scope(ranks=(rank,), iterations=numbers)
        expected = counted(trace, MANY, scope)
        assert (
            list(rows[["change", "alone_ns", "next_ns", "together_ns"]].itertuples(index=False, name=None))
            == expected
        )
        assert rows["next_ns"].sum() == rows["together_ns"].iloc[-1] == saved(trace, MANY, scope)
        recorded = analysis.what_if(trace, [], scope)
        whole = recorded["iteration"].isna()
        assert (rows["before_ns"] == recorded.loc[whole if whole.any() else ~whole, "before_ns"].sum()).all()


def test_a_change_that_brings_something_only_after_another(tmp_path):
    """A device of 300 us a step behind a host of 100 us: the host counts once the kernels are fast."""
    events, _ = steps_of(kernel_ns=300_000)
    trace = job(tmp_path, events)
    frame = analysis.marginal_savings(trace, [edits.host(0.25), edits.kernels(10.0)])
    assert frame["edits"].tolist() == ["edits.kernels(10.0)", "edits.host(0.25)"]
    assert frame["change"].tolist() == [1, 0]
    kernels, host = frame.to_dict("records")
    assert kernels["alone_ns"] == kernels["next_ns"] > 0
    assert host["alone_ns"] < host["next_ns"] / 10
    assert kernels["together_ns"] + host["next_ns"] == host["together_ns"]


def test_of_equals_the_first_comes_first_and_adds_all(tmp_path):
    events, _ = steps_of(kernel_ns=300_000)
    trace = job(tmp_path, events)
    twice = [
        edits.without("nothing"),
        edits.kernels(math.inf),
        [edits.kernels(math.inf), edits.without("no")],
    ]
    frame = analysis.marginal_savings(trace, twice)
    assert frame["change"].tolist() == [1, 0, 2]
    assert frame["edits"].iloc[-1] == "[edits.kernels(math.inf), edits.without('no')]"
    assert frame["bound"].tolist() == [True, False, True]
    assert frame["next_ns"].tolist()[1:] == [0, 0]
    assert frame["alone_ns"].tolist()[::2] == [frame["next_ns"].iloc[0]] * 2


def test_the_order_of_the_list_changes_no_saving():
    trace = examples.load("single_gpu_dataloader_stall")
    changes = [edits.without("*DataLoader*"), edits.kernels(2.0), edits.host(0.5)]
    frames = [
        analysis.marginal_savings(trace, order).drop(columns="change") for order in permutations(changes)
    ]
    for frame in frames[1:]:
        pd.testing.assert_frame_equal(frame, frames[0])


def test_without_changes_there_are_no_rows():
    assert analysis.marginal_savings(examples.load("ddp_4ranks"), []).columns.tolist() == COLUMNS


def test_untrusted_ranks_have_no_rows_and_alone_raise(tmp_path):
    events, _ = steps_of(kernel_ns=300_000)
    trace = job(tmp_path, only_a_script(), events)
    assert analysis.marginal_savings(trace, [edits.kernels(2.0)])["rank"].tolist() == [1]
    with pytest.raises(MissingDataError, match="on the host, where nothing is recorded"):
        analysis.marginal_savings(trace, [edits.kernels(2.0)], Scope(ranks=(0,)))
