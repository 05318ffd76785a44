"""Tensors as the profiler sees them: shape, type and size, no content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

_ITEM_BYTES = {"c10::BFloat16": 2, "float": 4, "long int": 8}


@dataclass(frozen=True)
class Tensor:
    dims: tuple[int, ...]
    dtype: str = "c10::BFloat16"

    @property
    def numel(self) -> int:
        return prod(self.dims)

    @property
    def nbytes(self) -> int:
        return self.numel * _ITEM_BYTES[self.dtype]

    @property
    def strides(self) -> list[int]:
        return [prod(self.dims[axis + 1 :]) for axis in range(len(self.dims))]


Input = Tensor | int | float | bool | None


def shape_arguments(inputs: Sequence[Input]) -> dict[str, Any]:
    """What `record_shapes=True` adds to an operator: one entry per input, scalars by value."""
    return {
        "Concrete Inputs": [
            "" if value is None or isinstance(value, Tensor) else str(value) for value in inputs
        ],
        "Input type": [_type_name(value) for value in inputs],
        "Input Strides": [value.strides if isinstance(value, Tensor) else [] for value in inputs],
        "Input Dims": [list(value.dims) if isinstance(value, Tensor) else [] for value in inputs],
    }


def _type_name(value: Input) -> str:
    if isinstance(value, Tensor):
        return value.dtype
    return "" if value is None else "Scalar"
