"""Which recordings are asked what: of each kind one, and each area of those that have most to say in it."""

from __future__ import annotations

from pathlib import Path

from hta_widgets import examples
from tests.support import SHARED_TRACES

RECORDINGS: dict[str, tuple[str, ...]] = {
    "ddp_4ranks": ("trace", "analyses", "options", "timeline", "hta", "report"),
    "gpt2_fsdp_full_shard": ("trace", "analyses", "options", "pictures", "further", "inspect", "comparisons"),
    "continuous_batching": ("trace", "analyses", "options", "inspect", "commands", "report"),
    "inference_cuda_graphs": ("trace", "analyses", "further", "timeline"),
    "single_gpu_dataloader_stall": ("trace", "analyses", "commands", "hta"),
    "h100_gpt2": ("analyses", "options", "inspect", "snapshots", "widgets"),
    "gpt2_baseline": ("comparisons",),
    "h100_gpt2_fp32": ("comparisons",),
    "h100_resnet50_pageable": ("analyses", "pictures"),
    "h100_decode_cuda_graphs": ("analyses",),
    # beside the checkout
    "cases/a05_unfinished_step_zero": ("trace", "analyses"),
    "cases/b06_npu_trace_view_str": ("trace", "analyses", "options"),
    "cases/c07_graph_many_streams": ("analyses", "timeline"),
    "cases/g01_oom": ("trace", "analyses", "inspect"),
    "cases/h30_instants_ts0": ("trace", "analyses"),
    "cases/j05_steps_only_on_rank0": ("trace", "analyses", "options"),
    "cases/l01_graph_burst_corr_kept": ("analyses",),
    "recordings/ascend_trace_view": ("trace", "analyses"),
    "recordings/cpu_ddp_slow_rank2": ("trace", "analyses"),
    "recordings/cpu_generate_kv_cat": ("trace", "analyses"),
    "recordings/loader_t4_amp": ("trace", "analyses", "options"),
    "traces/hta/amd_trace": ("trace", "analyses"),
    "traces/hta/cupti_profiler": ("trace", "analyses"),
}
ASKED = [(recording, area) for recording, areas in RECORDINGS.items() for area in areas]


def path_of(recording: str) -> Path:
    """Where a recording lies, if it does."""
    return SHARED_TRACES.parent / recording if "/" in recording else Path(examples.path(recording))
