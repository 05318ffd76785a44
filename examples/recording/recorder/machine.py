"""The machine: its devices, its versions, and the process group of its ranks. Needs PyTorch."""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

# A rank that waits longer than this for another one waits for one that has failed.
PATIENCE = timedelta(minutes=3)


@dataclass(frozen=True)
class Place:
    """Where one rank runs."""

    device: torch.device
    rank: int = 0
    ranks: int = 1
    backend: str | None = None

    def synchronize(self) -> None:
        """Wait until the device has done all that was launched."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def mark(self) -> Any:
        """A moment, for `between`: when the device has done all that was launched. Nothing waits for it."""
        if self.device.type == "cpu":
            return time.perf_counter_ns()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, first: Any, last: Any) -> int:
        """ns between two marks."""
        if self.device.type == "cpu":
            return int(last - first)
        self.synchronize()
        milliseconds: float = first.elapsed_time(last)
        return round(milliseconds * 1e6)

    def meet(self) -> None:
        """Wait for this rank's device, then for the other ranks."""
        self.synchronize()
        if self.ranks > 1:
            dist.barrier()

    def slowest(self, samples: dict[str, list[int]]) -> dict[str, list[int]]:
        """Sample by sample the longest time of all ranks: a step is over when its last rank is done."""
        if self.ranks == 1:
            return samples
        gathered: list[Any] = [None] * self.ranks
        dist.all_gather_object(gathered, samples)
        return {
            phase: [max(times) for times in zip(*(item[phase] for item in gathered), strict=True)]
            for phase in samples
        }


@contextmanager
def place(device: str, backend: str | None) -> Iterator[Place]:
    """This process's place among those that torchrun started; the process group is open meanwhile.

    Args:
        device: ``cuda`` (NVIDIA and AMD) or ``cpu``.
        backend: of the process group; None chooses NCCL where each rank has a GPU of its own, else Gloo.
    """
    rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if device == "cpu":
        here = torch.device("cpu")
        torch.set_num_threads(1)  # as torchrun has it: one rank and several must differ in nothing else
    else:
        here = torch.device("cuda", local % torch.cuda.device_count())
        torch.cuda.set_device(here)
    if ranks == 1:
        yield Place(here)
        return
    own_gpu = here.type == "cuda" and torch.cuda.device_count() >= ranks
    backend = backend or ("nccl" if own_gpu else "gloo")
    # With its device NCCL connects here: where it refuses to, no step has been run for nothing.
    dist.init_process_group(backend, timeout=PATIENCE, device_id=here if backend == "nccl" else None)
    try:
        yield Place(here, rank, ranks, backend)
        dist.barrier()
    finally:
        # Models in reference cycles keep the group's threads until the interpreter ends; there they abort.
        gc.collect()
        dist.destroy_process_group()


def gpus() -> int:
    """How many GPUs there are."""
    return int(torch.cuda.device_count())


def environment(here: Place) -> dict[str, Any]:
    """What the times depend on; keys as in `manifest`. Nothing that names the machine or its user."""
    cuda = here.device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(here.device) if cuda else _processor(),
        "devices": torch.cuda.device_count() if cuda else 1,
        "driver": _driver() if cuda else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "rocm": torch.version.hip,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if cuda and dist.is_nccl_available() else None,
        "platform": f"{platform.system()} {platform.machine()}",
        "threads": torch.get_num_threads(),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
    }


def _processor() -> str:
    """The processor's own name where Linux tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or "CPU"


def _driver() -> str | None:
    """Version of NVIDIA's or AMD's kernel driver, None where neither says it."""
    amd = Path("/sys/module/amdgpu/version")
    if torch.version.hip:
        return amd.read_text().strip() if amd.exists() else None
    try:
        command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        output = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return output.splitlines()[0].strip() if output.strip() else None
