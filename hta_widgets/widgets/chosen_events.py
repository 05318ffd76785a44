"""Which events a selection chooses, in which order: one definition for tables, exports and `explorer.events`.

Names are compared once per distinct name of a rank, never once per event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from hta_widgets.arrays import Bool, Int64
from hta_widgets.engine import UI_LOCK, checkpoint
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.selection import Selection


@dataclass(frozen=True)
class Chosen:
    """The events that lie in `scope`, have one of its names and contain `query`, ignoring case."""

    scope: Scope = field(default_factory=Scope)
    query: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "query", self.query.strip())

    @classmethod
    def by(cls, selection: Selection) -> Chosen:
        """What a selection chooses now."""
        with UI_LOCK:
            return cls(replace(selection.scope, names=selection.names or None), selection.query)


def chosen_rows(trace: Trace, chosen: Chosen) -> list[tuple[RankTrace, Int64]]:
    """The chosen rows of each rank that is in the scope, by start, then file order."""
    found = []
    for number in trace.ranks_of(chosen.scope):
        checkpoint()
        rank = trace.rank(number)
        rows = rank.rows(chosen.scope)
        if chosen.query:
            rows = rows[_holding(rank.names, chosen.query)[rank.name[rows]]]
        found.append((rank, rows))
    return found


def chosen_frame(trace: Trace, chosen: Chosen) -> pd.DataFrame:
    """The chosen events with the columns of `Trace.events`, in the order of `chosen_rows`."""
    frame = trace.events(chosen.scope)
    if not chosen.query or frame.empty:
        return frame
    names = frame["name"].cat
    holding = _holding(list(names.categories), chosen.query)
    return frame[holding[names.codes.to_numpy()]].reset_index(drop=True)


def chosen_in_runs(
    traces: Mapping[str, Trace],
    selections: Mapping[str, Selection],
    names: Mapping[str, tuple[str, ...]] | None,
) -> pd.DataFrame:
    """The chosen events of each run, with a first column run; if names are given, chosen by these alone."""
    frames = []
    for run, selection in selections.items():
        chosen = Chosen.by(selection)
        if names is not None:
            chosen = Chosen(replace(selection.scope, names=names[run]))
        found = chosen_frame(traces[run], chosen)
        if names is not None and not names[run]:  # in a scope, no names mean all
            found = found.iloc[:0]
        found.insert(0, "run", run)
        frames.append(found)
    return pd.concat(frames, ignore_index=True)


def _holding(names: list[str], query: str) -> Bool:
    wanted = query.lower()
    return np.array([wanted in name.lower() for name in names], np.bool_)
