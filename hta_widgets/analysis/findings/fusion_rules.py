"""Pointwise kernels that could be one."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.core.claim import say
from hta_widgets.analysis.findings.compiled import MOST, compiled_part, compiles
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Change, Rule
from hta_widgets.analysis.findings.shorter import matters, shapes_missing, shorter, time_of
from hta_widgets.analysis.operators.chains import chained_ns, neighbours
from hta_widgets.analysis.replay import edits
from hta_widgets.trace.classify import EventClass

_LEAST_PCT = 25.0
"""Of the time of compute kernels: a few chains are in every program."""


def pointwise_chains(inputs: Inputs) -> Finding | None:
    """Consecutive pointwise kernels, each of which reads what the one before has written."""
    found = shorter(inputs, chained_ns, _abstain)
    if found is None or not _often(inputs, found.worst, found.rows):
        return None
    advice = (
        "torch.compile makes one kernel of each chain; for norms and rotary embeddings there are fused ones "
        "(F.rms_norm, F.layer_norm, those of the library of the model)."
    )
    if compiled_part(inputs, found.worst, found.rows) >= MOST:
        advice = "These kernels are compiled, but apart: use fused norms and activations there."
    elif inputs.of(found.worst, compiles):
        advice = (
            "torch.compile runs already, but not for these operators: bring them into its graphs (TORCH_LOGS="
            "graph_breaks lists what is left out), or use fused norms and activations."
        )
    return found.finding(
        inputs,
        say(
            "Chains of pointwise kernels cost {lost}: results are written and read again. They take "
            "{taken}.{by} One kernel for each chain would take {left} at the same bandwidth. That each "
            "kernel of a chain reads what the one before has written is guessed by shape and type.",
            **found.parts(inputs, "pointwise chains"),
        ),
        f"{advice} Compiling takes time at the start, and again for new shapes.",
        Change("with chains of pointwise kernels fused", lambda _: [edits.fused_pointwise()]),
        severity="note",  # that a result is not needed later is not known
    )


def _often(inputs: Inputs, rank: int, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> bool:
    """Whether these kernels take so much of the time of compute kernels that it is the program's way."""
    rank_trace = inputs.trace.rank(rank)
    all_rows = rank_trace.rows(inputs.scope)
    compute = all_rows[
        rank_trace.is_device[all_rows] & (rank_trace.event_class[all_rows] == EventClass.COMPUTE)
    ]
    return bool(100.0 * time_of(inputs, rank, rows) > _LEAST_PCT * time_of(inputs, rank, compute))


def _abstain(inputs: Inputs, rank: int) -> None:
    """Without shapes nobody knows what feeds what."""
    rank_trace = inputs.trace.rank(rank)
    rows = np.union1d(*neighbours(rank_trace))
    unknown = not rank_trace.has_argument("input_dims")
    if unknown and matters(inputs, rank, rows) and _often(inputs, rank, rows):
        raise shapes_missing(
            "pointwise kernels follow each other; whether one reads what another wrote is unknown"
        )


RULE = Rule(
    topic="pointwise_chains",
    question="which kernels could be one",
    title="Writing and reading again between pointwise kernels",
    label="Unfused pointwise kernels",
    cause="pointwise kernels that are not fused",
    judge=pointwise_chains,
    applies=lambda inputs: inputs.has_operators,
    risk="Compiling takes time at first and again for every new shape; results may differ in the last bits.",
    needs="torch.compile, or a fused kernel for these operators.",
    wrong_if="The results are read again later, as by the backward pass, or other tensors have their shape.",
)
