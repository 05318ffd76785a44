"""How long a recording starts up, and what ran before it began."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hta_widgets.kernel_names import short_kernel_name
from tests.claims.job import Job, PlainRank, Record, length
from tests.claims.measures.idle import SYNCHRONISING, at_most, the_rank
from tests.claims.registry import Stated, check, close, time_of
from tests.verdicts.plain_reader import subtract


@time_of("start_up_at_most")
def start_up_at_most(rank: PlainRank, about: dict[str, Any]) -> int:
    """Nothing runs."""
    return rank.judged_ns - rank.within([each.window for each in rank.work])


@check("start_up")
def start_up(job: Job, stated: Stated) -> str:
    """Idle time, and no more than all of it."""
    ranks = job.of(stated.ranks)
    if stated.about.get("whole"):  # before what is judged
        spans = [(rank, (min(begun(rank)), rank.windows[0][0])) for rank in ranks]
        idle = sum(length(subtract([own], rank.busy["any"])) for rank, own in spans)
        return at_most(stated, idle / len(ranks))
    idle = sum(start_up_at_most(rank, {}) for rank in ranks)
    if stated.unit == "%":
        return at_most(stated, 100.0 * idle / sum(rank.judged_ns for rank in ranks), 0.1)
    return at_most(stated, idle / len(ranks))


def begun(rank: PlainRank) -> list[int]:
    """When what is recorded of the work may begin: with its first piece, or a long call before."""
    threads = rank.all_threads.values()
    long = [each.start for thread in threads for each in thread if each.dur >= 1_000_000]
    return [rank.extent[0], *(start for start in long if start < rank.extent[0])]


@check("start_up_until")
@check("recorded_work")
def recorded_work(job: Job, stated: Stated) -> str:
    """From there to what is judged, or to the end."""
    ranks = job.of(stated.ranks)
    ends = [rank.windows[0][0] if stated.measure == "start_up_until" else rank.extent[1] for rank in ranks]
    if stated.unit == "%" or len(ranks) > 1:
        longest = sum(end - min(begun(rank)) for rank, end in zip(ranks, ends, strict=True))
        return at_most(stated, 100.0 if stated.unit == "%" else longest / len(ranks))
    times = [close(stated, ends[0] - begin, 0.001) for begin in begun(ranks[0])]
    return "" if "" in times else times[0]


def host_calls(job: Job, stated: Stated, names: Iterable[str]) -> list[Record]:
    rank, wanted = the_rank(job, stated), set(names)
    called = [each for thread in rank.all_threads.values() for each in thread if each.name in wanted]
    return called or [each for each in rank.events if each.category == "overhead" and each.name in wanted]


@check("start_up_call_time")
def start_up_call_time(job: Job, stated: Stated) -> str:
    """No longer than the device is idle while calls of these names are open."""
    calls = host_calls(job, stated, stated.about["calls"])
    idle = subtract([call.window for call in calls], the_rank(job, stated).busy["any"])
    return at_most(stated, length(idle)) if calls else "they are never called"


@check("start_up_on")
def start_up_on(job: Job, stated: Stated) -> str:
    """A rank that makes such calls; their time, which stands beside it, is of that rank."""
    (rank,) = stated.value
    threads = job.ranks[rank].all_threads.values()
    there = any(each.name in stated.about["calls"] for thread in threads for each in thread)
    return "" if there else "they are never called there"


@check("cold_call")
def cold_call(job: Job, stated: Stated) -> str:
    """The device is idle in a part of the longest call of this name."""
    calls = host_calls(job, stated, [str(stated.value)])
    if not calls:
        return "it is never called"
    longest = max(calls, key=lambda call: call.dur)
    idle = subtract([longest.window], the_rank(job, stated).busy["any"])
    return "" if 10 * length(idle) >= longest.dur else f"the device is idle for {length(idle)} ns of it"


@check("compiled")
def compiled(job: Job, stated: Stated) -> str:
    """A kernel of this short name runs, or a call of this name asks for it."""
    rank = the_rank(job, stated)
    names = {short_kernel_name(each.name) for each in rank.kernels} | {each.name for each in rank.events}
    return "" if stated.value in names else "there is no such kernel and no such call"


@check("start_up_in")
def start_up_in(job: Job, stated: Stated) -> str:
    """Marked steps that are not judged."""
    marked = set(job.trace.iterations["iteration"].tolist())
    wrong = [step for step in stated.value if step not in marked or step in job.steps]
    return f"{wrong} are judged, or none" if wrong else ""


@check("left_out_step")
def left_out_step(job: Job, stated: Stated) -> str:
    return start_up_in(job, stated)  # type: ignore[no-any-return]


@check("earliest_step")
def earliest_step(job: Job, stated: Stated) -> str:
    """No other step of the rank begins before."""
    frame = job.trace.iterations[job.trace.iterations["rank"] == stated.ranks[0]]
    first = int(frame.loc[frame["start_ns"].idxmin(), "iteration"])
    return "" if stated.value == (first,) else f"it is {first}"


@check("waits_for_earlier_work")
@check("waits_in")
@check("wait_for_earlier_work")
def wait_for_earlier_work(job: Job, stated: Stated) -> str:
    """A synchronising call of the rank is as long."""
    rank = job.ranks[stated.value[0]] if stated.unit == "ranks" else the_rank(job, stated)
    calls = [each for each in rank.events if SYNCHRONISING.match(each.name)]
    if stated.unit == "name":
        return "" if any(call.name == stated.value for call in calls) else "no such call synchronises"
    if stated.unit == "ns":
        return at_most(stated, max((call.dur for call in calls), default=0))
    return "" if calls else "it never waits"
