"""Which kind of accelerator a recording shows signs of, how it is recorded, and what advice names of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Accelerator:
    """A kind of accelerator, and all that advice names of it."""

    word: str  # what to call the device: "GPU", "NPU", "XPU", ..
    record: str  # how its work is recorded, as an imperative without a full stop
    module: str = ""  # PyTorch's module for it ("torch.cuda", also for ROCm); "" where that is not known
    update: str = "update PyTorch"  # what brings a recorder with fewer faults
    units: str = "matrix units"  # what its units for products of matrices are called
    monitor: str = ""  # the command that shows its clocks, its link and who uses it; "" where none is known
    segments: str = ""  # the setting that lets its allocator's memory grow in place; "" where there is none
    no_caching: str = ""  # the variable that turns its allocator off; "" where there is none
    channels_last: str = ""  # what convolutions need beside tensors in that layout; "" if nothing

    def call(self, name: str) -> str:
        """`torch.cuda.synchronize()`; where its module is not known, `the device's synchronize()`."""
        return f"{self.module}.{name}()" if self.module else f"the device's {name}()"

    def fill(self, advice: str) -> str:
        """Advice with what it names of the device: `{keep_memory}`, `{grow_memory}`, `{channels_last}`."""
        for name in ("keep_memory", "grow_memory", "channels_last"):
            advice = advice.replace(f"{{{name}}}", getattr(self, name))
        return advice

    def remedy(self, text: str) -> str:
        """What to record, as it is written for CUDA, for a device of this kind."""
        known = re.search(r"([\w.]*)ProfilerActivity\.(\w+)\]", self.record)
        if known is None:
            return text
        if known[1]:
            text = text.replace("torch.profiler.", known[1])
        return text.replace("ProfilerActivity.CUDA", f"{known[1]}ProfilerActivity.{known[2]}").replace(
            "[ProfilerActivity.CPU", f"[{known[1]}ProfilerActivity.CPU"
        )

    @property
    def from_the_start(self) -> str:
        """What to do where the first launches have no work."""
        return "let the profiler warm up: schedule(wait=1, warmup=1, active=3)"

    @property
    def to_the_end(self) -> str:
        """What to do where the last launches have no work."""
        return f"call {self.call('synchronize')} before the profiler stops"

    @property
    def fewer_events(self) -> str:
        """What to do where records in the middle are missing or broken."""
        return f"record fewer steps at a time, without with_stack; {self.update}"

    @property
    def keep_memory(self) -> str:
        """How PyTorch's allocator keeps memory, so that the driver is not called for it."""
        off = f", no {self.no_caching}" if self.no_caching else ""
        return f"Let PyTorch keep the memory: no {self.call('empty_cache')} in the loop{off}."

    @property
    def grow_memory(self) -> str:
        """What helps beside that where the driver is called often."""
        return f" {self.segments} helps where memory is short." if self.segments else ""


def _activity(name: str, module: str = "") -> str:
    return f"{module}profile(activities=[{module}ProfilerActivity.CPU, {module}ProfilerActivity.{name}])"


_CUDA = Accelerator(
    "GPU",
    _activity("CUDA"),
    "torch.cuda",
    "update the driver, and PyTorch, which brings CUPTI",
    "tensor cores",
    "nvidia-smi -q",
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
)
_ROCM = replace(
    _CUDA,
    update="use a PyTorch that is built with rocprofiler-sdk",
    units="matrix cores",
    monitor="rocm-smi -a",
    segments="",
    # https://github.com/pytorch/pytorch/pull/63617; the default since ROCm 7.0
    channels_last=" Before ROCm 7.0, MIOpen also needs PYTORCH_MIOPEN_SUGGEST_NHWC=1.",
)
_NONE = Accelerator(
    "device", f"{_activity('CUDA')}; XPU, MTIA, HPU or PrivateUse1 in place of CUDA on such a device"
)
# Categories of its runtime, names of its calls and operators, or its name: the first that is found decides.
_SIGNS: tuple[tuple[re.Pattern[str], Accelerator], ...] = (
    (
        re.compile(r"^aten::\w*_mps\b|^aten::_mps_"),
        Accelerator(
            "GPU", "torch.mps.profiler, for Instruments: torch.profiler records no work on MPS", "torch.mps"
        ),
    ),
    (
        re.compile(r"^xpu_|^ur[A-Z]\w+|^ze[A-Z]\w+"),
        Accelerator(
            "XPU",
            _activity("XPU"),
            "torch.xpu",
            "update PyTorch and the Level Zero driver",
            monitor="xpu-smi",
        ),
    ),
    (
        re.compile(r"^cann_|^aclnn|^acl(rt|op)[A-Z]|^AscendCL@|^npu_|\bAscend"),
        Accelerator(
            "NPU",
            _activity("NPU", "torch_npu.profiler."),
            "torch.npu",
            "update torch_npu and CANN",
            monitor="npu-smi info",
            segments="PYTORCH_NPU_ALLOC_CONF=expandable_segments:True",
            no_caching="PYTORCH_NO_NPU_MEMORY_CACHING",
        ),
    ),
    (
        re.compile(r"^mlu_|^cnrt|^cnnl|\bMLU\d"),
        Accelerator("MLU", _activity("MLU"), "torch.mlu", monitor="cnmon"),
    ),
    (re.compile(r"^mtia_"), Accelerator("MTIA", _activity("MTIA"), "torch.mtia")),
    (
        re.compile(r"^hpu_|^hpu::|^syn[A-Z]\w+|\bGaudi|\bHL-?\d"),
        Accelerator("HPU", _activity("HPU"), "torch.hpu", monitor="hl-smi"),
    ),
    (re.compile(r"^privateuse1_"), Accelerator("device", _activity("PrivateUse1"))),
    (re.compile(r"^hip[A-Z]\w+|\b(AMD|Radeon|Instinct)\b"), _ROCM),
    (
        re.compile(r"^cuda_|^(cuda|cu)[A-Z]\w+|^gpu_|\b(NVIDIA|GeForce|Tesla|Quadro|TITAN)\b"),
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
