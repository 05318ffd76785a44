"""The rule about tensors that a host converts to other types: weights that autocast casts anew, above all."""

from __future__ import annotations

from typing import Final

import numpy as np

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.call_time import open_time
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.host_loss import host_rule, lost_in_calls
from hta_widgets.analysis.findings.host_time import hosts_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import MAIN_QUESTION
from hta_widgets.analysis.idle.causes import named
from hta_widgets.analysis.operators.inputs import parse_types

_COPY: Final = "aten::copy_"


def converting(inputs: Inputs) -> Finding | None:
    """Threads that copy tensors to another type; where the types of inputs are not recorded, none do."""
    return lost_in_calls(
        inputs,
        "converting",
        {
            rank: _converting(inputs, rank, host.thread) & host.spent["operators"]
            for rank, host in hosts_of(inputs).items()
        },
        "{who} copies tensors to another type {lost}, in {name}.",
        ("converts_in", _COPY),
        "Make tensors in the type in which they are used. Autocast casts weights anew in each pass: small "
        "batches gain little by it, and weights that have that type already need no cast.",
    )


def _converting(inputs: Inputs, rank: int, thread: int) -> Intervals:
    """When copies from one type to another are open on a thread, in the judged time."""
    rank_trace = inputs.trace.rank(rank)
    rows = np.flatnonzero(named(rank_trace, _COPY.__eq__) & (rank_trace.thread == thread))
    if not len(rows) or not rank_trace.has_argument("input_type"):
        return Intervals.union([], [])
    types = [parse_types(text)[:2] for text in rank_trace.table.dictionary("input_type")]
    differ = np.array([len(each) > 1 and each[0] != each[1] for each in types] + [False], np.bool_)
    return inputs.judged_time(rank) & open_time(
        rank_trace, rows[differ[rank_trace.argument_codes("input_type")[rows]]]
    )


RULE = host_rule(
    topic="host_conversions",
    question=MAIN_QUESTION,
    title="Converting tensors to other types",
    label="Conversions",
    cause="conversions of tensors",
    judge=converting,
    risk="Weights of fewer bits lose small updates.",
    needs="Access to where tensors and weights are made.",
    wrong_if="The types must differ, as where sums have more bits.",
)
