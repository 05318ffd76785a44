"""Answers of analyses about a job on a cluster, computed on its workers."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from hta_widgets.analysis.core.arrow import from_arrow, to_arrow
from hta_widgets.analysis.core.kept import stacked, stated_by_user
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.far import FarTrace
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

__all__ = ["answer_there"]

Question = Callable[..., pd.DataFrame]
Sent = bytes | pd.DataFrame


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
        parts = [_unpacked(answer) for answer in answers if answer is not None]
        if parts:
            return stacked(parts)
    return _unpacked(trace.ask_whole(_of_all, question, scope, **options))


def _of_one(trace: Trace, question: Question, scope: Scope, **options: Any) -> Sent | None:
    """What is said of one rank, None where that lacks the data."""
    try:
        return _packed(question(trace, scope, **options))
    except MissingDataError:
        return None


def _of_all(trace: Trace, question: Question, scope: Scope, **options: Any) -> Sent:
    return _packed(question(trace, scope, **options))


def _packed(frame: pd.DataFrame) -> Sent:
    """A frame in few bytes: names of kernels are long and alike. Itself if it would come back otherwise."""
    content = to_arrow(frame)
    return frame if content is None else zlib.compress(content.to_pybytes(), 9)


def _unpacked(sent: Sent) -> pd.DataFrame:
    return sent if isinstance(sent, pd.DataFrame) else from_arrow(zlib.decompress(sent))
