"""Names of matrix products on AMD devices: Tensile (rocBLAS, hipBLASLt), Composable Kernel, MIOpen, aiter.

The type in a name of Tensile begins with that of the operands: S (fp32), D (fp64), H (fp16), B (bf16), F8,
B8, I8, C and Z (complex). `MI16x16x1` is a matrix instruction; without one, vector units multiply.
"""

from __future__ import annotations

import re

from hta_widgets.analysis.kernels.classes.record import KernelClass
from hta_widgets.analysis.kernels.units import Unit

_MATRIX_CORES: dict[str, Unit] = {
    "S": "tensor_fp32", "C": "tensor_fp32", "D": "tensor_fp64", "Z": "tensor_fp64", "H": "tensor_16bit",
    "B": "tensor_16bit", "F8": "tensor_8bit", "B8": "tensor_8bit", "I8": "tensor_8bit", "F4": "tensor_4bit",
}  # fmt: skip
_VECTOR: dict[str, Unit] = {"S": "simt_fp32", "C": "simt_fp32", "D": "simt_fp64", "Z": "simt_fp64"}
_TENSILE = re.compile(r"(?:^|_)Cijk_A(?P<a>[a-z]{3})_B(?P<b>[a-z]{3})_(?P<type>[A-Z]\d?)(?P<rest>\w*)")
_ADD_UP = re.compile(r"^Cijk_\w{0,80}?(?:PostGSU|_GB\b)")
_TILE = re.compile(r"(?:^|_)MT(\d+x\d+x\d+)")
_SPLIT = re.compile(r"_GSU(\d{1,3})(?:_|$)")


def tensile(name: str) -> KernelClass | None:
    """Matrix products of rocBLAS and hipBLASLt. Only the latter's take their arguments from the user."""
    found = _TENSILE.search(name)
    if found is None:
        return KernelClass("Tensile", "reduction", split_k=True) if _ADD_UP.match(name) else None
    rest, type_ = found["rest"], found["type"]
    tile, split = _TILE.search(rest), _SPLIT.search(rest)
    # a number after a letter belongs to the type only where it tells its bits
    type_ = type_ if type_ in _MATRIX_CORES else type_[0]
    unit: Unit | None = None
    if tile is not None:
        unit = (_MATRIX_CORES if "_MI" in rest and re.search(r"_MI\d+x\d+x\d+", rest) else _VECTOR).get(type_)
    if type_ == "S" and "_MX_" in rest:  # fp32 operands, rounded to 19 bits
        unit = "tensor_tf32"
    transposed = ("n" if found["a"] == "ilk" else "t") + ("n" if found["b"] == "ljk" else "t")
    return KernelClass(
        "hipBLASLt" if "_UserArgs" in rest else "Tensile",
        "gemm",
        unit,
        tile[1] if tile else None,
        transposed if found["a"] in ("ilk", "lik") and found["b"] in ("ljk", "jlk") else None,
        int(split[1]) > 1 if split else None,
        epilogue="bias" if "_Bias" in rest else None,
    )


_CK = re.compile(r"\bck::|(?:^_ZN|_ZN)2ck\d|\bck_tile::|_ZN7ck_tile\d")
# Types of A and B after the matrix kernel's name, mangled: t is bf16 as the library stores it, f is fp32.
_CK_MANGLED = re.compile(r"Gridwise\w{0,60}?xdl\w{0,120}?(?:E|I|S\d_)(tt[tf]|DF16_DF16_|DF16bDF16b|ff[f])")
_CK_PLAIN = re.compile(
    r"Gridwise\w{0,60}<[^<>]{0,120}?(unsigned short|_Float16|float|ck::f8_t), (?:unsigned|_Fl|fl|ck::f8)"
)
_CK_TYPES: dict[str, Unit] = {
    "tt": "tensor_16bit", "DF": "tensor_16bit", "ff": "tensor_fp32", "unsigned short": "tensor_16bit",
    "_Float16": "tensor_16bit", "float": "tensor_fp32", "ck::f8_t": "tensor_8bit",
}  # fmt: skip


def composable_kernel(name: str) -> KernelClass | None:
    """Kernels of Composable Kernel, whose `xdl` are matrix instructions."""
    if not _CK.search(name.partition("<")[0]):  # arguments of others' templates name it, too
        return None
    if re.search(r"Fmha|fmha", name):
        return KernelClass("CK", "attention", _ck_attention(name))
    if "orm2d" in name or "normalization" in name:
        return KernelClass("CK", "normalization")
    if not re.search(r"[gG]emm|conv", name):
        return KernelClass("CK")
    found = _CK_MANGLED.search(name)
    plain = None if found else _CK_PLAIN.search(name)
    unit = _CK_TYPES.get(found[1][:2]) if found else _CK_TYPES.get(plain[1]) if plain else None
    convolution = "conv" in name.lower() or "bwd_weight" in name
    return KernelClass("CK", "convolution" if convolution else "gemm", unit if "xdl" in name else None)


def _ck_attention(name: str) -> Unit | None:
    found = re.search(r"Fmha\w{0,80}?(DF16b|DF16_|fp8_t)|Fmha.{0,160}?(__bf16|_Float16|fp8_t)", name)
    if found is None:
        return None
    return "tensor_8bit" if "fp8" in (found[1] or found[2]) else "tensor_16bit"


_IGEMM = re.compile(
    r"^igemm_(?:fwd|bwd|wrw)_gtc(?P<cores>x\d?)?_(?P<layout>nhwc|nchw)_(?P<type>bf16|fp16|fp32|int8)\w*?"
    r"_bt(?P<tile>\d+x\d+x\d+)"
)
_IGEMM_TYPES: dict[str, Unit] = {
    "bf16": "tensor_16bit", "fp16": "tensor_16bit", "fp32": "tensor_fp32", "int8": "tensor_8bit",
}  # fmt: skip
_ASM = re.compile(r"^(?:miopen|gcn|MIOpen)\w*Conv|^naive_conv_|^Im2d2Col|^Col2Im2d", re.IGNORECASE)


def miopen(name: str) -> KernelClass | None:
    """Convolutions of MIOpen, and what goes with them."""
    if found := _IGEMM.match(name):
        unit = _IGEMM_TYPES[found["type"]] if found["cores"] else None
        split = name.endswith("_gkgs")
        return KernelClass("MIOpen", "convolution", unit, found["tile"], found["layout"], split)
    if _ASM.match(name):
        return KernelClass("MIOpen", "convolution")
    if re.match(r"batched_transpose_|transpose_(?:NCHW|CNHW|NHWC)", name):
        return KernelClass("MIOpen", "layout")
    if re.match(r"MIOpenBatchNorm|MIOpenLayerNorm|MIOpenGroupNorm", name):
        return KernelClass("MIOpen", "normalization")
    if re.match(r"SubTensorOpWith|OpTensor", name):
        return KernelClass("MIOpen", "elementwise")
    return None


_AITER = re.compile(r"\baiter::|_ZN5aiter\d")
_AITER_TYPES: dict[str, Unit] = {
    "bf16": "tensor_16bit", "fp16": "tensor_16bit", "fp8": "tensor_8bit", "i8": "tensor_8bit",
    "f4gemm": "tensor_4bit",
}  # fmt: skip


def aiter(name: str) -> KernelClass | None:
    """Kernels of AMD's aiter, most of them written in assembly."""
    if not _AITER.search(name):
        return None
    words = re.split(r"[_:<(]|\d{2}(?=[a-z])", name)
    type_ = next((word for word in words if word in _AITER_TYPES), "")
    if "fmha" in name or "attn" in name or "mla_" in name:
        return KernelClass("aiter", "attention", _AITER_TYPES.get(type_) if "fmha" in name else None)
    if "norm" in name:
        return KernelClass("aiter", "normalization")
    if "gemm" in name or "flatmm" in name or "fmoe" in name:
        return KernelClass("aiter", "gemm", _AITER_TYPES.get(type_) if type_ == "f4gemm" else None)
    return KernelClass("aiter")
