"""Rules about the types in which hosts compute: conversions, as of autocast, and doubles by accident."""

from __future__ import annotations

from typing import Final

import numpy as np

from hta_widgets.analysis.findings.host_loss import calls_rule
from hta_widgets.analysis.idle.causes import named
from hta_widgets.analysis.operators.inputs import Inputs
from hta_widgets.analysis.operators.recorded import rows_where
from hta_widgets.arrays import Int64
from hta_widgets.trace.rank_trace import RankTrace

_COPY: Final = "aten::copy_"


def _converting(rank_trace: RankTrace, thread: int) -> Int64:
    """Copies from one type to another; none where the types of inputs are not recorded."""
    rows = np.flatnonzero(named(rank_trace, _COPY.__eq__) & (rank_trace.thread == thread))
    return rows_where(rank_trace, rows, lambda inputs: len(set(inputs.types[:2])) > 1)


_CONVERSIONS = calls_rule(
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


_CONVERTS: Final = {"aten::to", "aten::_to_copy", _COPY}


def _of_doubles(rank_trace: RankTrace, thread: int) -> Int64:
    """Operators of a thread that take tensors of doubles."""
    computes = named(rank_trace, lambda name: name.startswith("aten::") and name not in _CONVERTS)
    return rows_where(rank_trace, np.flatnonzero(computes & (rank_trace.thread == thread)), _takes_doubles)


def _takes_doubles(inputs: Inputs) -> bool:
    """Numbers of Python are doubles, too, but have no shape."""
    return any(kind == "float64" and shape for kind, shape in zip(inputs.types, inputs.shapes, strict=False))


_DOUBLES = calls_rule(
    "doubles",
    _of_doubles,
    "{who} computes in double precision, longest in {name}. That costs at least {lost}, half of the time: "
    "float32 is half the bytes.",
    "Make tensors and the model float32: .float(), np.float32, torch.set_default_dtype. NumPy's arrays are "
    "double unless that is changed.",
    loses=0.5,
    topic="host_doubles",
    title="Computing in double precision",
    label="Double precision",
    cause="double precision",
    risk="float32 keeps 24 of 53 bits: results have to be compared.",
    needs="A model that does not need double precision.",
    wrong_if="The model needs the precision, as simulations may.",
)

RULES = (_CONVERSIONS, _DOUBLES)
