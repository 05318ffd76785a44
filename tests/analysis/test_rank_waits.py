"""The matrix of waits: worked out by hand, followed through chains, and summed exactly."""

import pandas as pd
import pytest

from hta_widgets import examples
from hta_widgets.analysis import ANALYSES, collectives, rank_waits, stragglers
from hta_widgets.analysis.communication.culprits import follow
from hta_widgets.analysis.communication.waits import _kernels, _working, meeting
from hta_widgets.analysis.device_time.busy import busy
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.analysis.test_stragglers import MS, arriving
from tests.verdicts.planted.late_ranks import CASES

PARTS = ["computing_ns", "communicating_ns", "copying_ns", "idle_ns"]


@pytest.fixture(scope="module")
def job() -> Trace:
    return examples.load("ddp_4ranks")


def said(frame: pd.DataFrame) -> str:
    return ANALYSES["rank_waits"].sentence(frame)


def test_by_hand(tmp_path):
    trace = arriving(tmp_path, [0, 2 * MS, 5 * MS], [4 * MS, 0, 3 * MS])
    frame = rank_waits(trace, by="iteration")
    assert frame[["iteration", "rank", "awaited", "wait_ns"]].to_numpy().tolist() == [
        [0, 0, 2, 5 * MS],
        [0, 1, 2, 3 * MS],
        [1, 1, 0, 4 * MS],
        [1, 2, 0, MS],
    ]
    whole = rank_waits(trace)
    assert whole[["rank", "awaited", "wait_ns"]].to_numpy().tolist() == [
        [0, 2, 5 * MS],
        [1, 0, 4 * MS],
        [1, 2, 3 * MS],
        [2, 0, MS],
    ]
    assert said(whole) == (
        "3 ranks wait 13.0 ms in all. The largest part, 5.00 ms (38.5 %), is rank 0 waiting for rank 2."
    )
    assert rank_waits(trace, Scope(iterations=(1,)))["wait_ns"].tolist() == [4 * MS, MS]


def test_equal_arrivals_are_no_wait(tmp_path):
    frame = rank_waits(arriving(tmp_path, [0, 5_000, 0]))
    assert frame.empty
    assert said(frame) == "No rank waits noticeably for another at the collectives."


@pytest.mark.parametrize("scope", [Scope(), Scope(iterations=(11,)), Scope(ranks=(0, 1, 3))])
def test_sums_are_those_of_stragglers(job, scope):
    whole, frame = stragglers(job, scope), rank_waits(job, scope)
    waited = whole.groupby("rank")["waited_ns"].sum()
    assert frame.groupby("rank")["wait_ns"].sum().to_dict() == waited[waited > 0].to_dict()
    known = frame[frame["awaited"] >= 0]
    blamed = whole.groupby("rank")["blamed_ns"].sum()
    assert known.groupby("awaited")["wait_ns"].sum().to_dict() == blamed[blamed > 0].to_dict()
    assert known[PARTS].sum(axis=1).tolist() == known["wait_ns"].tolist()
    by_step = rank_waits(job, scope, by="iteration").groupby(["rank", "awaited"], as_index=False)
    pd.testing.assert_frame_equal(by_step[["wait_ns", *PARTS]].sum(), frame)


def test_the_cause_is_awaited_not_the_last_to_arrive(tmp_path):
    """The last stage of a pipeline exchanges data with the one before it only, and waits for the second."""
    frame = rank_waits(CASES["pipeline_slow_stage_1"].play().open(tmp_path, ()))
    last = frame[frame["rank"] == 3].set_index("awaited")["wait_ns"]
    assert last[1] > 20 * MS
    caused = frame.groupby("awaited")["wait_ns"].sum()
    assert caused.idxmax() == 1
    assert 2 * caused[1] > caused.sum()


def test_unknown_partners_are_nobody(tmp_path):
    case = CASES["culprit_is_not_recorded_in_a_pipeline"]
    frame = rank_waits(case.play().open(tmp_path, case.without))
    unknown = frame[frame["awaited"] == -1]
    assert unknown["wait_ns"].gt(0).all()
    assert not unknown[PARTS].to_numpy().any()
    assert len(unknown)


def test_what_is_asked_for(job):
    with pytest.raises(ValueError, match="by must be"):
        rank_waits(job, by="rank")  # type: ignore[arg-type]
    with pytest.raises(MissingDataError, match="second rank"):
        rank_waits(job, Scope(ranks=(0,)))


def meetings(trace: Trace) -> list[list[list[object]]]:
    """Of each exchange, asked by each of its kernels: [rank, waited, is last]."""
    found = []
    frame = collectives(trace)
    for _, kernels in frame.groupby("match"):
        answers = [
            meeting(trace, rank, event_id)
            for rank, event_id in zip(kernels["rank"], kernels["event_id"], strict=True)
        ]
        assert all(answer.equals(answers[0]) for answer in answers), "whoever is asked"
        assert set(answers[0]["event_id"]) <= set(kernels["event_id"])
        found.append(answers[0][["rank", "waited_ns", "is_last"]].to_numpy().tolist())
    return found


def test_who_waits_at_one_exchange(tmp_path):
    trace = arriving(tmp_path, [0, 2 * MS, 5 * MS], [4 * MS, 0, 3 * MS], [MS, MS, MS])
    assert meetings(trace) == [
        [[2, 0, True], [0, 5 * MS, False], [1, 3 * MS, False]],
        [[0, 0, True], [1, 4 * MS, False], [2, MS, False]],
        [],  # nobody waited
    ]
    frame = meeting(trace, 0, 10_000)
    assert frame.empty and list(frame) == ["rank", "event_id", "waited_ns", "is_last"]


def test_meetings_are_those_of_a_plain_computation(job):
    """Of kernels that end together, the last to begin."""
    frame = collectives(job)
    compared = 0
    for (_, kernels), found in zip(frame.groupby("match"), meetings(job), strict=True):
        shortest = kernels["dur_ns"].min()
        waited = {rank: dur - shortest for rank, dur in zip(kernels["rank"], kernels["dur_ns"], strict=True)}
        if max(waited.values()) <= 10_000:
            assert found == []
            continue
        compared += 1
        (last,) = [rank for rank, _, is_last in found if is_last]
        assert found[0][0] == last and waited[last] <= 10_000
        assert {rank: ns for rank, ns, _ in found} == waited
    assert compared >= 10


@pytest.mark.parametrize("name", ["ddp_4ranks", "gpt2_fsdp_full_shard"])
def test_all_that_is_asked_of_a_culprit_is_what_it_does_while_others_wait(name):
    """With its whole compute the same causes are found, and its work in each part of a wait is the same."""
    trace = examples.load(name)
    whole = {rank: busy(trace.rank(rank), Scope()) for rank in trace.ranks}
    parts = follow(_kernels(trace, None), {rank: device.compute for rank, device in whole.items()})
    asked = _working(trace, None)
    clipped = follow(_kernels(trace, None), {rank: work.compute for rank, work in asked.items()})
    pd.testing.assert_frame_equal(clipped, parts)
    of_known = parts[parts["culprit"] >= 0]
    assert len(of_known)
    for culprit, start, end in of_known[["culprit", "start_ns", "end_ns"]].itertuples(index=False):
        device, window = whole[culprit], [[start, end]]
        assert [kind.within(window) for kind in asked[culprit]] == [
            kind.within(window)
            for kind in (device.compute, device.exposed_communication, device.exposed_memory)
        ]
    assert sum(len(work.compute) for work in asked.values()) < sum(
        len(device.compute) for device in whole.values()
    )
