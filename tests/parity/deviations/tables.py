"""Idle time, breakdowns, kernel tables, annotations and stragglers."""

from __future__ import annotations

from tests.parity.deviations.checks import (
    hta_failed,
    pauses_below_zero,
    rounded_away,
    rounding_artefact,
    statistics_of_totals,
    the_last_step,
    was_none,
    work_of_mtia,
)
from tests.parity.deviations.entry import Deviation
from tests.parity.deviations.straggler_checks import latest_of_kernels_that_never_met, nobody_is_late

ENTRIES = [
    Deviation(
        "idle-14",
        "temporal",
        "cpu_only cpu_only-whole cupti_profiler distributed_info_unavailable h100_qwen rank_non_gpu "
        "rank_unavailable",
        kinds=("error",),
        check=hta_failed,
    ),
    Deviation(
        "idle-8",
        "idle*",
        "cpu_only-whole cupti_profiler distributed_info_unavailable rank_non_gpu rank_unavailable",
        kinds=("error",),
        check=hta_failed,
    ),
    Deviation(
        "ranks-4",
        "stragglers_*",
        "amd_trace-whole backward_thread cpu_only-whole cuda_event_sync "
        "distributed_info_unavailable h100_bert-whole h100_qwen-whole mi300_bert-whole "
        "mi300_qwen-whole mi300_resnet-whole nccl_parser_config-whole ns_resolution_trace-whole "
        "rank_non_gpu rank_unavailable resnet50 trace_compare_base trace_compare_test "
        "trace_diff_control trace_diff_test triton_example-whole",
        kinds=("error",),
        check=hta_failed,
    ),
    Deviation(
        "ranks-6",
        "stragglers_1",
        "trace_filter",
        kinds=("missing row",),
        check=latest_of_kernels_that_never_met,
    ),
    Deviation("ranks-7", "stragglers_1", "trace_filter", kinds=("extra row",), check=nobody_is_late),
    Deviation(
        "kernels-1",
        "kernels.1",
        "alexnet alexnet-plain amd_trace-whole h100_bert-whole h100_qwen-whole mi210-whole "
        "mi300_bert-whole mi300_qwen-whole mi300_resnet-plain mi300_resnet-whole "
        "nccl_parser_config-whole ns_resolution_trace-whole resnet50 resnet50-plain "
        "sglang_decode-whole simple_add simple_add-plain trace_diff_control trace_diff_test "
        "trace_diff_test-plain trace_filter vllm_decode-whole",
        kinds=("cell",),
        columns=("max (us)", "min (us)", "mean (us)", "stddev"),
        check=statistics_of_totals,
    ),
    Deviation(
        "kernels-2",
        "cpu_annotations_5",
        "distributed_info_unavailable mi300_resnet-plain mi300_resnet-whole mtia_inference-plain "
        "mtia_inference-whole nccl_parser_config-whole ns_resolution_trace-whole rank_non_gpu "
        "rank_unavailable trace_diff_control trace_diff_test trace_diff_test-plain trace_filter",
        kinds=("cell",),
        columns=("max (us)", "min (us)", "mean (us)", "stddev"),
        check=statistics_of_totals,
    ),
    Deviation("kernels-17", "cpu_annotations*", "resnet50 resnet50-plain", check=was_none),
    Deviation(
        "kernels-10",
        "gpu_annotations",
        "ns_resolution_trace ns_resolution_trace-whole",
        kinds=("cell",),
        defects=("annotations_after_the_cut_are_dropped",),
    ),
    Deviation(
        "kernels-10",
        "kernels_with_annotations",
        "ns_resolution_trace-whole",
        kinds=("cell",),
        defects=("annotations_after_the_cut_are_dropped",),
    ),
    Deviation(
        "kernels-6",
        "kernels*.1",
        "mtia_inference mtia_inference-plain mtia_inference-whole",
        kinds=("missing row", "extra row"),
        check=work_of_mtia,
    ),
    Deviation(
        "kernels-4", "kernels_all.0", "mtia_inference", kinds=("missing row",), check=rounding_artefact
    ),
    Deviation(
        "kernels-6",
        "kernels*.0",
        "mtia_inference mtia_inference-plain mtia_inference-whole",
        kinds=("cell",),
        defects=("waiting_kernels_are_work", "engines_are_nothing"),
    ),
    Deviation("kernels-4", "kernels_all.0", "mi300_qwen", kinds=("extra row",), check=rounded_away),
    Deviation(
        "kernels-7",
        "kernels*",
        "torch_compile_triton torch_compile_triton-whole triton_example triton_example-whole",
        defects=("operators_with_a_stream_are_work",),
    ),
    Deviation(
        "idle-12",
        "temporal",
        "alexnet cuda_event_sync simple_add",
        kinds=("cell",),
        defects=("waits_are_work",),
    ),
    Deviation(
        "idle-13",
        "temporal",
        "torch_compile_triton torch_compile_triton-whole triton_example triton_example-whole",
        kinds=("cell",),
        defects=("operators_with_a_stream_are_work",),
    ),
    Deviation(
        "idle-5",
        "temporal",
        "mtia_inference mtia_inference-plain mtia_inference-whole",
        kinds=("cell",),
        defects=("waiting_kernels_are_work", "engines_are_memory"),
    ),
    Deviation(
        "idle-5",
        "idle*",
        "mtia_inference-plain mtia_inference-whole",
        defects=("waiting_kernels_are_work", "engines_are_memory"),
    ),
    Deviation(
        "idle-3",
        "idle*",
        "h100_qwen-whole mi300_qwen-whole",
        kinds=("cell",),
        defects=("orphans_belong_to_event_zero",),
    ),
    Deviation("idle-2", "idle*", "trace_diff_test trace_diff_test-plain", check=pauses_below_zero),
    Deviation("idle-4", "overlap", "trace_diff_test", defects=("unlaunched_work_is_dropped",)),
    Deviation(
        "idle-4",
        "temporal",
        "resnet50 trace_compare_base trace_compare_test trace_diff_test",
        defects=("unlaunched_work_is_dropped",),
    ),
    Deviation(
        "idle-4",
        "idle*",
        "resnet50 trace_compare_base trace_compare_test trace_diff_test",
        defects=("unlaunched_work_is_dropped",),
    ),
    Deviation(
        "idle-4",
        "kernels*",
        "resnet50 trace_compare_base trace_compare_test trace_diff_test",
        defects=("unlaunched_work_is_dropped",),
    ),
    Deviation(
        "idle-16",
        "cpu_annotations*",
        "mi300_resnet mi300_resnet-whole",
        kinds=("missing row",),
        check=the_last_step,
    ),
    Deviation(
        "idle-16",
        "overlap",
        "mi300_resnet-whole",
        defects=("the_devices_step_ends_the_trace", "unlaunched_work_is_dropped"),
    ),
    Deviation(
        "idle-16",
        "temporal",
        "mi300_resnet mi300_resnet-whole",
        defects=("the_devices_step_ends_the_trace", "unlaunched_work_is_dropped"),
    ),
    Deviation(
        "idle-17",
        "temporal",
        "gpt2_fsdp_full_shard gpt2_fsdp_full_shard-whole",
        defects=("the_devices_step_ends_the_trace", "waits_are_work"),
    ),
    Deviation(
        "idle-16",
        "idle*",
        "mi300_resnet-whole",
        defects=("the_devices_step_ends_the_trace", "unlaunched_work_is_dropped"),
    ),
    Deviation(
        "idle-16",
        "kernels*",
        "mi300_resnet mi300_resnet-whole",
        defects=("the_devices_step_ends_the_trace", "unlaunched_work_is_dropped"),
    ),
    Deviation(
        "idle-16",
        "gpu_annotations",
        "mi300_resnet mi300_resnet-whole",
        defects=("the_devices_step_ends_the_trace", "unlaunched_work_is_dropped"),
    ),
    Deviation(
        "idle-16",
        "cpu_annotations*",
        "mi300_resnet mi300_resnet-whole",
        defects=("the_devices_step_ends_the_trace", "unlaunched_work_is_dropped"),
    ),
]
