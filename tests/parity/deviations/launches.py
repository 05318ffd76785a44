"""Launches, operators, queues, bandwidth and counters."""

from __future__ import annotations

from tests.parity.deviations.checks import (
    another_call,
    another_stream_is_full,
    at_one_time,
    hta_failed,
    no_bandwidth_recorded,
    of_the_series,
    remainders,
    share_of_starts,
    zero_bandwidth,
)
from tests.parity.deviations.entry import Deviation

ENTRIES = [
    Deviation(
        "launches-1",
        "launches*",
        "amd_trace amd_trace-whole h100_bert h100_bert-whole h100_qwen h100_qwen-whole mi210 "
        "mi210-whole mi300_bert mi300_bert-whole mi300_qwen mi300_qwen-whole mi300_resnet "
        "mi300_resnet-plain mi300_resnet-whole mtia_inference mtia_inference-plain "
        "mtia_inference-whole sglang_decode sglang_decode-whole torch_compile_triton "
        "torch_compile_triton-plain torch_compile_triton-whole trace_diff_test "
        "trace_diff_test-plain triton_example triton_example-plain triton_example-whole vllm_decode "
        "vllm_decode-whole",
        kinds=("extra row",),
        check=another_call,
    ),
    Deviation(
        "launches-5",
        "operator_kernels",
        "mtia_inference-plain mtia_inference-whole trace_filter",
        defects=("the_latest_operator_owns_a_launch",),
    ),
    Deviation(
        "launches-6",
        "operator_kernels",
        "amd_trace-whole cpu_only-whole cupti_profiler distributed_info_unavailable mi210-whole "
        "mi300_bert-whole mi300_qwen-whole mi300_resnet-plain mi300_resnet-whole rank_non_gpu "
        "rank_unavailable sglang_decode-whole torch_compile_triton-plain torch_compile_triton-whole "
        "trace_compare_base trace_compare_base-plain trace_compare_test trace_compare_test-plain "
        "triton_example-plain triton_example-whole vllm_decode-whole",
        kinds=("error",),
        check=hta_failed,
    ),
    Deviation(
        "launches-8",
        "queue_*",
        "mi300_bert-whole mi300_qwen-whole mi300_resnet-plain mtia_inference-plain "
        "mtia_inference-whole sglang_decode-whole torch_compile_triton-plain "
        "torch_compile_triton-whole trace_diff_test-plain vllm_decode-whole",
        defects=("other_calls_launch_nothing",),
    ),
    Deviation(
        "launches-8",
        "queue_*",
        "trace_diff_test",
        defects=("unlaunched_work_is_dropped", "other_calls_launch_nothing"),
    ),
    Deviation(
        "launches-8",
        "queue_*",
        "mi300_resnet-whole",
        defects=(
            "the_devices_step_ends_the_trace",
            "unlaunched_work_is_dropped",
            "other_calls_launch_nothing",
        ),
    ),
    Deviation(
        "launches-8",
        "blocked_*",
        "torch_compile_triton-plain torch_compile_triton-whole vllm_decode-whole",
        defects=("other_calls_launch_nothing",),
    ),
    Deviation(
        "launches-8",
        "blocked_*",
        "mi300_resnet-whole",
        defects=(
            "the_devices_step_ends_the_trace",
            "unlaunched_work_is_dropped",
            "other_calls_launch_nothing",
        ),
    ),
    Deviation(
        "launches-8",
        "counters",
        "mi300_bert-whole sglang_decode-whole torch_compile_triton-whole vllm_decode-whole",
        defects=("other_calls_launch_nothing",),
    ),
    Deviation(
        "launches-11",
        "blocked_*",
        "alexnet alexnet-plain h100_qwen-whole mi210-whole mi300_qwen-whole mi300_resnet-plain "
        "mi300_resnet-whole nccl_parser_config-whole ns_resolution_trace-whole resnet50 "
        "resnet50-plain trace_diff_control trace_diff_test trace_diff_test-plain trace_filter "
        "vllm_decode-whole",
        kinds=("cell",),
        columns=("relative_duration_at_max_queue_length",),
        check=share_of_starts,
    ),
    Deviation(
        "launches-10",
        "blocked_*",
        "trace_diff_control trace_diff_test trace_diff_test-plain",
        kinds=("extra row",),
        check=another_stream_is_full,
    ),
    Deviation(
        "launches-7",
        "queue_series",
        "resnet50 resnet50-plain trace_diff_control trace_diff_test trace_diff_test-plain",
        kinds=("cell", "order"),
        check=at_one_time,
    ),
    Deviation(
        "launches-7",
        "queue_summary*",
        "resnet50 resnet50-plain trace_diff_control trace_diff_test trace_diff_test-plain",
        kinds=("cell",),
        columns=(
            "queue_length|mean",
            "queue_length|std",
            "queue_length|25%",
            "queue_length|50%",
            "queue_length|75%",
        ),
        check=of_the_series,
    ),
    Deviation(
        "launches-7",
        "bandwidth_series",
        "trace_diff_test trace_diff_test-plain",
        kinds=("cell", "order"),
        check=at_one_time,
    ),
    Deviation(
        "launches-14",
        "bandwidth_*",
        "trace_diff_test trace_diff_test-plain",
        kinds=("cell",),
        check=remainders,
    ),
    Deviation(
        "idle-4",
        "bandwidth_*",
        "resnet50 trace_compare_base trace_compare_test trace_diff_test",
        defects=("unlaunched_work_is_dropped",),
    ),
    Deviation(
        "idle-16",
        "bandwidth_*",
        "mi300_resnet-whole",
        defects=("the_devices_step_ends_the_trace", "unlaunched_work_is_dropped"),
    ),
    Deviation(
        "idle-4", "counters", "trace_compare_base trace_compare_test", defects=("unlaunched_work_is_dropped",)
    ),
    Deviation(
        "launches-16",
        "bandwidth_*",
        "amd_trace-whole mi300_resnet-plain mi300_resnet-whole mtia_inference-plain mtia_inference-whole",
        check=no_bandwidth_recorded,
    ),
    Deviation("launches-16", "counters", "amd_trace-whole", kinds=("missing row",), check=zero_bandwidth),
]
