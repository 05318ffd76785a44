"""Traces that other programs than Kineto wrote in Chrome's format, with Kineto's categories and links.

The rows stay as they are and where they are; only what Kineto would have written beside them is added: the
category of a row from the process it is on, and a correlation from the arrows between host and device.

Ascend's profiler (`trace_view.json` of torch_npu) names its processes: "Ascend Hardware" has the device's
streams, "CANN" the calls of the runtime, "Overlap Analysis" and the planes of HCCL sums of what ran.
`EventList.export_chrome_trace` of torch.autograd has two processes, "CPU functions" and "CUDA functions".
"""

from __future__ import annotations

import json
import re

import numpy as np
import numpy.typing as npt

from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.reader.table import EventTable

__all__ = ["as_kineto"]

Bool = npt.NDArray[np.bool_]
Int64 = npt.NDArray[np.int64]

_DEVICE, _CPU = "CUDA functions", "CPU functions"
_NPU, _CANN = "Ascend Hardware", "CANN"
_SUMMARIES = ("Overlap Analysis", "HCCL", "Communication")
_NPU_COPY = re.compile(r"^(MEMCPY|SDMA|aclrtMemcpy)|^Memcpy", re.IGNORECASE)
_NPU_WAIT = re.compile(r"(EVENT|NOTIFY)_?(WAIT|RECORD)|CAPTURE_WAIT", re.IGNORECASE)
_HCOM = re.compile(r"^hcom_|^Hccl")
_NEARLY_ALL = 0.9
_MOST_IN_GROUP = 1 << 17
_STEP = re.compile(r"^ProfilerStep\s*[#*]")


def as_kineto(table: EventTable) -> EventTable:
    """The table with Kineto's categories and links; the same table if Kineto wrote it without lanes."""
    if table.has("global_rank_stride"):
        table = _with_groups(table)
    if table.has("original_stream"):
        return _on_streams(table)
    if _DEVICE in table.dictionary("pid"):
        return _of_autograd(table)
    if _NPU in table.dictionary("args_name"):
        return _of_ascend(table)
    return table


def _with_groups(table: EventTable) -> EventTable:
    """The ranks of groups as lists, where they are written by the first, the distance and the size."""
    rows, strides = table.sparse("global_rank_stride")
    codes, starts, sizes = (
        table.codes("process_group_ranks").copy(),
        table.ints("global_rank_start")[rows],
        table.ints("group_size")[rows],
    )
    texts = list(table.dictionary("process_group_ranks"))
    number = {text: code for code, text in enumerate(texts)}
    wanted = (codes[rows] < 0) & (starts >= 0) & (strides > 0) & (sizes > 0) & (sizes <= _MOST_IN_GROUP)
    for row, start, stride, size in zip(
        *(values[wanted].tolist() for values in (rows, starts, strides, sizes)), strict=True
    ):
        text = json.dumps([start + stride * place for place in range(size)])
        codes[row] = number.setdefault(text, len(number))
    listed = np.flatnonzero(codes >= 0).astype(np.int32)
    return table.changed(
        {"process_group_ranks": (listed, codes[listed])}, {"process_group_ranks": list(number)}
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
    slices = _slices(table)
    on_device, on_host = _of(table, "pid", _DEVICE), _of(table, "pid", _CPU)
    device = slices[on_device[slices]]
    work = _work(table, device)
    categories = {"cpu_op": slices[on_host[slices]], "kernel": device[work], "cuda_span": device[~work]}
    return _linked(_categorised(table, categories), "cpu_to_cuda", device[work], np.empty(0, np.int64))


def _of_ascend(table: EventTable) -> EventTable:
    slices = _slices(table)
    silent = slices[table.codes("category")[slices] < 0]
    process = _process_names(table)[table.codes("pid")[silent]]
    names = np.array([*table.dictionary("name"), ""], object)
    name = names[table.codes("name")[silent]]

    def named(pattern: re.Pattern[str], rows: npt.NDArray[np.object_]) -> Bool:
        known = {text: bool(pattern.search(text)) for text in set(rows.tolist())}
        return np.array([known[text] for text in rows.tolist()], np.bool_)

    on_device = process == _NPU
    waits, copies = named(_NPU_WAIT, name), named(_NPU_COPY, name)
    collective = named(_HCOM, name)
    summary = np.isin(process, _SUMMARIES)
    if not (on_device & collective).any():  # collectives are on a process of their own
        ours = summary & collective
        on_device, summary = on_device | ours, summary & ~ours
    hosted = slices[table.codes("category")[slices] >= 0]
    steps = hosted[named(_STEP, names[table.codes("name")[hosted]])]
    categories = {
        "kernel": silent[on_device & ~waits & ~copies],
        "gpu_memcpy": silent[on_device & copies],
        "npu_sync": silent[on_device & waits & ~copies],
        "cann_runtime": silent[process == _CANN],
        "npu_summary": silent[summary],
        "user_annotation": steps,
    }
    device = silent[on_device & ~waits]
    return _linked(_categorised(table, categories), "async_npu", device, silent[process == _CANN])


def _slices(table: EventTable) -> Int64:
    """Rows of the complete events."""
    complete = _of(table, "phase", "X") & (table.ints("start_ns") != NULL) & (table.ints("dur_ns") != NULL)
    return np.flatnonzero(complete)


def _of(table: EventTable, column: str, text: str) -> Bool:
    """Which events have a text."""
    texts = table.dictionary(column)
    codes: Bool = table.codes(column) == (texts.index(text) if text in texts else len(texts))
    return codes


def _process_names(table: EventTable) -> npt.NDArray[np.object_]:
    """The name of each process, by its code; "" for the one without."""
    found = np.full(len(table.dictionary("pid")) + 1, "", object)
    texts = table.dictionary("args_name")
    rows, codes = table.sparse("args_name")
    of_process = _of(table, "name", "process_name")[rows]
    for pid, code in zip(table.codes("pid")[rows[of_process]], codes[of_process], strict=True):
        found[pid] = texts[code]
    return found


def _categorised(table: EventTable, categories: dict[str, Int64]) -> EventTable:
    texts = list(table.dictionary("category"))
    codes = table.codes("category").copy()
    for text, rows in categories.items():
        if len(rows):
            if text not in texts:
                texts.append(text)
            codes[rows] = texts.index(text)
    return table.changed({"category": codes}, {"category": texts})


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


def _linked(table: EventTable, arrow: str, device: Int64, calls: Int64) -> EventTable:
    """The table with a correlation for each operator from which an arrow leads to a device row.

    The launch is the call inside the operator (one of `calls` with the connection of the device row, or its
    entry into the queue), which then counts as made on the operator's thread; else the operator itself.
    """
    start, pid, tid = table.ints("start_ns"), table.codes("pid").copy(), table.codes("tid").copy()
    flow = _of(table, "category", arrow)
    ids = table.ints("flow_id")
    begins, ends = (np.flatnonzero(flow & _of(table, "phase", letter)) for letter in "sf")
    at_device = {key: row for row, key in zip(device.tolist(), _keys(device, start, pid, tid), strict=True)}
    end = start + np.where(table.ints("dur_ns") == NULL, 0, table.ints("dur_ns"))
    source_of: dict[int, int] = {}  # of the longest to the shortest: the innermost operator stays
    hosted = _slices(table)
    hosted = hosted[~np.isin(hosted, device) & (table.codes("category")[hosted] >= 0)]
    hosted = hosted[np.argsort(start[hosted] - end[hosted], kind="stable")]
    operator = {key: row for row, key in zip(hosted.tolist(), _keys(hosted, start, pid, tid), strict=True)}
    by_id = dict(zip(ids[begins].tolist(), _keys(begins, start, pid, tid), strict=True))
    for number, key in zip(ids[ends].tolist(), _keys(ends, start, pid, tid), strict=True):
        row, source = at_device.get(key), operator.get(by_id.get(number, (-1, -1, -1)))
        if row is not None and source is not None:
            source_of[row] = source
    connection = table.ints("connection_id")
    made = {connection[call]: call for call in calls.tolist() if connection[call] != NULL}
    queued = np.flatnonzero(_of(table, "category", "enqueue"))
    queued = queued[np.lexsort((start[queued], tid[queued]))]
    correlation: dict[int, int] = {}
    number_of: dict[int, int] = {}
    for row in device.tolist():
        source, call = source_of.get(row), made.get(connection[row], -1)
        if source is None:
            launch = call
        elif call >= 0 and start[source] <= start[call] and end[call] <= end[source]:
            launch, pid[call], tid[call] = call, pid[source], tid[source]
        else:
            launch = _first_inside(queued, start, end, tid, source)
        if launch >= 0:
            correlation[row] = correlation[launch] = number_of.setdefault(launch, len(number_of) + 1)
    if not correlation:
        return table
    rows = np.array(sorted(correlation), np.int32)
    values = np.array([correlation[row] for row in rows.tolist()], np.int64)
    return table.changed({"correlation": (rows, values), "pid": pid, "tid": tid})


def _first_inside(queued: Int64, start: Int64, end: Int64, tid: npt.NDArray[np.int32], source: int) -> int:
    """The first of these rows inside an operator, on its thread; the operator if there is none."""
    own = queued[tid[queued] == tid[source]] if len(queued) else queued
    at = int(np.searchsorted(start[own], start[source]))
    return int(own[at]) if at < len(own) and end[own[at]] <= end[source] else source


def _keys(
    rows: Int64, start: Int64, pid: npt.NDArray[np.int32], tid: npt.NDArray[np.int32]
) -> list[tuple[int, int, int]]:
    """Where and when rows begin, which is what an arrow is tied to."""
    return list(zip(pid[rows].tolist(), tid[rows].tolist(), start[rows].tolist(), strict=True))
