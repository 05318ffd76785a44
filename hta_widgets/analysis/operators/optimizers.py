"""Updates of lists of tensors: foreach operators, and optimizers fused into one.

PyTorch records the shapes of a list, but not the type of its elements. It is read off the kernels' names,
whose template arguments name it; where they do not, only operations are counted. An optimizer reads each
parameter, its gradient and its states, and writes the parameter and the states (the algorithms in PyTorch's
documentation of `torch.optim`). Signatures are those of `native_functions.yaml`.
"""

from __future__ import annotations

import math

from hta_widgets.analysis.operators.cost import Cost, Formula, Formulas, formula
from hta_widgets.analysis.operators.inputs import Inputs, UnknownInputError, itemsize


def _elements(inputs: Inputs, at: int) -> int:
    return sum(math.prod(shape) for shape in inputs.shape_list(at))


@formula
def _foreach(
    inputs: Inputs, lists: int, work: float = math.nan, read_own: bool = True, written: int | None = None
) -> Cost:
    """Up to so many lists of equal shapes, and a result like the first (or `written` numbers a tensor)."""
    made = _elements(inputs, 0)
    own = 0 if read_own else 1
    read = sum(_elements(inputs, at) for at in range(own, lists) if _is_list(inputs, at))
    moved = read + (made if written is None else written * len(inputs.shape_list(0)))
    return Cost(work * made, moved * itemsize(inputs.type(0)))


def _is_list(inputs: Inputs, at: int) -> bool:
    return at < len(inputs.shapes) and isinstance(inputs.shapes[at], list)


@formula
def _fused(inputs: Inputs, states: tuple[int, ...]) -> Cost:
    """_fused_adamw_(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, ...) and its kin."""
    if _elements(inputs, 0) != _elements(inputs, 1):
        raise UnknownInputError
    kept = sum(_elements(inputs, at) for at in states if _is_list(inputs, at) and inputs.shapes[at])
    moved = 3 * _elements(inputs, 0) + 2 * kept
    return Cost(math.nan, moved * itemsize(inputs.type(0)))


def _with_in_place(names: str, formula: Formula) -> Formulas:
    return {f"aten::_foreach_{name}{end}": formula for name in names.split() for end in ("", "_")}


FORMULAS: Formulas = {
    **_with_in_place("add sub mul div", _foreach(2, 1)),
    **_with_in_place("addcmul addcdiv lerp", _foreach(3, 3)),
    **_with_in_place("neg abs sqrt rsqrt reciprocal", _foreach(1, 1)),
    **_with_in_place("exp log pow sign erf tanh sigmoid", _foreach(1)),
    **_with_in_place("maximum minimum clamp_min clamp_max", _foreach(2)),
    "aten::_foreach_norm": _foreach(1, written=1),
    "aten::_foreach_max": _foreach(1, written=1),
    "aten::_foreach_zero_": _foreach(1, read_own=False),
    "aten::_foreach_copy_": _foreach(2, read_own=False),
    **dict.fromkeys(("aten::_fused_adam_", "aten::_fused_adamw_"), _fused((2, 3, 4))),
    "aten::_fused_sgd_": _fused((2,)),
    "aten::_fused_adagrad_": _fused((2,)),
}
