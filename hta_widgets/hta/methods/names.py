"""HTA's short kernel names and its four kernel types."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from hta_widgets.trace.classify import EventClass

KernelType = Literal["COMPUTATION", "COMMUNICATION", "MEMORY", "OTHER"]

_TYPES: dict[EventClass, KernelType] = {
    EventClass.COMPUTE: "COMPUTATION",
    EventClass.COMMUNICATION: "COMMUNICATION",
    EventClass.MEMORY_COPY: "MEMORY",
    EventClass.MEMORY_SET: "MEMORY",
}
# HTA does not shorten names of copies and fills: their parentheses hold source and destination.
_MEMORY = re.compile(r"(^(hip)?Memcpy)|(^(hip)?Memset)|(^dma)")
_OPENING = {">": "<", ")": "("}


def kernel_type(event_class: int) -> KernelType:
    """HTA's name of one of our classes; "OTHER" for what is not device work."""
    return _TYPES.get(EventClass(event_class), "OTHER")


@lru_cache(maxsize=100_000)
def shorten_name(name: str) -> str:
    """The name without template arguments, parameters and return type, as HTA shortens it.

    ``"void at::native::reduce_kernel<512, 1>(float*)"`` -> ``"at::native::reduce_kernel"``. If brackets do
    not match, or words follow them, the result is HTA's, too, odd as it is (``"foo(int) const"`` ->
    ``"const"``).
    """
    if _MEMORY.match(name) or ("<" not in name and "(" not in name):
        return name
    kept: list[str] = []
    for letter in name.replace("->", ""):
        opening = _OPENING.get(letter)
        if opening is None:
            kept.append(letter)
            continue
        while kept and kept.pop() != opening:
            pass
    return "".join(kept).split(" ")[-1]


def shorten_names(names: Iterable[str]) -> list[str]:
    """`shorten_name` of each; repeated names are shortened once."""
    return [shorten_name(name) for name in names]
