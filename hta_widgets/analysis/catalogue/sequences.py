"""Kernel sequences when nobody has named an operator yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from hta_widgets.analysis.calls.sequences import Roots, kernel_sequences
from hta_widgets.analysis.launches.op_kernels import op_kernels

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.scope import Scope

__all__ = ["frequent_sequences"]


def frequent_sequences(
    trace: Trace,
    scope: Scope | None = None,
    operator: str = "",
    min_length: int = 1,
    top: int | None = None,
    roots: Roots = "topmost",
) -> pd.DataFrame:
    """`kernel_sequences` of an operator; without one, of the operator with most device time in the scope."""
    if not operator:
        by_operator = op_kernels(trace, scope).groupby("op", sort=True)["device_ns"].sum()
        operator = str(by_operator.idxmax()) if len(by_operator) else "aten::"
    return kernel_sequences(trace, scope, operator, min_length, top, roots)
