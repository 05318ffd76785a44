"""Bundled example traces: small, simulated, and always there.

    from hta_widgets import TraceExplorer, examples

    TraceExplorer(examples.path("ddp_4ranks"))

The traces are *simulated*: a program in the repository (`examples/simulator`) plays a GPT-2-like job and
writes what PyTorch's profiler would have written. They show what the tools do; they say nothing about any
real machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

_DATA = Path(__file__).parent / "data"
_NAMES = (
    "ddp_4ranks",
    "single_gpu_dataloader_stall",
    "inference_cuda_graphs",
    "continuous_batching",
    "gpt2_baseline",
    "gpt2_ddp",
    "gpt2_fsdp_full_shard",
    "gpt2_fsdp_shard_grad_op",
)


def names() -> list[str]:
    """The names of the bundled jobs."""
    return list(_NAMES)


def path(name: str) -> Path:
    """The folder that holds the traces of job `name`, one file per rank.

    Raises:
        ValueError: there is no such job; the message lists those there are.
    """
    if name not in _NAMES:
        raise ValueError(f"there is no example {name!r}; the examples are {', '.join(_NAMES)}")
    return _DATA / name


def load(name: str) -> Trace:
    """The trace of job `name`, opened: `Trace.open(path(name))`."""
    from hta_widgets.trace.model import Trace

    return Trace.open(path(name))
