"""What a kernel's name says about it, and the words that names of several libraries share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hta_widgets.analysis.kernels.units import Unit

_READ = 4096
MATRIX = ("gemm", "convolution", "attention")
"""The operations that tensor cores are made for. A matrix times one vector (gemv) only waits for memory."""


@dataclass(frozen=True)
class KernelClass:
    """What a kernel's name says; None where it says nothing."""

    # who wrote the kernel, such as "cuBLAS"; NCCL stands for RCCL, too, whose names are the same
    library: str | None = None
    # "gemm", "gemv", "convolution", "attention", "softmax", "normalization", "elementwise", "reduction",
    # "copy", "fill", "layout", "indexing", "embedding", "optimizer", "sort", "scan" or "collective"
    operation: str | None = None
    unit: Unit | None = None  # what multiplies in a gemm, gemv, convolution or attention
    tile: str | None = None  # the part of the result that a block computes at once, as "MxN" or "MxNxK"
    # of a gemm whether A and B are transposed ("nn", "nt", "tn", "tt"), of a convolution the order of the
    # input ("nhwc", "nchw")
    layout: str | None = None
    split_k: bool | None = None  # whether several blocks share a sum, which is then added up
    alignment: int | None = None  # elements that are loaded at once; 1 is the slow path of odd sizes
    stages: int | None = None  # how many tiles are on their way at once
    # what the kernel can apply to the result, such as "bias+relu". Libraries also run such a kernel without
    # using that.
    epilogue: str | None = None
    # the type of what it multiplies: "fp64", "fp32", "tf32" (fp32 tensors, rounded), "fp16", "bf16", "fp8",
    # "int8", "fp4" or "int4"
    operand: str | None = None


UNIT_OF_TYPE: dict[str, Unit] = {
    **dict.fromkeys(("f64", "fp64", "double"), "tensor_fp64"),
    **dict.fromkeys(("f32", "fp32", "float", "tf32"), "tensor_tf32"),
    **dict.fromkeys(("f16", "fp16", "half", "half_t", "bf16", "bfloat16", "bfloat16_t"), "tensor_16bit"),
    **dict.fromkeys(("e4m3", "e5m2", "fp8", "f8", "s8", "u8", "i8", "int8"), "tensor_8bit"),
    **dict.fromkeys(("float_e4m3_t", "float_e5m2_t", "ue8m0xe4m3", "ue8m0xe5m2"), "tensor_8bit"),
    **dict.fromkeys(("e2m1", "s4", "u4", "int4", "float_e2m1_t", "ue4m3xe2m1"), "tensor_4bit"),
}
"""Type of an operand, in lower case -> the tensor cores of NVIDIA that multiply it: fp32 only as TF32."""

_WIDEST_FIRST: tuple[Unit, ...] = (
    "tensor_fp64", "tensor_tf32", "tensor_16bit", "tensor_8bit", "tensor_4bit",
)  # fmt: skip


def unit_of_types(types: Iterable[str]) -> Unit | None:
    """The tensor cores that multiply such operands: the wider type decides; None if one is unknown."""
    units = [UNIT_OF_TYPE.get(type_.lower()) for type_ in types]
    return next((unit for unit in _WIDEST_FIRST if unit in units), None) if None not in units else None


_OPERAND_OF_UNIT = {
    "simt_fp64": "fp64", "tensor_fp64": "fp64", "simt_fp32": "fp32", "tensor_fp32": "fp32",
    "tensor_tf32": "tf32",
}  # fmt: skip
# Of units that multiply several types, the word that tells which; bf16 before fp16, whose words it holds.
_OPERAND_WORDS: tuple[tuple[str, tuple[tuple[str, re.Pattern[str]], ...]], ...] = tuple(
    (unit, tuple((operand, re.compile(pattern)) for operand, pattern in words))
    for unit, words in (
        ("simt_fp16", (("fp16", ""),)),
        (
            "tensor_16bit",
            (
                (
                    "bf16",
                    r"(?i)bf(?:loat)?_?16|(?:^|_)Cijk_A[a-z]{3}_B[a-z]{3}_B|^nvjet_(?:sm\d+_)?t|gemm_tt",
                ),
                (
                    "fp16",
                    r"(?i)(?<!b)(?:fp|f|float_?)16|half|hmma|h(?:884|1688|16816)|(?:^|_)Cijk_A[a-z]{3}_B[a-z]{3}_H"
                    r"|^nvjet_(?:sm\d+_)?h|[sh]884(?:gemm|cudnn)",
                ),
            ),
        ),
        (
            "tensor_8bit",
            (
                (
                    "fp8",
                    r"(?i)e4m3|e5m2|fp8|(?<![a-z])f8|(?:^|_)Cijk_A[a-z]{3}_B[a-z]{3}_[FB]8|^nvjet_(?:sm\d+_)?[qr]",
                ),
                ("int8", r"(?i)(?:^|[^a-z])[usi]8|int8|i8816|i16832|_I8"),
            ),
        ),
        ("tensor_4bit", (("fp4", r"(?i)e2m1|fp4|f4"), ("int4", r"(?i)(?:^|[^a-z])[usi]4|int4|i8832|i16864"))),
    )
)


def operand_of(name: str, unit: Unit | None) -> str | None:
    """The type that a kernel of this unit multiplies, as far as its name says it."""
    if unit in _OPERAND_OF_UNIT:
        return _OPERAND_OF_UNIT[unit]
    words = next((words for known, words in _OPERAND_WORDS if known == unit), ())
    return next((operand for operand, pattern in words if pattern.search(name[:_READ])), None)


_EPILOGUES = {
    "bias": "bias", "relu": "relu", "drelu": "drelu", "gelu": "gelu", "dgelu": "dgelu", "silu": "silu",
    "swiglu": "swiglu", "bgrada": "bgrad", "bgradb": "bgrad",
}  # fmt: skip


def epilogue_of(words: Iterable[str]) -> str | None:
    """What is applied to the result, as far as words of a name say it."""
    return "+".join(dict.fromkeys(_EPILOGUES[word] for word in words if word in _EPILOGUES)) or None


_TRANSPOSED = re.compile(r"[nt]{2,4}$", re.IGNORECASE)


def layout_of(words: Sequence[str]) -> str | None:
    """The order of a convolution's input, or which operands of a gemm are transposed."""
    for word in words:
        if word.startswith(("nhwc", "nchw", "ndhwc", "ncdhw")):
            return word[: 5 if "d" in word[:5] else 4]
    return next((word[:2].lower() for word in words if _TRANSPOSED.match(word)), None)
