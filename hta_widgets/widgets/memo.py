"""Answers already computed: panels of a trace and `explorer.frame(...)` ask the same questions many times."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import pandas as pd

from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_KEPT_PER_TRACE = 64

Question = tuple[str, Scope, str]
_kept: WeakKeyDictionary[Trace, OrderedDict[Question, pd.DataFrame]] = WeakKeyDictionary()
_lock = Lock()


def answer(trace: Trace, kind: str, scope: Scope, options: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """The frame of analysis `kind`, computed now or remembered. Shared: copy it before you give it away.

    `options` are further arguments of the analysis.
    """
    options = options or {}
    # repr: arguments such as lists have no hash, and equal ones print alike
    question = (kind, scope, repr(sorted(options.items())))
    with _lock:
        kept = _kept.setdefault(trace, OrderedDict())
        frame = kept.get(question)
        if frame is not None:
            kept.move_to_end(question)
            return frame
    frame = ANALYSES[kind].function(trace, scope, **options)
    with _lock:
        kept[question] = frame
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
