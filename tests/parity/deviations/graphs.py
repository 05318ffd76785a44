"""Call graphs and frequent sequences."""

from __future__ import annotations

from tests.parity.deviations.call_checks import (
    both_roots,
    contained,
    is_a_wait,
    narrowed,
    torn_at_an_instant,
)
from tests.parity.deviations.checks import hta_failed, the_last_step
from tests.parity.deviations.entry import Deviation

ENTRIES = [
    Deviation(
        "idle-4",
        "call_graph",
        "trace_compare_base trace_compare_test trace_diff_test",
        kinds=("extra row",),
        defects=("unlaunched_work_is_dropped",),
    ),
    Deviation(
        "idle-16", "call_graph", "mi300_resnet-whole", kinds=("extra row", "missing row"), check=the_last_step
    ),
    Deviation(
        "idle-16",
        "call_graph",
        "mi300_resnet-whole",
        kinds=("extra row", "missing row"),
        defects=("the_devices_step_ends_the_trace", "unlaunched_work_is_dropped"),
    ),
    Deviation("stacks-1", "sequences_*", "resnet50", kinds=("error",), check=hta_failed),
    Deviation("stacks-1", "call_graph", "resnet50", kinds=("error",), check=hta_failed),
    Deviation(
        "data-8",
        "call_graph",
        "alexnet amd_trace-whole backward_thread cpu_only-whole cuda_event_sync cupti_profiler "
        "distributed_info_unavailable execution_trace h100_bert-whole h100_qwen-whole mi210-whole "
        "mi300_bert-whole mi300_qwen-whole mi300_resnet-whole mtia_inference-whole "
        "nccl_parser_config-whole rank_non_gpu rank_unavailable "
        "sglang_decode-whole simple_add torch_compile_triton-whole trace_compare_base "
        "trace_compare_test trace_filter triton_example-whole "
        "vllm_decode-whole",
        kinds=("cell",),
        columns=("parent",),
        check=narrowed,
    ),
    Deviation(
        "stacks-7",
        "call_graph",
        "alexnet h100_bert-whole h100_qwen-whole mi300_bert-whole mi300_qwen-whole "
        "mi300_resnet-whole mtia_inference-whole simple_add",
        kinds=("cell",),
        columns=("parent",),
        check=both_roots,
    ),
    Deviation(
        "stacks-3", "call_graph", "alexnet simple_add", kinds=("cell",), columns=("parent",), check=is_a_wait
    ),
    Deviation(
        "stacks-3",
        "call_graph",
        "alexnet cuda_event_sync simple_add",
        kinds=("cell",),
        defects=("waits_are_work",),
    ),
    Deviation("stacks-3", "sequences_*", "alexnet simple_add", defects=("waits_are_work",)),
    Deviation(
        "stacks-2",
        "call_graph",
        "amd_trace-whole mi210-whole mi300_bert-whole mi300_qwen-whole mi300_resnet-whole "
        "torch_compile_triton-whole vllm_decode-whole",
        kinds=("cell",),
        defects=("stream_zero_is_not_launched",),
    ),
    Deviation(
        "stacks-2",
        "sequences_*",
        "amd_trace-whole mi300_bert-whole mi300_qwen-whole mi300_resnet-whole vllm_decode-whole",
        defects=("stream_zero_is_not_launched",),
    ),
    Deviation(
        "stacks-6",
        "call_graph",
        "trace_diff_control",
        kinds=("cell",),
        columns=("parent", "depth", "height"),
        check=torn_at_an_instant,
    ),
    Deviation(
        "data-7",
        "call_graph",
        "torch_compile_triton-whole triton_example-whole",
        kinds=("cell",),
        defects=("operators_with_a_stream_are_work",),
    ),
    Deviation(
        "stacks-5",
        "call_graph",
        "h100_bert-whole h100_qwen-whole mi300_bert-whole mi300_qwen-whole mi300_resnet-whole "
        "mtia_inference-whole sglang_decode-whole",
        kinds=("cell",),
        columns=("depth", "height", "parent", "num_kernels", "kernel_dur_sum", "first_kernel_start"),
        check=contained,
    ),
]
