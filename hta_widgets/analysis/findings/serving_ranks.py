"""The ranks that are servers: those that name their steps, and what a rule asks of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.parallelism.expert_work import expert_rows
from hta_widgets.analysis.serving.table import is_server
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

Answer = TypeVar("Answer")

DECODING: Final = ("decode", "verify")
"""Steps in which requests decode, and no prompt is read."""


def is_serving(inputs: Inputs) -> bool:
    """Whether any rank names steps of a server."""
    return inputs.anywhere(_names_steps)


def of_ranks(inputs: Inputs, ask: Callable[[Inputs, int], Answer]) -> dict[int, Answer]:
    """What is found of the ranks that name steps of a server, and whose device work is recorded."""
    ranks = [rank for rank in inputs.trace.ranks_of(inputs.scope) if inputs.recorded(rank, _names_steps)]
    return {rank: inputs.of(rank, ask) for rank in ranks if inputs.judged_ns.get(rank)}


def without_steps(inputs: Inputs) -> tuple[int, ...]:
    """The ranks that name no step beside others that do, though they exchange tokens of experts with them."""
    ranks = inputs.trace.ranks_of(inputs.scope)
    served = [rank for rank in ranks if inputs.recorded(rank, _names_steps)]
    return tuple(rank for rank in ranks if served and rank not in served and inputs.recorded(rank, exchanges))


def exchanges(rank_trace: RankTrace) -> bool:
    """Whether a rank computes experts, and communicates."""
    communicates = rank_trace.is_device & (rank_trace.event_class == EventClass.COMMUNICATION)
    return bool(communicates.any() and expert_rows(rank_trace).any())


def steps_in_words(phase: str) -> str:
    """`decode steps`, or `steps` where the engine does not name their phase."""
    return "steps" if phase == "unknown" else f"{phase} steps"


def _names_steps(rank_trace: RankTrace) -> bool:
    return is_server(rank_trace) and rank_trace.device_span is not None
