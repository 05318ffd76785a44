"""Changes to a program whose effect can be replayed: small values, asked together as a list.

    from hta_widgets import analysis, edits

    analysis.what_if(trace, edits.without("enumerate(DataLoader)*"))
    analysis.what_if(trace, [edits.kernels(2.0, name="*gemm*"), edits.communication(0)])

Names are patterns as in file names: ``*`` stands for any text, ``?`` for one character, ``[ab]`` for a or b.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from fnmatch import translate
from functools import partial

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.replay import kinds
from hta_widgets.analysis.replay.device_times import at_bandwidth, at_bus_bandwidth, hidden_by_compute
from hta_widgets.analysis.replay.fusion import fuse
from hta_widgets.analysis.replay.groups import Group
from hta_widgets.analysis.replay.host_points import ALLOCATES
from hta_widgets.analysis.replay.kinds import EVENT_STARTS
from hta_widgets.analysis.replay.plan import Plan
from hta_widgets.analysis.replay.streams import move
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL

Bool = npt.NDArray[np.bool_]

__all__ = [
    "Edit",
    "allocator",
    "bus_bandwidth",
    "communication",
    "copies",
    "copy_bandwidth",
    "exactly",
    "fused_optimizer",
    "graphs",
    "host",
    "kernel_time",
    "kernels",
    "launches",
    "overlap",
    "own_stream",
    "syncs",
    "without",
]

LEFT_OF_OPTIMIZER = 0.1
"""Of the host's time in an optimizer that launches its work for all parameters at once."""

_COPIES = (EventClass.MEMORY_COPY, EventClass.MEMORY_SET)
_COMPUTE = tuple(set(EventClass) - {*_COPIES, EventClass.COMMUNICATION, EventClass.SYNC})


@dataclass(frozen=True)
class Edit:
    """A change to a program.

    Attributes:
        expression: the Python expression that makes it.
        bound: it can be had at most in part (nobody's host is free): its saving may be anything down to 0.
        apply: how it changes the replay.
    """

    expression: str
    bound: bool = False
    apply: Callable[[Plan], None] = field(default=lambda plan: None, repr=False, compare=False)


def exactly(name: str) -> str:
    """The pattern that only this name matches.

    Args:
        name: of a call or kernel, with any characters.
    """
    return re.sub(r"([*?[])", r"[\1]", name)


def host(
    time: float = 0.0, within: str | None = None, outside: str | None = None, exposed: bool = False
) -> Edit:
    """The host's own time, in calls and between them, times a factor: 0.5 is a host twice as fast, 0 is free.

    Args:
        time: what is left of each ns, at least 0.
        within: only inside operators, annotations and Python functions of this name.
        outside: only while none of this name is open, such as a data loader.
        exposed: only while no device works.

    Raises:
        ValueError: the factor is negative or no number.
    """
    time = _factor(time)
    expression = _said("host", time, within=within, outside=outside, exposed=exposed or None)
    return Edit(expression, time == 0, partial(_host, time, within, outside, bool(exposed)))


def launches(time: float = 0.0) -> Edit:
    """The time of calls that launch device work and do not wait, times a factor; 0: launching is free.

    Args:
        time: what is left of each ns, at least 0.

    Raises:
        ValueError: the factor is negative or no number.
    """
    time = _factor(time)
    return Edit(_said("launches", time), time == 0, partial(_launches, time))


def syncs(call: str | None = None, within: str | None = None) -> Edit:
    """Synchronising calls and blocking copies no longer wait for the device.

    A wait that the program needs cannot be removed: this is a bound.

    Args:
        call: only calls of this name; by default all but those that wait for the whole device
            (``*DeviceSynchronize``), with which programs take their time.
        within: only inside operators, annotations and Python functions of this name.
    """
    return Edit(_said("syncs", call=call, within=within), True, partial(_syncs, call, within))


def allocator() -> Edit:
    """Calls that allocate or free device memory take no time and wait for nothing: a caching allocator."""
    return Edit(_said("allocator"), False, _allocator)


def without(name: str, keep_ns: int = 0) -> Edit:
    """Take operators, annotations or Python functions out of the host's time, such as a data loader.

    Device work that they launched stays.

    Args:
        name: of the calls.
        keep_ns: how much of each call to keep, ns.

    Raises:
        ValueError: `keep_ns` is negative.
    """
    if keep_ns < 0:
        raise ValueError(f"keep_ns must not be negative, it is {keep_ns}")
    keep_ns = int(keep_ns)
    expression = _said("without", name, keep_ns=keep_ns or None)
    return Edit(expression, False, partial(_without, name, keep_ns))


def kernels(faster: float, name: str | None = None, within: str | None = None) -> Edit:
    """Compute kernels take 1/`faster` of their time; `math.inf`: none.

    Args:
        faster: how many times as fast, more than 0.
        name: only kernels of this name.
        within: only kernels launched inside operators, annotations and Python functions of this name.

    Raises:
        ValueError: `faster` is not above 0.
    """
    share = _share(faster)
    expression = _said("kernels", float(faster), name=name, within=within)
    return Edit(expression, share == 0, partial(_device, share, _COMPUTE, name, within))


def copies(faster: float, name: str | None = None, within: str | None = None) -> Edit:
    """Copies and fills on the device take 1/`faster` of their time; `math.inf`: none.

    Args:
        faster: how many times as fast, more than 0.
        name: only copies of this name.
        within: only copies launched inside operators, annotations and Python functions of this name.

    Raises:
        ValueError: `faster` is not above 0.
    """
    share = _share(faster)
    expression = _said("copies", float(faster), name=name, within=within)
    return Edit(expression, share == 0, partial(_device, share, _COPIES, name, within))


def communication(time: float = 0.0, name: str | None = None) -> Edit:
    """The duration of collectives and of sends and receives, times a factor; 0: it is free.

    Their recorded duration includes waiting for other ranks, which are taken to arrive as they did.

    Args:
        time: what is left of each ns, at least 0.
        name: only kernels of this name.

    Raises:
        ValueError: the factor is negative or no number.
    """
    time = _factor(time)
    apply = partial(_device, time, (EventClass.COMMUNICATION,), name, None)
    return Edit(_said("communication", time, name=name), time == 0, apply)


def copy_bandwidth(gbps: float, name: str | None = None, within: str | None = None) -> Edit:
    """Copies and fills take no longer than their bytes do at a bandwidth.

    Args:
        gbps: in 1e9 bytes per s, more than 0.
        name: only copies of this name.
        within: only copies launched inside operators, annotations and Python functions of this name.

    Raises:
        ValueError: the bandwidth is not above 0.
    """
    gbps = _bandwidth(gbps)
    expression = _said("copy_bandwidth", gbps, name=name, within=within)
    return Edit(expression, False, partial(_copy_bandwidth, gbps, name, within))


def bus_bandwidth(gbps: float, name: str | None = None) -> Edit:
    """Collectives take no longer than at a bus bandwidth: bytes of the larger buffer, times 2 (n - 1) / n for
    an all-reduce of n ranks, (n - 1) / n where ranks gather, scatter or exchange, by time.

    Their recorded duration includes waiting for other ranks, which this takes away, too: this is a bound.

    Args:
        gbps: in 1e9 bytes per s, more than 0.
        name: only kernels of this name.

    Raises:
        ValueError: the bandwidth is not above 0.
    """
    gbps = _bandwidth(gbps)
    return Edit(_said("bus_bandwidth", gbps, name=name), True, partial(_bus_bandwidth, gbps, name))


def kernel_time(ns: int, name: str, within: str | None = None) -> Edit:
    """Compute kernels of a name take no longer than this.

    Args:
        ns: the longest that one of them takes, at least 0.
        name: of the kernels.
        within: only kernels launched inside operators, annotations and Python functions of this name.

    Raises:
        ValueError: `ns` is negative.
    """
    if ns < 0:
        raise ValueError(f"ns must not be negative, it is {ns}")
    expression = _said("kernel_time", int(ns), name, within=within)
    return Edit(expression, ns == 0, partial(_kernel_time, int(ns), name, within))


def overlap(name: str | None = None) -> Edit:
    """Communication that nothing hides runs beside compute, which it slows down.

    Compute takes as many times as long beside it as kernels of the same name and grid do in the recording,
    by the medians of three or more beside communication and alone; as long as it did, where there are none.
    Whether there is compute that does not need the result is not known: this is a bound.

    Args:
        name: only kernels of this name.
    """
    return Edit(_said("overlap", name=name), True, partial(_overlap, name))


def own_stream(name: str, within: str | None = None) -> Edit:
    """Kernels, copies and collectives of a name on a stream of their own.

    They keep the waits that are recorded or inferred, but no longer wait for the work before them on their
    stream, nor that behind for them. Work may need what it no longer waits for: this is a bound.

    Args:
        name: of the device work.
        within: only what is launched inside operators, annotations and Python functions of this name.
    """
    expression = _said("own_stream", name, within=within)
    return Edit(expression, True, partial(_own_stream, name, within))


def fused_optimizer(name: str = "Optimizer.step*") -> Edit:
    """The optimizer updates all parameters in a few launches: `fused=True`.

    A tenth of the host's time in it is left, and its launches take none; its kernels take as long together,
    as they read and write as much. What is left of the host was not measured: this is a bound.

    Args:
        name: of its annotation.
    """
    return Edit(_said("fused_optimizer", name), True, partial(_fused_optimizer, name))


def graphs(at_least: int = 50, shorter_than_ns: int = 50_000) -> Edit:
    """Runs of launches of short kernels without a wait between them as CUDA graphs: one launch, short gaps.

    What this brings was not measured against recordings of both: take it for a bound.

    Args:
        at_least: launches of a run that is worth a graph.
        shorter_than_ns: a longer kernel ends a run.
    """
    expression = _said("graphs", at_least=at_least, shorter_than_ns=shorter_than_ns)
    return Edit(expression, True, partial(fuse, at_least=at_least, shorter_than_ns=shorter_than_ns))


def _said(function: str, *values: object, **named: object) -> str:
    parts = [_value(value) for value in values]
    parts += [f"{name}={_value(value)}" for name, value in named.items() if value is not None]
    return f"edits.{function}({', '.join(parts)})"


def _value(value: object) -> str:
    return "math.inf" if value == math.inf else repr(value)


def _factor(time: float) -> float:
    if not time >= 0 or time == math.inf:
        raise ValueError(f"the factor of a time must be a number of at least 0, not {time!r}")
    return float(time)


def _bandwidth(gbps: float) -> float:
    if not 0 < gbps < math.inf:
        raise ValueError(f"the bandwidth must be a number of more than 0, not {gbps!r}")
    return float(gbps)


def _share(faster: float) -> float:
    if not faster > 0:
        raise ValueError(f"faster must be more than 0, not {faster!r}")
    return 1.0 / faster


def _host(time: float, within: str | None, outside: str | None, exposed: bool, plan: Plan) -> None:
    if within is None and outside is None and not exposed:
        plan.scale(plan.edges(_on_host), time)
        return
    spared = {} if outside is None else _spans(plan, outside)
    busy = _device_works(plan) if exposed else Intervals.union([], [])
    for thread, when in (_always(plan) if within is None else _spans(plan, within)).items():
        when = when - spared[thread] if thread in spared else when
        plan.cut(thread, when - busy, time)


def _on_host(group: Group) -> bool:
    return group.kind in kinds.ON_HOST or (group.kind == kinds.SYNC and _allocates(group))


def _launches(time: float, plan: Plan) -> None:
    plan.scale(plan.edges(lambda group: group.launches), time)


def _syncs(call: str | None, within: str | None, plan: Plan) -> None:
    def waits(group: Group) -> bool:
        if group.kind not in (kinds.SYNC, kinds.COPY):
            return False
        return "DeviceSynchronize" not in group.name if call is None else _matches(call, group.name)

    plan.remove(plan.edges(waits) & _inside(plan, within))


def _allocator(plan: Plan) -> None:
    plan.scale(
        plan.edges(lambda group: group.kind in (kinds.CALL, kinds.WAITING_CALL) and _allocates(group)), 0.0
    )
    plan.remove(plan.edges(lambda group: group.kind == kinds.SYNC and _allocates(group)))


def _allocates(group: Group) -> bool:
    return bool(ALLOCATES.search(group.name))


def _without(name: str, keep_ns: int, plan: Plan) -> None:
    for thread, spans in _spans(plan, name, keep_ns).items():
        plan.cut(thread, spans)


def _device(
    share: float, classes: tuple[EventClass, ...], name: str | None, within: str | None, plan: Plan
) -> None:
    plan.scale(_device_edges(plan, classes, name, within), share)


def _device_edges(
    plan: Plan, classes: Container[EventClass | None], name: str | None, within: str | None
) -> Bool:
    def chosen(group: Group) -> bool:
        return group.event_class in classes and (name is None or _matches(name, group.name))

    return plan.edges(chosen) & _inside(plan, within)


def _copy_bandwidth(gbps: float, name: str | None, within: str | None, plan: Plan) -> None:
    at_bandwidth(plan, _device_edges(plan, _COPIES, name, within), gbps)


def _bus_bandwidth(gbps: float, name: str | None, plan: Plan) -> None:
    at_bus_bandwidth(plan, _device_edges(plan, (EventClass.COMMUNICATION,), name, None), gbps)


def _kernel_time(ns: int, name: str, within: str | None, plan: Plan) -> None:
    chosen = _device_edges(plan, _COMPUTE, name, within)
    plan.at_most(chosen, np.full(int(chosen.sum()), ns, np.int64))


def _overlap(name: str | None, plan: Plan) -> None:
    hidden_by_compute(plan, _device_edges(plan, (EventClass.COMMUNICATION,), name, None))


def _own_stream(name: str, within: str | None, plan: Plan) -> None:
    move(plan, _device_edges(plan, tuple(EventClass), name, within))


def _fused_optimizer(name: str, plan: Plan) -> None:
    for thread, spans in _spans(plan, name).items():
        plan.cut(thread, spans, LEFT_OF_OPTIMIZER)
    plan.scale(plan.edges(lambda group: group.launches) & _inside(plan, name), 0.0)


def _matches(pattern: str, name: str) -> bool:
    return re.match(translate(pattern), name) is not None


def _named_calls(rank_trace: RankTrace, pattern: str) -> npt.NDArray[np.int64]:
    """Host rows of this name."""
    compiled = re.compile(translate(pattern))
    matches = np.array([compiled.match(text) is not None for text in rank_trace.names] or [False], np.bool_)
    return np.flatnonzero(matches[rank_trace.name] & (rank_trace.stream == NULL) & ~rank_trace.is_device)


def _spans(plan: Plan, pattern: str, keep_ns: int = 0) -> dict[int, Intervals]:
    """By thread (index), when calls of this name are open, from `keep_ns` after their begin."""
    rank_trace = plan.rank_trace
    rows = _named_calls(rank_trace, pattern)
    rows = rows[rank_trace.dur[rows] > keep_ns]
    found = {}
    for index, thread in enumerate(plan.graph.threads.tolist()):
        mine = rows[rank_trace.thread[rows] == thread]
        if len(mine):
            found[index] = Intervals.union(rank_trace.start[mine] + keep_ns, rank_trace.end[mine])
    return found


def _always(plan: Plan) -> dict[int, Intervals]:
    """By thread (index), all of the recording."""
    graph = plan.graph
    whole = Intervals.union([graph.origin_ns], [graph.origin_ns + graph.extent])
    return dict.fromkeys(range(len(graph.threads)), whole)


def _device_works(plan: Plan) -> Intervals:
    """When any device of the recording works."""
    graph = plan.graph
    starts = np.flatnonzero(graph.node_kind == EVENT_STARTS)
    return Intervals.union(graph.origin_ns + graph.time[starts], graph.origin_ns + graph.time[starts + 1])


def _inside(plan: Plan, pattern: str | None) -> Bool:
    """The edges whose call, or whose device work's launch, lies inside a call of this name on its thread."""
    graph, rank_trace = plan.graph, plan.rank_trace
    if pattern is None:
        return np.ones(len(graph.source), np.bool_)
    row = graph.row[graph.target]
    row = np.where((row >= 0) & rank_trace.is_device[row], rank_trace.launch[row], row)
    inside = np.zeros(rank_trace.n + 1, np.bool_)  # of no row: no
    of_calls = _named_calls(rank_trace, pattern)
    for thread in np.unique(rank_trace.thread[of_calls]).tolist():
        mine = of_calls[rank_trace.thread[of_calls] == thread]
        spans = Intervals.union(rank_trace.start[mine], rank_trace.end[mine])
        there = np.flatnonzero(rank_trace.thread == thread)
        at = np.searchsorted(spans.start, rank_trace.start[there], side="right") - 1
        inside[there] = (at >= 0) & (rank_trace.start[there] < spans.end[at])
    return inside[row]
