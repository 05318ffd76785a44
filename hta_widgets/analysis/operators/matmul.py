"""Matrix products: [M, K] times [K, N] takes 2 M N K operations, as `torch.utils.flop_counter` has it.

Adding a bias or a matrix to the result is not counted, as there. Signatures are those of PyTorch's
`native_functions.yaml`.
"""

from __future__ import annotations

import math

from hta_widgets.analysis.operators.cost import Cost, Formulas, formula
from hta_widgets.analysis.operators.inputs import Inputs, UnknownInputError, itemsize


@formula
def _product(inputs: Inputs, first: int, added: int | None = None) -> Cost:
    """[..., M, K] @ [..., K, N] of the inputs `first` and `first` + 1, added to the input `added`."""
    left, right = inputs.shape(first), inputs.shape(first + 1)
    if len(left) not in (2, 3) or left[:-2] != right[:-2] or left[-1] != right[-2]:
        raise UnknownInputError
    made = math.prod(left[:-1]) * right[-1]
    traffic = inputs.read(first, first + 1) + made * itemsize(inputs.type(first))
    return Cost(2 * made * left[-1], traffic + (inputs.read(added) if added is not None else 0))


def _in_place(inputs: Inputs) -> Cost:
    """`addmm_`, `baddbmm_`: the result overwrites input 0, which is read."""
    return _product(1, 0)(inputs)


@formula
def _vector(inputs: Inputs, first: int, added: int | None = None) -> Cost:
    """[M, K] @ [K], or [K] @ [K]."""
    left, right = inputs.shape(first), inputs.shape(first + 1, 1)
    if len(left) not in (1, 2) or left[-1] != right[0]:
        raise UnknownInputError
    made = math.prod(left[:-1])
    traffic = inputs.read(first, first + 1) + made * itemsize(inputs.type(first))
    return Cost(2 * made * right[0], traffic + (inputs.read(added) if added is not None else 0))


def _linear(inputs: Inputs) -> Cost:
    """linear(input [..., K], weight [N, K], bias)."""
    features, weight = inputs.shape(0), inputs.shape(1, 2)
    if not features or features[-1] != weight[1]:
        raise UnknownInputError
    made = math.prod(features[:-1]) * weight[0]
    traffic = inputs.read(0, 1, 2) + made * itemsize(inputs.type(0))
    return Cost(2 * made * weight[1], traffic)


def _scaled(inputs: Inputs) -> Cost:
    """_scaled_mm(self [M, K], mat2 [K, N], scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum).

    Before PyTorch 2.5: (self, mat2, bias, out_dtype, scale_a, scale_b, scale_result, use_fast_accum).
    """
    left, right = inputs.shape(0, 2), inputs.shape(1, 2)
    if left[1] != right[0]:
        raise UnknownInputError
    made = left[0] * right[1]
    older = len(inputs.values) > 3 and inputs.values[3].isdecimal()
    written = made * itemsize(inputs.dtype(3 if older else 6, inputs.type(0)))
    return Cost(2 * made * left[1], inputs.read(0, 1, 2, 3, 4, 5) + written)


def _integers(inputs: Inputs) -> Cost:
    """_int_mm(self [M, K], mat2 [K, N]): sums of products of bytes are 32 bits wide."""
    cost = _product(0)(inputs)
    made = inputs.shape(0)[0] * inputs.shape(1)[1]
    return Cost(cost.flops, inputs.read(0, 1) + made * itemsize("int32"))


@formula
def _grouped(inputs: Inputs, offsets: int, dtype: int) -> Cost:
    """_grouped_mm(self, mat2, offs, bias, out_dtype), and _scaled_grouped_mm with scales in between.

    One product per group. [M, K] @ [G, K, N]: the offsets part the M rows; [G, M, K] @ [K, N]: the N columns;
    [M, K] @ [K, N]: the K products of each of G results. The offsets are data and may leave a rest unused, so
    the figures are upper bounds.
    """
    left, right = inputs.shape(0), inputs.shape(1)
    if left[-1] != right[-2]:
        raise UnknownInputError
    groups = inputs.shape(offsets, 1)[0] if inputs.is_tensor(offsets) else 1
    rows, columns, depth = left[-2], right[-1], left[-1]
    if len(left) == 3 and len(right) == 3:
        results, products = left[0] * rows * columns, left[0] * rows * columns * depth
    else:
        results, products = rows * columns, rows * columns * depth
        if len(left) == 2 and len(right) == 2:
            results *= groups
    written = results * itemsize(inputs.dtype(dtype, inputs.type(0)))
    return Cost(2 * products, inputs.read(0, 1) + written, exact=len(left) == len(right) == 3)


FORMULAS: Formulas = {
    "aten::mm": _product(0),
    "aten::addmm": _product(1, 0),
    "aten::addmm_": _in_place,
    "aten::_addmm_activation": _product(1, 0),
    "aten::bmm": _product(0),
    "aten::baddbmm": _product(1, 0),
    "aten::baddbmm_": _in_place,
    "aten::mv": _vector(0),
    "aten::addmv": _vector(1, 0),
    "aten::dot": _vector(0),
    "aten::vdot": _vector(0),
    "aten::linear": _linear,
    "aten::_scaled_mm": _scaled,
    "aten::_int_mm": _integers,
    "aten::_grouped_mm": _grouped(2, 4),
    "aten::_scaled_grouped_mm": _grouped(4, 7),
}
