"""HTA's catalogue of event arguments: key, column, JSON key, type, default. Groups of it become columns."""

from __future__ import annotations

from collections.abc import Mapping

from hta_widgets.hta.configs.default_values import V1_0_0, AttributeSpec, EventArgs, ValueType, YamlVersion

_INT, _FLOAT, _STRING, _OBJECT = ValueType.Int, ValueType.Float, ValueType.String, ValueType.Object
_V1_1, _V1_2 = YamlVersion(1, 1, 0), YamlVersion(1, 2, 0)

_ROWS: tuple[tuple[str, AttributeSpec], ...] = (
    ("index::ev_idx", AttributeSpec("ev_idx", "Ev Idx", _INT, -1)),
    ("index::external_id", AttributeSpec("external_id", "External id", _INT, -1)),
    ("index::python_id", AttributeSpec("python_id", "Python id", _INT, -1)),
    ("index::python_parent_id", AttributeSpec("python_parent_id", "Python parent id", _INT, -1)),
    ("cpu_op::concrete_inputs", AttributeSpec("concrete_inputs", "Concrete Inputs", _OBJECT, "[]")),
    ("cpu_op::fwd_thread", AttributeSpec("fwd_thread_id", "Fwd thread id", _INT, -1)),
    ("cpu_op::input_dims", AttributeSpec("input_dims", "Input Dims", _OBJECT, "-1")),
    ("cpu_op::input_type", AttributeSpec("input_type", "Input type", _OBJECT, "-1")),
    ("cpu_op::input_strides", AttributeSpec("input_strides", "Input Strides", _OBJECT, "-1")),
    ("cpu_op::sequence_number", AttributeSpec("sequence", "Sequence number", _INT, -1)),
    ("cpu_op::kernel_backend", AttributeSpec("kernel_backend", "kernel_backend", _STRING, "")),
    ("cpu_op::kernel_hash", AttributeSpec("kernel_hash", "kernel_hash", _STRING, "", _V1_1)),
    ("correlation::cbid", AttributeSpec("cbid", "cbid", _INT, -1)),
    ("correlation::cpu_gpu", AttributeSpec("correlation", "correlation", _INT, -1)),
    ("sm::blocks", AttributeSpec("blocks_per_sm", "blocks per SM", _OBJECT, "[]")),
    ("sm::occupancy", AttributeSpec("est_occupancy", "est. achieved occupancy %", _INT, -1)),
    ("sm::warps", AttributeSpec("warps_per_sm", "warps per SM", _FLOAT, 0.0)),
    ("data::bytes", AttributeSpec("bytes", "bytes", _INT, -1)),
    ("data::bandwidth", AttributeSpec("memory_bw_gbps", "memory bandwidth (GB/s)", _FLOAT, 0.0)),
    ("cuda::context", AttributeSpec("context", "context", _INT, -1)),
    ("cuda::device", AttributeSpec("device", "device", _INT, -1)),
    ("cuda::stream", AttributeSpec("stream", "stream", _INT, -1)),
    ("kernel::queued", AttributeSpec("queued", "queued", _INT, -1)),
    ("kernel::shared_memory", AttributeSpec("shared_memory", "shared memory", _INT, -1)),
    ("threads::block", AttributeSpec("block", "block", _OBJECT, "[]")),
    ("threads::grid", AttributeSpec("grid", "grid", _OBJECT, "[]")),
    ("threads::registers", AttributeSpec("registers_per_thread", "registers per thread", _INT, -1)),
    ("cuda_sync::stream", AttributeSpec("wait_on_stream", "wait_on_stream", _INT, -1)),
    (
        "cuda_sync::event",
        AttributeSpec("wait_on_cuda_event_record_corr_id", "wait_on_cuda_event_record_corr_id", _INT, -1),
    ),
    ("info::finished", AttributeSpec("finished", "finished", _STRING, "")),
    ("info::labels", AttributeSpec("labels", "labels", _STRING, "")),
    ("info::name", AttributeSpec("name", "name", _INT, -1)),
    ("info::op_count", AttributeSpec("op_count", "Op count", _INT, -1)),
    ("info::sort_index", AttributeSpec("sort_index", "sort_index", _INT, -1)),
    ("nccl::collective_name", AttributeSpec("collective_name", "Collective name", _STRING, "")),
    ("nccl::in_msg_nelems", AttributeSpec("in_msg_nelems", "In msg nelems", _INT, 0)),
    ("nccl::out_msg_nelems", AttributeSpec("out_msg_nelems", "Out msg nelems", _INT, 0)),
    ("nccl::in_msg_size", AttributeSpec("in_msg_size", "In msg size", _INT, 0)),
    ("nccl::out_msg_size", AttributeSpec("out_msg_size", "Out msg size", _INT, 0)),
    ("nccl::group_size", AttributeSpec("group_size", "Group size", _INT, 0)),
    ("nccl::dtype", AttributeSpec("msg_dtype", "dtype", _STRING, "")),
    ("nccl::in_split_size", AttributeSpec("in_split_size", "In split size", _OBJECT, "[]")),
    ("nccl::out_split_size", AttributeSpec("out_split_size", "Out split size", _OBJECT, "[]")),
    (
        "nccl::input_tensors_start",
        AttributeSpec("input_tensors_start", "Input Tensors start", _OBJECT, "[]", _V1_2),
    ),
    (
        "nccl::output_tensors_start",
        AttributeSpec("output_tensors_start", "Output Tensors start", _OBJECT, "[]", _V1_2),
    ),
    ("nccl::process_group_name", AttributeSpec("process_group_name", "Process Group Name", _STRING, "")),
    (
        "nccl::process_group_desc",
        AttributeSpec("process_group_desc", "Process Group Description", _STRING, ""),
    ),
    ("nccl::process_group_ranks", AttributeSpec("process_group_ranks", "Process Group Ranks", _OBJECT, "[]")),
    ("nccl::rank", AttributeSpec("process_rank", "Rank", _INT, -1)),
    ("nccl::seq", AttributeSpec("seq_num", "Seq", _INT, -1)),
    ("inference::batch_size", AttributeSpec("batch_size", "batchSize", _INT, -1)),
    ("inference::batch_id", AttributeSpec("batch_id", "batchId", _STRING, "")),
)

# Group -> keys of its arguments, each group in the order of its columns.
_GROUPS: dict[str, tuple[str, ...]] = {
    "ARGS_MINIMUM": ("cuda::stream", "correlation::cpu_gpu"),
    "ARGS_BANDWIDTH": ("data::bytes", "data::bandwidth"),
    "ARGS_SYNC": ("cuda_sync::stream", "cuda_sync::event"),
    "ARGS_INPUT_SHAPE": ("cpu_op::input_dims", "cpu_op::input_type", "cpu_op::input_strides"),
    "ARGS_INDEX": ("index::external_id", "index::python_id", "index::python_parent_id"),
    "ARGS_COMMUNICATION": (
        "nccl::collective_name", "nccl::in_msg_nelems", "nccl::out_msg_nelems", "nccl::dtype",
        "nccl::group_size", "nccl::rank", "nccl::in_split_size", "nccl::out_split_size",
    ),
    "ARGS_INFO": ("info::labels", "info::name", "info::sort_index"),
    "ARGS_TRITON_KERNELS": ("cpu_op::kernel_backend", "cpu_op::kernel_hash"),
    "ARGS_COMPLETE": tuple(key for key, _ in _ROWS if not key.startswith("info::")),
}  # fmt: skip
_GROUPS["ARGS_DEFAULT"] = tuple(
    key
    for name in ("MINIMUM", "BANDWIDTH", "SYNC", "INPUT_SHAPE", "INDEX", "COMMUNICATION")
    for key in _GROUPS[f"ARGS_{name}"]
)


def group(name: str, available_args: Mapping[str, AttributeSpec]) -> list[AttributeSpec]:
    """Those arguments of a catalogue that belong to a group, e.g. ``"ARGS_MINIMUM"``."""
    return [available_args[key] for key in _GROUPS[name] if key in available_args]


def event_args(version: YamlVersion = V1_0_0) -> EventArgs:
    """The catalogue and its groups, as new lists that the caller may change.

    Args:
        version: what arguments take for `min_supported_version` that have been there from the beginning.
    """
    catalogue = {
        key: spec if spec.min_supported_version > V1_0_0 else spec._replace(min_supported_version=version)
        for key, spec in _ROWS
    }
    groups = {name: group(name, catalogue) for name in EventArgs._fields if name != "AVAILABLE_ARGS"}
    return EventArgs(AVAILABLE_ARGS=catalogue, **groups)


DEFAULT_VERSION: YamlVersion = V1_0_0
