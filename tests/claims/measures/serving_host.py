"""When a server waits: for requests, launches, compilers, or the other stages of its pipeline."""

from __future__ import annotations

import re
from itertools import pairwise
from statistics import median
from typing import Any

from tests.claims.job import Job, PlainRank, Window, length, overlap, union
from tests.claims.measures.idle import the_rank
from tests.claims.measures.serving import (
    Step,
    is_late,
    judged_steps,
    left_out,
    nothing_in,
    resting,
    steps,
    work_of,
)
from tests.claims.registry import Stated, check, close, time_of
from tests.verdicts.plain_reader import subtract


def computing(rank: PlainRank) -> list[Window]:
    """When kernels run that are no communication, in the judged time."""
    word = re.compile("nccl|all_?reduce|sendrecv", re.IGNORECASE)
    work = [each for each in rank.work if each.category == "kernel" and not word.search(each.name)]
    return union(
        part for window in rank.windows for part in overlap(union(each.window for each in work), window)
    )


@check("stages_in_turn")
def stages_in_turn(job: Job, stated: Stated) -> str:
    """How long each rank waits while any other computes."""
    own = {rank.number: computing(rank) for rank in job.of(stated.ranks)}
    anywhere = union(window for windows in own.values() for window in windows)
    ranks = job.of(stated.ranks)
    waits = [rank.within(subtract(anywhere, own[rank.number])) for rank in ranks]
    if stated.unit == "%":
        return close(stated, 100.0 * sum(waits) / sum(rank.judged_ns for rank in ranks), 0.02, 0.2)
    steps_ = sum(len(rank.judged_steps) for rank in ranks)
    return close(stated, sum(waits) / (steps_ if stated.unit == "ns/step" else len(ranks)), 0.02, 2_000.0)


@check("stages_of_server")
def stages_of_server(job: Job, stated: Stated) -> str:
    """Ranks that compute at different times."""
    stages: list[list[Window]] = []
    for rank in job.of(stated.ranks):
        own = computing(rank)
        if not any(2 * sum(length(overlap(each, part)) for part in own) >= length(own) for each in stages):
            stages.append(own)
    return close(stated, len(stages), 0.0)


@time_of("absent_requests")
def absent_requests(rank: PlainRank, about: dict[str, Any]) -> int:
    """The server has no requests."""
    pairs = [(one.end, after.start) for one, after in pairwise(steps(rank)) if one in resting(rank)]
    return rank.within([part for pair in pairs for part in nothing_in(rank, pair)])


def eager(rank: PlainRank) -> list[tuple[Step, int]]:
    """Judged steps that decode without a graph, and how many kernels each launches."""
    found = []
    for step in judged_steps(rank):
        calls = [
            call for each in work_of(rank, step) if each.category == "kernel" and (call := rank.launch(each))
        ]
        replays = any("GraphLaunch" in call.name for call in calls)
        if step.phase in ("decode", "verify") and len(calls) >= 50 and not replays:
            found.append((step, len(calls)))
    return found


@check("eager_steps")
def eager_steps(job: Job, stated: Stated) -> str:
    """So many steps."""
    return close(stated, len(eager(the_rank(job, stated))), 0.0)


@check("eager_kernels")
def eager_kernels(job: Job, stated: Stated) -> str:
    """Each launches as many at the median."""
    return close(stated, median(kernels for _, kernels in eager(the_rank(job, stated))), 0.01, 1.0)


@time_of("eager_idle", rel=0.02)
def eager_idle(rank: PlainRank, about: dict[str, Any]) -> int:
    """The device does nothing in them, but for long pauses."""
    gaps = [gap for step, _ in eager(rank) for gap in nothing_in(rank, (step.start, step.end))]
    return rank.within([gap for gap in gaps if gap[1] - gap[0] < 200_000 and is_late(rank, gap)])


@check("least_eager")
def least_eager(job: Job, stated: Stated) -> str:
    """The smallest batch of such a step."""
    return close(stated, min(step.requests for step, _ in eager(the_rank(job, stated))), 0.0)


@check("largest_replayed")
def largest_replayed(job: Job, stated: Stated) -> str:
    """The largest batch of a step that decodes and replays a graph."""
    rank = the_rank(job, stated)
    replays = [
        step.requests for step in steps(rank) if step.phase in ("decode", "verify")
        if any((call := rank.launch(each)) and "GraphLaunch" in call.name for each in work_of(rank, step))
    ]  # fmt: skip
    return close(stated, max(replays), 0.0)


def compiles(rank: PlainRank) -> list[tuple[Step, Step]]:
    """The steps left out after one that is judged, each behind the one before; not for the profiler."""
    first = min(start for start, _ in rank.windows)
    own = [each for each in rank.events if each.category == "overhead" and each.dur >= 1_000_000]
    return [
        (one, after) for one, after in pairwise(steps(rank))
        if left_out(rank, after) and after.start > first
        and not any(one.end <= each.end and each.start <= after.end for each in own)
    ]  # fmt: skip


@check("compiling_while_serving")
def compiling_while_serving(job: Job, stated: Stated) -> str:
    """The device does nothing until the first work of these steps, for about as long."""
    rank = the_rank(job, stated)
    idle = sum(length(nothing_in(rank, (one.end, after.start))) for one, after in compiles(rank))
    return "" if 0.5 * idle <= stated.value <= idle else f"the device waits {idle} ns before them"


@check("later_steps_that_compile")
def later_steps_that_compile(job: Job, stated: Stated) -> str:
    """So many are left out."""
    rank = the_rank(job, stated)
    return close(stated, len(compiles(rank)), 0.0)
