"""Frames, arguments, filters and pairs of jobs."""

from __future__ import annotations

from tests.parity.deviations.checks import (
    device_annotation,
    hta_failed,
    nan_on_stream_zero,
    nothing_where_nan,
    null,
    older_external_id,
    older_spelling,
    operator_with_a_stream,
    outside_host_steps,
    same_set,
    the_last_step,
    was_absolute,
    zero_to_minus_one,
)
from tests.parity.deviations.entry import Deviation

ENTRIES = [
    Deviation(
        "more-1",
        "trace_columns",
        "alexnet alexnet-plain amd_trace-whole backward_thread cpu_only-whole cuda_event_sync "
        "cuda_event_sync-plain cupti_profiler distributed_info_unavailable execution_trace "
        "h100_bert-whole h100_qwen-whole mi210-whole mi300_bert-whole mi300_qwen-whole "
        "mi300_resnet-plain mi300_resnet-whole mtia_inference-plain mtia_inference-whole "
        "nccl_parser_config-whole ns_resolution_trace-whole rank_non_gpu rank_unavailable resnet50 "
        "resnet50-plain sglang_decode-whole simple_add simple_add-plain torch_compile_triton-plain "
        "torch_compile_triton-whole trace_compare_base trace_compare_base-plain trace_compare_test "
        "trace_compare_test-plain trace_diff_control trace_diff_test trace_diff_test-plain "
        "trace_filter triton_example-plain triton_example-whole vllm_decode-whole",
        kinds=("order",),
        check=same_set,
    ),
    Deviation("data-2", "cupti.0", "cupti_profiler", kinds=("cell",), columns=("end",), check=was_absolute),
    Deviation("data-2", "cupti.0", "cupti_profiler", kinds=("columns",), columns=("",), check=same_set),
    Deviation(
        "data-3",
        "trace_frame",
        "alexnet alexnet-plain amd_trace-whole cuda_event_sync cuda_event_sync-plain cupti_profiler "
        "execution_trace h100_bert-whole h100_qwen-whole mi210-whole mi300_bert-whole "
        "mi300_qwen-whole mi300_resnet-plain mi300_resnet-whole mtia_inference-plain "
        "mtia_inference-whole nccl_parser_config-whole ns_resolution_trace-whole resnet50 "
        "resnet50-plain sglang_decode-whole simple_add simple_add-plain torch_compile_triton-plain "
        "torch_compile_triton-whole trace_compare_base trace_compare_base-plain trace_compare_test "
        "trace_compare_test-plain trace_diff_control trace_diff_test trace_diff_test-plain "
        "triton_example-plain triton_example-whole vllm_decode-whole",
        kinds=("cell",),
        columns=("index_correlation",),
        check=zero_to_minus_one,
    ),
    Deviation(
        "data-7",
        "trace_frame",
        "torch_compile_triton-whole triton_example-whole",
        kinds=("cell",),
        columns=("stream",),
        check=operator_with_a_stream,
    ),
    Deviation(
        "data-5",
        "filter_first_iteration",
        "amd_trace-whole mi210-whole mi300_bert-whole mi300_qwen-whole mi300_resnet-plain "
        "mi300_resnet-whole torch_compile_triton-plain torch_compile_triton-whole vllm_decode-whole",
        kinds=("extra row",),
        check=nothing_where_nan,
    ),
    Deviation(
        "data-5",
        "filter_composite",
        "amd_trace-whole mi300_resnet-plain mi300_resnet-whole torch_compile_triton-plain "
        "torch_compile_triton-whole vllm_decode-whole",
        kinds=("extra row",),
        check=nothing_where_nan,
    ),
    Deviation(
        "data-5",
        "trace_frame",
        "amd_trace-whole mi210-whole mi300_bert-whole mi300_qwen-whole mi300_resnet-plain "
        "mi300_resnet-whole torch_compile_triton-plain torch_compile_triton-whole vllm_decode-whole",
        kinds=("cell",),
        columns=("iteration",),
        check=nan_on_stream_zero,
    ),
    Deviation(
        "data-10",
        "trace_frame",
        "ns_resolution_trace-whole",
        kinds=("extra row",),
        defects=("annotations_after_the_cut_are_dropped",),
    ),
    Deviation(
        "data-10",
        "trace_arguments",
        "ns_resolution_trace ns_resolution_trace-whole",
        kinds=("extra row",),
        defects=("annotations_after_the_cut_are_dropped",),
    ),
    Deviation(
        "data-10",
        "filter_*",
        "ns_resolution_trace-whole",
        kinds=("extra row",),
        defects=("annotations_after_the_cut_are_dropped",),
    ),
    Deviation(
        "data-10",
        "call_graph",
        "ns_resolution_trace-whole",
        kinds=("extra row",),
        defects=("annotations_after_the_cut_are_dropped",),
    ),
    Deviation(
        "idle-16",
        "trace_frame",
        "mi300_resnet-whole",
        kinds=("cell",),
        columns=("iteration",),
        check=device_annotation,
    ),
    Deviation(
        "data-12",
        "trace_arguments",
        "resnet50 resnet50-plain",
        kinds=("cell",),
        columns=("external_id",),
        check=older_external_id,
    ),
    Deviation(
        "idle-16",
        "trace_frame",
        "h100_qwen-whole mi300_qwen-whole",
        kinds=("cell",),
        columns=("iteration",),
        check=outside_host_steps,
    ),
    Deviation(
        "idle-16",
        "filter_first_iteration",
        "h100_qwen-whole mi300_qwen-whole",
        kinds=("missing row",),
        check=outside_host_steps,
    ),
    Deviation(
        "more-2",
        "trace_arguments",
        "h100_bert h100_bert-whole h100_qwen h100_qwen-whole mi300_bert mi300_bert-whole mi300_qwen "
        "mi300_qwen-whole mi300_resnet mi300_resnet-plain mi300_resnet-whole",
        kinds=("cell",),
        columns=("python_parent_id",),
        check=null,
    ),
    Deviation(
        "more-3",
        "trace_arguments",
        "resnet50 resnet50-plain",
        kinds=("cell",),
        columns=("input_dims", "input_type", "input_strides"),
        check=older_spelling,
    ),
    Deviation("data-27", "filter_memcpy", "resnet50 resnet50-plain", kinds=("error",), check=hta_failed),
    Deviation(
        "idle-4",
        "trace_*",
        "resnet50 trace_compare_base trace_compare_test trace_diff_test",
        kinds=("extra row",),
        defects=("unlaunched_work_is_dropped",),
    ),
    Deviation(
        "idle-4",
        "filter_*",
        "resnet50 trace_compare_base trace_compare_test trace_diff_test",
        kinds=("extra row",),
        defects=("unlaunched_work_is_dropped",),
    ),
    Deviation("idle-16", "trace_*", "mi300_resnet mi300_resnet-whole", check=the_last_step),
    Deviation("idle-16", "filter_*", "mi300_resnet-whole", kinds=("missing row",), check=the_last_step),
    Deviation(
        "idle-16",
        "profiler_steps",
        "mi300_resnet mi300_resnet-whole",
        kinds=("missing row",),
        check=the_last_step,
    ),
    Deviation(
        "idle-16",
        "trace_*",
        "mi300_resnet mi300_resnet-whole",
        defects=("the_devices_step_ends_the_trace", "unlaunched_work_is_dropped"),
    ),
    Deviation(
        "idle-16",
        "filter_*",
        "mi300_resnet-whole",
        defects=("the_devices_step_ends_the_trace", "unlaunched_work_is_dropped"),
    ),
    Deviation(
        "data-38",
        "compare_*",
        "pair-vendors",
        defects=("work_on_stream_zero_has_no_step", "annotations_without_a_stream_are_host_calls"),
    ),
    Deviation(
        "data-38",
        "ops_*",
        "pair-vendors",
        defects=("work_on_stream_zero_has_no_step", "annotations_without_a_stream_are_host_calls"),
    ),
]
