"""Ranks that wait for each other.

Who waits how long is recomputed where all ranks take part in every exchange, so that the one with the
shortest kernel is the one that the others wait for. Elsewhere waits pass through other ranks; then bounds are
checked: no rank waits longer than it communicates without computing, and the late ones wait less.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

from tests.claims.job import Job, PlainRank, Record
from tests.claims.measures.activity import (
    IN_PAIRS,
    at_most,
    communication,
    copying_alone,
    exposed,
    no_more_than,
    share_of,
    step_of,
)
from tests.claims.registry import Stated, check, close

NOISE_NS = 10_000
TO_ONE = re.compile(
    r"broadcast|(?<!all_)(?<!all)reduce(?!_?scatter)|(?<!all_)(?<!all)gather|(?<!reduce_)(?<!reduce)scatter",
    re.IGNORECASE,
)


class Wait(NamedTuple):
    rank: int
    last: int
    ns: float
    step: int


def waits(job: Job) -> list[Wait] | None:
    """What ranks wait at exchanges, by the durations of their kernels; None unless all take part in each."""
    found: dict[tuple[str, str, int], dict[int, Record]] = defaultdict(dict)
    counts = []
    for rank in job.ranks.values():
        numbers: Counter[tuple[str, str]] = Counter()
        for each in communication(rank):
            kind = str(each.args.get("Collective name") or each.name)
            if IN_PAIRS.search(kind) or (IN_PAIRS.search(each.name) and "Collective name" not in each.args):
                return None
            key = (str(each.args.get("Process Group Name", "")), kind)
            found[*key, numbers[key]][rank.number] = each
            numbers[key] += 1
        counts.append(numbers)
    if len(job.ranks) < 2 or any(each != counts[0] for each in counts):
        return None
    waited = []
    for (_, kind, _), kernels in found.items():
        if max(each.start for each in kernels.values()) >= min(each.end for each in kernels.values()):
            return None  # not the same exchange
        shortest = min(each.dur for each in kernels.values())
        if TO_ONE.search(kind) or max(each.dur for each in kernels.values()) - shortest <= max(
            NOISE_NS, shortest / 100
        ):
            continue
        lasts = [rank for rank, each in kernels.items() if each.dur <= shortest + NOISE_NS]
        lowest = job.ranks[min(kernels)]
        step = step_of(lowest, kernels[lowest.number])
        if step is not None:  # of ranks that are as late, each is to blame for its part
            waited += [
                Wait(rank, last, (each.dur - shortest) / len(lasts), step)
                for rank, each in kernels.items()
                for last in lasts
            ]
    return [each for each in waited if each.ns]


def caused(waited: list[Wait], ranks: tuple[int, ...]) -> float:
    """How much (%) of all waiting is for these ranks."""
    return (
        100.0
        * sum(each.ns for each in waited if each.last in ranks)
        / max(sum(each.ns for each in waited), 1)
    )


@check("late_ranks")
def late_ranks(job: Job, stated: Stated) -> str:
    """None of the others causes more of the waiting: who only waits is a victim."""
    waited, ranks = waits(job), set(stated.value)
    if not ranks <= set(job.ranks) or ranks == set(job.ranks):
        return f"{sorted(ranks)} are not some of the ranks {sorted(job.ranks)}"
    if waited is None:
        return ""
    of_each = {rank: caused(waited, (rank,)) for rank in job.ranks}
    worst = max((rank for rank in job.ranks if rank not in ranks), key=lambda rank: of_each[rank])
    less = [rank for rank in ranks if of_each[rank] < of_each[worst] - 5.0]
    return f"rank {worst} causes more waiting than ranks {less}" if less else ""


@check("late_by_replay")
def late_by_replay(job: Job, stated: Stated) -> str:
    return late_ranks(job, stated)  # type: ignore[no-any-return]


@check("waiting_ranks")
def waiting_ranks(job: Job, stated: Stated) -> str:
    """They are no late ones, and wait for these."""
    late, waited = tuple(stated.about["late"]), waits(job)
    if set(late) & set(stated.value):
        return f"ranks {late} are late"
    if waited is None:
        return ""
    idle = [
        rank for rank in stated.value if not any(each.rank == rank and each.last in late for each in waited)
    ]
    return f"ranks {idle} wait for none of {late}" if idle else ""


@check("waiting_for")
def waiting_for(job: Job, stated: Stated) -> str:
    """Waiting for the late ranks, at most the communication that nothing hides."""
    late, waited = tuple(stated.about["late"]), waits(job)

    def time(rank: PlainRank) -> float:
        limit = rank.within(exposed(rank))
        own = [each.ns for each in waited or [] if each.rank == rank.number and each.last in late]
        return min(sum(own), limit) if waited is not None else limit

    truth = share_of(job, stated, time)
    return (
        at_most(stated, truth)
        if waited is None
        else close(stated, truth, 0.05, 0.5 if stated.unit == "%" else 2e4)
    )


@check("waiting_for_each_other")
def waiting_for_each_other(job: Job, stated: Stated) -> str:
    """All waiting, at most the communication that nothing hides; the bubble of a pipeline may be left out."""
    waited = waits(job)

    def time(rank: PlainRank) -> float:
        own = sum(each.ns for each in waited or [] if each.rank == rank.number)
        limit = rank.within(exposed(rank))
        return min(own, limit) if waited is not None else limit

    return at_most(stated, share_of(job, stated, time), 0.05, 0.5)


@check("caused_waiting")
def caused_waiting(job: Job, stated: Stated) -> str:
    """How much of the waiting is for these ranks."""
    waited = waits(job)
    if waited is None:
        return at_most(stated, 100.0)
    return close(stated, caused(waited, stated.ranks), 0.0, 5.0)


@check("causes_most_waiting")
def causes_most_waiting(job: Job, stated: Stated) -> str:
    waited = waits(job)
    if waited is None:
        return ""
    most = max(job.ranks, key=lambda rank: caused(waited, (rank,)))
    far = caused(waited, (most,)) - caused(waited, tuple(stated.value)) > 5.0
    return f"rank {most} causes more of the waiting" if far else ""


@check("ranks_with_nearly_all_waiting")
def ranks_with_nearly_all_waiting(job: Job, stated: Stated) -> str:
    waited = waits(job)
    if waited is None:
        return ""
    share = caused(waited, tuple(stated.value))
    return "" if share >= 85 else f"only {share:.1f} % of the waiting is for them"


@check("steps_with_nearly_all_waiting")
def steps_with_nearly_all_waiting(job: Job, stated: Stated) -> str:
    waited = waits(job)
    if not set(stated.value) <= set(job.steps):
        return f"{stated.value} are not among the judged steps"
    lowest = job.ranks[min(job.ranks)]
    if waited is None or len(lowest.windows) != len(lowest.judged_steps):
        return ""
    own = [each for each in waited if each.last in stated.ranks]
    there = sum(each.ns for each in own if lowest.judged_steps[each.step] in stated.value)
    share = 100.0 * there / max(sum(each.ns for each in own), 1)
    return "" if share >= 85 else f"only {share:.1f} % of the waiting is in these steps"


def slowest_by_step(waited: list[Wait]) -> dict[int, int]:
    """The rank that causes more than half of the waiting of a step."""
    steps: dict[int, Counter[int]] = defaultdict(Counter)
    for each in waited:
        steps[each.step][each.last] += each.ns
    most = {step: by_rank.most_common(1)[0] for step, by_rank in steps.items()}
    return {step: rank for step, (rank, ns) in most.items() if 2 * ns > steps[step].total()}


@check("slowest_in_most_waiting")
def slowest_in_most_waiting(job: Job, stated: Stated) -> str:
    waited = waits(job)
    return (
        "" if waited is None or stated.value[0] in slowest_by_step(waited).values() else "never the slowest"
    )


@check("steps_as_slowest")
def steps_as_slowest(job: Job, stated: Stated) -> str:
    waited = waits(job)
    if waited is None:
        return at_most(stated, max(len(job.steps), 1))
    return close(stated, list(slowest_by_step(waited).values()).count(stated.ranks[0]), 0.0, 0.5)


@check("waiting_in_steps_as_slowest")
def waiting_in_steps_as_slowest(job: Job, stated: Stated) -> str:
    waited = waits(job)
    if waited is None:
        return at_most(stated, 100.0)
    slowest = slowest_by_step(waited)
    own = sum(each.ns for each in waited if slowest.get(each.step) == stated.ranks[0])
    return close(stated, 100.0 * own / max(sum(each.ns for each in waited), 1), 0.0, 5.0)


@check("steps_with_exchanges")
def steps_with_exchanges(job: Job, stated: Stated) -> str:
    return at_most(stated, max(len(job.steps), 1), 0.0, 0.5)


@check("waiting_indirectly")
def waiting_indirectly(job: Job, stated: Stated) -> str:
    """They communicate, and are not late themselves."""
    late = [
        rank for rank in stated.value if rank in stated.about["late"] or not communication(job.ranks[rank])
    ]
    return f"ranks {late} do not wait" if late else ""


@check("waited_through")
def waited_through(job: Job, stated: Stated) -> str:
    return waiting_indirectly(job, stated)  # type: ignore[no-any-return]


@check("begins_later")
def begins_later(job: Job, stated: Stated) -> str:
    first = {number: rank.work[0].start for number, rank in job.ranks.items() if rank.work}
    others = [start for rank, start in first.items() if rank not in stated.ranks]
    return close(stated, min(first[rank] for rank in stated.ranks) - median(others), 0.01, 2_000.0)


@check("enters_later")
def enters_later(job: Job, stated: Stated) -> str:
    """By how much the host begins the first judged step later than on the others."""
    first = {
        number: each.start
        for number, rank in job.ranks.items()
        for thread in rank.all_threads.values()
        for each in thread
        if each.name == f"ProfilerStep#{min(rank.judged_steps)}"
    }
    others = [start for rank, start in first.items() if rank not in stated.ranks]
    return close(stated, min(first[rank] for rank in stated.ranks) - median(others), 0.01, 2_000.0)


@check("longer")
def longer(job: Job, stated: Stated) -> str:
    """Beyond the median of the others, on average."""

    def time(rank: PlainRank) -> int:
        if stated.about["activity"] == "idle":
            return rank.judged_ns - rank.within([each.window for each in rank.work])
        alone = stated.about["activity"] == "copying"
        return rank.within(copying_alone(rank) if alone else [each.window for each in rank.kernels])

    times = {number: time(rank) for number, rank in job.ranks.items() if rank.judged_ns}
    others = median(ns for rank, ns in times.items() if rank not in stated.ranks)
    steps = max(len(job.steps), 1) if stated.unit == "ns/step" else 1
    return close(stated, (mean(times[rank] for rank in stated.ranks) - others) / steps, 0.02, 5_000.0)


@no_more_than("transferring_meanwhile")
def transferring_meanwhile(rank: PlainRank, about: dict[str, Any]) -> int:
    return rank.within([each.window for each in communication(rank)])


def documents(job: Job) -> list[dict[str, Any]]:
    """The head of each rank's file."""
    files = [Path(str(job.trace.rank(rank).path)).read_bytes() for rank in job.ranks]
    return [json.loads(gzip.decompress(each) if each[:2] == b"\x1f\x8b" else each) for each in files]


@check("recorded_ranks")
def recorded_ranks(job: Job, stated: Stated) -> str:
    return close(stated, len(job.trace.ranks), 0.0, 0.0)


@check("world_size")
def world_size(job: Job, stated: Stated) -> str:
    """By the files themselves."""
    sizes = {each.get("distributedInfo", {}).get("world_size") for each in documents(job)}
    return "" if stated.value in sizes else f"the files state {sorted(map(str, sizes))}"
