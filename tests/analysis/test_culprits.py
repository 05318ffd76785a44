"""Who causes a wait, followed from rank to rank: by hand, moment by moment, and on two recorded jobs."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from hta_widgets.analysis.communication.arrivals import arrivals
from hta_widgets.analysis.communication.culprits import NOBODY, follow
from hta_widgets.analysis.communication.standing_out import standing_out
from hta_widgets.analysis.core.intervals import Intervals
from tests.support import EVERY_CASE, shared_job


@dataclass
class Exchange:
    """A communication kernel as the test keeps it: times on its rank's clock."""

    rank: int
    start: int
    waited: int
    end: int
    last: int
    known: bool = True


def answer(kernels: list[Exchange], computing: dict[int, list[tuple[int, int]]]) -> pd.DataFrame:
    rows = [(k.rank, k.start, k.end, k.waited, k.last, k.known) for k in kernels]
    frame = pd.DataFrame(rows, columns=["rank", "start_ns", "end_ns", "waited_ns", "last", "known"])
    ranks = {k.rank for k in kernels}
    times = {rank: np.array(computing.get(rank, []), np.int64).reshape(-1, 2) for rank in ranks}
    return follow(frame, {rank: Intervals.union(*span.T) for rank, span in times.items()})


def by_culprit(parts: pd.DataFrame, of: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for kernel, culprit, start, end in parts.to_numpy().tolist():
        if kernel == of:
            found[culprit] = found.get(culprit, 0) + end - start
    return found


def blamed(kernels: list[Exchange], computing: dict[int, list[tuple[int, int]]], of: int) -> dict[int, int]:
    return by_culprit(answer(kernels, computing), of)


# Rank 2 waits for rank 1 from 0 to 100. Rank 1 waits for rank 0 from 20 to 70 of that time, and has the data
# at 80. Rank 0's clock is 1000 ahead.
CHAIN = [
    Exchange(2, 0, 100, 110, last=1),
    Exchange(1, 100, 0, 110, last=1),
    Exchange(1, 20, 50, 80, last=3),
    Exchange(0, 1070, 0, 1080, last=3),
]


def test_the_wait_of_the_last_to_arrive_is_its_partners_fault() -> None:
    assert blamed(CHAIN, {}, of=0) == {1: 50, 0: 50}
    assert blamed(CHAIN, {}, of=2) == {0: 50}
    parts = answer(CHAIN, {})
    assert parts[["culprit", "start_ns", "end_ns"]].to_numpy().tolist() == [
        [1, 0, 20],
        [0, 1020, 1070],
        [1, 70, 80],
        [1, 80, 100],
        [0, 1020, 1070],
    ]


def test_a_rank_that_computes_meanwhile_is_its_own_cause() -> None:
    assert blamed(CHAIN, {1: [(30, 60)]}, of=0) == {1: 80, 0: 20}


def test_what_a_kernel_of_unrecorded_ranks_waits_for_is_unknown() -> None:
    unknown = [*CHAIN[:2], Exchange(1, 20, 0, 80, last=-1, known=False)]
    assert blamed(unknown, {}, of=0) == {1: 40, NOBODY: 60}
    partly = [*CHAIN[:2], Exchange(1, 20, 50, 80, last=3, known=False), CHAIN[3]]
    assert blamed(partly, {}, of=0) == {1: 40, 0: 50, NOBODY: 10}


def test_a_wait_without_a_last_arriver_is_unknown() -> None:
    assert blamed([Exchange(0, 0, 7, 9, last=-1)], {}, of=0) == {NOBODY: 7}


def test_a_kernel_that_runs_on_beyond_the_arrival_delayed_nobody() -> None:
    beside = [*CHAIN[:2], Exchange(1, 20, 50, 101, last=3), CHAIN[3]]
    assert blamed(beside, {}, of=0) == {1: 100}


def test_of_two_waits_at_once_the_last_to_end_counts() -> None:
    third = [
        *CHAIN,
        Exchange(1, 20, 70, 95, last=5),
        Exchange(3, 90, 0, 95, last=5),
    ]
    assert blamed(third, {}, of=0) == {1: 30, 3: 70}


def test_ranks_that_wait_in_a_circle_have_no_culprit() -> None:
    circle = [
        Exchange(0, 0, 100, 110, last=1),
        Exchange(1, 100, 0, 110, last=1),
        Exchange(1, 0, 50, 60, last=3),
        Exchange(0, 50, 0, 60, last=3),
    ]
    assert blamed(circle, {}, of=0) == {NOBODY: 50, 1: 50}


def moment_by_moment(
    kernels: list[Exchange], computing: dict[int, list[tuple[int, int]]], of: int
) -> dict[int, int]:
    """The same definition, asked at every moment of the wait."""

    def culprit(arriving: Exchange, now: int, chain: list[int]) -> int:
        rank = arriving.rank
        if rank in chain:
            return NOBODY
        mine = [k for k in kernels if k.rank == rank and k.start <= now < k.end and k.end <= arriving.start]
        if not mine or any(begin <= now < end for begin, end in computing.get(rank, [])):
            return rank
        chosen = max(mine, key=lambda k: (k.end, -k.start))
        arrives = chosen.start + chosen.waited
        if now >= arrives:
            return rank if chosen.known else NOBODY
        if chosen.last < 0:
            return NOBODY
        partner = kernels[chosen.last]
        return culprit(partner, now - arrives + partner.start, [*chain, rank])

    found: dict[int, int] = {}
    waiting = kernels[of]
    for moment in range(waiting.waited):
        who = NOBODY
        if waiting.last >= 0:
            last = kernels[waiting.last]
            who = culprit(last, last.start - waiting.waited + moment, [waiting.rank])
        found[who] = found.get(who, 0) + 1
    return found


def random_job(seed: int) -> tuple[list[Exchange], dict[int, list[tuple[int, int]]]]:
    """Exchanges of some of the ranks, in any order and at once, with clocks that differ; some unrecorded."""
    dice = random.Random(seed)
    ranks = list(range(dice.randint(2, 5)))
    clock = {rank: dice.randint(-50, 50) for rank in ranks}
    kernels: list[Exchange] = []
    for _ in range(dice.randint(1, 12)):
        members = dice.sample(ranks, dice.randint(2, len(ranks)))
        arrive = {rank: dice.randint(0, 120) for rank in members}
        end = max(arrive.values()) + dice.randint(1, 20)
        last = max(members, key=lambda rank: arrive[rank])
        first = len(kernels)
        known, unclear = dice.random() < 0.8, dice.random() < 0.1
        for rank in members:
            waited = max(arrive.values()) - arrive[rank]
            start = arrive[rank] + clock[rank]
            position = -1 if unclear else first + members.index(last)
            kernels.append(Exchange(rank, start, waited, end + clock[rank], position, known))
    computing = {}
    for rank in ranks:
        edges = sorted(dice.sample(range(-50, 200), 2 * dice.randint(0, 6)))
        computing[rank] = list(zip(edges[::2], edges[1::2], strict=True))
    return kernels, computing


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_random_jobs_are_blamed_as_moment_by_moment(first: int) -> None:
    followed = 0
    for seed in range(first, first + 100):
        kernels, computing = random_job(seed)
        parts = answer(kernels, computing)
        for of, kernel in enumerate(kernels):
            expected = moment_by_moment(kernels, computing, of)
            assert by_culprit(parts, of) == expected
            assert sum(expected.values()) == kernel.waited
            direct = kernels[kernel.last].rank if kernel.last >= 0 else NOBODY
            followed += sum(ns for who, ns in expected.items() if who not in (NOBODY, direct))
    assert followed, "no chain was followed"


def published(name: str) -> tuple[pd.DataFrame, dict[int, Intervals]]:
    """A recorded job of one worker per pipeline stage and replica, as kernels of exchanges and compute."""
    events = pd.read_parquet(shared_job(f"trace-{name}.parquet")).astype({"rank": "int64"})
    step = (events["step"] - events["step"].min()).astype("int64") * 10**13  # each counts from its own zero
    for column, seconds in (
        ("start_ns", events["start_ts"].astype("float64")),
        ("end_ns", events["start_ts"].astype("float64") + events["duration"].astype("float64")),
    ):
        events[column] = (seconds * 1e9).round().astype("int64") + step
    events["collective"] = events["optype"].astype(str)
    own = events["collective"].isin(["forward-compute", "backward-compute", "optimizer", "gc"])
    computing = {
        int(rank): Intervals.union(of["start_ns"], of["end_ns"]) for rank, of in events[own].groupby("rank")
    }
    kernels = events[~own].sort_values(["step", "rank", "collective", "seq_id"], ignore_index=True)
    nth = kernels.groupby(["step", "rank", "collective"]).cumcount()
    keys = []
    for kind, replica, stage, number, at in zip(
        *(kernels[column] for column in ("collective", "dp_rank", "stage", "step")), nth, strict=True
    ):
        if kind.endswith(("-send", "-recv")):
            onwards = {"forward-recv": -1, "backward-recv": 1}.get(kind, 0)
            keys.append((number, kind[:-5], replica, stage + onwards, at))
        elif kind in ("params-all-gather", "grads-reduce-scatter"):
            keys.append((number, kind, -1, stage, at))
        elif kind == "embedding-grads-all-reduce":
            keys.append((number, kind, replica, -1, at))
        elif kind == "optimizer-clip-main-grad":
            keys.append((number, kind, -1, -1, at))
        else:  # its group was not recorded
            keys.append((number, kind, replica, stage, at))
    kernels["match"] = pd.factorize(pd.Series(keys))[0]
    kernels["iteration"], kernels["dur_ns"] = kernels["step"], kernels["end_ns"] - kernels["start_ns"]
    each = arrivals(kernels)
    last = each[each["is_last"]]
    kernels["waited_ns"] = each["waited_ns"].reindex(kernels.index, fill_value=0)
    position = pd.Series(last.index, last["match"])
    kernels["last"] = kernels["match"].map(position).fillna(-1).astype("int64")
    kernels["known"] = kernels["match"].isin(each["match"])
    return kernels, computing


PUBLISHED = [("ST", [6, 7], [2, 3], "ms-ST.json"), ("AR", [0], [16, 32], "mw-AR.json")]


@pytest.mark.parametrize(
    ("name", "culprits", "victims", "published_key"),
    PUBLISHED if EVERY_CASE else PUBLISHED[:1],  # the other is the larger job
)
def test_the_published_culprits_of_two_recorded_jobs(
    name: str, culprits: list[int], victims: list[int], published_key: str
) -> None:
    """One slow worker; a slow last stage. Without them, the published replay loses what the job loses."""
    answer = json.loads(shared_job(published_key).read_text())
    assert answer["rem"] > 0.97, "repairing them wins all that is lost"
    kernels, computing = published(name)
    parts = follow(kernels, computing)
    parts["wait_ns"] = parts["end_ns"] - parts["start_ns"]
    assert parts["wait_ns"].sum() == kernels["waited_ns"].sum()
    caused = parts.groupby("culprit")["wait_ns"].sum()
    assert sorted(caused.nlargest(len(culprits)).index) == culprits
    assert caused[culprits].sum() > 0.43 * caused.sum()
    parts["iteration"] = kernels["iteration"].to_numpy()[parts["kernel"]]
    blamed_ns = parts.groupby(["iteration", "culprit"])["wait_ns"].sum().rename_axis(["iteration", "rank"])
    waited_ns = kernels.groupby(["iteration", "rank"])["waited_ns"].sum()
    late = pd.DataFrame({"blamed_ns": blamed_ns, "waited_ns": waited_ns}).fillna(0).reset_index()
    assert standing_out(late[late["rank"] != NOBODY]) == culprits
    # Those who arrive last most are others.
    direct = kernels.loc[parts["kernel"], "last"].to_numpy()
    naive = parts["wait_ns"].groupby(kernels["rank"].to_numpy()[direct]).sum()
    assert sorted(naive.nlargest(2).index) == victims
