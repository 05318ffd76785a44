"""What a host does that calls a device whose events are not recorded."""

from __future__ import annotations

import re
from collections import Counter

from tests.claims.job import Job, PlainRank, Record
from tests.claims.measures.idle import RUNTIME, the_rank
from tests.claims.registry import Stated, check, close

KINDS = [
    ("allocations", r"malloc|free|hostalloc|hostregister|mem(alloc|create|map|unmap|release|address)"),
    ("copies", r"mem(cpy|set)"),
    ("waits", r"synchronize|eventquery|streamquery"),
    ("launches", r"launch"),
    ("set_up", ""),
]
OPERATORS = {"cpu_op", "operator"}


def kind_of(record: Record) -> str:
    if record.category in OPERATORS:
        return "operators"
    return next(kind for kind, pattern in KINDS if re.search(pattern, record.name.lower()))


def calls_of(rank: PlainRank) -> list[Record]:
    """Operators and calls of the runtime, on the thread that is in them longest."""
    threads = [
        [each for each in thread if each.category in OPERATORS | set(RUNTIME)]
        for thread in rank.all_threads.values()
    ]
    longest = max(threads, key=lambda thread: rank.within([each.window for each in thread]))
    return sorted(longest, key=lambda each: (each.start, -each.end, each.category in RUNTIME))


def own_times(rank: PlainRank) -> list[tuple[Record, int]]:
    """Each call, and how much of the judged time it is the innermost one."""
    found: list[tuple[Record, int]] = []
    open_: list[int] = []
    for each in calls_of(rank):
        while open_ and found[open_[-1]][0].end <= each.start:
            open_.pop()
        inside = rank.within([each.window])
        if open_:
            around, own = found[open_[-1]]
            found[open_[-1]] = around, own - inside
        open_.append(len(found))
        found.append((each, inside))
    return found


def spent(rank: PlainRank, kind: str) -> Counter[str]:
    times: Counter[str] = Counter()
    for each, own in own_times(rank):
        if kind_of(each) == kind:
            times[each.name] += own
    return times


@check("host_kind_time")
@check("host_call_time")
def host_call_time(job: Job, stated: Stated) -> str:
    rank = the_rank(job, stated)
    times = spent(rank, stated.about["kind"])
    time = times[stated.about["name"]] if "name" in stated.about else sum(times.values())
    if stated.unit == "%":
        return close(stated, 100.0 * time / rank.judged_ns, 0.01)
    steps = max(len(rank.judged_steps), 1) if stated.unit == "ns/step" else 1
    return close(stated, time / steps, 0.01, 2_000.0)


@check("host_call")
def host_call(job: Job, stated: Stated) -> str:
    """The longest of its kind, the second one, and so on."""
    times = spent(the_rank(job, stated), stated.about["kind"])
    nth = sorted(times.values(), reverse=True)[stated.about["nth"]]
    return (
        "" if times[str(stated.value)] >= 0.99 * nth else f"it takes {times[str(stated.value)]} ns, not {nth}"
    )


@check("host_longest")
def host_longest(job: Job, stated: Stated) -> str:
    own = [ns for each, ns in own_times(the_rank(job, stated)) if kind_of(each) == stated.about["kind"]]
    return close(stated, max(own), 0.01, 2_000.0)


@check("host_rank")
def host_rank(job: Job, stated: Stated) -> str:
    """No other spends a larger part of its time so."""
    shares = {
        number: sum(spent(rank, stated.about["kind"]).values()) / rank.judged_ns
        for number, rank in job.ranks.items()
    }
    return "" if shares[stated.value[0]] >= 0.99 * max(shares.values()) else f"they spend {shares}"
