"""Elementwise operators: each operand is read once, the result is written once, whatever is computed.

Broadcast and type promotion as PyTorch documents them (Tensor attributes, type promotion). Operations are
counted where an element takes a fixed number of additions and multiplications; an exponential or a comparison
has no such number. PyTorch's `with_flops` counts `add` and `mul` the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from hta_widgets.analysis.operators.cost import Cost, Formula, Formulas, formula
from hta_widgets.analysis.operators.inputs import Inputs, Shape, UnknownInputError, itemsize

_WIDER = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "float8_e4m3fn", "float8_e5m2", "float16", "bfloat16",
    "float32", "float64", "complex64", "complex128",
]  # fmt: skip
_FIRST_FLOAT = _WIDER.index("float8_e4m3fn")


def broadcast(shapes: Iterable[Shape]) -> Shape:
    """The shape that tensors of these shapes have together."""
    shapes = list(shapes)
    dims = max(map(len, shapes))
    result = []
    for sizes in zip(*((1,) * (dims - len(shape)) + shape for shape in shapes), strict=True):
        other = {*sizes} - {1}
        if len(other) > 1:
            raise UnknownInputError
        result.append(other.pop() if other else 1)
    return tuple(result)


def _promoted(inputs: Inputs, operands: list[int], floating: bool) -> str:
    """The type of a result. Tensors without dimensions count only if they are of a wider kind."""
    types = [inputs.type(at) for at in operands]
    if not {*types} <= {*_WIDER}:
        return ""
    with_dims = [_WIDER.index(inputs.type(at)) for at in operands if inputs.shape(at)]
    without = [_WIDER.index(inputs.type(at)) for at in operands if not inputs.shape(at)]
    best = max(with_dims or without)
    if with_dims and without and (max(without) >= _FIRST_FLOAT) > (best >= _FIRST_FLOAT):
        best = max(without)
    if {"float16", "bfloat16"} <= {*types}:
        best = max(best, _WIDER.index("float32"))
    return "float32" if floating and best < _FIRST_FLOAT else _WIDER[best]


@formula
def _elementwise(
    inputs: Inputs, operands: int, work: float = math.nan, result: str = "promoted", first: int = 0
) -> Cost:
    """The leading inputs, as far as they are tensors.

    Args:
        operands: how many inputs can be operands; what follows are options, or a tensor for the result.
        work: operations for each element of the result.
        result: its type: "promoted", "floating" (of integers too), or one of its own.
        first: the first operand that counts for the type.
    """
    tensors = [at for at in range(operands) if inputs.is_tensor(at)]
    if not tensors or not inputs.is_tensor(0):
        raise UnknownInputError
    if inputs.name.endswith("_"):
        made, kind = inputs.numel(0), inputs.type(0)
    else:
        made = math.prod(broadcast(inputs.shape(at) for at in tensors))
        typed = [at for at in tensors if at >= first] or tensors
        own = result not in ("promoted", "floating")
        kind = result if own else _promoted(inputs, typed, result == "floating")
    return Cost(work * made, inputs.read(*tensors) + made * itemsize(kind))


def _with_in_place(names: str, formula: Formula) -> Formulas:
    return {f"aten::{name}{end}": formula for name in names.split() for end in ("", "_")}


def _backward(names: str, formula: Formula) -> Formulas:
    return {f"aten::{name}_backward": formula for name in names.split()}


def _dropout(inputs: Inputs) -> Cost:
    """native_dropout(input, p, train): writes the result and a mask."""
    return Cost(math.nan, 2 * inputs.nbytes(0) + inputs.numel(0) * itemsize("bool"))


def _gated(inputs: Inputs) -> Cost:
    """glu(self, dim): the result is half as large."""
    return Cost(math.nan, 1.5 * inputs.nbytes(0))


def _gated_kernel(inputs: Inputs) -> Cost:
    """silu_and_mul(out, input) of vLLM's kernels: the second half of each row gates the first."""
    return Cost(math.nan, inputs.read(0, 1))


FORMULAS: Formulas = {
    **_with_in_place("add sub rsub mul", _elementwise(2, 1)),
    **_with_in_place("div true_divide", _elementwise(2, 1, "floating")),
    **_with_in_place("addcmul addcdiv lerp", _elementwise(3, 3)),
    **_with_in_place("neg abs square", _elementwise(1, 1)),
    **_with_in_place("reciprocal sqrt rsqrt", _elementwise(1, 1, "floating")),
    **_with_in_place(
        "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh sigmoid erf erfc "
        "erfinv logit",
        _elementwise(1, math.nan, "floating"),
    ),
    **_with_in_place(
        "relu relu6 gelu silu mish elu celu selu leaky_relu softplus hardtanh hardswish hardsigmoid "
        "threshold log_sigmoid softshrink hardshrink floor ceil round trunc frac sign nan_to_num bitwise_not "
        "tril triu",
        _elementwise(1),
    ),
    **_with_in_place(
        "pow remainder fmod floor_divide maximum minimum fmax fmin atan2 bitwise_and bitwise_or bitwise_xor "
        "prelu masked_fill copysign clamp_min clamp_max",
        _elementwise(2),
    ),
    **_with_in_place("clamp", _elementwise(3)),
    **_with_in_place("eq ne lt le gt ge logical_and logical_or logical_xor", _elementwise(2, result="bool")),
    **_with_in_place("logical_not", _elementwise(1, result="bool")),
    **dict.fromkeys(("aten::isnan", "aten::isinf", "aten::isfinite"), _elementwise(1, result="bool")),
    "aten::where": _elementwise(3, first=1),
    "aten::_prelu_kernel": _elementwise(2),
    **_backward(
        "threshold gelu silu mish tanh sigmoid elu leaky_relu softplus hardtanh hardswish hardsigmoid logit "
        "native_dropout",
        _elementwise(2),
    ),
    "aten::native_dropout": _dropout,
    "aten::glu": _gated,
    "_C::silu_and_mul": _gated_kernel,
    "_C::gelu_and_mul": _gated_kernel,
    "_C::gelu_tanh_and_mul": _gated_kernel,
}
