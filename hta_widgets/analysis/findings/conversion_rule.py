"""The rule about tensors that a host converts to other types: weights that autocast casts anew, above all."""

from __future__ import annotations

from typing import Final

import numpy as np

from hta_widgets.analysis.findings.host_loss import calls_rule
from hta_widgets.analysis.idle.causes import named
from hta_widgets.analysis.operators.recorded import rows_where
from hta_widgets.arrays import Int64
from hta_widgets.trace.rank_trace import RankTrace

_COPY: Final = "aten::copy_"


def _converting(rank_trace: RankTrace, thread: int) -> Int64:
    """Copies from one type to another; none where the types of inputs are not recorded."""
    rows = np.flatnonzero(named(rank_trace, _COPY.__eq__) & (rank_trace.thread == thread))
    return rows_where(rank_trace, rows, lambda inputs: len(set(inputs.types[:2])) > 1)


RULE = calls_rule(
    "converting",
    _converting,
    "{who} copies tensors to another type {lost}, in {name}.",
    "Make tensors in the type in which they are used. Autocast casts weights anew in each pass: small "
    "batches gain little by it, and weights that have that type already need no cast.",
    topic="host_conversions",
    title="Converting tensors to other types",
    label="Conversions",
    cause="conversions of tensors",
    risk="Weights of fewer bits lose small updates.",
    needs="Access to where tensors and weights are made.",
    wrong_if="The types must differ, as where sums have more bits.",
)
