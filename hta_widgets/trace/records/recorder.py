"""Who recorded the device's side of a file, and which of its options helps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hta_widgets.trace.classify import EventClass

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["Recorder", "recorder_of"]


@dataclass(frozen=True)
class Recorder:
    """A recorder of device work.

    How to record it at all follows from the device: `RankTrace.accelerator`.

    Attributes:
        synchronize: the call that waits for the device.
        update: what brings a version with fewer faults.
    """

    synchronize: str
    update: str

    @property
    def from_the_start(self) -> str:
        """What to do where the first launches have no work."""
        return "let the profiler warm up: schedule(wait=1, warmup=1, active=3)"

    @property
    def to_the_end(self) -> str:
        """What to do where the last launches have no work."""
        return f"call {self.synchronize} before the profiler stops"

    @property
    def fewer_events(self) -> str:
        """What to do where records in the middle are missing or broken."""
        return f"record fewer steps at a time, without with_stack; {self.update}"


_CUDA = Recorder("torch.cuda.synchronize()", "update the driver, which brings CUPTI")
_ROCM = Recorder("torch.cuda.synchronize()", "use a PyTorch that is built with rocprofiler-sdk")
_XPU = Recorder("torch.xpu.synchronize()", "update PyTorch and the Level Zero driver")
_MTIA = Recorder("torch.mtia.synchronize()", "update PyTorch")
_NPU = Recorder("torch.npu.synchronize()", "update torch_npu and CANN")
_OTHER = Recorder("the device's synchronize()", "update PyTorch")


def recorder_of(rank_trace: RankTrace) -> Recorder:
    """Who recorded the device's side of a rank, by its categories and calls; `_OTHER` if unknown."""
    present = set(np.flatnonzero(np.bincount(rank_trace.category)).tolist()) if rank_trace.n else set()
    categories = {rank_trace.categories[code] for code in present}
    if any(text.startswith("mtia_") for text in categories):
        return _MTIA
    if any(text.startswith("xpu_") for text in categories):
        return _XPU
    if any("npu" in text or text.startswith("privateuse1_") for text in categories):
        return _NPU
    calls = rank_trace.name[rank_trace.event_class == EventClass.RUNTIME]
    names = [rank_trace.names[code] for code in np.flatnonzero(np.bincount(calls)).tolist()]
    if any(name.startswith("hip") for name in names) or _is_amd(rank_trace):
        return _ROCM
    if any(name.startswith("cu") for name in names) or rank_trace.metadata.get("deviceProperties"):
        return _CUDA
    return _OTHER


def _is_amd(rank_trace: RankTrace) -> bool:
    properties = rank_trace.metadata.get("deviceProperties")
    devices = properties if isinstance(properties, list) else []
    names = [str(each.get("name")) for each in devices if isinstance(each, dict)]
    return any("AMD" in name or "Instinct" in name or "Radeon" in name for name in names)
