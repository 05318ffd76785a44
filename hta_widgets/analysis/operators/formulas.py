"""Which formula an operator has: one that a user registered, or a built-in one."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import TracebackType

from hta_widgets.analysis.operators import (
    attention,
    compiled,
    convolution,
    copies,
    embeddings,
    experts,
    library_gemm,
    matmul,
    norms,
    optimizers,
    paged_attention,
    pointwise,
    quantization,
    reductions,
)
from hta_widgets.analysis.operators.cost import Cost, Formula, Formulas
from hta_widgets.analysis.operators.inputs import Inputs

BUILT_IN: dict[str, Formulas] = {
    "matmul": {**matmul.FORMULAS, **library_gemm.FORMULAS, **experts.FORMULAS},
    "convolution": convolution.FORMULAS,
    "attention": {**attention.FORMULAS, **paged_attention.FORMULAS},
    "norm": norms.FORMULAS,
    "elementwise": {**pointwise.FORMULAS, **quantization.FORMULAS},
    "reduction": {**reductions.FORMULAS, **experts.ROUTING},
    "embedding": embeddings.FORMULAS,
    "optimizer": optimizers.FORMULAS,
    "copy": {**copies.FORMULAS, **paged_attention.CACHES},
}
"""Category -> operator -> formula."""

_ALL: Formulas = {name: formula for family in BUILT_IN.values() for name, formula in family.items()}
Figure = Callable[[Inputs], float | None]


class RegisteredFormula:
    """A user's formula, until it is undone; as a context manager, at the end of the block."""

    def __init__(self, name: str, flops: Figure | None, bytes: Figure | None) -> None:
        self.name, self.flops, self.bytes = name, flops, bytes

    def __call__(self, inputs: Inputs) -> Cost:
        """What the formula says of a call."""
        found = [each(inputs) if each else None for each in (self.flops, self.bytes)]
        flops, moved = (math.nan if value is None else float(value) for value in found)
        return Cost(flops, moved)

    def undo(self) -> None:
        """Remove the formula; without effect if it was removed already."""
        _registered[:] = [each for each in _registered if each is not self]

    def __enter__(self) -> RegisteredFormula:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()


_registered: list[RegisteredFormula] = []


def register_formula(
    name: str, flops: Figure | None = None, bytes: Figure | None = None
) -> RegisteredFormula:
    """State what calls of an operator cost, before any built-in formula; of several, the latest counts.

    A formula describes the whole call, with all that it calls. It holds for this process until its `undo()`,
    or until the end of a `with` block. Panels that are open keep their answers. For instance,
    `register_formula("my::op", flops=lambda inputs: 2 * inputs.numel(0))`. A call whose inputs were not
    recorded has no figures.

    Args:
        name: the operator, exactly as in the trace, such as "my::op".
        flops: floating-point operations of a call, from its inputs: `shape(at)`, `numel(at)`, `nbytes(at)`,
            `type(at)`, `ints(at)` and `flag(at)` describe the argument in position `at`. None, also as a
            result: unknown.
        bytes: likewise the memory traffic of a call, each input read once and each output written once.

    Returns:
        The formula, whose `undo()` removes it.

    Raises:
        ValueError: neither figure is given.
    """
    if flops is None and bytes is None:
        raise ValueError("a formula needs flops, bytes or both")
    formula = RegisteredFormula(name, flops, bytes)
    _registered.insert(0, formula)
    return formula


def registered() -> tuple[RegisteredFormula, ...]:
    """The formulas that `register_formula` added, the latest first."""
    return tuple(_registered)


def formula_of(name: str, own: tuple[RegisteredFormula, ...] = ()) -> Formula | None:
    """The formula of an operator; `own` come before the built-in ones."""
    for formula in own:
        if formula.name == name:
            return formula
    if name.startswith(compiled.PREFIXES):
        return compiled.tensors_once
    if compiled.is_product(name):
        return compiled.product
    return _ALL.get(name)
