"""Where in time the evidence of a finding lies, so that a timeline can show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

__all__ = ["evidence_ns"]


def evidence_ns(trace: Trace, finding: pd.Series) -> list[int]:
    """[start, end] in ns on the job's axis: what to look at for a row of `overview`.

    The time in which it shows, with half as much before and after; else the event that it names; else its
    iteration; else the longest event of its name; else the longest iteration; else all of the recording. Of
    several ranks, the finding's own counts, else the first.
    """
    if pd.notna(finding["start_ns"]):
        start, end = int(finding["start_ns"]), int(finding["end_ns"])
        beside = (end - start) // 2
        first, last = trace.extent_ns
        return [max(start - beside, first), min(end + beside, last)]
    if pd.notna(finding["event_id"]):
        rank = trace.rank(int(finding["event_rank"]))
        rows = np.flatnonzero(rank.event_id == int(finding["event_id"]))
        if len(rows):
            return [int(rank.start[rows[0]]), int(rank.end[rows[0]])]
    ranks = [int(finding["rank"])] if pd.notna(finding["rank"]) else list(trace.ranks)
    iterations = trace.iterations
    iterations = iterations[iterations["rank"].isin(ranks)]
    if pd.notna(finding["iteration"]):
        iterations = iterations[iterations["iteration"] == int(finding["iteration"])]
    elif finding["name"] and (named := _longest_named(trace, ranks, finding["name"])):
        return named
    if len(iterations):
        return _longest_of(iterations)
    return list(trace.extent_ns)


def _longest_named(trace: Trace, ranks: list[int], name: str) -> list[int]:
    for number in ranks:
        rank = trace.rank(number)
        if name in rank.names:
            rows = np.flatnonzero(rank.name == rank.names.index(name))
            if len(rows):
                row = rows[np.argmax(rank.end[rows] - rank.start[rows])]
                return [int(rank.start[row]), int(rank.end[row])]
    return []


def _longest_of(iterations: pd.DataFrame) -> list[int]:
    length: Any = iterations["end_ns"] - iterations["start_ns"]
    row = iterations.loc[length.idxmax()]
    return [int(row["start_ns"]), int(row["end_ns"])]
