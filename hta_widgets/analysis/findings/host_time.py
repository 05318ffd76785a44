"""What the host's thread that runs the steps does, where only the host is recorded and does all the work."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from hta_widgets.analysis.calls.nesting import nest
from hta_widgets.analysis.core.autograd import is_node
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.longest import longest_row
from hta_widgets.analysis.findings.accumulation import FORWARD, begun
from hta_widgets.analysis.findings.call_time import (
    longest_names,
    open_time,
    own_time,
    spans_of,
    without_backward,
)
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.idle.causes import is_data_loading, is_synchronising, named
from hta_widgets.analysis.idle.pauses import LEAST_NS
from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.classify import EventClass, is_optimizer_step
from hta_widgets.trace.ordering import among
from hta_widgets.trace.rank_trace import RankTrace

PARTS: Final = ("loading", "compiling", "operators", "collectives", "elsewhere", "outside")
"""What a thread does, each instant in one: the data loader; torch.compile; operators; communication, be it
calls of it or waiting for a collective that other threads carry out; nothing, while other threads are in
operators; nothing of all that."""

SHORT_NS: Final = 5_000
"""An operator that takes less, with the profiler's own time for it, hardly does more than be called."""

_COLLECTIVE = re.compile(r"^(?:gloo|mpi|ucc):")
# Calls that do nothing but communicate, or copy what is communicated.
_CALL = re.compile(
    r"^(?:gloo|mpi|ucc|c10d|_?c10d_functional|fsdp|FSDP|torch\.distributed\.ddp\.reducer"
    r"|torch::distributed::reducer):|^record_param_comms$"
)
# Parts of torch.compile, which the profiler has for operators.
_COMPILES = re.compile(r"\(dynamo_timed\)$")
# Kernels of the CPU. Others show by their time: an operator of a device returns when it has launched.
_OF_CPU = re.compile(r"mkldnn|onednn|_for_cpu$|_slow_conv2d|thnn_conv2d|^(?:gloo|mpi):")
_OF_GPU = re.compile(r"cudnn|miopen|cuda|_efficient_attention|hip")
# Allocations, copies and what reads values back may wait for a device.
_MAY_WAIT = re.compile(
    r"^aten::(?:empty|copy_|_to_copy|to|zeros|ones|full|arange|resize|item|_local_scalar|is_nonzero|nonzero)"
    r"|^detach|^c10d::"
)
_COMPUTES_NS: Final = 200_000
_ENOUGH_CALLS: Final = 3
# Ranges of devices' backends, and operators of devices whose work the profiler does not record.
_OF_A_DEVICE = re.compile(r"^(?:nccl|rccl|xccl|hccl|mccl):|^aten::(?:_mps_|\w+_mps$)|^npu::")
_REDUCES = re.compile(r"^c10d::allreduce_")
# DDP's reducer goes on with what was reduced.
_REDUCED = re.compile(r"reducer::copy_bucket_to_grad$")
_SHARDS = re.compile(r"^(?:FSDP|fsdp)::")
_FUSED = re.compile(r"^aten::_fused_")
# To read a value that the host has computed takes no longer.
_READ_NS: Final = 20_000
# The thread of nodes runs the forward pass, too: so many operators are in none of them.
_BESIDE_NODES: Final = 0.1
# A thread that waits goes on this soon after the collective has ended, or so much of the wait later, where
# cores are short.
_SOON_NS: Final = 500_000
_SOON: Final = 0.05


class Sign(NamedTuple):
    """What shows that a device takes part: "calls" of it, a "name" of its operators or ranges, the "device"
    that the file names, values of this name that take long to be "reads", or the thread of the "backward"."""

    kind: Literal["calls", "name", "device", "reads", "backward"]
    name: str


@dataclass(frozen=True)
class HostTime:
    """The judged time of the thread that runs the steps of a rank, ns."""

    thread: int  # of which it is
    window_ns: int  # all of it
    spent: dict[str, Intervals]  # when it does what, by `PARTS`
    operators: dict[str, int]  # name -> time in operators of this name, inner ones aside, the longest first
    calls: int  # how many operators
    short: int  # how many of these take less than `SHORT_NS`, inner ones aside, and how long all of them
    short_ns: int
    # Python functions and annotations that are open outside of operators, inner ones aside
    places: dict[str, int]
    regions: dict[str, int]  # annotations that lie in no other, and how long they are open
    long_ns: int  # what of the part outside lies in stretches of `LEAST_NS` or more
    longest_ns: int  # the longest
    optimizer: str  # name of its steps that run no backward pass, those that take longest
    optimizing: Intervals  # when they are open
    updates: int  # operators in them
    fused: bool  # some of these update many parameters at once
    # their names, in the order of starts; spans: start and end of each, int64[n, 2]; around: the one that is
    # open around each, -1 for none
    collectives: tuple[str, ...]
    spans: Int64
    around: Int64
    waits: Intervals  # when it waits for a collective in no call
    forwards: int  # how often DDP's forward pass runs
    reduced: int  # after how many of these, before the next one, gradients are reduced
    reductions: int  # how many calls that takes
    sharded: bool  # FSDP gathers parameters

    @property
    def parts(self) -> dict[str, int]:
        """How long it does what, by `PARTS`; adds up to all of it."""
        return {part: time.length for part, time in self.spent.items()}

    def in_collectives(self, time: Intervals) -> dict[str, int]:
        """Name -> how much of a time is in collectives, sends and receives of it, those inside them aside."""
        own = own_time(time, self.spans, self.around).tolist()
        return longest_first({name: ns} for name, ns in zip(self.collectives, own, strict=True))


def longest_first(times: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Name -> time on several ranks together, the longest first."""
    sums: Counter[str] = Counter()
    for of_rank in times:
        sums.update(of_rank)
    return dict(sorted(sums.items(), key=lambda each: (-each[1], each[0])))


def is_of_host_alone(rank_trace: RankTrace) -> bool:
    """Whether all work is the host's: operators are recorded, and nothing shows that a device takes part."""
    return sign_of_device(rank_trace) is None and rank_trace.recording.kind != "unknown"


def sign_of_device(rank_trace: RankTrace) -> Sign | None:
    """What shows that a device takes part; None if nothing does.

    Devices show by their events, by calls of their runtime, ranges of their communication and operators of
    their own, by values that take long to read back, and by autograd, which runs the backward pass of a
    device's operators on a thread of its own. A device in the machine, which the file names, may not take
    part: then the time of operators is that of the CPU's kernels.
    """
    classes, names = rank_trace.event_class, rank_trace.names
    if rank_trace.is_device.any() or (classes == EventClass.RUNTIME).any():
        return Sign("calls", "")
    if name := next(filter(_OF_A_DEVICE.search, names), ""):
        return Sign("name", name)
    if rank_trace.device_name and not _computes_itself(rank_trace):
        return Sign("device", rank_trace.device_name)
    operator = classes == EventClass.HOST_OP
    reading = np.flatnonzero(operator & named(rank_trace, is_synchronising))
    compiling = open_time(rank_trace, named(rank_trace, _COMPILES.search))  # and trying what is compiled
    reading = reading[compiling.within_each(spans_of(rank_trace, reading)) == 0]
    if len(reading) and np.median(rank_trace.dur[reading]) > _READ_NS:
        row = longest_row(rank_trace, reading)
        return Sign("reads", names[rank_trace.name[row]])
    nodes = operator & named(rank_trace, is_node)
    inner = (rank_trace.parent >= 0) & operator[rank_trace.parent]
    beside = operator & ~inner & ~nodes & np.isin(rank_trace.thread, np.unique(rank_trace.thread[nodes]))
    if nodes.any() and int(beside.sum()) < _BESIDE_NODES * int(nodes.sum()):
        return Sign("backward", "")
    return None


def _computes_itself(rank_trace: RankTrace) -> bool:
    """Whether most of the time of operators is in those that can only have computed on the host."""
    rows = np.flatnonzero((rank_trace.event_class == EventClass.HOST_OP) & ~marks_steps(rank_trace))
    names, codes = rank_trace.names, rank_trace.name[rows]
    if any(_OF_GPU.search(names[code]) for code in np.unique(codes).tolist()):
        return False
    start, end, thread = rank_trace.start[rows], rank_trace.end[rows], rank_trace.thread[rows]
    around = nest(start, end, thread.astype(np.int64), np.zeros(len(rows), np.int8))
    own = end - start
    np.subtract.at(own, around[around >= 0], (end - start)[around >= 0])
    computed = 0
    for code in np.unique(codes).tolist():
        times = own[codes == code].clip(0)
        long = len(times) >= _ENOUGH_CALLS and np.median(times) >= _COMPUTES_NS
        if _OF_CPU.search(names[code]) or (long and not _MAY_WAIT.search(names[code])):
            computed += int(times.sum())
    return 2 * computed > int(own.clip(0).sum())


def hosts_of(inputs: Inputs) -> dict[int, HostTime]:
    """What the threads of the steps do, by rank; empty unless all ranks work on the host alone."""
    found: dict[int, HostTime] = {}
    for rank in inputs.trace.ranks_of(inputs.scope):
        host = inputs.of(rank, host_time)
        if host is None:
            return {}
        found[rank] = host
    return found


def host_time(inputs: Inputs, rank: int) -> HostTime | None:
    """What the thread of the steps does; None where a device may take part, or no thread runs operators."""
    return time_of_thread(inputs, rank) if is_of_host_alone(inputs.trace.rank(rank)) else None


def time_of_thread(inputs: Inputs, rank: int) -> HostTime | None:
    """The same, whether or not a device takes part."""
    rank_trace = inputs.trace.rank(rank)
    windows = rank_trace.windows(inputs.scope)
    judged = Intervals.union(windows[:, 0], windows[:, 1])
    thread = _thread(rank_trace, judged)
    if thread is None or not judged.length:
        return None
    classes, mine = rank_trace.event_class, rank_trace.thread == thread
    operator = (classes == EventClass.HOST_OP) & rank_trace.on_host & ~marks_steps(rank_trace)
    own_calls = operator & mine
    enclosing = _enclosing(rank_trace, thread)
    calling = enclosing | own_calls
    loading = judged & open_time(rank_trace, calling & named(rank_trace, is_data_loading))
    compiling = (judged & open_time(rank_trace, calling & named(rank_trace, _COMPILES.search))) - loading
    apart = loading | compiling
    communicating = (judged & open_time(rank_trace, calling & named(rank_trace, _CALL.search))) - apart
    operators = (judged & open_time(rank_trace, own_calls)) - apart - communicating
    silent = judged - apart - operators - communicating
    collective = named(rank_trace, _COLLECTIVE.search) & among(
        classes, (EventClass.ANNOTATION, EventClass.HOST_OP)
    )
    working = own_calls & ~collective
    quiet = judged - loading - open_time(rank_trace, working)
    reduced = np.flatnonzero(own_calls & named(rank_trace, _REDUCED.search))
    waits = _waits(rank_trace, quiet, np.flatnonzero(collective), reduced)
    elsewhere = (silent - waits) & open_time(rank_trace, operator & ~mine)
    outside = silent - waits - elsewhere
    lengths = outside.end - outside.start
    spent = (loading, compiling, operators, communicating | waits, elsewhere, outside)
    updating = without_backward(rank_trace, np.flatnonzero(enclosing & named(rank_trace, is_optimizer_step)))
    update = judged & open_time(rank_trace, updating)
    calls = np.flatnonzero(own_calls)
    begins = rank_trace.start[calls]
    updates = calls[update.within_each(np.stack([begins, begins + 1], 1)) > 0]
    at = np.flatnonzero(collective)
    at = at[np.lexsort((rank_trace.event_id[at], rank_trace.start[at]))]
    spans = spans_of(rank_trace, at)
    own = _own(rank_trace, calls, operators)
    places = places_of_thread(rank_trace, thread)
    return HostTime(
        thread,
        judged.length,
        dict(zip(PARTS, spent, strict=True)),
        longest_names(rank_trace, calls, own),
        int((own > 0).sum()),
        int(((own > 0) & (own < SHORT_NS)).sum()),
        int(own[own < SHORT_NS].sum()),
        longest_names(rank_trace, places, _own(rank_trace, places, outside)),
        _regions(rank_trace, places[classes[places] == EventClass.ANNOTATION], judged),
        int(lengths[lengths >= LEAST_NS].sum()),
        int(lengths.max(initial=0)),
        next(iter(longest_names(rank_trace, updating, rank_trace.dur[updating])), ""),
        update,
        len(updates),
        bool(named(rank_trace, _FUSED.search)[updates].any()),
        tuple(rank_trace.names[code] for code in rank_trace.name[at].tolist()),
        spans,
        _around(spans, rank_trace.thread[at].astype(np.int64)),
        waits,
        *_reductions(rank_trace, judged, enclosing, own_calls),
        bool((calling & named(rank_trace, _SHARDS.search)).any()),
    )


def places_of_thread(rank_trace: RankTrace, thread: int) -> Int64:
    """The rows of a thread's Python functions and annotations, steps aside."""
    return np.flatnonzero(_enclosing(rank_trace, thread) & ~marks_steps(rank_trace))


def _enclosing(rank_trace: RankTrace, thread: int) -> Bool:
    classes = among(rank_trace.event_class, (EventClass.PYTHON, EventClass.ANNOTATION))
    return classes & rank_trace.on_host & (rank_trace.thread == thread)


def _regions(rank_trace: RankTrace, rows: Int64, judged: Intervals) -> dict[str, int]:
    """Of spans of one thread the names of those that lie in no other, and how long they are open."""
    spans = spans_of(rank_trace, rows)
    outer = _around(spans, np.zeros(len(rows), np.int64)) < 0
    return longest_names(rank_trace, rows[outer], judged.within_each(spans[outer]))


def _reductions(
    rank_trace: RankTrace, judged: Intervals, enclosing: Bool, calls: Bool
) -> tuple[int, int, int]:
    """How often DDP's forward pass begins; after how many gradients are reduced; in how many calls."""
    forwards = begun(rank_trace, judged, enclosing & named(rank_trace, FORWARD.search))
    reductions = begun(rank_trace, judged, calls & named(rank_trace, _REDUCES.search))
    after = np.searchsorted(forwards, reductions, "right")
    return len(forwards), len(np.unique(after[after > 0])), len(reductions)


def _thread(rank_trace: RankTrace, judged: Intervals) -> int | None:
    """The thread that marks the steps; without marks the one that is longest in operators."""
    rows = np.flatnonzero(marks_steps(rank_trace) & (rank_trace.event_class == EventClass.ANNOTATION))
    if len(rows):
        threads, counts = np.unique(rank_trace.thread[rows], return_counts=True)
        return int(threads[int(counts.argmax())])
    operator = rank_trace.event_class == EventClass.HOST_OP
    longest = {
        thread: (judged & open_time(rank_trace, operator & (rank_trace.thread == thread))).length
        for thread in np.unique(rank_trace.thread[operator]).tolist()
    }
    return max(sorted(longest), key=lambda thread: longest[thread], default=None)


def _waits(rank_trace: RankTrace, silent: Intervals, rows: Int64, reduced: Int64) -> Intervals:
    """When a collective runs in stretches of silence that end as one does: the thread waits for it.

    A thread that does something else meanwhile goes on at another time. One that goes on with what was
    reduced has waited whenever that is: it may have had to wait for a core, too.
    """
    if not len(rows) or not len(silent):
        return Intervals.union([], [])
    ends = np.sort(rank_trace.end[rows])
    after = np.minimum(np.searchsorted(ends, silent.end), len(ends) - 1)
    apart = np.minimum(np.abs(ends[after] - silent.end), np.abs(ends[np.maximum(after - 1, 0)] - silent.end))
    lengths = silent.end - silent.start
    with_it = apart <= np.minimum(np.maximum(_SOON_NS, _SOON * lengths), lengths)
    taken = np.sort(rank_trace.start[reduced])
    with_it |= np.searchsorted(taken, silent.end) < np.searchsorted(taken, silent.end + _SOON_NS, "right")
    running = Intervals.union(rank_trace.start[rows], rank_trace.end[rows])
    waits = Intervals(silent.start[with_it], silent.end[with_it]) & running
    # where it mostly goes on at other times, some of them may end together by chance
    return waits if 2 * waits.length >= (silent & running).length else Intervals.union([], [])


def _own(rank_trace: RankTrace, rows: Int64, time: Intervals) -> Int64:
    """How much of a time each of these rows of one thread is open, those inside it aside."""
    spans = spans_of(rank_trace, rows)
    return own_time(time, spans, _around(spans, np.zeros(len(rows), np.int64)))


def _around(spans: Int64, thread: Int64) -> Int64:
    """The innermost span of its thread that holds each of them, -1 for none."""
    return nest(spans[:, 0], spans[:, 1], thread, np.zeros(len(spans), np.int8)).astype(np.int64)


def marks_steps(rank_trace: RankTrace) -> Bool:
    """The rows that have a step's label, also where none of them is complete."""
    labels = set(rank_trace.iterations["label"])
    return named(rank_trace, lambda name: name in labels or name.startswith("ProfilerStep#"))
