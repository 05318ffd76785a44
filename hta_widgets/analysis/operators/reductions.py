"""Reductions, scans, pooling and losses: each input is read once, the result written once.

A sum of n elements is counted as n additions. Signatures are those of `native_functions.yaml`.
"""

from __future__ import annotations

import math

from hta_widgets.analysis.operators.cost import Cost, Formulas, formula
from hta_widgets.analysis.operators.inputs import Inputs, UnknownInputError, itemsize


def _kept(inputs: Inputs, dims: int) -> int | None:
    """Elements of the result of a reduction over the dimensions in this input; None if not recorded."""
    shape = inputs.shape(0)
    if not inputs.values:
        return None
    if dims >= len(inputs.values) or inputs.values[dims] in ("", "[]", "None"):
        return 1
    gone = {dim % max(len(shape), 1) for dim in inputs.ints(dims)}
    return math.prod(size for dim, size in enumerate(shape) if dim not in gone)


@formula
def _reduction(
    inputs: Inputs, dims: int = 1, work: float = math.nan, result: str = "", dtype: int = 0, pairs: int = 1
) -> Cost:
    """Args:
    dims: the input that holds the dimensions; without any, all are reduced.
    work: operations for each element that is read.
    result: the type of the result, by default that of the input or what the input `dtype` asks for.
    pairs: how many results there are, such as values and their places.
    """
    kept = _kept(inputs, dims)
    kind = result or (inputs.dtype(dtype, inputs.type(0)) if dtype else inputs.type(0))
    written = 0.0 if kept is None else kept * (itemsize(kind) + (pairs - 1) * itemsize("int64"))
    return Cost(work * inputs.numel(0), inputs.nbytes(0) + written, exact=kept is not None)


def _extreme(inputs: Inputs) -> Cost:
    """max(self), max(self, dim, keepdim) with places, max(self, other)."""
    if inputs.is_tensor(1):
        return Cost(math.nan, inputs.read(0, 1) + max(inputs.nbytes(0), inputs.nbytes(1)))
    by_dim = len(inputs.values) > 1 and inputs.values[1] != ""
    return _reduction(pairs=2 if by_dim else 1)(inputs)


def _scan(inputs: Inputs) -> Cost:
    """cumsum(self, dim, dtype): as many results as inputs; sums of integers are 64 bits wide."""
    kind = inputs.dtype(2, inputs.type(0))
    wide = "int64" if kind.startswith(("int", "uint", "bool")) else kind
    return Cost(inputs.numel(0), inputs.nbytes(0) + inputs.numel(0) * itemsize(wide))


def _sort(inputs: Inputs) -> Cost:
    """sort(self, ...): values and places. Passes over the data are the algorithm's choice."""
    return Cost(math.nan, 2 * inputs.nbytes(0) + inputs.numel(0) * itemsize("int64"), exact=False)


def _top(inputs: Inputs) -> Cost:
    """topk(self, k, dim, largest, sorted): the k first values of each row, and their places."""
    shape = inputs.shape(0)
    (dim,) = inputs.ints(2)
    if not shape or not shape[dim]:
        raise UnknownInputError
    made = inputs.numel(0) // shape[dim] * inputs.ints(1)[0]
    return Cost(math.nan, inputs.nbytes(0) + made * (itemsize(inputs.type(0)) + itemsize("int64")))


def _pooled(inputs: Inputs) -> list[int]:
    """Sizes of the result of max_pool2d(self, kernel_size, stride, padding, dilation, ceil_mode)."""
    size, kernel, stride, padding, dilation = inputs.shape(0), *(inputs.ints(at) for at in range(1, 5))
    up = inputs.flag(5)
    found = []
    for at in range(2):
        window = dilation[at % len(dilation)] * (kernel[at % len(kernel)] - 1) + 1
        pad, step = padding[at % len(padding)], (stride or kernel)[at % len(stride or kernel)]
        room = size[at - 2] + 2 * pad - window
        steps = -(-room // step) if up else room // step
        # The last window must begin inside the image or its left padding.
        found.append(steps if up and steps * step >= size[at - 2] + pad else steps + 1)
    return found


def _max_pool(inputs: Inputs) -> Cost:
    """max_pool2d_with_indices: values and places."""
    if len(inputs.shape(0)) < 3:
        raise UnknownInputError
    made = math.prod(inputs.shape(0)[:-2]) * math.prod(_pooled(inputs))
    return Cost(math.nan, inputs.nbytes(0) + made * (itemsize(inputs.type(0)) + itemsize("int64")))


def _max_pool_backward(inputs: Inputs) -> Cost:
    """max_pool2d_with_indices_backward(grad_output, self, ..., indices): the places tell all of the input."""
    return Cost(math.nan, inputs.read(0, 7) + inputs.nbytes(1))


def _adaptive_pool(inputs: Inputs) -> Cost:
    """_adaptive_avg_pool2d(self, output_size)."""
    if len(inputs.shape(0)) < 3:
        raise UnknownInputError
    made = math.prod(inputs.shape(0)[:-2]) * math.prod(inputs.ints(1))
    return Cost(math.nan, inputs.nbytes(0) + made * itemsize(inputs.type(0)))


def _spread_back(inputs: Inputs) -> Cost:
    """_adaptive_avg_pool2d_backward(grad_output, self): only the shape of the input matters."""
    return Cost(math.nan, inputs.read(0) + inputs.nbytes(1))


def _squared_error(inputs: Inputs) -> Cost:
    """mse_loss(self, target, reduction): a difference, a square and, unless reduction is 0, a sum."""
    size = inputs.nbytes(0)
    kept = inputs.ints(2)[0] == 0
    written = size if kept else itemsize(inputs.type(0))
    return Cost((2 if kept else 3) * inputs.numel(0), inputs.read(0, 1) + written)


def _squared_error_backward(inputs: Inputs) -> Cost:
    """mse_loss_backward(grad_output, self, target, reduction): a difference and two products."""
    return Cost(3 * inputs.numel(1), inputs.read(0, 1, 2) + inputs.nbytes(1))


def _likelihood(inputs: Inputs) -> Cost:
    """nll_loss_forward(self [N, C], target [N], weight, reduction, ignore_index): one element of each row."""
    rows = inputs.numel(1)
    reduced = not inputs.values or inputs.ints(3)[0] != 0
    written = (2 if reduced else rows + 1) * itemsize(inputs.type(0))
    return Cost(math.nan, rows * itemsize(inputs.type(0)) + inputs.read(1, 2) + written)


def _likelihood_backward(inputs: Inputs) -> Cost:
    """nll_loss_backward(grad_output, self, target, ...): writes all of the gradient, mostly zeros."""
    return Cost(math.nan, inputs.read(0, 2, 3) + inputs.nbytes(1))


FORMULAS: Formulas = {
    "aten::sum": _reduction(work=1, dtype=3),
    "aten::mean": _reduction(work=1, dtype=3),
    "aten::nansum": _reduction(work=1, dtype=3),
    **dict.fromkeys(("aten::amax", "aten::amin", "aten::logsumexp", "aten::var", "aten::std"), _reduction()),
    "aten::prod": _reduction(work=1),
    "aten::linalg_vector_norm": _reduction(dims=2),
    **dict.fromkeys(("aten::argmax", "aten::argmin"), _reduction(result="int64")),
    **dict.fromkeys(("aten::any", "aten::all"), _reduction(result="bool")),
    **dict.fromkeys(("aten::max", "aten::min"), _extreme),
    **dict.fromkeys(("aten::cumsum", "aten::cumprod"), _scan),
    "aten::sort": _sort,
    "aten::topk": _top,
    "aten::max_pool2d_with_indices": _max_pool,
    "aten::max_pool2d_with_indices_backward": _max_pool_backward,
    "aten::_adaptive_avg_pool2d": _adaptive_pool,
    "aten::_adaptive_avg_pool2d_backward": _spread_back,
    "aten::mse_loss": _squared_error,
    "aten::mse_loss_backward": _squared_error_backward,
    "aten::nll_loss_forward": _likelihood,
    "aten::nll_loss_backward": _likelihood_backward,
}
