"""Look-ups and their gradients: the rows that are looked up, not the whole table.

A row counts each time that it is looked up: which rows are equal depends on the data, so caches may save some
of it. Signatures are those of `native_functions.yaml`.
"""

from __future__ import annotations

import math

from hta_widgets.analysis.operators.cost import Cost, Formulas
from hta_widgets.analysis.operators.inputs import Inputs, UnknownInputError, itemsize


def _embedding(inputs: Inputs) -> Cost:
    """embedding(weight [V, D], indices, ...): reads a row for each index and writes it."""
    row = inputs.shape(0, 2)[1] * itemsize(inputs.type(0))
    return Cost(math.nan, inputs.read(1) + 2 * inputs.numel(1) * row)


def _embedding_backward(inputs: Inputs) -> Cost:
    """embedding_dense_backward(grad_output [..., D], indices, num_weights, ...): writes all the gradient."""
    width = inputs.shape(0)[-1] if inputs.shape(0) else 0
    written = inputs.ints(2)[0] * width * itemsize(inputs.type(0))
    return Cost(inputs.numel(0), inputs.read(0, 1) + written)


def _bag(inputs: Inputs) -> Cost:
    """_embedding_bag(weight [V, D], indices, offsets, ...): sums the rows of each bag."""
    width, size = inputs.shape(0, 2)[1], itemsize(inputs.type(0))
    rows, bags = inputs.numel(1), inputs.numel(2)
    return Cost(rows * width, inputs.read(1, 2) + (rows + bags) * width * size)


def _index_select(inputs: Inputs) -> Cost:
    """index_select(self, dim, index)."""
    shape = inputs.shape(0)
    dim = inputs.ints(1)[0] if inputs.values else 0
    if not -len(shape) <= dim < max(len(shape), 1):
        raise UnknownInputError
    length = shape[dim] if shape else 1
    made = inputs.numel(0) // max(length, 1) * inputs.numel(2)
    known = bool(inputs.values) or len(shape) == 1
    return Cost(math.nan, inputs.read(2) + 2 * made * itemsize(inputs.type(0)), exact=known)


def _gather(inputs: Inputs) -> Cost:
    """gather(self, dim, index): an element for each index."""
    return Cost(math.nan, inputs.read(2) + 2 * inputs.numel(2) * itemsize(inputs.type(0)))


def _scatter(inputs: Inputs) -> Cost:
    """scatter_(self, dim, index, src): an element for each index is overwritten."""
    size = itemsize(inputs.type(0))
    read = inputs.numel(2) * size if inputs.is_tensor(3) and inputs.shape(3) else 0
    return Cost(math.nan, inputs.read(2) + read + inputs.numel(2) * size)


def _scatter_add(inputs: Inputs) -> Cost:
    """scatter_add_(self, dim, index, src): and is read before."""
    made = inputs.numel(2)
    return Cost(made, inputs.read(2) + 3 * made * itemsize(inputs.type(0)))


def _index_add(inputs: Inputs) -> Cost:
    """index_add_(self, dim, index, source)."""
    return Cost(inputs.numel(3), inputs.read(2) + 3 * inputs.nbytes(3))


def _index_copy(inputs: Inputs) -> Cost:
    """index_copy_(self, dim, index, source)."""
    return Cost(math.nan, inputs.read(2) + 2 * inputs.nbytes(3))


FORMULAS: Formulas = {
    "aten::embedding": _embedding,
    "aten::embedding_dense_backward": _embedding_backward,
    **dict.fromkeys(("aten::_embedding_bag", "aten::_embedding_bag_forward_only"), _bag),
    "aten::index_select": _index_select,
    "aten::gather": _gather,
    "aten::scatter_": _scatter,
    "aten::scatter_add_": _scatter_add,
    "aten::index_add_": _index_add,
    "aten::index_copy_": _index_copy,
}
