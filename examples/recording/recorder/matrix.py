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
    base = Setup() if device == "cuda" else Setup(shape="tiny", batch=4)
    small = replace(base, batch=1)
    accumulated = replace(base, micro_batches=4, batch=max(1, base.batch // 4))
    serving = Setup("serving", shape=base.shape, batch=4)
    return {
        "baseline": base,
        "baseline_again": base,
        "data_stall": replace(base, data_stall_ms=20),
        "fp32": replace(base, precision="fp32"),
        "compiled": replace(base, compile=True),
        "small_batch": small,
        "small_batch_cuda_graphs": replace(small, cuda_graphs=True),
        "accumulated": accumulated,
        "accumulated_item": replace(accumulated, item=True),
        "detailed": replace(base, profiler_flags=PROFILER_FLAGS),
        "serving": serving,
        "serving_cuda_graphs": replace(serving, cuda_graphs=True),
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
    return "CUDA graphs need a GPU" if device == "cpu" and setup.cuda_graphs else None
