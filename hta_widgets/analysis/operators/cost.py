"""`Cost`: the arithmetic of a call, and the memory traffic that it cannot do without."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from hta_widgets.analysis.operators.inputs import Inputs


@dataclass(frozen=True)
class Cost:
    """What one call costs, with everything that it calls; NaN for what the shapes do not tell.

    Attributes:
        flops: floating-point operations; a multiply-add is two.
        bytes: memory traffic if each input is read once and each output written once: the compulsory traffic
            of the roofline model (Williams, Waterman, Patterson, CACM 52(4), 2009). A cache can save nothing
            of it, except between operators.
        exact: False where the shapes only bound the figures.
    """

    flops: float = math.nan
    bytes: float = math.nan
    exact: bool = True


Formula = Callable[[Inputs], Cost]
Formulas = dict[str, Formula]
