"""Queued work that pauses for equal stretches wherever the program is: another process likely has the device.

Devices that several processes share are given to each in turn for slices of one length. A stream that waits
for another one does so at the same places of the program; such pauses come anywhere.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

import numpy as np

from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, Text, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.configurations import configured
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.idle_time import apart_ns, idle_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import idle_rule, never
from hta_widgets.arrays import Int64
from hta_widgets.kernel_names import short_kernel_name
from hta_widgets.trace.rank_trace import RankTrace

_LEAST_NS: Final = 300_000
"""A slice of a device is a millisecond or more; its rest may be shorter."""
_HOLES: Final = 6
_EQUAL, _MOST = 0.25, 2 / 3
"""So far from the median are holes of one length, which take so much of the time."""
_HERE: Final = 0.5
"""Of the steps that pause at a place: then it is the program that does. Of the holes: then most are there."""
_STEPS: Final = 3
_LAUNCHES, _TIMES = 8, 5
"""Of so many equal launches, the longest takes so many times as long as the shortest."""


class _Holes(NamedTuple):
    """The holes of a rank: all of the time in which queued work does not start, and those of one length."""

    rank: int
    idle: Intervals
    number: int
    median_ns: int


def shared_device(inputs: Inputs) -> Finding | None:
    """Holes of one length while work is queued, at no place of the program more than at another."""
    ranks = inputs.idle["rank"].tolist() if len(inputs.idle) else []
    found = [holes for rank in ranks if (holes := inputs.of(rank, _holes))]
    if not found:
        return None
    most = max(found, key=lambda holes: holes.idle.length)
    one = (most.rank,)
    share = 100.0 * most.idle.length / inputs.judged_ns[most.rank]
    about = {"cause": "device_wait", "apart_ns": apart_ns(inputs, [most.rank], "device_wait")}
    text = say(
        "The device{who} is idle {lost} although work is queued, most of it in {count} holes of about "
        "{length} at no fixed place of the program. Likely another process has the device then.{equal}",
        who=say(" of {rank}", rank=Claim("holes_on", one, "ranks")) if len(ranks) > 1 else "",
        lost=inputs.time_lost("idle_by_cause", share, most.idle.length, one, **about),
        count=Claim("holes", most.number, "count", ranks=one),
        length=Claim("hole_length", most.median_ns, "ns", ranks=one),
        equal=_unequal(inputs.trace.rank(most.rank)),
    )
    check = inputs.accelerator.monitor or "the vendor's tool"
    return Finding(
        most.idle.length,
        share,
        text,
        f"Look for other processes on the device with {check}, also those of other users and containers; "
        "record on a device of its own.",
        "idle_breakdown",
        Evidence(most.rank if len(ranks) > 1 else None, event_rank=most.rank, span=most.idle.longest),
        lost={most.rank: most.idle},
    )


def _holes(inputs: Inputs, rank: int) -> _Holes | None:
    idle = idle_of(inputs, rank, "device_wait")
    if not severity_of(100.0 * idle.length / max(inputs.judged_time(rank).length, 1)):
        return None
    lengths = idle.end - idle.start
    long = lengths >= _LEAST_NS
    if int(long.sum()) < _HOLES:
        return None
    median = int(np.median(lengths[long]))
    equal = long & (np.abs(lengths - median) <= _EQUAL * median)
    if int(equal.sum()) < _HOLES or int(lengths[equal].sum()) < _MOST * idle.length:
        return None
    causes = inputs.idle_causes(rank)
    before = causes.next_row[np.searchsorted(causes.gaps.end, idle.end[equal])]
    if _at_places(inputs.trace.rank(rank), before):
        return None
    return _Holes(rank, idle, int(equal.sum()), median)


def _at_places(rank_trace: RankTrace, before: Int64) -> bool:
    """Whether most holes come before work at places where the program pauses again and again.

    A place is the number of the work in its step, and of holes without steps how much work lies between them.
    """
    work = rank_trace.device_rows
    work = work[np.argsort(rank_trace.start[work], kind="stable")]
    number = np.empty(rank_trace.n, np.int64)
    number[work] = np.arange(len(work))
    steps = rank_trace.iteration[before]
    if len(np.unique(steps[steps >= 0])) >= _STEPS:
        known, first = np.unique(rank_trace.iteration[work], return_index=True)
        _, often = np.unique(number[before] - first[np.searchsorted(known, steps)], return_counts=True)
        there = int(often[often >= _HERE * np.count_nonzero(known >= 0)].sum())
    else:
        between = np.diff(np.sort(number[before]))
        there = max(Counter(between.tolist()).values()) + 1
    return there >= _HERE * len(before)


def _unequal(rank_trace: RankTrace) -> Text:
    """` Equal launches of conv take 0.11 to 2.7 ms.`: the widest range; nothing where none is wide."""
    rows, known, number = configured(rank_trace)
    most: tuple[float, int, int, int] | None = None
    for code in np.flatnonzero(np.bincount(number) >= _LAUNCHES).tolist():
        times = rank_trace.dur[rows[number == code]]
        low, high = int(times.min()), int(times.max())
        if low and high >= _TIMES * low and (most is None or high / low > most[0]):
            most = high / low, code, low, high
    if most is None:
        return NOTHING_SAID
    _, code, low, high = most
    name, ranks, about = known[code].name, (rank_trace.rank,), known[code]._asdict()
    return say(
        " Equal launches of {name} take {low} to {high}.",
        name=Claim("unequal_launches", name, "name", ranks=ranks, shown=short_kernel_name(name)),
        low=Claim("shortest_launch", low, "ns", ranks=ranks, about=about),
        high=Claim("longest_launch", high, "ns", ranks=ranks, about=about),
    )


RULE = idle_rule(
    topic="shared_device",
    title="Time that another process likely has the device",
    label="Shared GPU",
    cause="another process on the GPU",
    judge=shared_device,
    applies=never,
    no_change="another process decides it",
    needs="A device that no other process uses.",
    wrong_if="The work waits for something that is not recorded, such as a host function.",
)
