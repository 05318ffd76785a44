"""What a kernel is, read from its name: its library, the unit that multiplies, tile, layout, epilogue.

record          what a name can say
nvidia_gemm     words between underscores: cuBLAS, cuBLASLt, CUTLASS, cuDNN
templates       C++ templates of the same
amd             Tensile, Composable Kernel, MIOpen, aiter
ascend          CANN
attention       fused attention
others          Triton, PyTorch's own kernels, and what multiplies nothing
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from hta_widgets.analysis.kernels.classes.amd import aiter, composable_kernel, miopen, tensile
from hta_widgets.analysis.kernels.classes.ascend import ascend
from hta_widgets.analysis.kernels.classes.attention import attention
from hta_widgets.analysis.kernels.classes.nvidia_gemm import nvidia_gemm
from hta_widgets.analysis.kernels.classes.others import other_product, pytorch, simple, triton
from hta_widgets.analysis.kernels.classes.record import MATRIX, KernelClass, operand_of
from hta_widgets.analysis.kernels.classes.templates import cudnn_engine, cutlass_template, simt_template
from hta_widgets.demangling import demangled

__all__ = ["MATRIX", "KernelClass", "kernel_class"]

# What tells a kernel stands near the beginning of its name; a name of megabytes must not take minutes.
_READ = 4096
_PARSERS = (
    tensile, miopen, aiter, composable_kernel, attention, nvidia_gemm, cudnn_engine, cutlass_template,
    simt_template, other_product, triton, pytorch, simple, ascend,
)  # fmt: skip
_UNKNOWN = KernelClass()


@lru_cache(maxsize=100_000)
def kernel_class(name: str) -> KernelClass:
    """What the name of a kernel says about it; parts that it leaves open are None."""
    found = _parsed(name)
    if name.startswith("_Z"):  # some names tell more as they were recorded
        found = max(_parsed(demangled(name)), found, key=lambda each: (bool(each.unit), bool(each.operation)))
    return replace(found, operand=found.operand or operand_of(name, found.unit)) if found.unit else found


def _parsed(name: str) -> KernelClass:
    text = name[:_READ]
    return next((found for parse in _PARSERS if (found := parse(text)) is not None), _UNKNOWN)
