"""Pipelines: bubbles, stages and schedules."""

from __future__ import annotations

from statistics import mean
from typing import Any

from tests.claims.job import Job, PlainRank
from tests.claims.measures.activity import between, exposed, no_more_than
from tests.claims.measures.slower_work import launches
from tests.claims.registry import Stated, check, close


@no_more_than("waiting_in_bubble")
def waiting_in_bubble(rank: PlainRank, about: dict[str, Any]) -> int:
    return rank.within(exposed(rank))


@check("pipeline_stages")
def pipeline_stages(job: Job, stated: Stated) -> str:
    world = max(len(job.trace.ranks), *(rank.number + 1 for rank in job.ranks.values()))
    return "" if 2 <= stated.value <= world else f"{world} ranks have no {stated.value} stages"


@check("schedule")
def schedule(job: Job, stated: Stated) -> str:
    known = {"GPipe", "1F1B", "interleaved 1F1B", "zero bubble (ZB-H1)"}
    return "" if set(stated.value) <= known else f"{stated.value} are no schedules"


@check("kernels_of_stage_longer")
def kernels_of_stage_longer(job: Job, stated: Stated) -> str:
    times = {
        number: [each.dur for own in launches(rank).values() for each in own]
        for number, rank in job.ranks.items()
    }
    own = [dur for rank in stated.ranks for dur in times[rank]]
    others = [dur for rank, of in times.items() if rank not in stated.ranks for dur in of]
    return close(stated, mean(own) / mean(others), 0.05, 0.01)


@check("kernels_of_stage_more")
def kernels_of_stage_more(job: Job, stated: Stated) -> str:
    counts = {number: sum(map(len, launches(rank).values())) for number, rank in job.ranks.items()}
    own = mean(counts[rank] for rank in stated.ranks)
    others = mean(count for rank, count in counts.items() if rank not in stated.ranks)
    return close(stated, (own - others) / max(len(job.steps), 1), 0.02, 1.0)


between(0, 100, "bubble", "bubble_part")
between(1, 10_000, "microbatches", "pipeline_chunks")
between(1, 1_000, "work_of_stage")
between(0, 10_000, "slowest_stage")
