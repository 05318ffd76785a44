"""The forward pass run again in the backward pass: memory that is paid for with time."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hta_widgets.analysis.core.claim import say
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.host_loss import calls_rule
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Change, Rule
from hta_widgets.analysis.findings.shorter import matters, shapes_missing, shorter
from hta_widgets.analysis.operators.recomputed import recomputed, recomputed_calls, recorded_again
from hta_widgets.analysis.replay import edits
from hta_widgets.arrays import Int64
from hta_widgets.trace.rank_trace import RankTrace

_ADVICE: Final = (
    "Where memory is left, keep the results of more layers, or only those that are dear to compute: "
    "torch.utils.checkpoint.create_selective_checkpoint_contexts keeps products and attention. The peak "
    "of memory grows by these results."
)


def recomputation(inputs: Inputs) -> Finding | None:
    """Operators of the forward pass that run again in the backward pass."""
    found = shorter(inputs, _gone, _abstain)
    if found is None:
        return None
    parts = found.parts(inputs, "recomputation")
    return found.finding(
        inputs,
        say(
            "The backward pass runs parts of the forward pass again (activation checkpointing), which takes "
            "{lost}.{by} That is the price of the memory that their results would take.",
            lost=parts["lost"],
            by=parts["by"],
        ),
        _ADVICE,
        Change("without running it again", lambda _: [edits.no_recomputation()]),
        severity="note",  # it is meant to be so
    )


def _gone(rank_trace: RankTrace) -> tuple[Int64, Int64]:
    """What runs again, of which nothing would be left."""
    rows = recomputed(rank_trace)
    return rows, np.zeros_like(rows)


def _abstain(inputs: Inputs, rank: int) -> None:
    """Without shapes few operators may be the derivative of a derivative."""
    rank_trace = inputs.trace.rank(rank)
    if rank_trace.has_argument("input_dims") or len(recomputed(rank_trace)):
        return
    if matters(inputs, rank, recorded_again(rank_trace)):
        raise shapes_missing(
            "operators inside the backward pass are recorded for another one; whether they are those of the "
            "forward pass is unknown"
        )


def _can_tell(inputs: Inputs) -> bool:
    """Whether finding nothing says something: numbers connect operators with the nodes that they make."""
    return inputs.has_operators and inputs.anywhere(_numbered)


def _numbered(rank_trace: RankTrace) -> bool:
    _, number = rank_trace.table.sparse("sequence_number")
    return bool((number >= 0).any())


_KNOWN: Final[dict[str, Any]] = {
    "label": "Recomputation",
    "cause": "parts of the forward pass run again",
    "wrong_if": "The results would not fit into memory: then there is nothing to gain.",
}

RULES = (
    Rule(
        topic="recomputation",
        question="whether the forward pass runs twice",
        title="Running parts of the forward pass again",
        judge=recomputation,
        applies=_can_tell,
        risk="Stored activations take memory until the backward pass.",
        needs="Free device memory.",
        **_KNOWN,
    ),
    calls_rule(
        "recomputed",
        recomputed_calls,
        "{who} runs operators of the forward pass again {lost}, longest {name}: activation checkpointing. "
        "That is the price of the memory that their results would take.",
        _ADVICE,
        "note",
        topic="host_recomputation",
        title="Running operators of the forward pass again",
        risk="Stored activations take memory until the backward pass.",
        needs="Free memory.",
        **_KNOWN,
    ),
)
