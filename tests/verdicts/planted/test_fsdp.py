"""FSDP jobs with planted launch orders: the fault is told with its units and cost, and no more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets import examples
from hta_widgets.analysis.findings import CHECKED, overview
from hta_widgets.analysis.findings.fsdp_rules import _listed
from tests.job.fsdp_jobs import US, FsdpJob
from tests.support import crossed

DRAINED = FsdpJob(waits=True, backward_ahead=0, steps=6)
ONE_STREAM = FsdpJob(one_stream=True, backward_ahead=0, steps=6)
WRONG_ORDER = FsdpJob(first_ahead=(1, 0), gather_ns=350 * US, steps=6)
SETTINGS = {
    True: ("set_modules_to_forward_prefetch", "set_modules_to_backward_prefetch"),
    False: ("forward_prefetch=True", "backward_prefetch=BackwardPrefetch.BACKWARD_PRE"),
}


def told(job: FsdpJob, folder: Path) -> list[dict[str, object]]:
    frame = overview(job.open(folder))
    return frame[frame["topic"] == "fsdp_prefetch"].to_dict("records")


@pytest.mark.parametrize("named", [True, False])
def test_gathers_in_their_own_turn(named: bool, tmp_path: Path):
    """The host waits at each unit: every layer's gather is alone, twice in each step."""
    (row,) = told(replace(DRAINED, names_units=named), tmp_path)
    assert row["cost_ns"] == 5 * 2 * 4 * 300 * US  # the end of the sixth step is not recorded
    first = "layers.0, layers.1, layers.2" if named else "unit 1, unit 2, unit 3"
    assert f"all-gathers of {first} and 1 more unit for forward and backward are issued only" in row["text"]
    assert "(2.40 ms per step) of them, 300 µs each" in row["text"]
    assert all(setting in row["suggestion"] for setting in SETTINGS[named])
    assert not any(setting in row["suggestion"] for setting in SETTINGS[not named])
    # a cost is no saving: that is as long as the job takes less with that prefetch
    job = replace(DRAINED, names_units=named)
    made = replace(job, forward_ahead=1, backward_ahead=1, first_ahead=(0,))
    assert row["section"] == "saves" and row["edits"] == "[edits.prefetch(1)]" and row["method"] == "bound"
    assert row["saving_ns"] == pytest.approx(
        5 / 6 * (job.play().program.now - made.play().program.now), rel=0.02
    )
    said = "Simulated with all-gathers issued one unit ahead, the steps take at most "
    assert row["saving"].startswith(said)


def test_units_of_a_model_without_parameters_of_its_own(tmp_path: Path):
    """No range is around the units: they are of one forward pass all the same, of which one comes first."""
    (row,) = told(replace(DRAINED, root=False), tmp_path)
    assert row["cost_ns"] == 5 * (3 + 4) * 300 * US
    assert "of layers.1, layers.2, layers.3 and 1 more unit" in row["text"]


def test_copies_into_the_next_buffer_are_no_compute(tmp_path: Path):
    """Sent for ahead, a unit's buffer is filled while the link is busy with the one before."""
    job = replace(DRAINED, backward_ahead=1, copy_in_ns=20 * US)
    (row,) = told(job, tmp_path)
    assert "for forward are issued only in the unit's own turn" in row["text"]
    assert row["cost_ns"] == pytest.approx(5 * 4 * 300 * US, rel=0.02)


@pytest.mark.parametrize("named", [True, False])
def test_gathers_behind_reductions(named: bool, tmp_path: Path):
    """In one stream, what is issued after a reduction waits for the compute before that."""
    (row,) = told(replace(ONE_STREAM, names_units=named), tmp_path)
    assert row["cost_ns"] == 5 * 3 * 300 * US  # the last layer's has no reduction before it
    units = "layers.0, layers.1 and layers.2" if named else "unit 1, unit 2 and unit 3"
    assert f"{units} for backward are issued behind what is needed later" in row["text"]
    assert SETTINGS[named][1] in row["suggestion"] and SETTINGS[named][0] not in row["suggestion"]
    job = replace(ONE_STREAM, names_units=named)
    less = job.play().program.now - replace(job, backward_ahead=1).play().program.now
    assert row["edits"] == "[edits.prefetch(1, phase='backward')]"
    assert row["saving_ns"] == pytest.approx(5 / 6 * less, rel=0.002)  # of the steps that are judged


def test_another_order_than_that_of_use(tmp_path: Path):
    (row,) = told(WRONG_ORDER, tmp_path)
    assert row["cost_ns"] == 5 * 350 * US
    assert "all-gathers of layers.0 for forward are issued behind what is needed later" in row["text"]
    assert row["suggestion"] == (
        "Pass the modules to set_modules_to_forward_prefetch in the order in which they run."
    )
    assert not row["method"] and "no edit changes the order of all-gathers" in row["saving"]


def test_the_limit_of_all_gathers(tmp_path: Path):
    """The host waits in the rate limiter: then it is not the prefetch that is missing."""
    played = replace(DRAINED, names_units=False).play()
    for event in played.events:
        if event["name"] == "cudaDeviceSynchronize":
            inside = event | {"cat": "user_annotation", "name": "FullyShardedDataParallel.rate_limiter"}
            played.events.append(inside)
            event["name"] = "cudaEventSynchronize"
    frame = overview(played.open(tmp_path))
    (row,) = frame[frame["topic"] == "fsdp_prefetch"].to_dict("records")
    assert "limit_all_gathers=False" in row["suggestion"]
    assert not row["method"] and not row["edits"]


NEAR_MISSES = [
    FsdpJob(steps=6),  # the host is ahead
    replace(DRAINED, forward_ahead=1, backward_ahead=1, first_ahead=(0,)),
    replace(ONE_STREAM, backward_ahead=1),
    replace(WRONG_ORDER, first_ahead=(0, 1)),
    FsdpJob(gather_ns=1_200 * US, steps=6),  # the link is the limit
    FsdpJob(held_ns=500 * US, steps=6),
    replace(DRAINED, gather_ns=10 * US),  # too little to tell
]


@pytest.mark.parametrize(("job", "named"), crossed(NEAR_MISSES, [True, False]))
def test_near_misses(job: FsdpJob, named: bool, tmp_path: Path):
    assert not told(replace(job, names_units=named), tmp_path)


@pytest.mark.parametrize("named", [True, False])
def test_one_unit_ahead_is_too_late(named: bool, tmp_path: Path):
    """Backward sends for the next unit when its own compute is done: for the one after it, that is early."""
    job = FsdpJob(names_units=named, sends_after_ns=1_700 * US, layers=10, steps=6)
    (row,) = told(job, tmp_path)
    assert "for backward are issued late, though in the turn of another unit" in row["text"]
    assert row["edits"] == "[edits.prefetch(2, phase='backward')]"
    less = job.play().program.now - replace(job, backward_ahead=2).play().program.now
    assert row["saving_ns"] == pytest.approx(less, rel=0.03)


def test_a_rank_without_such_all_gathers(tmp_path: Path):
    """The rank that is replayed, which may wait least for others, sends for its units ahead already."""
    ahead = replace(DRAINED, forward_ahead=1, backward_ahead=1, first_ahead=(0,), gather_ns=100 * US)
    late = replace(DRAINED, waits_for_ns=50 * US)
    frame = overview(ahead.play().open(tmp_path, late.play().events, late.play().events))
    (row,) = frame[frame["topic"] == "fsdp_prefetch"].to_dict("records")
    assert not row["method"]
    assert "rank 0 has no all-gather that could be issued earlier" in row["saving"]


def test_a_rank_that_comes_late_is_no_fault_of_fsdp(tmp_path: Path):
    trace = replace(DRAINED, waits_for_ns=350 * US).play().open(tmp_path, DRAINED.play().events)
    frame = overview(trace)
    rows = frame[frame["topic"] == "fsdp_prefetch"]
    # the other rank's own gathers are late all the same
    assert rows["cost_ns"].tolist() == [5 * 2 * 4 * 300 * US // 2]


def test_without_ranges_it_is_not_looked_for(tmp_path: Path):
    frame = overview(replace(DRAINED, ranges=False).open(tmp_path))
    assert "fsdp_prefetch" not in set(frame["topic"])
    assert not frame.loc[frame["severity"] == CHECKED, "checked"].str.contains("fsdp_prefetch").any()


def test_units_that_cannot_be_told_apart_are_an_open_question(tmp_path: Path):
    played = DRAINED.play()
    for event in played.events:
        event["name"] = event["name"].partition(" (")[0] if "FSDP::" in event["name"] else event["name"]
    frame = overview(played.open(tmp_path))
    assert "fsdp_prefetch" not in set(frame["topic"])
    open_ = frame.loc[frame["topic"] == "not_judged", "text"]
    assert open_.str.contains("it is unknown when FSDP gathers parameters").any()


@pytest.mark.parametrize("name", ["gpt2_fsdp_full_shard", "gpt2_fsdp_shard_grad_op"])
def test_bundled_examples_have_no_such_fault(name: str):
    """Their gathers follow the first one on the link, which nothing can hide."""
    frame = overview(examples.load(name))
    assert "fsdp_prefetch" not in set(frame["topic"])
    assert frame.loc[frame["severity"] == CHECKED, "checked"].str.contains("fsdp_prefetch").any()


def test_units_that_lose_as_much_stand_in_the_order_of_their_names() -> None:
    late = pd.DataFrame({"name": ["b", "a", "c", "c"], "exposed_ns": [5, 5, 3, 3]})
    assert next(iter(_listed(late).claims)).value == ("c", "a", "b")
