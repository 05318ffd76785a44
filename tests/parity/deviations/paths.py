"""Critical paths."""

from __future__ import annotations

from tests.parity.deviations.checks import hta_failed
from tests.parity.deviations.entry import Deviation
from tests.parity.deviations.path_checks import delay_at_one_time

ENTRIES = [
    Deviation(
        "path-4",
        "critical_path_step_1",
        "backward_thread cpu_only-whole cuda_event_sync distributed_info_unavailable rank_non_gpu "
        "rank_unavailable resnet50 trace_compare_base trace_compare_test trace_filter "
        "triton_example-whole",
        kinds=("error",),
        check=hta_failed,
    ),
    Deviation("path-7", "critical_path_*", "resnet50", kinds=("error",), check=hta_failed),
    Deviation(
        "path-12",
        "critical_path_*",
        "cpu_only-whole cupti_profiler distributed_info_unavailable rank_non_gpu rank_unavailable",
        kinds=("error",),
        check=hta_failed,
    ),
    Deviation(
        "launches-7",
        "critical_path_*.edges",
        "trace_diff_control",
        kinds=("missing row", "extra row"),
        check=delay_at_one_time,
    ),
    Deviation("path-9", "critical_path_*", "trace_diff_test", defects=("graphs_launch_one_kernel",)),
    Deviation(
        "path-9",
        "critical_path_*",
        "vllm_decode-whole",
        defects=("graphs_launch_one_kernel", "hip_calls_do_not_wait"),
    ),
    Deviation(
        "path-9",
        "critical_path_*",
        "sglang_decode-whole",
        defects=("graphs_launch_one_kernel", "hip_calls_do_not_wait", "other_calls_are_not_queued"),
    ),
    Deviation(
        "data-7", "critical_path_*", "triton_example-whole", defects=("operators_with_a_stream_are_work",)
    ),
    # Where launch operators are host calls again, a call that HTA does not queue begins the path.
    Deviation(
        "data-7",
        "critical_path_*",
        "torch_compile_triton-whole",
        defects=(
            "operators_with_a_stream_are_work",
            "hip_calls_do_not_wait",
            "other_calls_are_not_queued",
        ),
    ),
    Deviation(
        "path-10",
        "critical_path_*",
        "mi210-whole mi300_resnet-whole",
        defects=("hip_calls_do_not_wait",),
    ),
    Deviation(
        "path-8",
        "critical_path_*",
        "mi300_bert-whole",
        defects=("hip_calls_do_not_wait", "other_calls_are_not_queued"),
    ),
    Deviation(
        "path-18",
        "critical_path_*",
        "mtia_inference-whole",
        defects=(
            "calls_of_other_runtimes_have_no_nodes",
            "graphs_launch_one_kernel",
            "waiting_kernels_are_work",
        ),
    ),
]
