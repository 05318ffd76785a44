"""Answers of analyses about a job on a cluster, computed on its workers."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from hta_widgets.analysis.core.text_columns import stacked
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.arrow_frames import from_arrow, to_arrow
from hta_widgets.trace.far import FarTrace
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

__all__ = ["answer_by_rank", "answer_together", "stated_by_user"]

Question = Callable[..., pd.DataFrame]
Sent = bytes | pd.DataFrame


def answer_by_rank(
    question: Question, trace: FarTrace, scope: Scope, options: Mapping[str, Any]
) -> pd.DataFrame:
    """The answer of an analysis that splits by rank: that about each rank from the worker that has it.

    Args:
        question: an analysis, `(trace, scope, **options) -> DataFrame`, found by its name on the workers.

    Raises:
        MissingDataError: as the analysis says.
        ClusterError: the cluster failed.
    """
    ranks = trace.ranks_of(scope)
    asked = [(rank, question, replace(scope, ranks=(rank,))) for rank in ranks]
    parts = [_unpacked(told) for told in trace.ask_ranks(_of_one, asked, dict(options)) if told is not None]
    if not parts:  # one rank says what is missing, or which columns have no rows
        first = (ranks or trace.ranks)[0], question, replace(scope, ranks=tuple(ranks[:1]))
        parts = [_unpacked(told) for told in trace.ask_ranks(_of_all, [first], dict(options))]
    return stacked(parts)


def answer_together(
    question: Question, trace: FarTrace, scope: Scope, options: Mapping[str, Any]
) -> pd.DataFrame:
    """The answer of an analysis that takes all ranks together: from a worker that holds them.

    Where none has the memory, it is computed here, with the columns of some ranks at a time; what it asks of
    each rank alone still comes from the workers.

    Raises:
        MissingDataError: as the analysis says.
        ClusterError: the cluster failed.
    """
    if stated_by_user() or not trace.fits_a_worker:
        return question(trace, scope, **options)
    return _unpacked(trace.ask_whole(_of_all, question, scope, **options))


def stated_by_user() -> bool:
    """Whether there are peaks or formulas of the user's, which the workers do not know."""
    from hta_widgets.analysis.kernels import peaks
    from hta_widgets.analysis.operators import formulas

    return bool(peaks.registered() or formulas.registered())


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
