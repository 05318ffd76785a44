"""Every column of the event table: its name, the JSON key it comes from, its type and unit.  Defined here and
nowhere else.

The keys are those of kineto's `output_json.cpp` and `MetadataFieldCatalog.h` and of PyTorch's profiler, with
the older spellings as aliases.  Kinds:

int     int64.  Quoted numbers and hexadecimal text ("0x1f") are read; a value from 2**63 up to 2**64 - 1 is
        stored as its two's complement (add 2**64 to get it back); anything else is null.
float   float64, nan where absent.
text    a string (or the text of a number) as a code into the column's dictionary.
json    the value's own JSON text as a code into the column's dictionary; read it with `json.loads`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

NULL: Final[int] = -(1 << 63)
"""The null of an int64 column.  Text columns use the code -1, float columns nan."""

FORMAT_VERSION: Final[int] = 4
"""Raised whenever the columns or their meaning change; part of the cache key."""

Kind = Literal["int", "float", "text", "json"]


@dataclass(frozen=True)
class Column:
    """One column: `key` is the JSON key, `aliases` its other spellings, `unit` the unit of the stored
    value.
    """

    name: str
    key: str
    kind: Kind
    unit: str | None
    doc: str
    aliases: tuple[str, ...] = ()


def _int(name: str, key: str, doc: str, unit: str | None = None, aliases: tuple[str, ...] = ()) -> Column:
    return Column(name, key, "int", unit, doc, aliases)


def _float(name: str, key: str, doc: str, unit: str | None = None) -> Column:
    return Column(name, key, "float", unit, doc)


def _text(name: str, key: str, doc: str) -> Column:
    return Column(name, key, "text", None, doc)


def _json(name: str, key: str, doc: str, aliases: tuple[str, ...] = ()) -> Column:
    return Column(name, key, "json", None, doc, aliases)


DENSE_COLUMNS: tuple[Column, ...] = (
    _text(
        "phase",
        "ph",
        "phase letter: X complete, B/E begin and end, i instant, C counter, M metadata, s/t/f flow",
    ),
    _text("category", "cat", "category"),
    _text("name", "name", "name"),
    _text("pid", "pid", "process; a number or any text"),
    _text("tid", "tid", "thread or stream; a number or any text"),
    _int("start_ns", "ts", "start, as in the file", "ns"),
    _int("dur_ns", "dur", "duration", "ns"),
)
"""Columns stored for every event."""

EVENT_COLUMNS: tuple[Column, ...] = (
    *DENSE_COLUMNS,
    _int("flow_id", "id", "id that ties the two ends of a flow"),
    _text("binding", "bp", "flow binding point: e = enclosing slice"),
)
"""Columns from an event's own keys."""

ARGUMENT_COLUMNS: tuple[Column, ...] = (
    # launch and device
    _int("correlation", "correlation", "ties a device event to the host call that launched it"),
    _int(
        "external_id",
        "External id",
        "ties device events and runtime calls to their operator",
        None,
        ("external id",),
    ),
    _int("device", "device", "device index"),
    _int("context", "context", "device context"),
    _int("stream", "stream", "device stream", None, ("Stream Id", "sycl queue")),
    _int("original_stream", "original_stream", "stream of an event that is drawn on a lane of its graph"),
    _int("connection_id", "connection_id", "ties device events of Ascend to the calls of CANN"),
    _int("task_id", "correlation_id", "ties a task of Ascend's queue to the call that queued it"),
    _int("queued", "queued", "queue time as kineto writes it"),
    _int("graph_id", "graph id", "CUDA graph of the launch; 0 = none"),
    _int("graph_node_id", "graph node id", "node in that graph; 0 = none"),
    _int("cbid", "cbid", "runtime callback id"),
    # kernels and copies
    _json("grid", "grid", "launch grid [x, y, z]"),
    _json("block", "block", "thread block [x, y, z]"),
    _int("registers_per_thread", "registers per thread", "registers per thread"),
    _int("shared_memory", "shared memory", "shared memory of a block", "bytes"),
    _float("blocks_per_sm", "blocks per SM", "blocks per multiprocessor"),
    _float("warps_per_sm", "warps per SM", "warps per multiprocessor"),
    _float("occupancy_pct", "est. achieved occupancy %", "estimated achieved occupancy", "%"),
    _int("bytes", "bytes", "bytes copied or set", "bytes"),
    _float("memory_bandwidth_gbps", "memory bandwidth (GB/s)", "bandwidth of a copy", "GB/s"),
    # synchronisation
    _text("cuda_sync_kind", "cuda_sync_kind", "kind of synchronisation"),
    _int("wait_on_stream", "wait_on_stream", "stream a wait waits for"),
    _int("wait_on_cuda_event_id", "wait_on_cuda_event_id", "event a wait waits for"),
    _int(
        "wait_on_cuda_event_record_corr_id",
        "wait_on_cuda_event_record_corr_id",
        "correlation of that event's record call",
    ),
    # operators
    _int("ev_idx", "Ev Idx", "index of the event in the profiler's own list"),
    _int("record_function_id", "Record function id", "id shared with the execution trace"),
    _int("sequence_number", "Sequence number", "autograd sequence number: ties forward to backward"),
    _int("fwd_thread_id", "Fwd thread id", "thread of the forward call; 0 in the forward pass"),
    _json("input_dims", "Input Dims", "shapes of the inputs", ("Input dims",)),
    _json("input_type", "Input type", "types of the inputs"),
    _json("input_strides", "Input Strides", "strides of the inputs"),
    _json("concrete_inputs", "Concrete Inputs", "scalar inputs"),
    # python frames
    _int("python_id", "Python id", "id of a Python frame"),
    _int("python_parent_id", "Python parent id", "id of the calling frame"),
    _int("python_module_id", "Python module id", "instance number of an nn.Module"),
    _text("call_stack", "Call stack", "Python stack of an operator, frames parted by ';'"),
    # collectives
    _text("collective_name", "Collective name", "collective operation"),
    _text("dtype", "dtype", "element type of the message"),
    _int("group_size", "Group size", "ranks in the group"),
    _int("process_rank", "Rank", "rank in the group"),
    _int("in_msg_nelems", "In msg nelems", "elements sent", "elements"),
    _int("out_msg_nelems", "Out msg nelems", "elements received", "elements"),
    _json("in_split_size", "In split size", "elements sent to each rank"),
    _json("out_split_size", "Out split size", "elements received from each rank"),
    _text("process_group_name", "Process Group Name", "process group"),
    _text("process_group_description", "Process Group Description", "what the group is for"),
    _json("process_group_ranks", "Process Group Ranks", "global ranks of the group"),
    _int("global_rank_start", "Global rank start", "first rank of the group, in place of a list"),
    _int("global_rank_stride", "Global rank stride", "distance between its ranks"),
    _int("seq", "Seq", "sequence number of the collective in its group"),
    _int("comms_id", "Comms Id", "id of the collective, the same on every rank"),
    _int("source_rank", "Src Rank", "sender of a point-to-point message"),
    _int("destination_rank", "Dst Rank", "receiver of a point-to-point message"),
    # [memory] instants
    _int("addr", "Addr", "address", None),
    _int("alloc_bytes", "Bytes", "bytes allocated; negative when freed", "bytes"),
    _int("total_allocated_bytes", "Total Allocated", "allocated after the event", "bytes"),
    _int("total_reserved_bytes", "Total Reserved", "reserved after the event", "bytes"),
    _int("device_type", "Device Type", "0 CPU, 1 CUDA, ... (c10::DeviceType)"),
    _int("device_id", "Device Id", "device index, -1 for the host"),
    # annotations of CUDA graphs, beside the name of the module in `args_name`
    _text("module_fqn", "module_fqn", "module whose call was captured into the graph, by its full name"),
    _text("autograd_phase", "autograd_phase", "forward or backward"),
    # Triton
    _text("kernel_backend", "kernel_backend", "backend of a compiled kernel"),
    _text("kernel_hash", "kernel_hash", "hash of the generated source"),
    _text("kernel_file", "kernel_file", "file of the generated source"),
    _text("kernel_name", "kernel_name", "name of the generated kernel"),
    _int("num_warps", "num_warps", "warps"),
    _int("num_stages", "num_stages", "pipeline stages"),
    _json("kernel_kwargs", "kernel_kwargs", "compile-time arguments"),
    # metadata events (phase M)
    _text("args_name", "name", "name given to a process or thread"),
    _text("args_labels", "labels", "labels given to a process"),
    _int("args_sort_index", "sort_index", "position of a process or thread in a viewer"),
)
"""Columns from an event's `args`, stored only where present."""

DERIVED_COLUMNS: tuple[Column, ...] = (
    _int("launched_ns", "", "when the launching call put the work on its stream, as in the file", "ns"),
    _int("queued_by", "", "event by which the program queued what another thread did"),
)
"""Columns that follow from several events of a file (`dialects`)."""

COUNTER_ARGS = _json(
    "counter_args", "args", "all arguments of a counter event (phase C); their keys are free"
)
"""The whole `args` object, kept for counter events only."""


KINDS: dict[str, Kind] = {
    column.name: column.kind for column in (*EVENT_COLUMNS, *ARGUMENT_COLUMNS, *DERIVED_COLUMNS, COUNTER_ARGS)
}
"""Every column's kind."""


@lru_cache(maxsize=16)
def argument_columns(extra_args: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """Every sparse column of a scan: flows, arguments, counters, and `extra_args` (JSON keys) under their own
    names.
    """
    known = (*EVENT_COLUMNS[len(DENSE_COLUMNS) :], COUNTER_ARGS, *ARGUMENT_COLUMNS)
    names = {column.name for column in (*DENSE_COLUMNS, *known)}
    extra = tuple(
        _json(key, key, "requested by the caller") for key in dict.fromkeys(extra_args) if key not in names
    )
    return known + extra
