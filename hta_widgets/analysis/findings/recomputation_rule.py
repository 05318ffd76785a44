"""The forward pass run again in the backward pass: memory that is paid for with time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.findings.callers import callers_in_words
from hta_widgets.analysis.findings.finding import NOTE_PCT, Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Change, Rule
from hta_widgets.analysis.findings.shorter import longest, matters, shorter
from hta_widgets.analysis.operators.recomputed import recomputed, recorded_again
from hta_widgets.analysis.replay import edits
from hta_widgets.errors import MissingDataError

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["RULE", "recomputation"]

Int64 = npt.NDArray[np.int64]


def recomputation(inputs: Inputs) -> Finding | None:
    """Operators of the forward pass that run again in the backward pass."""
    for rank in inputs.temporal["rank"].tolist():
        inputs.of(rank, _abstain)
    found = shorter(inputs, _gone)
    if found is None or found.lost_pct < NOTE_PCT:
        return None
    rank_trace = inputs.trace.rank(found.worst)
    return Finding(
        found.cost_ns,
        found.lost_pct,
        f"The backward pass runs parts of the forward pass again (activation checkpointing), which takes "
        f"{inputs.share(found.lost_pct)}{inputs.per_step(found.cost_ns)}"
        f"{callers_in_words(rank_trace, found.rows)}. That is the price of the memory that their results "
        "would take.",
        "Where memory is left, keep the results of more layers, or only those that are dear to compute: "
        "torch.utils.checkpoint.create_selective_checkpoint_contexts keeps products and attention. The peak "
        "of memory grows by what is kept.",
        "operators",
        Evidence(rank=found.worst if found.alone else None, name=longest(rank_trace, found.rows)),
        change=Change("without running it again", lambda _: [edits.no_recomputation()]),
        severity="note",  # it is meant to be so
    )


def _gone(rank_trace: RankTrace) -> tuple[Int64, Int64]:
    """What runs again, of which nothing would be left."""
    rows = recomputed(rank_trace)
    return rows, np.zeros_like(rows)


def _abstain(inputs: Inputs, rank: int) -> None:
    """Without shapes it may be the derivative of a derivative."""
    rank_trace = inputs.trace.rank(rank)
    if matters(inputs, rank, recorded_again(rank_trace)) and not rank_trace.has_argument("input_dims"):
        raise MissingDataError(
            "shapes of operators",
            "Record with torch.profiler.profile(record_shapes=True).",
            "operators inside the backward pass are recorded for another one; whether they are those of the "
            "forward pass cannot be told",
        )


RULE = Rule(
    topic="recomputation",
    question="whether the forward pass runs twice",
    title="Running parts of the forward pass again",
    judge=recomputation,
    applies=lambda inputs: inputs.has_operators,
    risk="Activations that are kept take memory until the backward pass.",
    needs="Free device memory.",
)
