"""Pointwise kernels that could be one."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.findings.callers import callers_in_words
from hta_widgets.analysis.findings.finding import NOTE_PCT, Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Change, Rule
from hta_widgets.analysis.findings.shorter import longest, matters, shorter, time_of
from hta_widgets.analysis.operators.chains import chained_ns, neighbours
from hta_widgets.analysis.replay import edits
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import percent
from hta_widgets.trace.classify import EventClass

__all__ = ["RULE", "pointwise_chains"]

_LEAST_PCT = 25.0
"""Of the time of compute kernels: a few chains are in every program."""


def pointwise_chains(inputs: Inputs) -> Finding | None:
    """Consecutive pointwise kernels, each of which reads what the one before has written."""
    for rank in inputs.temporal["rank"].tolist():
        inputs.of(rank, _abstain)
    found = shorter(inputs, chained_ns)
    if found is None or found.lost_pct < NOTE_PCT or not _often(inputs, found.worst, found.rows):
        return None
    rank_trace = inputs.trace.rank(found.worst)
    advice = (
        "torch.compile makes one kernel of each chain; for norms and rotary embeddings there are fused ones "
        "(F.rms_norm, F.layer_norm, those of the library of the model)."
    )
    if inputs.is_compiled:
        advice = (
            "torch.compile runs already: bring these operators into its graphs (TORCH_LOGS=graph_breaks "
            "tells what is left out), or use fused norms and activations."
        )
    return Finding(
        found.cost_ns,
        found.lost_pct,
        f"Chains of pointwise kernels, each of which reads what the one before seems to have written (by "
        f"shape and type), take {percent(found.taken_pct)} of the time"
        f"{callers_in_words(rank_trace, found.rows)}. With one kernel for each chain, at the same bandwidth, "
        f"it would be {percent(found.taken_pct - found.lost_pct)}: {inputs.share(found.lost_pct)}"
        f"{inputs.per_step(found.cost_ns)} goes to results that are written and read again.",
        f"{advice} Compiling takes time at the start, and again for new shapes.",
        "operators",
        Evidence(rank=found.worst if found.alone else None, name=longest(rank_trace, found.rows)),
        change=Change("with chains of pointwise kernels fused", lambda _: [edits.fused_pointwise()]),
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
        raise MissingDataError(
            "shapes of operators",
            "Record with torch.profiler.profile(record_shapes=True).",
            "pointwise kernels follow each other; whether one reads what another wrote cannot be told",
        )


RULE = Rule(
    topic="pointwise_chains",
    question="which kernels could be one",
    title="Writing and reading again between pointwise kernels",
    judge=pointwise_chains,
    applies=lambda inputs: inputs.has_operators,
    risk="Compiling takes time at first and again for every new shape; results may differ in the last bits.",
    needs="torch.compile, or a fused kernel for these operators.",
)
