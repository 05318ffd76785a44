"""Names of matrix products in cuBLAS, cuBLASLt, CUTLASS and cuDNN: words between underscores.

An instruction such as `s16816gemm` is the type of the sum (s: fp32, h: fp16, d: fp64, i: int32, c and z:
complex) and the shape of one tensor core instruction (m16 n8 k16); without a shape, as in `sgemm`, SIMT units
multiply. The same conventions hold for `cudnn` (convolutions of cuDNN 7 and 8) in place of `gemm`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hta_widgets.analysis.kernels.classes.record import (
    UNIT_OF_TYPE,
    KernelClass,
    epilogue_of,
    layout_of,
    unit_of_types,
)
from hta_widgets.analysis.kernels.units import Unit

_CORE = re.compile(
    r"(?:\b|\b_?\dx_)(?:cudnn_(?:infer_|train_)?)?("
    r"(?:trt_)?(?:maxwell|pascal|volta|turing|ampere|ada|hopper|blackwell|sm\d{2,3}_xmma)_\w+"
    r"|nvjet_\w+|cutlass(?:3x)?_(?:sm)?(?:\d|tensorop|simt|wmma)\w+)"
)
_INSTRUCTION = re.compile(
    r"(?P<sum>g?[a-z])?(?P<shape>\d{3,6}|\d+x\d+x\d+)?(?P<inner>bf16|tf32|f16|f32|fp16)?"
    r"(?P<kind>gemm|cudnn|fprop|dgrad|wgrad)$"
)
_SIMT: dict[str, Unit] = {
    "s": "simt_fp32", "c": "simt_fp32", "gc": "simt_fp32", "d": "simt_fp64", "z": "simt_fp64",
    "h": "simt_fp16",
}  # fmt: skip
_FLOAT_16: frozenset[str] = frozenset(("884", "16816", "161616"))
_BITS_8, _BITS_4 = frozenset(("8816", "16832", "161616")), frozenset(("8832", "16864"))
_TWO, _THREE = re.compile(r"(\d+)x(\d+)$"), re.compile(r"(?:tilesize|tile)?(\d+x\d+x\d+)$")
_ALIGNED = re.compile(r"aligna?(\d+)$")
# nvjet: types of the operands, the sum and the result; or of A, B, C, the sum and the result.
_NVJET: dict[str, Unit] = {
    "h": "tensor_16bit",
    "t": "tensor_16bit",
    "q": "tensor_8bit",
    "r": "tensor_8bit",
    "d": "tensor_fp64",
}
_NVJET_TYPES = re.compile(r"(?:([a-z])[a-z]{2}|([a-z]{2})[a-z]{3})$")


def nvidia_gemm(name: str) -> KernelClass | None:
    """The class of a kernel that is named in this manner; None of others."""
    found = _CORE.search(name)
    if found is None:
        return None
    words = found[1].split("_")
    if "nvjet" in words:
        return _nvjet(words)
    if "xmma" in words:
        return _xmma(words)
    at = next((at for at, word in enumerate(words) if _INSTRUCTION.match(word)), None)
    return None if at is None else _by_instruction(words, at)


def _by_instruction(words: list[str], at: int) -> KernelClass:
    found = _INSTRUCTION.match(words[at])
    assert found is not None
    convolution = found["kind"] != "gemm"
    library = {"cutlass": "CUTLASS 2", "cutlass3x": "CUTLASS 3", "trt": "TensorRT"}.get(words[0], "cuBLAS")
    if found["kind"] == "cudnn":
        library = "cuDNN"
    after = words[at + 1 :]
    types = [word for word in _before_tile(after) if word in UNIT_OF_TYPE]
    if library == "CUTLASS 3":
        types = types[:2]
    simt = "simt" in words or (found["shape"] is None and library != "CUTLASS 3")
    unit = _SIMT.get(found["sum"] or "") if simt else _tensor_unit(found, types, words[:at])
    tile, stages = _tile(after)
    return KernelClass(
        library,
        "convolution" if convolution else "gemm",
        unit,
        tile,
        layout_of(after),
        True if {"splitK", "splitk"} & set(after) else None,
        _alignment(after),
        stages,
        epilogue_of(after),
    )


def _tensor_unit(found: re.Match[str], types: list[str], before: list[str]) -> Unit | None:
    """The types of the operands decide; without them, the shapes of instructions that only one type has."""
    if found["inner"] in ("bf16", "f16", "fp16", "tf32"):  # fp32 operands, rounded to that
        return UNIT_OF_TYPE[found["inner"]]
    if types:
        return unit_of_types(types)
    total, shape = found["sum"] or "", found["shape"] or ""
    if total in ("d", "z", "gz"):
        return "tensor_fp64"
    if total == "i":
        return "tensor_8bit" if shape in _BITS_8 else "tensor_4bit" if shape in _BITS_4 else None
    if shape in _FLOAT_16 or total == "h":
        return "tensor_16bit"
    # With fp16, the shape 16x8x8 is that of Turing; since Ampere, it is TF32's unless a type is named.
    alone = "75" not in before and not set(before) & {"f16", "bf16", "fp16", "turing"}
    return "tensor_tf32" if shape == "1688" and alone else None


def _xmma(words: list[str]) -> KernelClass:
    at = next(
        (at for at, word in enumerate(words) if word in ("gemm", "fprop", "dgrad", "wgrad")), len(words)
    )
    convolution = at < len(words) and words[at] != "gemm"
    types = [pair for word in words[at:] if (pair := _types_of_pair(word))][:2]
    named = [type_ for pair in types for type_ in pair]
    tensor = any(word.startswith(("tensor", "warpgroupsize")) for word in words)
    unit: Unit | None = None
    if "tf32" in named:
        unit = "tensor_tf32"
    elif not tensor and named and set(named) <= {"f32"}:
        unit = "simt_fp32"
    elif not tensor and named and set(named) <= {"f64"}:
        unit = "simt_fp64"
    elif types and "ffma" not in words:
        unit = unit_of_types(types[0][:1])
    tile = next((found[1] for word in words if (found := _THREE.match(word)) and word[0] == "t"), None)
    stages = next((int(word[5:]) for word in words if re.fullmatch(r"stage\d{1,2}", word)), None)
    text = "_".join(words)
    split = False if "segment_k_off" in text else True if "split_k" in text or "splitk" in text else None
    return KernelClass(
        "cuDNN" if convolution or "cudnn" in words else "cuBLAS",
        "convolution" if convolution else "gemm",
        unit,
        tile,
        layout_of(words[at:]),
        split,
        _alignment(words),
        stages,
        epilogue_of(words),
    )


_PAIR = re.compile(
    r"(tf32|bf16|f16|f32|f64|e4m3|e5m2|e2m1|i8|u8|s8)(tf32|bf16|f16|f32|f64|i32|i8|e4m3|e5m2)$"
)


def _types_of_pair(word: str) -> tuple[str, str] | None:
    """The two types of `bf16f32`."""
    found = _PAIR.match(word)
    return (found[1], found[2]) if found else None


def _nvjet(words: list[str]) -> KernelClass:
    after = words[words.index("nvjet") + 1 :]
    types = next((found[1] or found[2] for word in after if (found := _NVJET_TYPES.match(word))), "")
    units = [_NVJET.get(letter) for letter in types]
    warp = next((at for at, word in enumerate(after) if _THREE.match(word)), None)
    tile, stages = _tile(after)
    if warp is not None:  # the tile, the number of stages, the tile of a warp
        count = re.fullmatch(r"\d{1,2}", "".join(after[warp + 1 : warp + 2]))
        tile, stages = after[warp], int(count[0]) if count else None
    last = after[-1] if after else ""
    return KernelClass(
        "cuBLASLt",
        "gemm",
        "tensor_tf32" if "tf32" in after else units[0] if len(set(units)) == 1 else None,
        tile,
        last[:2].lower() if re.fullmatch("[NT]{3,4}", last) else None,
        True if "splitK" in after else None,
        None,
        stages,
        epilogue_of(after),
    )


def _before_tile(words: Sequence[str]) -> list[str]:
    ends = (at for at, word in enumerate(words) if _TWO.match(word) or _THREE.match(word))
    return list(words[: next(ends, len(words))])


def _tile(words: Sequence[str]) -> tuple[str | None, int | None]:
    """`128x64_..._32x6` is the tile 128x64x32 in 6 stages; `128x64x32_2x1x1_6` the same, with a cluster."""
    pairs = [found for word in words if (found := _TWO.match(word))]
    whole = next((at for at, word in enumerate(words) if _THREE.match(word)), None)
    if whole is not None and not (pairs and _TWO.match(words[0])):
        stages = words[whole + 2] if len(words) > whole + 2 else ""
        if re.fullmatch(r"\d{1,2}", stages):
            return words[whole], int(stages) or None  # 0: as many as fit
        return (words[whole], None) if not pairs else (f"{pairs[0][1]}x{pairs[0][2]}", None)
    if not pairs:
        return None, None
    tile = f"{pairs[0][1]}x{pairs[0][2]}"
    staged = len(pairs) > 1 and int(pairs[1][2]) <= 32
    return (f"{tile}x{pairs[1][1]}", int(pairs[1][2])) if staged else (tile, None)


def _alignment(words: Sequence[str]) -> int | None:
    return next((int(found[1][:4]) for word in words if (found := _ALIGNED.match(word))), None)
