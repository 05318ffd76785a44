"""What of a recording is judged, and what lies outside of that."""

from __future__ import annotations

import json
from statistics import median

from tests.claims.job import Job, PlainRank, Window, length, overlap, union
from tests.claims.measures.idle import at_most, the_rank
from tests.claims.measures.recording import begins
from tests.claims.measures.start_up import begun
from tests.claims.measures.steps import step_times
from tests.claims.registry import Stated, check, close
from tests.verdicts.plain_reader import subtract


def outside_of(rank: PlainRank, stated: Stated) -> list[Window]:
    """What is recorded before and after what is judged, or, where that follows start-up, the work with it."""
    whole = (min(each.start for each in rank.events), max(each.end for each in rank.events))
    begins = [rank.windows[0][0]]
    if rank.work and not rank.judged_steps:
        begins += [begin for begin in begun(rank) if begin < begins[0]]
    found = [subtract([whole], [(begin, rank.windows[-1][1])]) for begin in begins]
    claims = json.loads(stated.row["claims"])
    apart = next(claim["value"] for claim in claims if claim["measure"] == "apart")
    return min(found, key=lambda windows: abs(length(windows) - apart))


@check("recorded")
def recorded(job: Job, stated: Stated) -> str:
    """From the first event to the end of the last."""
    events = the_rank(job, stated).events
    return close(stated, max(each.end for each in events) - min(each.start for each in events), 0.001)


@check("apart")
@check("apart_side")
@check("apart_calls")
@check("apart_in_call")
@check("apart_most_in")
def outside(job: Job, stated: Stated) -> str:
    """Recorded time that is not judged: all, before, without a call of the program, in a call."""
    rank = the_rank(job, stated)
    apart = outside_of(rank, stated)
    if stated.measure == "apart_side":
        begin, whole = min(each.start for each in rank.events), length(apart)
        before = length(apart[:1]) if apart[0][0] == begin else 0
        side = "before" if before >= 0.89 * whole else "after" if before <= 0.11 * whole else "around"
        return "" if stated.value == side else f"{before} of {whole} ns lie before"
    if stated.measure == "apart":
        return close(stated, length(apart), 0.01)
    if stated.measure == "apart_calls":
        own = [each for each in rank.events if each.category != "trace"]
        calls = [(min(each.start for each in own), max(each.end for each in own))]
        return close(stated, length(subtract(apart, calls)), 0.01)
    name = str(stated.about.get("call", stated.value))
    open_ = union(each.window for each in rank.named(name))
    inside = sum(length(overlap(open_, window)) for window in apart)
    if stated.unit == "name":
        return "" if 2 * inside >= length(apart) else f"it is open for {inside} ns"
    return at_most(stated, inside)


@check("judged_time")
def judged_time(job: Job, stated: Stated) -> str:
    """The longest of the ranks."""
    return close(stated, max(rank.judged_ns for rank in job.ranks.values()), 0.01)


def entries(job: Job, step: int) -> dict[int, int]:
    """When the host of each rank begins a step."""
    frame = job.trace.iterations[job.trace.iterations["iteration"] == step]
    return dict(zip(frame["rank"].tolist(), frame["host_start_ns"].tolist(), strict=True))


@check("recorded_late")
@check("recorded_later")
def late_beginning(job: Job, stated: Stated) -> str:
    """Later than the first: these ranks most of all."""
    begin = entries(job, stated.about["step"]) if "step" in stated.about else begins(job)
    later = {rank: at - min(begin.values()) for rank, at in begin.items()}
    if stated.unit == "ns":
        return close(stated, max(later[rank] for rank in stated.ranks), 0.001, 2_000.0)
    others = max((ns for rank, ns in later.items() if rank not in stated.value), default=0)
    wrong = [rank for rank in stated.value if later[rank] < max(others, 1)]
    return f"{wrong} begin no later than others" if wrong else ""


def own_time(job: Job, rank: int) -> int:
    """How long the median judged step of a rank is; without any, its device work from first to last."""
    if not job.announced:
        begin, end = job.recorded[rank].extent
        return end - begin
    spans = [span for (of, step), span in step_times(job).items() if of == rank and step in job.steps]
    return round(median(end - begin for begin, end in spans))


@check("not_judged_ranks")
def not_judged_ranks(job: Job, stated: Stated) -> str:
    others = tuple(sorted(set(job.recorded) - set(job.ranks)))
    return "" if stated.value == others else f"ranks {others} are not judged"


@check("unlike_ranks")
def unlike_ranks(job: Job, stated: Stated) -> str:
    """Their times and those of the longest are apart by half and more."""
    both = [[own_time(job, rank) for rank in ranks] for ranks in (stated.value, stated.about["others"])]
    least, most = sorted(both, key=max)
    return "" if 1.5 * max(least) <= 1.001 * max(most) else f"they take {both} ns"


@check("longest_time")
def longest_time(job: Job, stated: Stated) -> str:
    return close(stated, max(own_time(job, rank) for rank in stated.ranks), 0.01)


@check("shortest_work")
@check("longest_work")
def span_of_work(job: Job, stated: Stated) -> str:
    spans = [own_time(job, rank) for rank in job.recorded]
    return close(stated, min(spans) if stated.measure == "shortest_work" else max(spans), 0.001)
