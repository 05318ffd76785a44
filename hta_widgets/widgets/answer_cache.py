"""Cached answers: the panels of a trace and `explorer.frame(...)` ask for the same frames many times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import ref

import pandas as pd

from hta_widgets.analysis.compare.registry import COMPARISONS
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import out_of_memory
from hta_widgets.formatting import did_you_mean
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_ANSWERS_PER_TRACE = 64


class _Options(dict[str, Any]):
    """Arguments of an analysis, hashable though lists among them are not."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(self.items())))


def cached_analysis(
    trace: Trace, kind: str, scope: Scope, options: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """The frame of analysis `kind`, from the cache or computed now. Shared: copy it before handing it out.

    `options` are further arguments of the analysis.
    """
    return _analysis(trace, kind, scope, _Options(options or {}))


def cached_comparison(
    runs: Mapping[str, Trace],
    kind: str,
    scopes: Mapping[str, Scope],
    options: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """The frame of comparison `kind`, from the cache or computed now; shared, too. `scopes` has one per run.

    It is remembered with the first run's trace.
    """
    # Weak references: a cached answer must keep neither its own trace nor the other runs' alive.
    sides = tuple((run, ref(trace), scopes[run]) for run, trace in runs.items())
    return _comparison(next(iter(runs.values())), kind, sides, _Options(options or {}))


def check_kind(kind: str) -> str:
    """`kind`, if there is such an analysis.

    Raises:
        ValueError: there is none; the message lists those there are.
    """
    if kind not in ANALYSES:
        hint = did_you_mean(kind, ANALYSES)
        raise ValueError(f"there is no analysis {kind!r}{hint}; the analyses are {', '.join(ANALYSES)}")
    return kind


@memoize_per_rank(last=_ANSWERS_PER_TRACE)
def _analysis(trace: Trace, kind: str, scope: Scope, options: _Options) -> pd.DataFrame:
    with out_of_memory(f"computing {ANALYSES[kind].label}"):
        return ANALYSES[kind].answer(trace, scope, **options)


@memoize_per_rank(last=_ANSWERS_PER_TRACE)
def _comparison(
    first: Trace, kind: str, sides: tuple[tuple[str, ref[Trace], Scope], ...], options: _Options
) -> pd.DataFrame:
    # the caller of `cached_comparison` holds every trace
    traces = {run: trace for run, weak, _ in sides if (trace := weak()) is not None}
    with out_of_memory(f"comparing {COMPARISONS[kind].label}"):
        return COMPARISONS[kind].function(traces, {run: scope for run, _, scope in sides}, **options)
