"""Counters that follow from a rank's events: queues, memory, copies, and how full the device is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from hta_widgets.analysis.copies.flows import BYTES_PER_S, copy_flows
from hta_widgets.analysis.core.step_function import StepFunction
from hta_widgets.analysis.counters.series import Counter
from hta_widgets.analysis.launches.stream_queues import stream_queues
from hta_widgets.analysis.memory.events import changes_of
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

_SHARES: Final = 1_000_000  # of a device: shares are added as whole numbers, hence exactly


def derived_counters(trace: Trace, rank: int) -> Iterator[Counter]:
    """All of them that the rank's events allow."""
    for counted in _DERIVED:
        try:
            yield from counted(trace, rank)
        except MissingDataError:
            continue


def _queues(trace: Trace, rank: int) -> Iterator[Counter]:
    for _, queue in stream_queues(trace, Scope(ranks=(rank,))):
        name = (rank, "queue length", f"stream {queue.stream}", "launches")
        yield Counter.of_changes(name, queue.length.time, queue.length.value, (queue.device, queue.stream))


def _memory(trace: Trace, rank: int) -> Iterator[Counter]:
    changes = changes_of(trace.rank(rank), trace.clock.offset_ns.get(rank, 0))
    for number, place in enumerate(changes.places):
        here = np.flatnonzero(changes.place == number)
        for word, bytes_after in (("allocated", changes.allocated), ("reserved", changes.reserved)):
            known = here[bytes_after[here] != NULL]
            if len(known):
                name = (rank, f"{word} memory", place, "bytes")
                yield Counter.of_changes(name, changes.time[known], bytes_after[known])


def _bandwidth(trace: Trace, rank: int) -> Iterator[Counter]:
    flows = [flow for _, flow in copy_flows(trace, Scope(ranks=(rank,)))]
    several = len({flow.device for flow in flows}) > 1
    for flow in flows:
        key = _on_device(flow.kind, flow.device) if several else flow.kind
        name = (rank, "copy bandwidth", key, "GB/s")
        yield Counter.of_changes(name, flow.rate.time, flow.rate.value / BYTES_PER_S)


def _sm_efficiency(trace: Trace, rank: int) -> Iterator[Counter]:
    """The share of a device's multiprocessors with a block, as PyTorch Profiler's TensorBoard plugin has it.

    A kernel of fewer blocks than multiprocessors fills as many of them; kernels at once add up, to no more
    than all.
    """
    rank_trace = trace.rank(rank)
    blocks = rank_trace.argument("blocks_per_sm")
    rows = np.flatnonzero(rank_trace.is_device & (blocks >= 0) & (rank_trace.dur > 0))
    share = np.rint(np.minimum(blocks[rows], 1.0) * _SHARES).astype(np.int64)
    for device in np.unique(rank_trace.device[rows]).tolist():
        here = rank_trace.device[rows] == device
        time = np.concatenate([rank_trace.start[rows[here]], rank_trace.end[rows[here]]])
        order = np.argsort(time, kind="stable")
        sums = StepFunction.of_changes(time[order], np.concatenate([share[here], -share[here]])[order])
        name = (rank, "estimated SM efficiency", _on_device("", device), "%")
        yield Counter.of_changes(name, sums.time, 100.0 * np.minimum(sums.value, _SHARES) / _SHARES)


def _on_device(what: str, device: int) -> str:
    return what if device == NULL else f"{what} device {device}".strip()


_DERIVED: Final = (_queues, _memory, _bandwidth, _sm_efficiency)
