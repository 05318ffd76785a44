"""Traces that other programs than Kineto wrote in Chrome's format, with Kineto's categories and links.

The rows stay as they are; only what Kineto would have written beside them is added: the category of a row
from the process it is on, and a correlation from the arrows between host and device. `ascend` does so for
Ascend. `EventList.export_chrome_trace` of torch.autograd has two processes, "CPU functions" and "CUDA
functions".
"""

from __future__ import annotations

import json

import numpy as np

from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.reader.arrows import categorised, having, launched_by, operators_of, slices_of
from hta_widgets.trace.reader.ascend import NPU, of_ascend
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.reader.table import EventTable

_DEVICE, _CPU = "CUDA functions", "CPU functions"
_NEARLY_ALL = 0.9
_MOST_IN_GROUP = 1 << 17


def as_kineto(table: EventTable) -> EventTable:
    """The table with Kineto's categories and links; the same table if Kineto wrote it without lanes."""
    if table.has("global_rank_stride"):
        table = _with_groups(table)
    if table.has("original_stream"):
        return _on_streams(table)
    if _DEVICE in table.dictionary("pid"):
        return _of_autograd(table)
    if NPU in table.dictionary("args_name"):
        return of_ascend(table)
    return table


def _with_groups(table: EventTable) -> EventTable:
    """The ranks of groups as lists, where they are written by the first, the distance and the size."""
    rows, strides = table.sparse("global_rank_stride")
    starts, sizes = (table.ints_of(name, rows) for name in ("global_rank_start", "group_size"))
    texts = list(table.dictionary("process_group_ranks"))
    number = {text: code for code, text in enumerate(texts)}
    listed, codes = table.sparse("process_group_ranks")
    wanted = (
        (table.codes_of("process_group_ranks", rows) < 0)
        & (starts >= 0)
        & (strides > 0)
        & (sizes > 0)
        & (sizes <= _MOST_IN_GROUP)
    )
    written = []
    for start, stride, size in zip(
        *(values[wanted].tolist() for values in (starts, strides, sizes)), strict=True
    ):
        text = json.dumps([start + stride * place for place in range(size)])
        written.append(number.setdefault(text, len(number)))
    listed = np.append(listed[codes >= 0], rows[wanted])
    codes = np.append(codes[codes >= 0], written).astype(np.int32)
    order = np.argsort(listed, kind="stable")
    return table.changed(
        {"process_group_ranks": (listed[order], codes[order])}, {"process_group_ranks": list(number)}
    )


def _on_streams(table: EventTable) -> EventTable:
    """Kernels of CUDA graphs on the streams that ran them: `graph_lanes` of PyTorch 2.15 draws them apart."""
    rows, streams = table.sparse("original_stream")
    stream, tid = table.ints("stream").copy(), table.codes("tid").copy()
    on_device = stream[rows] != NULL
    rows, streams = rows[on_device], streams[on_device]
    texts = list(table.dictionary("tid"))
    number = {text: code for code, text in enumerate(texts)}
    stream[rows] = streams
    for known in np.unique(streams).tolist():
        code = number.setdefault(str(known), len(number))
        tid[rows[streams == known]] = code
    placed = np.flatnonzero(stream != NULL).astype(np.int32)
    return table.changed({"stream": (placed, stream[placed]), "tid": tid}, {"tid": list(number)})


def _of_autograd(table: EventTable) -> EventTable:
    slices = slices_of(table)
    on_device, on_host = having(table, "pid", _DEVICE), having(table, "pid", _CPU)
    device = slices[on_device[slices]]
    work = _work(table, device)
    categories = {"cpu_op": slices[on_host[slices]], "kernel": device[work], "cuda_span": device[~work]}
    table = categorised(table, categories)
    return launched_by(table, operators_of(table, "cpu_to_cuda", device[work]))


def _work(table: EventTable, rows: Int64) -> Bool:
    """Which rows stand for the device's work, where those of operators hold those of the ones they call.

    The innermost that still account for nearly all time of the outermost: each moment counts once.
    """
    start, dur = table.ints("start_ns")[rows], table.ints("dur_ns")[rows]
    end, tid = start + dur, table.codes("tid")[rows]
    order = np.lexsort((-end, start, tid)).tolist()
    parent = np.full(len(rows), -1)
    within = np.zeros(len(rows), np.int64)
    around: list[int] = []
    for at in order:
        while around and not (tid[around[-1]] == tid[at] and end[at] <= end[around[-1]]):
            around.pop()
        if around:
            parent[at] = around[-1]
            within[around[-1]] += dur[at]
        around.append(at)
    divided = within >= _NEARLY_ALL * dur
    divided &= within > 0
    reached = np.zeros(len(rows), np.bool_)
    for at in order:  # callers first
        reached[at] = parent[at] < 0 or (reached[parent[at]] and divided[parent[at]])
    return reached & ~divided
