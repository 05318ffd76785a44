"""Answers of analyses about a job on a cluster, computed on its workers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.text_columns import stacked
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.arrow_frames import from_arrow, to_arrow
from hta_widgets.trace.far import FarTrace
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

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
    told = [
        each for each in trace.ask_groups(_of_ranks, ranks, question, scope, **options) if each is not None
    ]
    if not told:  # one rank says what is missing, or which columns have no rows
        first = (ranks or trace.ranks)[0]
        return _unpacked(
            trace.ask_rank(_of_all, first, question, replace(scope, ranks=tuple(ranks[:1])), **options)
        )
    frame = stacked([_unpacked(part) for part, _ in told])
    rank_of = np.concatenate([np.repeat(*rows) for _, rows in told])
    if (rank_of[1:] < rank_of[:-1]).any():
        frame = frame.take(np.argsort(rank_of, kind="stable")).reset_index(drop=True)
    return frame


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


def _of_ranks(
    traces: list[Trace], question: Question, scope: Scope, **options: Any
) -> tuple[Sent, tuple[list[int], list[int]]] | None:
    """What is said of some ranks, and how many rows of each; None where all lack the data."""
    frames: dict[int, pd.DataFrame] = {}
    for trace in traces:
        (rank,) = trace.ranks
        with contextlib.suppress(MissingDataError):
            frames[rank] = question(trace, replace(scope, ranks=(rank,)), **options)
    if not frames:
        return None
    return _packed(stacked([*frames.values()])), ([*frames], [len(frame) for frame in frames.values()])


def _of_all(trace: Trace, question: Question, scope: Scope, **options: Any) -> Sent:
    return _packed(question(trace, scope, **options))


def _packed(frame: pd.DataFrame) -> Sent:
    """A frame as Arrow, of which only what it shows travels. Itself if it would come back otherwise."""
    content = to_arrow(frame)
    return frame if content is None else content.to_pybytes()


def _unpacked(sent: Sent) -> pd.DataFrame:
    return sent if isinstance(sent, pd.DataFrame) else from_arrow(sent)
