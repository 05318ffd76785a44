"""Answers already computed: panels of a trace and `explorer.frame(...)` ask the same questions many times."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary, ref

import pandas as pd

from hta_widgets.analysis.compare.registry import COMPARISONS
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

__all__ = ["cached_analysis", "cached_comparison", "check_kind"]

_KEPT_PER_TRACE = 64

_kept: WeakKeyDictionary[Trace, OrderedDict[Hashable, pd.DataFrame]] = WeakKeyDictionary()
_lock = Lock()


def cached_analysis(
    trace: Trace, kind: str, scope: Scope, options: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """The frame of analysis `kind`, computed now or remembered. Shared: copy it before you give it away.

    `options` are further arguments of the analysis.
    """
    options = options or {}
    return _remembered(
        trace, (kind, scope, _told(options)), lambda: ANALYSES[kind].function(trace, scope, **options)
    )


def cached_comparison(
    runs: Mapping[str, Trace],
    kind: str,
    scopes: Mapping[str, Scope],
    options: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """The frame of comparison `kind`, computed now or remembered. Shared, too. `scopes` has one per run."""
    options = options or {}
    # weak: an answer that is kept with the first trace must not keep the others alive
    sides = tuple((run, ref(trace), scopes[run]) for run, trace in runs.items())
    return _remembered(
        next(iter(runs.values())),
        (kind, sides, _told(options)),
        lambda: COMPARISONS[kind].function(runs, scopes, **options),
    )


def check_kind(kind: str) -> str:
    """`kind`, if there is such an analysis.

    Raises:
        ValueError: there is none; the message lists those there are.
    """
    if kind not in ANALYSES:
        raise ValueError(f"there is no analysis {kind!r}; the analyses are {', '.join(ANALYSES)}")
    return kind


def _remembered(trace: Trace, question: Hashable, compute: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    with _lock:
        kept = _kept.setdefault(trace, OrderedDict())
        frame = kept.get(question)
        if frame is not None:
            kept.move_to_end(question)
            return frame
    frame = compute()
    with _lock:
        kept[question] = frame
        while len(kept) > _KEPT_PER_TRACE:
            kept.popitem(last=False)
    return frame


def _told(options: Mapping[str, Any]) -> str:
    """Arguments such as lists have no hash, and equal ones print alike."""
    return repr(sorted(options.items()))
