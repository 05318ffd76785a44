"""Findings about work that a setting takes away, on real recordings: counted again from the plain events."""

from __future__ import annotations

import pandas as pd
import pytest

from hta_widgets.analysis.findings import overview
from tests.verdicts.plain_reader import Rank, Window, length, overlap, union
from tests.verdicts.recordings import RECORDINGS, opened, recording

# Parts of the names of kernels; the beginning of the names of parts of the host.
KERNELS = {
    "tensor_copies": ("direct_copy_kernel", "CatArrayBatchedCopy"),
    "layout_transposes": ("nchwToNhwcKernel", "nhwcToNchwKernel", "batched_transpose_"),
}
REGIONS = {
    "optimizer_not_fused": "Optimizer.step#",
    "zero_grad_fills": "Optimizer.zero_grad#",
    "bucket_copies": "torch.distributed.ddp.reducer::copy_bucket_to_grad",
}
TOPICS = {*KERNELS, *REGIONS, "allocator_calls"}

# Every real recording on which one of them is told.
TOLD = {
    "hta/nccl_parser_config": {"bucket_copies"},
    "hta/trace_diff/control": {"tensor_copies"},
    "hta/trace_diff/test": {"tensor_copies"},
    "kineto/resnet50_num_workers_0": {"optimizer_not_fused", "zero_grad_fills"},
    "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": {"tensor_copies"},
    "tracelens/mi210/gpu_only_trace": {"layout_transposes"},
    "tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": {"tensor_copies"},
    "tracelens/mi300/resnet_act_checkpoint.json.gz": {"layout_transposes"},
}


def taken_ns(rank: Rank, topic: str, windows: list[Window]) -> int:
    """How much of these windows the work, or the part of the host, takes."""
    if topic in KERNELS:
        work = [event.window for event in rank.work if any(part in event.name for part in KERNELS[topic])]
        return sum(length(overlap(union(work), window)) for window in windows)
    events = [event for thread in rank.threads.values() for event in thread]
    inside = union(event.window for event in events if event.name.startswith(REGIONS[topic]))
    return sum(length(overlap(inside, window)) for window in windows)


@pytest.mark.parametrize("name", RECORDINGS)
def test_avoidable_work_takes_what_the_plain_events_say(name: str) -> None:
    trace = opened(name)
    frame: pd.DataFrame = overview(trace).set_index("topic")
    assert set(frame.index) & TOPICS == TOLD.get(name, set())
    if name not in TOLD:
        return
    (rank,) = recording(name)
    clock = next(iter(trace.iterations["clock"]), None)
    windows = (
        rank.device_windows() if clock == "device" else rank.host_windows() if rank.steps else [rank.extent]
    )
    for topic in TOLD[name]:
        share = 100 * taken_ns(rank, topic, windows) / length(windows)
        assert frame.loc[topic, "share_pct"] == pytest.approx(share, abs=0.1), topic
