"""Bundled example traces: small, and always there.

    from hta_widgets import TraceExplorer, examples

    TraceExplorer(examples.path("h100_gpt2_loader_stall"))

Those whose names begin with ``h100_`` were *recorded* on one NVIDIA H100, by `examples/recording` of the
repository; `recorded/README.md` says how. The others, among them all with several ranks, are *simulated*: a
program (`examples/simulator`) plays a GPT-2-like job and writes what PyTorch's profiler would have written.
Those show what the tools do; they say nothing about any real machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

_HERE = Path(__file__).parent
_NAMES = {
    "data": (
        "ddp_4ranks",
        "single_gpu_dataloader_stall",
        "inference_cuda_graphs",
        "continuous_batching",
        "gpt2_baseline",
        "gpt2_ddp",
        "gpt2_fsdp_full_shard",
        "gpt2_fsdp_shard_grad_op",
    ),
    "recorded": (
        "h100_gpt2",
        "h100_gpt2_loader_stall",
        "h100_gpt2_loader_workers",
        "h100_gpt2_compiled",
        "h100_gpt2_unpadded",
        "h100_gpt2_fp32",
        "h100_gpt2_tf32",
        "h100_gpt2_small_batch",
        "h100_gpt2_small_batch_cuda_graphs",
        "h100_resnet50",
        "h100_resnet50_channels_first",
        "h100_resnet50_pageable",
        "h100_decode",
        "h100_decode_cuda_graphs",
    ),
}
_FOLDERS = {name: folder for folder, listed in _NAMES.items() for name in listed}


def names(recorded: bool | None = None) -> list[str]:
    """The names of the bundled jobs: all, or only those that were recorded, or only the simulated ones."""
    return [
        name for name, folder in _FOLDERS.items() if recorded is None or recorded == (folder == "recorded")
    ]


def path(name: str) -> Path:
    """The folder that holds the traces of job `name`, one file per rank.

    Raises:
        ValueError: there is no such job; the message lists those there are.
    """
    if name not in _FOLDERS:
        raise ValueError(f"there is no example {name!r}; the examples are {', '.join(_FOLDERS)}")
    return _HERE / _FOLDERS[name] / name


def load(name: str) -> Trace:
    """The trace of job `name`, opened: `Trace.open(path(name))`."""
    from hta_widgets.trace.model import Trace

    return Trace.open(path(name))
