"""Critical paths."""

from __future__ import annotations

from tests.parity.deviations.checks import a_delay, delay_on_a_queue_hta_does_not_count, hta_failed
from tests.parity.deviations.entry import Deviation

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
        check=a_delay,
    ),
    Deviation("path-9", "critical_path_*", "trace_diff_test", faults=("graphs_launch_one_kernel",)),
    Deviation(
        "path-9",
        "critical_path_*",
        "sglang_decode-whole vllm_decode-whole",
        faults=("graphs_launch_one_kernel", "hip_calls_do_not_wait"),
    ),
    Deviation(
        "data-7", "critical_path_*", "torch_compile_triton-whole", kinds=("missing row", "extra row", "cell")
    ),
    Deviation(
        "data-7", "critical_path_*", "triton_example-whole", faults=("operators_with_a_stream_are_work",)
    ),
    Deviation(
        "path-10",
        "critical_path_*",
        "mi210-whole mi300_bert-whole mi300_qwen-whole mi300_resnet-whole",
        faults=("hip_calls_do_not_wait",),
    ),
    Deviation(
        "path-8",
        "critical_path_*.edges",
        "mi300_bert-whole mi300_qwen-whole sglang_decode-whole",
        kinds=("extra row", "missing row"),
        check=delay_on_a_queue_hta_does_not_count,
    ),
    Deviation("path-18", "critical_path_*", "mtia_inference-whole"),
]
