"""What was passed to an operator: shapes, types and values, the same from every version of the profiler.

PyTorch has written `Input Dims` as lists, as one text, or as a text for each input; types as `float`,
`Float`, `c10::BFloat16`; absent inputs as `""`, `[]` or nothing at all. Here a shape is a tuple of ints, a
list of tensors a list of such tuples, a type a name of `torch.dtype`, and everything else is `None`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Shape = tuple[int, ...]

_TYPES = {
    "float": "float32", "double": "float64", "c10::half": "float16", "half": "float16",
    "c10::bfloat16": "bfloat16", "bfloat16": "bfloat16", "long int": "int64", "long": "int64",
    "long long": "int64", "int": "int32", "short": "int16", "short int": "int16", "signed char": "int8",
    "char": "int8", "unsigned char": "uint8", "byte": "uint8", "bool": "bool",
    "c10::float8_e4m3fn": "float8_e4m3fn", "c10::float8_e4m3fnuz": "float8_e4m3fnuz",
    "c10::float8_e5m2": "float8_e5m2", "c10::float8_e5m2fnuz": "float8_e5m2fnuz",
    "c10::complex<float>": "complex64", "c10::complex<double>": "complex128",
}  # fmt: skip
_BYTES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1,
    "uint8": 1, "bool": 1, "float8_e4m3fn": 1, "float8_e4m3fnuz": 1, "float8_e5m2": 1, "float8_e5m2fnuz": 1,
    "complex64": 8, "complex128": 16,
}  # fmt: skip
_LISTS = {"TensorList", "GenericList"}
# c10::ScalarType, as an argument `dtype` is recorded.
_SCALAR_TYPES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64",
    9: "complex64", 10: "complex128", 11: "bool", 15: "bfloat16", 23: "float8_e5m2", 24: "float8_e4m3fn",
    25: "float8_e5m2fnuz", 26: "float8_e4m3fnuz",
}  # fmt: skip


class UnknownInputError(Exception):
    """A formula needs an input that was not recorded, or that has another form than the formula knows."""


@dataclass(frozen=True)
class Inputs:
    """The inputs of one call, as far as they were recorded."""

    name: str  # the operator
    # for each input the shape of a tensor, a list of shapes, or None for everything else
    shapes: tuple[Shape | list[Shape] | None, ...]
    types: tuple[str, ...] = ()  # for each input a name of `torch.dtype`, or "" where none was recorded
    # for each input the text of its value, "" for tensors and where none was recorded
    values: tuple[str, ...] = ()

    def is_tensor(self, at: int) -> bool:
        """Whether this input is one tensor of known shape."""
        return at < len(self.shapes) and isinstance(self.shapes[at], tuple)

    def shape(self, at: int, dims: int | None = None) -> Shape:
        """The shape of a tensor.

        Raises:
            UnknownInputError: it is no tensor, or has not as many dimensions as asked for.
        """
        shape = self.shapes[at] if at < len(self.shapes) else None
        if not isinstance(shape, tuple) or (dims is not None and len(shape) != dims):
            raise UnknownInputError
        return shape

    def shape_list(self, at: int) -> list[Shape]:
        """The shapes of a list of tensors.

        Raises:
            UnknownInputError: it is none, or an empty one (older profilers write every list so).
        """
        shapes = self.shapes[at] if at < len(self.shapes) else None
        if not isinstance(shapes, list) or not shapes:
            raise UnknownInputError
        return shapes

    def type(self, at: int) -> str:
        """The type of a tensor's elements, "" if unknown."""
        return self.types[at] if at < len(self.types) else ""

    def numel(self, at: int) -> int:
        """The number of elements of a tensor."""
        return math.prod(self.shape(at))

    def nbytes(self, at: int) -> float:
        """The bytes of a tensor, NaN if the type of its elements is unknown."""
        return self.numel(at) * itemsize(self.type(at))

    def read(self, *at: int) -> float:
        """The bytes of those of these inputs that are tensors."""
        return sum((self.nbytes(each) for each in at if self.is_tensor(each)), 0.0)

    def value(self, at: int) -> str:
        """The text of a value.

        Raises:
            UnknownInputError: it was not recorded.
        """
        if at >= len(self.values) or not self.values[at]:
            raise UnknownInputError
        return self.values[at]

    def ints(self, at: int) -> list[int]:
        """A number, or a list of them."""
        try:
            found = json.loads(self.value(at))
        except ValueError:
            raise UnknownInputError from None
        numbers = found if isinstance(found, list) else [found]
        if not all(isinstance(number, int) for number in numbers):
            raise UnknownInputError
        return numbers

    def flag(self, at: int) -> bool:
        """A truth value."""
        text = self.value(at)
        if text not in ("True", "False"):
            raise UnknownInputError
        return text == "True"

    def flags(self, at: int) -> list[bool]:
        """A list of truth values."""
        words = self.value(at).strip("[]").replace(" ", "").split(",")
        if not {*words} <= {"True", "False"}:
            raise UnknownInputError
        return [word == "True" for word in words]

    def dtype(self, at: int, default: str) -> str:
        """The type that an argument `dtype` asks for; `default` without one."""
        if at >= len(self.values) or not self.values[at]:
            return default
        return _SCALAR_TYPES.get(self.ints(at)[0], "")


def itemsize(dtype: str) -> float:
    """Bytes of an element, NaN for an unknown type."""
    return _BYTES.get(dtype, math.nan)


@lru_cache(maxsize=20_000)
def parse_types(text: str) -> tuple[str, ...]:
    """The recorded types: names of `torch.dtype`, "TensorList", "Scalar", "ScalarList", or "" for nothing."""
    found = _loaded(text)
    words = found if isinstance(found, list) else []
    return tuple(_TYPES.get(str(word).lower(), str(word)) for word in words)


@lru_cache(maxsize=20_000)
def parse_shapes(text: str, types: tuple[str, ...] = ()) -> tuple[Shape | list[Shape] | None, ...]:
    """The recorded shapes. An empty one is a tensor without dimensions where a type of elements says so."""
    found = _loaded(text)
    if not isinstance(found, list):
        return ()
    types = types + ("",) * (len(found) - len(types))
    return tuple(_shape(_loaded(each), kind) for each, kind in zip(found, types, strict=False))


def elements(text: str) -> int:
    """How many elements the tensors of these shapes have together; 0 where no memory could hold them."""
    of_inputs = (shapes if isinstance(shapes, list) else [shapes] for shapes in parse_shapes(text))
    count = sum(math.prod(shape) for shapes in of_inputs for shape in shapes if shape)
    return count if count < 2**40 else 0


@lru_cache(maxsize=20_000)
def parse_values(text: str) -> tuple[str, ...]:
    """The recorded values as texts."""
    found = _loaded(text)
    return tuple(str(value) for value in found) if isinstance(found, list) else ()


def text_of(shapes: Sequence[Shape | list[Shape] | None]) -> str:
    """Shapes in words: `(5185, 64), (64,), ()`; what is no tensor is `()` as well, as in `key_averages`."""
    return ", ".join("()" if shape is None else str(shape) for shape in shapes)


def _shape(found: Any, kind: str) -> Shape | list[Shape] | None:
    if not isinstance(found, list):
        return None
    if found and all(isinstance(_loaded(each), list) for each in found):
        inner = [_shape(_loaded(each), "tensor") for each in found]
        return [each for each in inner if isinstance(each, tuple)] if all(_flat(inner)) else None
    if not all(isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in found):
        return None
    if kind in _LISTS:
        return []
    if not found and kind not in _BYTES and kind != "tensor":
        return None
    return tuple(found)


def _flat(shapes: list[Shape | list[Shape] | None]) -> list[bool]:
    return [isinstance(shape, tuple) for shape in shapes]


def _loaded(text: Any) -> Any:
    """The value that a text holds, if it holds a list; other texts, and other values, as they are."""
    while isinstance(text, str) and text.strip().startswith(("[", '"')):
        try:
            inner = json.loads(text)
        except (ValueError, RecursionError):
            return text
        if inner == text:
            break
        text = inner
    return text
