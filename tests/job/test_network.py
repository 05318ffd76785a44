"""The replay of a network, and the order of operations: held to plain loops over what they mean."""

from __future__ import annotations

import random

import numpy as np
import pytest

from hta_widgets.analysis.job.network import network
from hta_widgets.analysis.job.order import _taken


def a_job(seed: int) -> tuple[np.ndarray, ...]:
    """before, after, meeting, step of operations on three ranks that sometimes meet; all can happen."""
    dice = random.Random(seed)
    before, after, meeting, step, number = [], [], [], [], 0
    for at_step in range(3):
        last: dict[int, int] = {}
        for _ in range(20):
            members = dice.sample(range(3), dice.choice([1, 1, 2, 3]))
            for rank in members:
                row = len(step)
                if rank in last:
                    before.append(last[rank])
                    after.append(row)
                last[rank] = row
                step.append(at_step)
                meeting.append(number if len(members) > 1 else -1)
            number += len(members) > 1
    mixed = np.random.default_rng(seed).permutation(len(step))  # rows are not in the order of time
    place = np.argsort(mixed)
    return place[before], place[after], np.array(meeting)[mixed], np.array(step)[mixed]


def by_hand(before: np.ndarray, after: np.ndarray, meeting: np.ndarray, time: np.ndarray) -> np.ndarray:
    """When each operation ends, by going over all of them until nothing changes."""
    ends, changed = np.zeros(len(time), np.int64), True
    while changed:
        ready = np.zeros(len(time), np.int64)
        for one, other in zip(before, after, strict=True):
            ready[other] = max(ready[other], ends[one])
        for number in set(meeting[meeting >= 0].tolist()):
            ready[meeting == number] = ready[meeting == number].max()
        changed = (ready + time != ends).any()
        ends = ready + time
    return ends


@pytest.mark.parametrize("seed", range(10))
def test_a_replay_is_what_plain_loops_find(seed: int) -> None:
    before, after, meeting, step = a_job(seed)
    rng = np.random.default_rng(seed)
    start, time, other = (rng.integers(0, 1000, len(step)) for _ in range(3))
    net = network(before, after, meeting, start, step)
    assert (net.forced, net.unreached, net.steps) == (0, 0, 3)
    assert net.ends(time).tolist() == by_hand(before, after, meeting, time).tolist()
    label = rng.integers(0, 11, len(step))  # more than are replayed in one walk
    found = net.with_other(time, other, label, np.arange(11))
    for chosen in range(11):
        ends = by_hand(before, after, meeting, np.where(label == chosen, other, time))
        assert found[chosen].tolist() == [ends[step == at].max() for at in range(3)]


def test_ranks_that_disagree_on_the_order_are_forced_on() -> None:
    """Two ranks meet twice, in opposite order: the meeting that began first goes ahead, and all end."""
    before, after = np.array([0, 2]), np.array([1, 3])
    meeting, start, step = np.array([0, 1, 1, 0]), np.array([0, 10, 5, 20]), np.zeros(4, np.int64)
    net = network(before, after, meeting, start, step)
    assert (net.forced, net.unreached) == (1, 0)
    assert net.ends(np.array([3, 4, 4, 3])).tolist() == [3, 7, 7, 3]


def taken_slowly(own: np.ndarray, ends: np.ndarray, begins: np.ndarray, tolerance: int) -> list[bool]:
    latest = np.maximum(own, ends.max(axis=0))
    taken = [
        bool(np.mean((end >= latest - tolerance) & (begins - end <= 4 * tolerance)) >= 0.05) for end in ends
    ]
    known = np.max([own, *(end for end, is_taken in zip(ends, taken, strict=True) if is_taken)], axis=0)
    unexplained = np.median((begins - known).astype(object))
    gaps = [np.median((begins - end).astype(object)) for end in ends]
    best = gaps.index(min(gaps))
    if unexplained > 4 * tolerance and gaps[best] < unexplained - 4 * tolerance:
        taken[best] = True
    return taken


@pytest.mark.parametrize("seed", range(20))
def test_dependencies_are_those_that_explain_a_start(seed: int) -> None:
    rng = np.random.default_rng(seed)
    candidates, occurrences = rng.integers(1, 4), rng.integers(1, 30)
    begins = 1_700_000_000_000_000_000 + rng.integers(0, 1_000_000, occurrences)
    ends = begins - rng.choice([10, 3_000, 50_000], (candidates, 1)) * rng.integers(1, 9, (1, occurrences))
    nothing = np.full(occurrences, np.iinfo(np.int64).min // 2)
    own = nothing if seed % 2 else begins - rng.integers(0, 100_000, occurrences)
    assert _taken(own, ends, begins, 1024).tolist() == taken_slowly(own, ends, begins, 1024)
