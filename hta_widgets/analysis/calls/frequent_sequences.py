"""Kernel sequences of an operator, by default the one with most device time."""

from __future__ import annotations

import pandas as pd

from hta_widgets.analysis.calls.sequences import Roots, kernel_sequences, sentence
from hta_widgets.analysis.core.entry import Analysis, Option
from hta_widgets.analysis.launches.op_kernels import op_kernels
from hta_widgets.charts.spec import Bars
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope


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
        kernels = op_kernels(trace, scope)
        by_operator = kernels[kernels["op"] != ""].groupby("op", sort=True)["device_ns"].sum()
        operator = str(by_operator.idxmax()) if len(by_operator) else "aten::"
    return kernel_sequences(trace, scope, operator, min_length, top, roots)


ANALYSIS = Analysis(
    kind="kernel_sequences",
    label="Sequences",
    group="Kernels",
    title="Which kernels an operator launches in a row",
    function=frequent_sequences,
    sentence=sentence,
    chart=Bars("device_ns", ("pattern",), "compute", names="operator", measure="Device time"),
    requires=("device events linked to their launches",),
    options=(Option("operator", "Operator", hint="the operator with most device time"),),
)
