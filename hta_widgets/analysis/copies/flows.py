"""Copies and fills by kind, with their bandwidth over time; built once per rank and filter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.core.step_function import StepFunction
from hta_widgets.arrays import Int64
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

BYTES_PER_S: Final = 1_000_000_000  # 1 GB/s; bandwidths are added as whole bytes per second, hence exactly
_NO_BANDWIDTH: Final = (1 << 63) / BYTES_PER_S  # GB/s; nor is it NaN
_MEMORY = (EventClass.MEMORY_COPY, EventClass.MEMORY_SET)

# How vendors name copies: CUDA and ROCm's roctracer, rocprofiler, MTIA.
_COPY = re.compile(r"^(?:hip)?Memcpy ?(?P<source>[A-Z])to(?P<target>[A-Z])(?![a-z])")
_SPELLED_COPY = re.compile(r"(?P<source>Host|Device)To(?P<target>Host|Device)")
_FILL = re.compile(r"^(?:hip)?(?:Memset|Fill)")


def copy_kind(name: str) -> str:
    """The kind of a copy by its name: "Memcpy DtoH", "Memset", ...; else "Memcpy Unknown"."""
    copy = _COPY.match(name) or _SPELLED_COPY.search(name)
    if copy:
        return f"Memcpy {copy['source'][0]}to{copy['target'][0]}"
    return "Memset" if _FILL.match(name) else "Memcpy Unknown"


@dataclass(frozen=True)
class Flow:
    """One kind of copy on one device. `rate` is in bytes per second; `row` the copy that starts or ends.

    `size` holds the bytes of each of `copies`, NULL where unknown.
    """

    device: int
    kind: str
    rate: StepFunction
    row: Int64
    copies: Int64
    size: Int64
    copies_without_rate: Int64


_Copies = tuple[Int64, Int64, Int64]  # rows; bytes, bytes per second (NULL where unknown)
_FILTERS: Final = 8


def copy_flows(trace: Trace, scope: Scope) -> Iterator[tuple[RankTrace, Flow]]:
    ranks = trace.ranks_of(scope)
    copies, measured = 0, 0
    for rank in ranks:
        checkpoint()
        rank_trace = trace.rank(rank)
        rows, _, rate = _copies_of(rank_trace)
        with_rate = int((rate != NULL).sum())
        copies, measured = copies + len(rows), measured + with_rate
        if with_rate:
            yield from ((rank_trace, flow) for flow in _of_rank(rank_trace, scope.streams, scope.names))
    if ranks and not measured:
        what = f"none of its {copies} copies and fills has any" if copies else "it has no copies or fills"
        raise MissingDataError(
            "memory bandwidth (GB/s)",
            "Record with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) in "
            "a PyTorch whose profiler records the bandwidth of copies on this device.",
            what,
        )


@memoize_per_rank(last=_FILTERS)
def _of_rank(
    rank_trace: RankTrace, streams: tuple[int, ...] | None, names: tuple[str, ...] | None
) -> list[Flow]:
    return list(_build(rank_trace, _copies_of(rank_trace), Scope(streams=streams, names=names)))


@memoize_per_rank()
def _copies_of(rank_trace: RankTrace) -> _Copies:
    memory = np.zeros(len(EventClass), np.bool_)
    memory[list(_MEMORY)] = True
    rows = np.flatnonzero(rank_trace.is_device & memory[rank_trace.event_class])
    event = rank_trace.event_id[rows]
    size, rate = np.full((2, len(rows)), NULL, np.int64)
    gbps = np.full(len(rows), np.nan)
    if rank_trace.table.has("bytes"):
        size, length = rank_trace.table.ints_of("bytes", event), rank_trace.dur[rows]
        known = (size > 0) & (length > 0)
        gbps[known] = size[known] / length[known]
    if rank_trace.table.has("memory_bandwidth_gbps"):
        at, values = rank_trace.table.sparse("memory_bandwidth_gbps")
        place = np.minimum(np.searchsorted(at, event), max(0, len(at) - 1))
        recorded = (
            np.where(at[place] == event, values[place], np.nan) if len(at) else np.full(len(rows), np.nan)
        )
        known = (recorded > 0) & (recorded < _NO_BANDWIDTH)
        gbps[known] = recorded[known]
    known = gbps < _NO_BANDWIDTH
    rate[known] = np.rint(gbps[known] * BYTES_PER_S)
    return rows, size, rate


def _build(rank_trace: RankTrace, copies: _Copies, scope: Scope) -> Iterator[Flow]:
    rows, size, rate = copies
    listed = np.ones(len(rows), np.bool_)
    if scope.streams is not None:
        listed &= np.isin(rank_trace.stream[rows], scope.streams)
    if scope.names is not None:
        listed &= np.array([text in scope.names for text in rank_trace.names], np.bool_)[
            rank_trace.name[rows]
        ]
    rows, size, rate = rows[listed], size[listed], rate[listed]
    name, device = rank_trace.name[rows], rank_trace.device[rows]
    named = {code: copy_kind(rank_trace.names[code]) for code in np.unique(name).tolist()}
    texts = sorted(set(named.values()))
    kinds = np.zeros(len(rank_trace.names), np.int64)
    kinds[list(named)] = [texts.index(kind) for kind in named.values()]
    kind = kinds[name]
    for number in np.unique(device).tolist():
        for code in np.unique(kind[device == number]).tolist():
            here = (device == number) & (kind == code)
            timed = here & (rate != NULL) & (rank_trace.dur[rows] > 0)
            row = np.tile(rows[timed], 2)
            starts = np.repeat(np.array([1, -1]), timed.sum())
            time = np.concatenate([rank_trace.start[rows[timed]], rank_trace.end[rows[timed]]])
            order = np.lexsort((row, starts, time))  # at equal times ends first
            change = (starts * np.tile(rate[timed], 2))[order]
            yield Flow(
                number, texts[code], StepFunction.of_changes(time[order], change), row[order], rows[here],
                size[here], rows[here & (rate == NULL)],
            )  # fmt: skip
