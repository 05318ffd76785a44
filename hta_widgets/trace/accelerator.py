"""Which kind of accelerator a recording shows signs of, and how its work is recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Accelerator", "accelerator_in"]


@dataclass(frozen=True)
class Accelerator:
    """A kind of accelerator.

    Attributes:
        word: what to call the device: "GPU", "NPU", "XPU", ...
        record: how its work is recorded, as an imperative without a full stop.
    """

    word: str
    record: str


def _activity(name: str, module: str = "") -> str:
    return f"{module}profile(activities=[{module}ProfilerActivity.CPU, {module}ProfilerActivity.{name}])"


_CUDA = Accelerator("GPU", _activity("CUDA"))
_NONE = Accelerator(
    "device", f"{_activity('CUDA')}; XPU, MTIA, HPU or PrivateUse1 in place of CUDA on such a device"
)
# Categories of its runtime, names of its calls and operators, or its name: the first that is found decides.
_SIGNS: tuple[tuple[re.Pattern[str], Accelerator], ...] = (
    (
        re.compile(r"^aten::\w*_mps\b|^aten::_mps_"),
        Accelerator("GPU", "torch.mps.profiler, for Instruments: torch.profiler records no work on MPS"),
    ),
    (re.compile(r"^xpu_|^ur[A-Z]\w+|^ze[A-Z]\w+"), Accelerator("XPU", _activity("XPU"))),
    (
        re.compile(r"^cann_|^aclnn|^AscendCL@|^npu_|\bAscend"),
        Accelerator("NPU", _activity("NPU", "torch_npu.profiler.")),
    ),
    (re.compile(r"^mlu_|^cnrt|^cnnl|\bMLU\d"), Accelerator("MLU", _activity("MLU"))),
    (re.compile(r"^mtia_"), Accelerator("MTIA", _activity("MTIA"))),
    (re.compile(r"^hpu_|^hpu::|^syn[A-Z]\w+|\bGaudi|\bHL-?\d"), Accelerator("HPU", _activity("HPU"))),
    (re.compile(r"^privateuse1_"), Accelerator("device", _activity("PrivateUse1"))),
    (
        re.compile(r"^cuda_|^(cuda|hip|cu)[A-Z]\w+|^gpu_|\b(NVIDIA|GeForce|Tesla|AMD|Radeon|Instinct)\b"),
        _CUDA,
    ),
)


def accelerator_in(texts: Iterable[str]) -> Accelerator:
    """The accelerator of which these categories and names are signs; one of unknown kind if of none."""
    known = list(texts)
    for pattern, accelerator in _SIGNS:
        if any(pattern.search(text) for text in known):
            return accelerator
    return _NONE
