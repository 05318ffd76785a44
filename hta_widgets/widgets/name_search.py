"""Finds names of events by a part of them."""

from __future__ import annotations

from collections import Counter

import numpy as np

from hta_widgets.trace.model import Trace

_MOST = 8


def names_containing(trace: Trace, text: str) -> list[str]:
    """Names that contain a text, ignoring case; those of most events first, ties by name."""
    wanted = text.strip().lower()
    counts = Counter[str]()
    for rank in trace.ranks:
        rank_trace = trace.rank(rank)
        matching = [code for code, name in enumerate(rank_trace.names) if wanted in name.lower()]
        if wanted and matching:
            each = np.bincount(rank_trace.name, minlength=len(rank_trace.names))
            counts.update({rank_trace.names[code]: int(each[code]) for code in matching if each[code]})
    return sorted(counts, key=lambda name: (-counts[name], name))[:_MOST]
