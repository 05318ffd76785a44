"""What a replay of all ranks says of the job; what is checked of savings is in `savings`."""

from __future__ import annotations

import json
import re
from statistics import mean

import pandas as pd

from tests.claims.job import Job, PlainRank, Window, length, overlap
from tests.claims.measures.activity import at_most, between
from tests.claims.measures.idle import CALLS, of_threads
from tests.claims.measures.slower_work import equal_work
from tests.claims.registry import Stated, check


@check("job_saving")
def job_saving(job: Job, stated: Stated) -> str:
    """A part of a step."""
    if stated.unit == "%":
        return at_most(stated, 100.0)
    longest = max(rank.judged_ns for rank in job.ranks.values()) / max(len(job.steps), 1)
    return at_most(stated, longest, 0.05)


@check("job_evidence")
def job_evidence(job: Job, stated: Stated) -> str:
    """What the late ranks are said to do, they do more than the others; how much, for slower kernels."""
    late = next(
        tuple(claim["value"])
        for claim in json.loads(stated.row["claims"])
        if claim["measure"] == "late_by_replay"
    )
    others = [rank for rank in job.ranks if rank not in late]
    if ratio := re.search(r"the same operations take ([\d.]+) times", stated.value):
        lost = [equal_work(job, rank) for rank in late]
        own = sum(each.dur for of in lost for equal in of.values() for each in equal.own)
        usual = sum(equal.usual_ns * len(equal.own) for of in lost for equal in of.values())
        return "" if abs(own / usual - float(ratio[1])) < 0.1 * own / usual else f"{own / usual:.2f} times"
    if "host called" in stated.value:
        idle = {
            number: rank.judged_ns - rank.within([each.window for each in rank.work])
            for number, rank in job.ranks.items()
        }
        less = mean(idle[rank] for rank in late) < min(idle[rank] for rank in others)
        return "they are idle less than the others" if less else ""
    return ""


@check("replayed_rank")
def replayed_rank(job: Job, stated: Stated) -> str:
    """One that the saving says, and that has work."""
    (rank,) = stated.value
    if pd.notna(stated.row["saving_rank"]) and stated.row["saving_rank"] != rank:
        return f"rank {stated.row['saving_rank']} was replayed"
    return "" if job.ranks[rank].work else "it has no device work"


@check("untrusted_replay")
def untrusted_replay(job: Job, stated: Stated) -> str:
    """A share in the reason is a share; a thread is that long in the call that is named, and in none."""
    rank = job.ranks[stated.ranks[0]]
    if "no device work" in stated.value:
        return "it has device work" if rank.work else ""
    named = re.match(r"for ([\d.]+) % of its time the host .* in one call \((.+?)…?\)", stated.value)
    silent = re.search(r"for ([\d.]+) % (?:of its time )?nothing is recorded", stated.value)
    threads = of_threads(rank, lambda each: each.category in CALLS).values()
    calls = [each for each in rank.events if named and named[2] in each.name]
    faults = []
    for whole in _recorded(rank):
        ns = whole[1] - whole[0]
        inside = max((length(overlap([each.window], whole)) for each in calls), default=0)
        without = sum(ns - length(overlap(each, whole)) for each in threads)
        if named and float(named[1]) > 101.0 * inside / ns:
            faults.append(f"no call of {named[2]} is that long")
        elif silent and float(silent[1]) > 101.0 * without / ns:
            faults.append(f"the threads are in no call for {100.0 * without / ns:.3g} %")
        else:
            break
    else:
        return faults[0]
    shares = [float(share) for share in re.findall(r"([\d.]+) %", stated.value)]
    return "" if all(share >= 0 for share in shares) else f"{stated.value} is no reason"


def _recorded(rank: PlainRank) -> list[Window]:
    """From the first event on, or from the first that puts work on the device."""
    launches = [call for work in rank.work if (call := rank.launch(work)) is not None]
    until = max(each.end for each in [*rank.work, *(each for each in rank.events if each.category in CALLS)])
    begins = {min(each.start for each in some) for some in (rank.events, launches) if some}
    return [(begin, until) for begin in sorted(begins)]


between(1, 10_000, "changes")
