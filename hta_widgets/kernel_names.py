"""Long names of kernels, cut to the part that tells what runs: in sentences, charts and tables alike.

Demangled C++ names hold hundreds of characters of namespaces, parameters and wrappers around the function
that a kernel applies; names of GEMM libraries hold the switches of their build. Cut in the middle, many
different kernels read the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import takewhile

from hta_widgets.demangling import demangled

# Columns of answers that hold names of events: tables show the short ones.
NAME_COLUMNS = ("name", "operator", "top_operator", "op")

_LENGTH = 64
# Types, and words of C++, that may stand in any kernel's name.
_TYPES = {
    "float", "double", "half", "Half", "bfloat16", "BFloat16", "__half", "__nv_bfloat16", "int8_t", "uint8_t",
    "Float8_e4m3fn", "Float8_e4m3fnuz", "Float8_e5m2", "long", "int", "bool", "complex",
    "__hip_bfloat16", "bfloat16_t", "half_t", "tfloat32_t", "float_e4m3_t", "float_e5m2_t",
}  # fmt: skip
_COMMON = {
    "at", "native", "cuda", "c10", "std", "thrust", "detail", "impl", "cub", "hip", "internal",
    "binary_internal", "anonymous", "namespace", "unsigned", "char", "short", "const", "void", "true",
    "false", "lambda", "operator", "TensorIteratorBase", "TensorIterator", "Scalar", "Array", "array",
    "Params", "OpaqueType",
    # wrappers: what they wrap tells more
    "gpu_kernel_impl", "gpu_kernel_impl_nocast", "gpu_index_kernel", "ReduceOp", "func_wrapper_t",
    "BinaryFunctor", "AUnaryFunctor", "BUnaryFunctor", "ScanTileState", "TensorListMetadata",
    "FusedOptimizerTensorListMetadata", "cublasGemvParams", "cublasGemvParamsEx",
    "cublasGemvTensorStridedBatched", "enable_sm80_to_sm89", "enable_sm90", "enable_sm90_or_later",
}  # fmt: skip
# Bases that say nothing: the argument of the template is the kernel.
_GENERIC = {"Kernel", "Kernel2", "kernel", "device_kernel", "kentry", "run_kernel"}
_TENSILE = re.compile(
    r"^(Cijk_[A-Za-z]+_[A-Za-z]+_[A-Z0-9]+_[A-Z]+)\w*?_(MT\d+x\d+x\d+)(?:_(MI\d+x\d+x\d+))?"
)
# A name with its namespaces and classes; `2u` is none.
_QUALIFIED = re.compile(r"(?<!\w)(?:[A-Za-z_]\w*::)*[A-Za-z_]\w*")
# A value of an enumeration.
_CAST = re.compile(r"\([\w:]+\)-?\d+")
# A Python function and its file, which a trace may name among kernels: the folders go.
_FRAME = re.compile(r"[^/\\]+\.pyx?\(\d+\): .*$", re.DOTALL)
_BUILD = re.compile(r"_(?:execute|segment_k_off|kernel|5x|cublas|warpgroupsize[\dx]+|sm\d+_xmma)(?=_|$)")


@lru_cache(maxsize=100_000)
def short_kernel_name(name: str, length: int = _LENGTH) -> str:
    """A kernel's name in at most `length` characters, by what tells it from others.

    Names that fit are returned as they are, but read back where the recorder left that out. Of a longer C++
    name the return type, parameters and library namespaces go, and of the template arguments the function
    that is applied and its type stay; of a GEMM's name the tile and types stay. What is still too long loses
    its middle.
    """
    name = demangled(name)
    if len(name) <= length:
        return name
    tensile, frame = _TENSILE.match(name), _FRAME.search(name)
    if frame:
        text = frame[0]
    elif tensile:
        text = " ".join(filter(None, tensile.groups()))
    elif re.search(r"[<(]|::", name):
        text = _of_template(name, length)
    else:
        text = _BUILD.sub("", name).strip("_")
    if len(text) <= length:
        return text
    tail = length // 3
    return f"{text[: length - 1 - tail]}…{text[-tail:]}"


def short_kernel_names(names: Iterable[str], length: int = _LENGTH) -> dict[str, str]:
    """The short names of kernels that are shown together, by full name: different names stay different.

    Names that would read the same keep the beginning of the short one, and the part in which they differ.
    """
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        groups.setdefault(short_kernel_name(name, length), []).append(name)
    labels: dict[str, str] = {}
    alike: dict[str, list[str]] = {}  # by what is kept of the short name
    for short, group in groups.items():
        if len(group) == 1:
            labels[group[0]] = short
        else:
            alike.setdefault(short[: length - length // 3 - 1].rstrip("…"), []).extend(group)
    for head, group in alike.items():
        labels |= _distinguished(head, group, length)
    return _numbered({name: labels[name] for group in groups.values() for name in group}, length)


def _numbered(labels: dict[str, str], length: int) -> dict[str, str]:
    """The labels; where one was taken already, as of names that differ in several places, with a number."""
    taken: dict[str, str] = {}
    for name, label in labels.items():
        number, own = 1, label
        while own in taken:
            number += 1
            own = f"{label[: length - len(str(number)) - 2]}…#{number}"
        taken[own] = name
    return {name: label for label, name in taken.items()}


def _distinguished(head: str, names: list[str], length: int) -> dict[str, str]:
    """Labels of `length` that begin alike and go on where the names differ."""
    room = length - len(head) - 1
    same = sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False)))
    first = max(same - room // 4, 0)  # with a little of what is before
    groups: dict[str, list[str]] = {}
    for name in names:
        rest = name[first:]
        groups.setdefault(rest if len(rest) <= room else f"{rest[: room - 1]}…", []).append(name)
    labels: dict[str, str] = {}
    for rest, group in groups.items():
        labels |= {group[0]: f"{head}…{rest}"} if len(group) == 1 else _distinguished(head, group, length)
    return labels


def _of_template(name: str, length: int) -> str:
    text = name.replace("(anonymous namespace)::", "")
    if text.startswith("std::enable_if<"):
        text = text.partition("::type ")[2] or text
    head, sign, rest = re.split(r"([<(])", text + "(", maxsplit=1)
    parts = _telling(head.split(" ")[-1])
    short = "::".join(parts[-2:]) or text
    if sign != "<":
        return short
    arguments = _balanced(rest)
    names = _QUALIFIED.findall(_CAST.sub("", arguments))
    words = [name.rpartition("::")[2] for name in names]
    known = {*_TYPES, *_COMMON, *parts}
    applied = next((name for name, word in zip(names, words, strict=True) if word not in known), "")
    if applied and parts and parts[-1] in _GENERIC:
        inner = [part for part in _telling(applied) if part not in _GENERIC and part not in parts]
        return "::".join(inner[-2:]) or applied
    if len(short) + len(arguments) + 2 <= length:
        return f"{short}<{arguments}>"
    applied, kind = applied.rpartition("::")[2], next((word for word in words if word in _TYPES), "")
    insides = [", ".join(filter(None, (applied, kind))), applied]
    if len(applied) > len(short):  # it tells more than what applies it
        insides.append(f"{applied[: length - len(short) - 3]}…")
    insides.append(kind)
    fits = (inside for inside in insides if inside and len(short) + len(inside) + 2 <= length)
    inside = next(fits, "")
    return f"{short}<{inside}>" if inside else short


def _telling(name: str) -> list[str]:
    """The parts of a name with its namespaces that are not those of a library."""
    return [part for part in name.split("::") if part and part not in _COMMON]


def _balanced(rest: str) -> str:
    """The template arguments: what comes before the bracket that closes them."""
    depth = 0
    for place, sign in enumerate(rest):
        depth += (sign == "<") - (sign == ">")
        if depth < 0:
            return rest[:place].strip()
    return rest
