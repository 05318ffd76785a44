"""Rules about recordings with calls to a device and without its events: what the host does is still known.

What the device does, and what its host waits for, is not; so nothing is simulated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from hta_widgets.analysis.calls.nesting import nest
from hta_widgets.analysis.core.claim import Claim, Said, say, says
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.call_time import longest_names, open_time, own_time, spans_of
from hta_widgets.analysis.findings.callers import place_claim
from hta_widgets.analysis.findings.evidence import evidence_of_event
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.host_loss import host_rule
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import HOST_QUESTION, Rule
from hta_widgets.arrays import Int64
from hta_widgets.formatting import brief
from hta_widgets.trace.classify import COUNTER_RANGE, EventClass
from hta_widgets.trace.ordering import unique
from hta_widgets.trace.rank_trace import RankTrace

_MOST_NAMES: Final = 2
_LEAST: Final = 0.03
_MOST: Final = 0.5
_OPERATORS: Final = "operators"
# The first that holds decides.
_KINDS: Final = {
    "allocations": re.compile(
        r"Malloc|Free|HostAlloc|HostRegister|Mem(?:Alloc|Create|Map|Unmap|Release|Address)"
    ),
    "copies": re.compile(r"Mem(?:cpy|set)", re.IGNORECASE),
    "waits": re.compile(r"Synchronize|EventQuery|StreamQuery"),
    "launches": re.compile(r"Launch"),
    "set_up": re.compile(""),
}


@dataclass(frozen=True)
class HostCalls:
    """What the thread of a rank does that calls the device most."""

    window_ns: int  # how long it is judged
    # kind of its calls, or "operators" -> when it is in them, and in nothing inside them
    time: dict[str, Intervals]
    names: dict[str, dict[str, int]]  # the same -> name -> for how long, ns, the longest first
    longest: dict[str, int]  # the same -> number of the longest event

    def own_ns(self, rank_trace: RankTrace, kind: str) -> int:
        """How long the longest of a kind takes."""
        row = self.longest[kind]
        return self.time[kind].clip(int(rank_trace.start[row]), int(rank_trace.end[row])).length


def host_windows(inputs: Inputs) -> dict[int, int]:
    """How long each rank is judged, ns; empty unless no rank has device events and all call a device."""
    found = {}
    for rank in inputs.trace.ranks_of(inputs.scope):
        calls = inputs.of(rank, _calls)
        if calls is None:
            return {}
        found[rank] = calls.window_ns
    return found


def _calls(inputs: Inputs, rank: int) -> HostCalls | None:
    rank_trace = inputs.trace.rank(rank)
    runtime = rank_trace.event_class == EventClass.RUNTIME
    windows = rank_trace.windows(inputs.scope)
    if rank_trace.is_device.any() or not runtime.any() or not len(windows):
        return None
    if COUNTER_RANGE in rank_trace.categories:  # counters: calls take as long as the profiler's replays
        return None
    judged = Intervals.union(windows[:, 0], windows[:, 1])
    wanted = np.flatnonzero(runtime | (rank_trace.event_class == EventClass.HOST_OP))
    wanted = wanted[judged.within_each(spans_of(rank_trace, wanted)) > 0]
    if not len(wanted):
        return None
    by_thread = {
        thread: (judged & open_time(rank_trace, wanted[rank_trace.thread[wanted] == thread])).length
        for thread in unique(rank_trace.thread[wanted]).tolist()
    }
    thread = max(sorted(by_thread), key=lambda each: by_thread[each])
    rows = wanted[rank_trace.thread[wanted] == thread]
    kind_of = {name: _kind(rank_trace.names[name]) for name in unique(rank_trace.name[rows]).tolist()}
    of_name = [kind_of[code] for code in rank_trace.name[rows].tolist()]
    kind = np.where(runtime[rows], of_name, _OPERATORS)
    calls = judged & open_time(rank_trace, rows[kind != _OPERATORS])
    time = {each: judged & open_time(rank_trace, rows[kind == each]) for each in _KINDS}
    time[_OPERATORS] = (judged & open_time(rank_trace, rows[kind == _OPERATORS])) - calls
    own = _own(rank_trace, rows, judged)
    return HostCalls(
        judged.length,
        time,
        {each: longest_names(rank_trace, rows[kind == each], own[kind == each]) for each in time},
        {each: int(rows[kind == each][own[kind == each].argmax()]) for each in time if (kind == each).any()},
    )


def _kind(name: str) -> str:
    return next(kind for kind, pattern in _KINDS.items() if pattern.search(name))


def _own(rank_trace: RankTrace, rows: Int64, judged: Intervals) -> Int64:
    """How much of the judged time each row of a thread is open, those inside it aside."""
    spans = spans_of(rank_trace, rows)
    inner = (rank_trace.event_class[rows] == EventClass.RUNTIME).astype(np.int8)
    return own_time(judged, spans, nest(spans[:, 0], spans[:, 1], np.zeros(len(rows), np.int64), inner))


def _judge(kind: str, does: str, advice: str, inputs: Inputs) -> Finding | None:
    """The time of the rank that spends the largest part of its own on a kind of calls."""
    whole = host_windows(inputs)
    found = {rank: calls for rank in whole if (calls := inputs.of(rank, _calls)) and calls.names[kind]}
    if not found:
        return None
    rank = max(found, key=lambda each: found[each].time[kind].length / found[each].window_ns)
    calls, rank_trace = found[rank], inputs.trace.rank(rank)
    spent, names = calls.time[kind].length, calls.names[kind]
    several, about = len(whole) > 1, {"kind": kind}
    listed: list[Said] = [
        say(
            "{name} ({share})",
            name=place_claim("host_call", name, rank, nth=nth, kind=kind),
            share=inputs.of_time(
                "host_call_time", 100.0 * ns / calls.window_ns, (rank,), name=name, kind=kind
            ),
        )
        for nth, (name, ns) in enumerate(names.items())
        if nth < _MOST_NAMES and (not nth or ns >= _LEAST * calls.window_ns)
    ]
    longest = calls.longest[kind]
    text = say(
        f"The host{{where}} {does} {{lost}}. Longest: {{calls}}. One call takes up to {{longest}}. No device "
        "events are recorded: what the device does meanwhile is unknown.",
        where=say(" of {rank}", rank=Claim("host_rank", (rank,), "ranks", about=about)) if several else "",
        lost=inputs.time_lost("host_kind_time", 100.0 * spent / calls.window_ns, spent, (rank,), kind=kind),
        calls=says(listed, ", "),
        longest=Claim("host_longest", calls.own_ns(rank_trace, kind), "ns", ranks=(rank,), about=about),
    )
    first = next(iter(names))
    title = (
        f"Running {brief(first)} on the host" if kind == _OPERATORS and names[first] >= _MOST * spent else ""
    )
    return Finding(
        spent,
        100.0 * spent / calls.window_ns,
        text,
        inputs.accelerator.fill(advice),
        "call_stacks",
        evidence_of_event(rank_trace, longest, several, first),
        lost=inputs.when((rank,), lambda _: calls.time[kind]),
        title=title,
    )


def _rule(kind: str, title: str, label: str, cause: str, does: str, advice: str, wrong_if: str) -> Rule:
    return host_rule(
        topic=f"host_{kind}" if kind != _OPERATORS else "host_self_time",
        question=HOST_QUESTION,
        title=title,
        label=label,
        cause=cause,
        judge=partial(_judge, kind, does, advice),
        wrong_if=wrong_if,
    )


_WAITS: Final = "The device works meanwhile: then its own time is what counts."

RULES: Final = (
    _rule(
        _OPERATORS,
        "Running operators on the host",
        "CPU operators",
        "operators on the CPU",
        "is in operators, calls of the runtime aside,",
        "Look at these operators: those that compute on the CPU can run on the device, and many short ones "
        "can be joined by torch.compile.",
        _WAITS,
    ),
    _rule(
        "allocations",
        "Allocating and freeing device memory",
        "Device allocations",
        "allocations by the driver",
        "allocates and frees device memory",
        "{keep_memory} Leave memory free.",
        "The calls are the first of the process: then they create its context.",
    ),
    _rule(
        "copies",
        "Waiting in calls that copy",
        "Blocking copies",
        "blocking copies",
        "is in calls that copy",
        "Copy from pinned memory with non_blocking=True, and read results back once instead of one by one.",
        _WAITS,
    ),
    _rule(
        "waits",
        "Waiting for the device",
        "Waiting for the device",
        "waiting for the device",
        "waits for the device",
        "Record the device's events to see what it waits for.",
        _WAITS,
    ),
    _rule(
        "launches",
        "Launching device work",
        "Launch calls",
        "calls that launch work",
        "is in calls that launch device work",
        "Launch fewer, larger kernels: torch.compile, a larger batch.",
        "The queue of the device is full, or code is loaded at its first launch.",
    ),
    _rule(
        "set_up",
        "Setting up the device",
        "Device set-up",
        "setting up the device",
        "is in other calls of the runtime",
        "Record steps after the warm-up: torch.profiler.schedule(wait=1, warmup=3, active=5).",
        "The calls come again in every step.",
    ),
)
