"""All recordings, and the pairs among them: what differs within a pair is known, so it is ground truth."""

from __future__ import annotations

from dataclasses import dataclass, replace

from recorder.setup import PROFILER_FLAGS, Setup

DEVICES = ("cuda", "cpu")


@dataclass(frozen=True)
class Pair:
    """Two recordings that differ in one field of `Setup`, or in none.

    Attributes:
        first, second: names of the recordings.
        field: the field that differs; None for the same setup recorded twice.
        truth: what a right analysis of the two says.
    """

    first: str
    second: str
    field: str | None
    truth: str


def recordings(device: str) -> dict[str, Setup]:
    """Every recording by name, sized for a device (``cuda`` or ``cpu``), in the order they are made."""
    gpu = device == "cuda"
    shapes = ("record_shapes",)  # what is padded or cast, and how much is computed, cannot be told without
    base = Setup(profiler_flags=shapes) if gpu else Setup(shape="tiny", batch=4, profiler_flags=shapes)
    small = replace(base, batch=1)
    accumulated = replace(base, micro_batches=4, batch=max(1, base.batch // 4))
    medium = replace(base, shape="gpt2_medium", batch=8) if gpu else replace(base, batch=8)
    fp32 = replace(base, precision="fp32")
    images = replace(
        base,
        workload="images",
        precision="amp",
        shape="resnet50" if gpu else "tiny_resnet",
        batch=128 if gpu else 8,
        channels_last=True,
    )
    augmented = replace(images, augment=True)
    serving = Setup("serving", shape="decoder_8layers" if gpu else "tiny", batch=8, profiler_flags=shapes)
    return {
        "baseline": base,
        "baseline_again": base,
        "data_stall": replace(base, data_stall_ms=20),
        "data_stall_workers": replace(base, data_stall_ms=20, workers=4),
        "compiled": replace(base, compile=True),
        "small_batch": small,
        "small_batch_cuda_graphs": replace(small, cuda_graphs=True),
        "serving": serving,
        "serving_growing_cache": replace(serving, cache="growing"),
        "serving_cuda_graphs": replace(serving, cuda_graphs=True),
        "accumulated": accumulated,
        "accumulated_item": replace(accumulated, item=True),
        "fp32": fp32,
        "tf32": replace(base, precision="tf32"),
        "images": images,
        "images_not_channels_last": replace(images, channels_last=False),
        "images_pageable": replace(images, pageable=True),
        "images_augmented": augmented,
        "images_augmented_workers": replace(augmented, workers=8 if gpu else 1),
        "medium": medium,
        "medium_unfused_attention": replace(medium, attention="unfused"),
        "medium_foreach": replace(medium, optimizer="foreach"),
        "medium_for_loop": replace(medium, optimizer="for_loop"),
        "medium_kept_gradients": replace(medium, keep_gradients=True),
        "unpadded": replace(base, unpadded=True),
        "detailed": replace(base, profiler_flags=PROFILER_FLAGS),
        "ddp": replace(base, strategy="ddp"),
        "fsdp_full_shard": replace(base, strategy="fsdp_full_shard"),
        "fsdp_shard_grad_op": replace(base, strategy="fsdp_shard_grad_op"),
    }


PAIRS = (
    Pair(
        "baseline", "baseline_again", None,
        "nothing changed: no line may be called significant, the step times agree within their noise",
    ),
    Pair(
        "baseline", "data_stall", "data_stall_ms",
        "the loader sleeps 20 ms a step: device idle grows, as data stall, and no kernel changes; the step"
        " grows by less than 20 ms where the host was ahead of the device. Without the stall a step takes"
        " the un-profiled time of baseline",
    ),
    Pair(
        "data_stall", "data_stall_workers", "workers",
        "four processes sleep beside the training: no kernel changes, the stall is gone",
    ),
    Pair(
        "fp32", "tf32", "precision",
        "products run on tensor cores; copies and elementwise kernels stay as they are",
    ),
    Pair(
        "tf32", "baseline", "precision",
        "half the bytes and faster products: all of the device's work shrinks",
    ),
    Pair(
        "fp32", "baseline", "precision",
        "matrix products and copies shrink, kernels change names, operators stay the same",
    ),
    Pair(
        "baseline", "compiled", "compile",
        "elementwise kernels are replaced by fewer, fused Triton kernels; matrix products stay",
    ),
    Pair(
        "baseline", "small_batch", "batch",
        "the same operators on one sample: the device waits for launches (launch-bound)",
    ),
    Pair(
        "small_batch", "small_batch_cuda_graphs", "cuda_graphs",
        "the launches of a step become one cudaGraphLaunch: idle shrinks, kernels stay. A what-if that"
        " removes launch overhead from small_batch is judged by this step time",
    ),
    Pair(
        "accumulated", "accumulated_item", "item",
        "four aten::item a step and the synchronising copies below them; no other work on the device",
    ),
    Pair(
        "baseline", "detailed", "profiler_flags",
        "only what the profiler writes down and what that costs: un-profiled step times agree",
    ),
    Pair(
        "images_not_channels_last", "images", "channels_last",
        "the conversions around convolutions disappear",
    ),
    Pair(
        "images_pageable", "images", "pageable",
        "the host no longer waits for the copy of a batch, and the copy is faster",
    ),
    Pair(
        "images", "images_augmented", "augment",
        "the host prepares images while the device idles",
    ),
    Pair(
        "images_augmented", "images_augmented_workers", "workers",
        "images are prepared beside the training, as fast as the workers are",
    ),
    Pair(
        "medium_unfused_attention", "medium", "attention",
        "products, masks and softmaxes of attention become one kernel each way",
    ),
    Pair(
        "medium_for_loop", "medium_foreach", "optimizer",
        "thousands of kernels of the optimizer become a few dozen",
    ),
    Pair(
        "medium_foreach", "medium", "optimizer",
        "the optimizer reads and writes each parameter once",
    ),
    Pair(
        "medium_kept_gradients", "medium", "keep_gradients",
        "gradients are written once instead of filled with zeros and added to",
    ),
    Pair(
        "unpadded", "baseline", "unpadded",
        "the products of the vocabulary run aligned; they alone change",
    ),
    Pair(
        "serving_growing_cache", "serving", "cache",
        "the copies of torch.cat disappear; attention reads a cache of full length instead",
    ),
    Pair(
        "serving", "serving_cuda_graphs", "cuda_graphs",
        "decode steps replay a graph, prefill steps stay as they are",
    ),
    Pair(
        "baseline", "ddp", "strategy",
        "the same work per rank plus an all-reduce of every gradient: 2 (n-1)/n bytes sent per byte",
    ),
    Pair(
        "ddp", "fsdp_full_shard", "strategy",
        "all-reduces become all-gathers (twice per block) and reduce-scatters; memory shrinks to shards",
    ),
    Pair(
        "fsdp_full_shard", "fsdp_shard_grad_op", "strategy",
        "parameters are gathered once a step instead of twice; the reduce-scatters stay",
    ),
)  # fmt: skip


def ranks_of(setup: Setup, ranks: int) -> int:
    """How many ranks a setup runs on when a distributed one runs on `ranks`."""
    return 1 if setup.strategy == "baseline" else ranks


def backends(setup: Setup, device: str, ranks: int, gpus: int) -> list[str]:
    """The backends to try, in order, until one records: none for a setup of one rank.

    NCCL refuses several ranks on one GPU, or allows it, depending on its version; Gloo copies through the
    host.
    """
    if ranks_of(setup, ranks) == 1:
        return []
    if device == "cpu":
        return ["gloo"]
    return ["nccl"] if gpus >= ranks else ["nccl", "gloo"]


def left_out(setup: Setup, device: str) -> str | None:
    """Why a setup cannot be recorded on a device, None if it can be tried."""
    if device != "cpu":
        return None
    if setup.cuda_graphs:
        return "CUDA graphs need a GPU"
    if setup.pageable:
        return "a CPU copies no batches"
    return "TF32 needs a GPU" if setup.precision == "tf32" else None
