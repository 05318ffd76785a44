"""`Cost`: the arithmetic of a call, and the memory traffic that it cannot do without."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec

from hta_widgets.analysis.operators.inputs import Inputs


@dataclass(frozen=True)
class Cost:
    """What one call costs, with everything that it calls; NaN for what the shapes do not tell."""

    flops: float = math.nan  # floating-point operations; a multiply-add is two
    # memory traffic if each input is read once and each output written once: the compulsory traffic of the
    # roofline model (Williams, Waterman, Patterson, CACM 52(4), 2009). A cache can save nothing of it, except
    # between operators.
    bytes: float = math.nan
    exact: bool = True  # False where the shapes only bound the figures


Formula = Callable[[Inputs], Cost]
Formulas = dict[str, Formula]
P = ParamSpec("P")


def formula(cost: Callable[Concatenate[Inputs, P], Cost]) -> Callable[P, Formula]:
    """Decorate a cost of inputs with further arguments: to call it with these makes a formula."""

    @wraps(cost)
    def of(*args: P.args, **named: P.kwargs) -> Formula:
        return lambda inputs: cost(inputs, *args, **named)

    return of
