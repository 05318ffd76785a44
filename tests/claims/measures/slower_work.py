"""Ranks whose kernels take longer than the same work on other ranks, and ranks with more work."""

from __future__ import annotations

from collections import defaultdict
from statistics import mean, median
from typing import NamedTuple

from tests.claims.job import Job, PlainRank, Record
from tests.claims.measures.activity import at_most, share_of, step_of
from tests.claims.plain_kernels import Launch, launch_as
from tests.claims.registry import Stated, check, close


def launches(rank: PlainRank) -> dict[Launch, list[Record]]:
    """Compute kernels of the judged time, by what makes launches equal."""
    found: dict[Launch, list[Record]] = defaultdict(list)
    for each in rank.kernels:
        if step_of(rank, each) is not None:
            found[launch_as(rank, each)].append(each)
    return found


class Equal(NamedTuple):
    own: list[Record]
    usual_ns: float


def equal_work(job: Job, number: int) -> dict[Launch, Equal]:
    """Kernels that others launch as often, with the median of their mean times."""
    of_rank = {rank: launches(plain) for rank, plain in job.ranks.items()}
    found = {}
    for launch, own in of_rank[number].items():
        others = [
            of[launch]
            for rank, of in of_rank.items()
            if rank != number and len(of.get(launch, [])) == len(own)
        ]
        if others:
            found[launch] = Equal(own, median(mean(each.dur for each in other) for other in others))
    return found


def excess(job: Job, number: int) -> dict[Launch, float]:
    """By how much equal kernels take longer than on the others, where that is over 5 %."""
    return {
        launch: sum(each.dur for each in equal.own) - equal.usual_ns * len(equal.own)
        for launch, equal in equal_work(job, number).items()
        if mean(each.dur for each in equal.own) > 1.05 * equal.usual_ns
    }


@check("slower_kernels")
def slower_kernels(job: Job, stated: Stated) -> str:
    truth = share_of(job, stated, lambda rank: sum(excess(job, rank.number).values()))
    return close(stated, truth, 0.03, 0.2 if stated.unit == "%" else 5_000.0)


@check("rank_with_slowest_kernels")
def rank_with_slowest_kernels(job: Job, stated: Stated) -> str:
    lost = {rank: sum(excess(job, rank).values()) for rank in job.ranks}
    most = max(lost, key=lambda rank: lost[rank])
    return "" if lost[stated.value[0]] >= 0.97 * lost[most] else f"rank {most} loses more"


@check("also_slower")
def also_slower(job: Job, stated: Stated) -> str:
    most = sum(excess(job, stated.about["rank"]).values())
    fast = [rank for rank in stated.value if sum(excess(job, rank).values()) < 0.45 * most]
    return f"ranks {fast} lose less than half of it" if fast else ""


@check("slowest_kernel")
def slowest_kernel(job: Job, stated: Stated) -> str:
    lost = excess(job, stated.ranks[0])
    most = max(lost, key=lambda launch: lost[launch])
    own = max(ns for launch, ns in lost.items() if launch[0] == stated.value)
    return "" if own >= 0.97 * lost[most] else f"{most[0]} loses more"


@check("times_as_long")
def times_as_long(job: Job, stated: Stated) -> str:
    lost, equal = excess(job, stated.ranks[0]), equal_work(job, stated.ranks[0])
    most = max(
        (launch for launch in lost if launch[0] == stated.about["name"]), key=lambda launch: lost[launch]
    )
    return close(stated, mean(each.dur for each in equal[most].own) / equal[most].usual_ns, 0.02, 0.01)


@check("slower_kernels_part")
def slower_kernels_part(job: Job, stated: Stated) -> str:
    slow, equal = excess(job, stated.ranks[0]), equal_work(job, stated.ranks[0])
    usual = {launch: each.usual_ns * len(each.own) for launch, each in equal.items()}
    return close(stated, 100.0 * sum(usual[launch] for launch in slow) / sum(usual.values()), 0.02, 0.5)


def all_work(rank: PlainRank) -> int:
    return sum(each.dur for own in launches(rank).values() for each in own)


@check("more_work")
def more_work(job: Job, stated: Stated) -> str:
    """No more than the rank computes beyond the median of the others."""

    def time(rank: PlainRank) -> float:
        return all_work(rank) - median(all_work(other) for other in job.ranks.values() if other is not rank)

    return at_most(stated, share_of(job, stated, time), 0.05, 0.5)


@check("rank_with_more_work")
def rank_with_more_work(job: Job, stated: Stated) -> str:
    own = all_work(job.ranks[stated.value[0]])
    others = [all_work(rank) for number, rank in job.ranks.items() if number not in stated.value]
    return "" if own > 1.02 * median(others) else "it computes no longer than the others"


@check("computes_longer")
def computes_longer(job: Job, stated: Stated) -> str:
    own = all_work(job.ranks[stated.ranks[0]])
    others = median(all_work(rank) for number, rank in job.ranks.items() if number not in stated.ranks)
    return close(stated, 100.0 * (own / others - 1), 0.03, 0.5)


@check("more_launches")
def more_launches(job: Job, stated: Stated) -> str:
    counts = {number: sum(map(len, launches(rank).values())) for number, rank in job.ranks.items()}
    others = median(count for number, count in counts.items() if number not in stated.ranks)
    return close(stated, (counts[stated.ranks[0]] - others) / max(len(job.steps), 1), 0.02, 1.0)
