"""Answers of analyses about a job on a cluster, computed on its workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from hta_widgets.analysis.core.kept import stacked, stated_by_user
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.far import FarTrace
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

__all__ = ["answer_there"]

Question = Callable[..., pd.DataFrame]


def answer_there(
    question: Question, trace: FarTrace, scope: Scope, options: Mapping[str, Any], by_rank: bool
) -> pd.DataFrame:
    """The answer of an analysis, from the workers that have the ranks, or from one that has them all.

    Args:
        question: an analysis, `(trace, scope, **options) -> DataFrame`.
        by_rank: the answer is that about each rank, stacked; else it takes all ranks together.

    Raises:
        MissingDataError: as the analysis says.
        ClusterError: the cluster failed, or needs more memory.
    """
    if stated_by_user():  # which the workers do not know
        return question(trace, scope, **options)
    if by_rank and (ranks := trace.ranks_of(scope)):
        asked = [(rank, question, replace(scope, ranks=(rank,))) for rank in ranks]
        answers = trace.ask_ranks(_of_one, asked, dict(options))
        parts = [answer for answer in answers if answer is not None]
        if parts:
            return stacked(parts)
    frame: pd.DataFrame = trace.ask_whole(question, scope, **options)
    return frame


def _of_one(trace: Trace, question: Question, scope: Scope, **options: Any) -> pd.DataFrame | None:
    """What is said of one rank, None where that lacks the data."""
    try:
        return question(trace, scope, **options)
    except MissingDataError:
        return None
