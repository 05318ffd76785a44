"""What a recording holds, and how long its steps take."""

from __future__ import annotations

import re
from typing import Any

from hta_widgets.kernel_names import short_kernel_name
from tests.claims.job import Job, PlainRank
from tests.claims.measures.idle import RUNTIME, at_most
from tests.claims.registry import Stated, check, close, time_of

LAUNCH = re.compile(r"(?:cuda|hip|cu|musa)\w*Launch\w*")


@time_of("not_computing")
def not_computing(rank: PlainRank, about: dict[str, Any]) -> int:
    """No compute kernel runs."""
    return rank.judged_ns - rank.within([each.window for each in rank.kernels])


def kernel_times(job: Job, ranks: tuple[int, ...]) -> dict[str, int]:
    """By short name of compute kernels, what those take that run in the judged time."""
    found: dict[str, int] = {}
    for rank in job.of(ranks):
        for each in rank.judged(rank.kernels):
            name = short_kernel_name(each.name)
            found[name] = found.get(name, 0) + each.dur
    return found


@check("kernel_time")
def kernel_time(job: Job, stated: Stated) -> str:
    """Kernels of a name, of the time of all."""
    times = kernel_times(job, stated.ranks)
    share = 100.0 * times.get(stated.about["short_name"], 0) / max(sum(times.values()), 1)
    # a kernel belongs to the step that launches it, also where it runs in another one
    return close(stated, share, 0.02, 1.0)


@check("kernel_with_most_time")
def kernel_with_most_time(job: Job, stated: Stated) -> str:
    """The first, second or third of them by time."""
    times = kernel_times(job, stated.ranks)
    longest = sorted(times, key=lambda name: -times[name])
    nth = longest[stated.about["nth"]]
    return "" if times.get(str(stated.value), 0) >= 0.95 * times[nth] else f"it is {nth}"


@check("longest_suspect")
@check("stream_of_suspect")
@check("rank_of_suspect")
@check("suspect")
@check("why_suspect")
def suspect(job: Job, stated: Stated) -> str:
    """Work of this name takes as long, on this stream of this rank; why it is suspected is said of it."""
    if stated.measure == "why_suspect":
        return "" if stated.value else "no reason is given"
    name = stated.about.get("name", stated.value)
    found = [
        (rank.number, work)
        for rank in job.ranks.values()
        for work in rank.work
        if work.name == name and (not stated.ranks or rank.number in stated.ranks)
    ]
    if stated.measure == "rank_of_suspect":
        return "" if stated.value[0] in {number for number, _ in found} else "it has no such work"
    if stated.measure == "stream_of_suspect":
        return "" if str(stated.value) in {str(work.stream) for _, work in found} else "it has no such work"
    if stated.measure == "longest_suspect":
        return at_most(stated, sum(work.dur for _, work in found))
    return "" if found else "there is no such work"


@check("without_launch")
def without_launch(job: Job, stated: Stated) -> str:
    """Of the judged device work, by count, no call is recorded that launched it."""
    judged = [(rank, work) for rank in job.of(stated.ranks) for work in rank.judged(rank.work)]
    missing = sum(rank.launch(work) is None for rank, work in judged)
    return close(stated, 100.0 * missing / max(len(judged), 1), 0.05, 2.0)


@check("several_jobs")
def several_jobs(job: Job, stated: Stated) -> str:
    """There are several ranks."""
    return "" if len(job.trace.ranks) > 1 else "there is one rank"


@check("least_kept")
def least_kept(job: Job, stated: Stated) -> str:
    """Operators have numbers: of those from the first to the last so many are in the file."""
    shares = []
    for rank in job.of(stated.ranks):
        numbers = {
            int(each.args["Record function id"])
            for each in rank.events
            if int(each.args.get("Record function id", 0) or 0) > 0
        } or {
            int(each.args["External id"])
            for each in rank.events
            if each.category in ("cpu_op", "operator") and int(each.args.get("External id", 0) or 0) > 0
        }
        if numbers:
            shares.append(100.0 * len(numbers) / (max(numbers) - min(numbers) + 1))
    return close(stated, min(shares, default=100.0), 0.1, 0.5)


@check("device_events")
def device_events(job: Job, stated: Stated) -> str:
    """No rank has more pieces of device work."""
    return close(stated, max((len(rank.work) for rank in job.ranks.values()), default=0), 0.0, 0.0)


@check("launches")
@check("launches_without_work")
def launches(job: Job, stated: Stated) -> str:
    """Calls that launch kernels, and those without device work."""
    number = 0
    for rank in job.of(stated.ranks):
        answered = {work.correlation for work in rank.work}
        calls = [each for each in rank.events if each.category in RUNTIME and LAUNCH.match(each.name)]
        number += sum(stated.measure == "launches" or call.correlation not in answered for call in calls)
    return close(stated, number, 0.02, 2.0)


@check("unread_files")
def unread_files(job: Job, stated: Stated) -> str:
    """Files for which a reason is given."""
    return close(stated, len(job.trace.failed), 0.0, 0.0)


@check("read_ranks")
def read_ranks(job: Job, stated: Stated) -> str:
    """The ranks of the files that were read."""
    value = stated.value if stated.unit == "ranks" else int(stated.value)
    truth = tuple(job.trace.ranks) if stated.unit == "ranks" else len(job.trace.ranks)
    return "" if value == truth else f"they are {truth}"


def begins(job: Job) -> dict[int, int]:
    """When each rank begins to record."""
    return {
        number: min(each.start for each in rank.events if each.category != "trace")
        for number, rank in job.recorded.items()
    }
