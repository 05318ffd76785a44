"""All recordings that there are to check sentences on: the bundled examples, and the shared ones."""

from __future__ import annotations

from pathlib import Path

from hta_widgets import examples
from tests.support import SHARED_TRACES

__all__ = ["EXAMPLES", "ONE_OF_EACH", "SHARED", "UNLIKE", "path_of", "why_not_checked"]

_BESIDE = SHARED_TRACES.parent


def _shared() -> list[str]:
    found = [f"traces/{path.relative_to(SHARED_TRACES)}" for path in _files(SHARED_TRACES)]
    for folder in ("recordings", "cases", "cases/serving"):
        if (_BESIDE / folder).is_dir():
            found += [
                f"{folder}/{each.name}"
                for each in sorted((_BESIDE / folder).iterdir())
                if each.name not in ("serving", "README.md")
            ]
    return found


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [path for path in sorted(folder.rglob("*")) if path.name.endswith((".json", ".json.gz"))]


# The slow reader knows Kineto's files alone; what is said of these is held by tests of their own.
_OTHER_WORDS = {
    "cases/b01_xpu_no_stream": "ids that two calls share: tests/trace/test_impossible_records.py",
    "cases/b06_npu_trace_view_str": "Ascend's rows: tests/trace/test_devices.py, test_ascend.py",
    "cases/e10_old_autograd_cuda": "torch.autograd's export: tests/trace/test_devices.py",
    "cases/f01_raw_newline_bare_quotes": "no JSON: tests/trace/test_lenient.py",
    "cases/f03_backslashes_u_n_t": "no JSON: tests/trace/test_lenient.py",
    "cases/h19_npu_direct_str": "Ascend's rows: tests/trace/test_devices.py, test_ascend.py",
    "recordings/ascend_trace_view": "Ascend's rows: tests/trace/test_devices.py, test_ascend.py",
    "recordings/autograd_profiler_torch1": "torch.autograd's export: tests/trace/test_devices.py",
}
# It believes every record, where the package estimates those that cannot be true.
_REPAIRED = {"cases/a02_overflow_dur", "cases/a11_some_kernels_ts0", "cases/h03_overflow_mild"}

EXAMPLES = examples.names()
SHARED = _shared()

# One of each kind: training and serving; by vendor and profiler; one rank and many; ranks and steps
# that are not all there; marked steps or none; records that cannot be true, that are lost, or no JSON.
ONE_OF_EACH = [
    name
    for name in (*EXAMPLES, *SHARED)
    if name
    in {
        "ddp_4ranks",
        "single_gpu_dataloader_stall",
        "inference_cuda_graphs",
        "continuous_batching",
        "gpt2_fsdp_full_shard",
        "h100_gpt2",
        "h100_gpt2_compiled",
        "traces/hta/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
        "traces/hta/cpu_only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz",
        "traces/hta/mtia_inference_trace/mtia_inference_rank_0.json.gz",
        "traces/hta/trace_filter/sampled_rank-0.json.gz",
        "traces/tracelens/inference/vllm_decode_full/graph_execution.json.gz",
        "traces/tracelens/mi210/gpu_only_trace/gpu_only_trace.json.gz",
        "traces/tracelens/torch_compile_triton/trace.json.gz",
        "recordings/ascend_trace_view",
        "recordings/autograd_profiler_torch1",
        "recordings/cpu_ddp_slow_rank2",
        "recordings/loader_t4_amp",
        "recordings/mlu370",
        "recordings/moe_compile_after_B",
        "recordings/three_experiments",
        "recordings/unsloth_mps",
        "recordings/wsl_rows_lost",
        "cases/a05_unfinished_step_zero",
        "cases/a09_first_steps_kernels_dropped",
        "cases/b01_xpu_no_stream",
        "cases/c03_noseq_shift",
        "cases/d05_sglang_merged",
        "cases/d13_restart_iters",
        "cases/f01_raw_newline_bare_quotes",
        "cases/h03_overflow_mild",
        "cases/i05_vllm_dp2_tp2_noasync",
        "cases/i20_two_ranks_sync_after_step",
        "cases/j01_host_clock_5s_off",
        "cases/j05_steps_only_on_rank0",
        "cases/j06_ranks_record_other_steps",
        "cases/serving/ann_all.json.gz",
    }
]
# Something is stated of each of these that is stated of none of them, nor of a planted job.
_STATED_OF_NO_OTHER = {
    "h100_gpt2_tf32",
    "h100_gpt2_unpadded",
    "traces/hta/call_stack/backward_thread.json",
    "traces/hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
    "traces/hta/rank_unavailable/rank_not_found.json.gz",
    "traces/tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "traces/tracelens/mi300/gaunernst_bert-small-uncased__1016001.json.gz",
    "recordings/alloc_heavy_a40",
    "recordings/cpu_ddp_accum_nosync_missing",
    "recordings/cpu_generate_kv_cat",
    "recordings/inductor_2022",
    "recordings/llama_4layers_4090",
    "recordings/loader_cpu",
    "recordings/moe_compile_before_B",
    "recordings/resnet50_t4_cpu",
    "cases/b02_xpu_kernels_missing_copies_only",
    "cases/c01_stream_sync_row",
    "cases/g03_python_gc",
    "cases/h12_restart_in_one_file",
}
UNLIKE = [name for name in (*EXAMPLES, *SHARED) if name in {*ONE_OF_EACH} | _STATED_OF_NO_OTHER]


def path_of(name: str) -> Path:
    """Where a recording lies."""
    if name in EXAMPLES:
        return examples.path(name)
    if name.startswith("traces/"):
        return SHARED_TRACES / name.removeprefix("traces/")
    return _BESIDE / name


def why_not_checked(name: str) -> str:
    """Why the slow reader cannot check what is said of a recording; "" if it can."""
    if name in _OTHER_WORDS:
        return f"the slow reader cannot read it: {_OTHER_WORDS[name]}"
    if name in _REPAIRED:
        return "records are estimated: tests/trace/test_impossible_records.py"
    return ""
