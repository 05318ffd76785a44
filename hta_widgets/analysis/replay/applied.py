"""What each edit does to a plan: the edges that it scales, shortens or removes, the time that it cuts out.

The functions have the names, the arguments and their order of those in `edits` that make the edits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hta_widgets.analysis.idle.pauses import pauses_of
from hta_widgets.analysis.kernels.classes import kernel_class
from hta_widgets.analysis.operators.calls import operator_calls
from hta_widgets.analysis.operators.chains import chained_ns
from hta_widgets.analysis.operators.fused_attention import fused_ns, replaced_on_host
from hta_widgets.analysis.operators.least_times import least_ns
from hta_widgets.analysis.operators.recomputed import recomputed
from hta_widgets.analysis.operators.tiny_products import batched_ns
from hta_widgets.analysis.operators.unaligned import aligned_ns
from hta_widgets.analysis.operators.underfilled import filled_ns
from hta_widgets.analysis.operators.waves import full_waves_ns
from hta_widgets.analysis.replay import kinds
from hta_widgets.analysis.replay.device_times import (
    at_bandwidth,
    at_bus_bandwidth,
    each_at_most,
    hidden_by_compute,
    rows_of_edges,
)
from hta_widgets.analysis.replay.fusion import fuse
from hta_widgets.analysis.replay.groups import Group
from hta_widgets.analysis.replay.host_edges import COPY_SLACK
from hta_widgets.analysis.replay.host_points import ALLOCATES
from hta_widgets.analysis.replay.places import always, inside, late_launches, matches, spans
from hta_widgets.analysis.replay.plan import Plan
from hta_widgets.analysis.replay.prefetching import send_ahead
from hta_widgets.analysis.replay.profiler import without_profiler
from hta_widgets.analysis.replay.streams import move
from hta_widgets.arrays import Bool, Int64
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

LEFT_OF_OPTIMIZER = 0.1
"""Of the host's time in an optimizer that launches its work for all parameters at once."""

COPIES = (EventClass.MEMORY_COPY, EventClass.MEMORY_SET)
COMPUTE = tuple(set(EventClass) - {*COPIES, EventClass.COMMUNICATION, EventClass.SYNC})


def host(time: float, plan: Plan, *, within: str | None, outside: str | None, exposed: bool) -> None:
    if within is None and outside is None and not exposed:
        plan.scale_groups(_on_host, time)
        return
    spared = {} if outside is None else spans(plan, outside)
    for thread, when in (always(plan) if within is None else spans(plan, within)).items():
        when = when - spared[thread] if thread in spared else when
        plan.cut(thread, when & late_launches(plan) if exposed else when, time)


def _on_host(group: Group) -> bool:
    return group.kind in kinds.ON_HOST or (group.kind == kinds.SYNC and _allocates(group))


def launches(time: float, plan: Plan) -> None:
    plan.scale_groups(lambda group: group.launches, time)


def syncs(plan: Plan, *, call: str | None, within: str | None) -> None:
    def waits(group: Group) -> bool:
        if group.kind not in (kinds.SYNC, kinds.COPY):
            return False
        return "DeviceSynchronize" not in group.name if call is None else matches(call, group.name)

    # what outlasts its call is taken from pageable memory meanwhile: no wait that one could leave out
    taken = plan.edges(lambda group: group.kind == kinds.COPY) & (plan.weight < -COPY_SLACK)
    plan.remove(plan.edges(waits) & ~taken & inside(plan, within))


def allocator(plan: Plan) -> None:
    plan.scale_groups(lambda group: group.kind in (kinds.CALL, kinds.WAITING_CALL) and _allocates(group), 0.0)
    plan.remove(plan.edges(lambda group: group.kind == kinds.SYNC and _allocates(group)))


def unprofiled(step_ns: int, plan: Plan) -> None:
    without_profiler(plan, step_ns)


def _allocates(group: Group) -> bool:
    return bool(ALLOCATES.search(group.name))


def without(name: str, plan: Plan, *, keep_ns: int | None) -> None:
    for thread, when in spans(plan, name, keep_ns or 0).items():
        plan.cut(thread, when)


def pauses(plan: Plan, *, before: str | None, longer_than_ns: int) -> None:
    found, rank_trace = pauses_of(plan.rank_trace), plan.rank_trace
    named = np.array([before is None or matches(before, name) for name in rank_trace.names], np.bool_)
    long = found.when.end - found.when.start >= longer_than_ns
    when = found.choose(long & named[rank_trace.name[found.row]])
    for thread in always(plan):
        plan.cut(thread, when)


def kernels(
    faster: float, plan: Plan, *, name: str | None, within: str | None, operation: str | None
) -> None:
    _scale_device(1.0 / faster, plan, COMPUTE, name, within, operation)


def copies(faster: float, plan: Plan, *, name: str | None, within: str | None) -> None:
    _scale_device(1.0 / faster, plan, COPIES, name, within)


def communication(time: float, plan: Plan, *, name: str | None, within: str | None) -> None:
    _scale_device(time, plan, (EventClass.COMMUNICATION,), name, within)


def _scale_device(
    share: float,
    plan: Plan,
    classes: tuple[EventClass, ...],
    name: str | None,
    within: str | None,
    operation: str | None = None,
) -> None:
    if within is None:
        plan.scale_groups(_DeviceGroups(classes, name, operation), share)
    else:
        plan.scale(_device_edges(plan, classes, name, within, operation), share)


def at_roof(
    reached: float, plan: Plan, *, name: str | None, within: str | None, operation: str | None
) -> None:
    rank_trace, rows = plan.rank_trace, rows_of_edges(plan)
    edges = _device_edges(plan, COMPUTE, name, within, operation)
    chosen = np.unique(rows[edges])
    least = least_ns(rank_trace, chosen, reached, reached)
    known = ~np.isnan(least)
    if len(chosen) and not known.any():
        raise MissingDataError(
            "operations, bytes and peaks of these kernels",
            "Record with record_shapes=True, and state the peaks of a device that is not known by "
            "hta_widgets.analysis.register_peaks.",
            "no operator around them has a formula with its inputs recorded, on a device with known peaks",
        )
    each_at_most(plan, chosen[known], np.ceil(least[known]).astype(np.int64))


def _device_edges(
    plan: Plan,
    classes: tuple[EventClass, ...],
    name: str | None,
    within: str | None,
    operation: str | None = None,
) -> Bool:
    return plan.edges(_DeviceGroups(classes, name, operation)) & inside(plan, within)


@dataclass(frozen=True)
class _DeviceGroups:
    """Which groups are device work of these classes, of this name, that does this."""

    classes: tuple[EventClass, ...]
    name: str | None
    operation: str | None

    def __call__(self, group: Group) -> bool:
        if group.event_class not in self.classes:
            return False
        if self.name is not None and not matches(self.name, group.name):
            return False
        return self.operation is None or matches(self.operation, kernel_class(group.name).operation or "")


def copy_bandwidth(gbps: float, plan: Plan, *, name: str | None, within: str | None) -> None:
    at_bandwidth(plan, _device_edges(plan, COPIES, name, within), gbps)


def bus_bandwidth(gbps: float, plan: Plan, *, name: str | None) -> None:
    at_bus_bandwidth(plan, _device_edges(plan, (EventClass.COMMUNICATION,), name, None), gbps)


def kernel_time(ns: int, name: str, plan: Plan, *, within: str | None) -> None:
    chosen = _device_edges(plan, COMPUTE, name, within)
    plan.at_most(chosen, np.full(int(chosen.sum()), ns, np.int64))


def overlap(plan: Plan, *, name: str | None) -> None:
    hidden_by_compute(plan, _device_edges(plan, (EventClass.COMMUNICATION,), name, None))


def own_stream(name: str, plan: Plan, *, within: str | None) -> None:
    move(plan, _device_edges(plan, tuple(EventClass), name, within))


def fused_optimizer(name: str, plan: Plan) -> None:
    for thread, when in spans(plan, name).items():
        plan.cut(thread, when, LEFT_OF_OPTIMIZER)
    launched = inside(plan, name)
    plan.scale(plan.edges(lambda group: group.launches) & launched, 0.0)
    edges = plan.edges(_DeviceGroups(COMPUTE, None, None)) & launched
    plan.scale(edges, _longest_share(plan.rank_trace, np.unique(rows_of_edges(plan)[edges])))


def _longest_share(rank_trace: RankTrace, rows: Int64) -> float:
    """Which share of the time of these kernels those of the operator take that takes longest."""
    calls = operator_calls(rank_trace)
    around = calls.around[rows]
    call = np.append(calls.rows, rows)[np.where(around >= 0, around, len(calls.rows) + np.arange(len(rows)))]
    taken = np.bincount(rank_trace.name[call], rank_trace.dur[rows])
    return float(taken.max(initial=0.0) / max(taken.sum(), 1.0))


def graphs(plan: Plan, *, at_least: int, shorter_than_ns: int) -> None:
    fuse(plan, at_least, shorter_than_ns)


def fused_attention(plan: Plan) -> None:
    each_at_most(plan, *fused_ns(plan.rank_trace))
    for thread, when in replaced_on_host(plan.rank_trace).items():
        plan.cut(thread, when)


def padded_products(plan: Plan) -> None:
    each_at_most(plan, *aligned_ns(plan.rank_trace))


def batched_products(plan: Plan) -> None:
    each_at_most(plan, *batched_ns(plan.rank_trace))


def full_waves(plan: Plan) -> None:
    each_at_most(plan, *full_waves_ns(plan.rank_trace))


def filled_device(plan: Plan) -> None:
    each_at_most(plan, *filled_ns(plan.rank_trace))


def fused_pointwise(plan: Plan, *, kernels: str | None) -> None:
    each_at_most(plan, *chained_ns(plan.rank_trace, kernels))


def prefetch(units: int, plan: Plan, *, phase: str | None) -> None:
    send_ahead(plan, units, phase)


def prompt_communication(plan: Plan, *, name: str | None) -> None:
    graph, target = plan.graph, plan.graph.target
    launch = graph.kind == kinds.LAUNCH
    chosen, known, launched = np.zeros((3, len(graph.time)), np.bool_)
    chosen[graph.source[_device_edges(plan, (EventClass.COMMUNICATION,), name, None)]] = True
    # of others it is not known what they wait for, or, of the first on a stream, how soon they should start
    known[target[np.isin(graph.kind, (kinds.COLLECTIVE, kinds.WAIT, kinds.LATE))]] = True
    launched[target[launch]] = True
    into = (chosen & known & launched)[target]
    plan.remove(into & launch)
    plan.residual = np.where(into, 0, plan.residual)


def no_recomputation(plan: Plan) -> None:
    rows = recomputed(plan.rank_trace)
    each_at_most(plan, rows, np.zeros_like(rows))
