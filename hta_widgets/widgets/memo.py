"""Answers already computed: panels of a trace and `explorer.frame(...)` ask the same questions many times."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from weakref import WeakKeyDictionary

import pandas as pd

from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_KEPT_PER_TRACE = 64

_kept: WeakKeyDictionary[Trace, OrderedDict[tuple[str, Scope], pd.DataFrame]] = WeakKeyDictionary()
_lock = Lock()


def answer(trace: Trace, kind: str, scope: Scope) -> pd.DataFrame:
    """The frame of analysis `kind`, computed now or remembered. Shared: copy it before you give it away."""
    with _lock:
        kept = _kept.setdefault(trace, OrderedDict())
        frame = kept.get((kind, scope))
        if frame is not None:
            kept.move_to_end((kind, scope))
            return frame
    frame = ANALYSES[kind].function(trace, scope)
    with _lock:
        kept[kind, scope] = frame
        while len(kept) > _KEPT_PER_TRACE:
            kept.popitem(last=False)
    return frame


def known(kind: str) -> str:
    """`kind`, if there is such an analysis.

    Raises:
        ValueError: there is none; the message lists those there are.
    """
    if kind not in ANALYSES:
        raise ValueError(f"there is no analysis {kind!r}; the analyses are {', '.join(ANALYSES)}")
    return kind
