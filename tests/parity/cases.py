"""What is compared: every shared trace as recorded and, if its times have fractions, in whole ns too."""

from __future__ import annotations

from dataclasses import dataclass

from hta_widgets import examples


@dataclass(frozen=True)
class Case:
    """One job: its files by rank, below the folder of shared traces."""

    name: str
    files: tuple[tuple[int, str], ...]

    @classmethod
    def of(cls, name: str, path: str, rank: int = 0) -> Case:
        return cls(name, ((rank, path),))


CASES = [
    Case.of("amd_trace", "hta/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz"),
    Case.of("backward_thread", "hta/call_stack/backward_thread.json"),
    Case.of("cpu_only", "hta/cpu_only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", 34),
    Case.of("alexnet", "hta/critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz"),
    Case.of("cuda_event_sync", "hta/critical_path/cuda_event_sync/event_sync_trace.json.gz"),
    Case.of("simple_add", "hta/critical_path/simple_add/benchmark_result_493459_1694039959_trace.json.gz"),
    Case.of("cupti_profiler", "hta/cupti_profiler/benchmark_result_924719_1679055439_trace.json.gz"),
    Case.of(
        "distributed_info_unavailable", "hta/distributed_info_unavailable/distributed_info_not_found.json.gz"
    ),
    Case.of("execution_trace", "hta/execution_trace/benchmark_simple_add_trace.json.gz"),
    Case.of("mtia_inference", "hta/mtia_inference_trace/mtia_inference_rank_0.json.gz"),
    Case.of("nccl_parser_config", "hta/nccl_parser_config/nccl_data.json.gz"),
    Case.of("ns_resolution_trace", "hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz"),
    Case.of("rank_non_gpu", "hta/rank_non_gpu/rank_non_gpu.json.gz"),
    Case.of("rank_unavailable", "hta/rank_unavailable/rank_not_found.json.gz"),
    Case.of("trace_compare_base", "hta/trace_compare/base/base.json.gz"),
    Case.of("trace_compare_test", "hta/trace_compare/test/test.json.gz"),
    Case.of("trace_diff_control", "hta/trace_diff/control/control.json.gz", 3),
    Case.of("trace_diff_test", "hta/trace_diff/test/test.json.gz", 1),
    Case(
        "trace_filter",
        ((0, "hta/trace_filter/sampled_rank-0.json.gz"), (1, "hta/trace_filter/sampled_rank-1.json.gz")),
    ),
    Case.of("triton_example", "hta/triton_example/triton_example.json.gz"),
    Case.of("resnet50", "kineto/resnet50_num_workers_0/worker0.pt.trace.json.gz"),
    Case.of("h100_qwen", "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"),
    Case.of("h100_bert", "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz"),
    Case.of("sglang_decode", "tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz"),
    Case.of("vllm_decode", "tracelens/inference/vllm_decode_full/graph_execution.json.gz"),
    Case.of("mi210", "tracelens/mi210/gpu_only_trace/gpu_only_trace.json.gz"),
    Case.of("mi300_qwen", "tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"),
    Case.of("mi300_bert", "tracelens/mi300/gaunernst_bert-small-uncased__1016001.json.gz"),
    Case.of("mi300_resnet", "tracelens/mi300/resnet_act_checkpoint.json.gz"),
    Case.of("torch_compile_triton", "tracelens/torch_compile_triton/trace.json.gz"),
    Case(
        "gpt2_fsdp_full_shard",
        tuple(enumerate(sorted(map(str, examples.path("gpt2_fsdp_full_shard").iterdir())))),
    ),
]
# Traces with fractions of us, which HTA rounds; tests/parity/test_parity.py checks that these are all.
FRACTIONAL = {
    "amd_trace",
    "cpu_only",
    "mtia_inference",
    "nccl_parser_config",
    "ns_resolution_trace",
    "triton_example",
    "h100_qwen",
    "h100_bert",
    "sglang_decode",
    "vllm_decode",
    "mi210",
    "mi300_qwen",
    "mi300_bert",
    "mi300_resnet",
    "torch_compile_triton",
    "gpt2_fsdp_full_shard",
}
# Traces on which HTA takes other events for device work than the device's, or drops some: asked again on a
# copy on which it cannot (`variants`), about everything but what needs the steps and waits, or is slow and
# not at stake.
PLAIN = {
    "alexnet",
    "cuda_event_sync",
    "mi300_resnet",
    "mtia_inference",
    "resnet50",
    "simple_add",
    "torch_compile_triton",
    "trace_compare_base",
    "trace_compare_test",
    "trace_diff_test",
    "triton_example",
}
PLAIN_SKIPS = [
    "counters",
    "sequences_linear",
    "sequences_add",
    "sequences_conv2d",
    "sequences_default",
    "call_graph",
    "critical_path_step_0",
    "critical_path_step_1",
    "critical_path_forward_1",
    "critical_path_all",
]
# HTA's slowest answers, left out where another job or another step of the same one answers the question too.
SEQUENCES = ["sequences_linear", "sequences_add", "sequences_conv2d", "sequences_default"]
SLOW_SKIPS = {
    "trace_diff_test": [
        *SEQUENCES, "operator_kernels", "critical_path_step_0", "critical_path_all", "counters",
    ],
    "trace_diff_test-plain": ["operator_kernels", "trace_arguments"],
    "trace_diff_control": [
        *SEQUENCES, "operator_kernels", "critical_path_step_1", "critical_path_all", "counters",
    ],
    "ns_resolution_trace-whole": [
        *SEQUENCES, "operator_kernels", "critical_path_step_0", "critical_path_all", "counters",
    ],
    "nccl_parser_config-whole": [
        "sequences_linear", *SEQUENCES[2:], "critical_path_step_0", "critical_path_all", "counters",
    ],
    "mi300_resnet-whole": [
        SEQUENCES[0], *SEQUENCES[2:], "critical_path_step_0", "critical_path_all", "counters",
    ],
    "mi300_qwen-whole": [
        *SEQUENCES[1:], "critical_path_step_0", "critical_path_step_1", "critical_path_all", "counters",
    ],
    "h100_qwen-whole": [
        "sequences_linear", *SEQUENCES[2:], "critical_path_step_0", "critical_path_all", "counters",
    ],
    "mtia_inference-whole": [*SEQUENCES[1:], "counters"],
    "resnet50": ["counters"],
    "resnet50-plain": ["operator_kernels"],
}  # fmt: skip
# The bundled example adds one thing to the recorded traces: there the host is far ahead of the device.
ONLY = {"gpt2_fsdp_full_shard": ["temporal"]}
PAIRS = {
    "compare": ("hta/trace_compare/base/base.json.gz", "hta/trace_compare/test/test.json.gz"),
    "diff": ("hta/trace_diff/control/control.json.gz", "hta/trace_diff/test/test.json.gz"),
    "vendors": (
        "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz",
        "tracelens/mi300/gaunernst_bert-small-uncased__1016001.json.gz",
    ),
}
MEMORY_TIMELINE = "hta/memory_analysis/memory_timeline.raw.gz"
