"""To whom memory belongs: the line of code that asked for it, its file, or the program's own annotation."""

from __future__ import annotations

import re
from typing import Final, Literal

import pandas as pd

By = Literal["stack", "line", "module", "annotation"]

UNKNOWN: Final = "allocated before the recording, or without a stack"
_LIBRARY: Final = re.compile(r"(^|/)(torch|torchvision|torchaudio|functorch)/|<eval_with_key>")
# by the file of a frame: the name of a C++ source, "??" or nothing
_NATIVE: Final = re.compile(r"^(\?\?)?(:|$)|\.(cpp|cc|cxx|h|hpp|c|cu)(:|$)")
_OPERATOR: Final = re.compile(r"at::_ops::(\w+)::")
_AUTOGRAD: Final = "torch::autograd::Engine"
_PACKAGES: Final = re.compile(r"^.*/(?:site-packages|dist-packages|lib/python[\d.]+)/")


def line_of(stack: tuple[str, ...]) -> str:
    """The innermost line of Python that is not PyTorch's own, else the innermost one, else the operator;
    stacks begin with the innermost frame.
    """
    python = [frame for frame in stack if not _NATIVE.search(frame.partition(": ")[0])]
    for frame in python:
        if not _LIBRARY.search(frame.partition(": ")[0]):
            return _short(frame)
    if python:
        return _short(python[0])
    return _native(stack) if stack else UNKNOWN


def _native(stack: tuple[str, ...]) -> str:
    """What a stack without Python is of: autograd's threads run the backward pass without it."""
    operator = next((f"aten::{found[1]}" for frame in stack if (found := _OPERATOR.search(frame))), "")
    part = "backward pass" if any(_AUTOGRAD in frame for frame in stack) else ""
    return ": ".join(filter(None, (part, operator))) or _short(stack[0])


def owner_names(rows: pd.DataFrame, stacks: list[tuple[str, ...]], by: By) -> pd.Series:
    """The owner of each row, from its columns `stack` and `annotation`."""
    if by == "annotation":
        return rows["annotation"].where(rows["annotation"] != "", "no annotation").astype("str")
    names = {-1: UNKNOWN}
    for number in rows["stack"].unique().tolist():
        if number >= 0:
            stack = stacks[number]
            if by == "stack":
                names[number] = " < ".join(map(_short, stack))
            else:
                line = line_of(stack)
                names[number] = line if by == "line" else _module(line)
    return rows["stack"].map(names).astype("str")


def _short(frame: str) -> str:
    """A frame without the folder of installed packages."""
    return _PACKAGES.sub("", frame)


def _module(line: str) -> str:
    """The file of a line of code."""
    return re.sub(r":\d+(: .*)?$", "", line)
