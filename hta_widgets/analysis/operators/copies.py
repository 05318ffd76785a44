"""Copies, casts, fills and concatenations: no operations, only traffic."""

from __future__ import annotations

import math

from hta_widgets.analysis.operators.cost import Cost, Formulas
from hta_widgets.analysis.operators.inputs import Inputs, itemsize


def _copy(inputs: Inputs) -> Cost:
    """copy_(self, src): reads one, writes the other; a cast where their types differ."""
    return Cost(0, inputs.nbytes(0) + inputs.nbytes(1))


def _fill(inputs: Inputs) -> Cost:
    """fill_(self, value), zero_(self)."""
    return Cost(0, inputs.nbytes(0))


def _again(inputs: Inputs) -> Cost:
    """flip, roll: every element once more, elsewhere."""
    return Cost(0, 2 * inputs.nbytes(0))


def _joined(inputs: Inputs) -> Cost:
    """cat(tensors, dim). The type of a list's elements is read off the kernels' names (see `optimizers`)."""
    size = sum(math.prod(shape) for shape in inputs.shape_list(0))
    return Cost(0, 2 * size * itemsize(inputs.type(0)))


def _scalar(inputs: Inputs) -> Cost:
    """_local_scalar_dense(self): one number goes to the host."""
    return Cost(0, inputs.nbytes(0))


def _padded(inputs: Inputs) -> Cost:
    """constant_pad_nd(self, pad, value): pads two numbers a dimension, from the last one."""
    shape, pad = list(inputs.shape(0)), inputs.ints(1)
    for at in range(len(pad) // 2):
        shape[-1 - at] += pad[2 * at] + pad[2 * at + 1]
    return Cost(0, inputs.nbytes(0) + math.prod(shape) * itemsize(inputs.type(0)))


def _cached(inputs: Inputs) -> Cost:
    """reshape_and_cache_flash(key, value, key_cache, value_cache, slot_mapping, ...) of vLLM's kernels."""
    return Cost(0, 2 * inputs.read(0, 1) + inputs.read(4))


FORMULAS: Formulas = {
    "aten::copy_": _copy,
    "aten::fill_": _fill,
    "aten::zero_": _fill,
    "aten::flip": _again,
    "aten::roll": _again,
    "aten::cat": _joined,
    "aten::_cat": _joined,
    "aten::stack": _joined,
    "aten::_local_scalar_dense": _scalar,
    "aten::constant_pad_nd": _padded,
    "_C_cache_ops::reshape_and_cache": _cached,
    "_C_cache_ops::reshape_and_cache_flash": _cached,
}
