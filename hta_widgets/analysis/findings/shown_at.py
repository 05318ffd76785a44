"""Where in time a finding shows: intervals of one rank to be framed, the best to look at first."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.findings.finding import LostAs
from hta_widgets.analysis.findings.rules import BY_TOPIC
from hta_widgets.formatting import duration
from hta_widgets.trace.model import Trace

_AS_LONG: Final = 0.9
_LONGEST_LABEL: Final = 60
_SPECIFIC: Final = 4


@dataclass(frozen=True)
class Place:
    """An interval of a rank."""

    # where it is
    rank: int
    start_ns: int
    end_ns: int
    label: str  # what stands over it, 60 characters at most
    # (start_ns, end_ns) of the event on that rank that causes it, as far as it covers half of it
    cause: tuple[int, int] | None = None


def places_of(trace: Trace, row: pd.Series, noun: str, lost_as: LostAs) -> list[Place]:
    """The places of a row of `overview`, one after the other; none where it is about no time in particular.

    Of the places nearly as long as the longest, the first with device work on both sides comes first: what is
    at an end of the recording has no context there. Then come the others, the longest first.
    """
    found = json.loads(row["places"]) if row["places"] else []
    found = found or ([one] if (one := _only(trace, row)) else [])
    if not found:
        return []
    longest = found[0][2] - found[0][1]
    long = [place for place in found if place[2] - place[1] >= _AS_LONG * longest]
    first = next((place for place in long if _has_context(trace, place)), found[0])
    found = [first, *(place for place in found if place is not first)]
    return [
        Place(rank, start, end, _label(row, noun, lost_as, place), _cause(trace, row, lost_as, place))
        for place in found
        for rank, start, end in [place]
    ]


def _label(row: pd.Series, noun: str, lost_as: LostAs, place: list[int]) -> str:
    rank, start, end = place
    ns = end - start
    rule = BY_TOPIC.get(row["topic"])
    if pd.notna(row["rank"]) and rank != row["rank"] and rule and rule.waits_for_late:
        said = f"{duration(ns)}: rank {rank} waits for rank {row['rank']}"
    elif lost_as == "idle" and rule and rule.cause:
        said = f"{duration(ns)} idle: {rule.cause}"
    else:
        said = f"{duration(ns)}: {noun}"
    return said if len(said) <= _LONGEST_LABEL else duration(ns)


def _cause(trace: Trace, row: pd.Series, lost_as: LostAs, place: list[int]) -> tuple[int, int] | None:
    """The finding's own event, if that covers half of the place, else the shortest of the rank that does.

    Idle time is caused on the host, other time by device work. What takes far longer, or marks a step, says
    nothing of this place.
    """
    rank, start, end = place
    rank_trace = trace.rank(rank)
    # what takes at most so much longer, and covers some of the place, begins between these
    edges = np.array([start - _SPECIFIC * (end - start), end])
    first, last = np.searchsorted(rank_trace.start, edges, sorter=rank_trace.by_start).tolist()
    rows = np.sort(rank_trace.by_start[first:last])
    shared = np.minimum(rank_trace.end[rows], end) - np.maximum(rank_trace.start[rows], start)
    rows = rows[(2 * shared >= end - start) & (rank_trace.dur[rows] <= _SPECIFIC * (end - start))]
    own = int(row["event_id"]) if pd.notna(row["event_id"]) and row["event_rank"] == rank else -1
    found = rows[rank_trace.event_id[rows] == own]
    if not len(found):
        on_host = lost_as in ("idle", "host")
        names = [rank_trace.names[code] for code in rank_trace.name[rows].tolist()]
        marks = [name.startswith("ProfilerStep#") for name in names]
        found = rows[(rank_trace.is_device[rows] != on_host) & ~np.array(marks, np.bool_)]
    if not len(found):
        return None
    at = found[np.argmin(rank_trace.dur[found])]
    return int(rank_trace.start[at]), int(rank_trace.end[at])


def _has_context(trace: Trace, place: list[int]) -> bool:
    rank, start, end = place
    span = trace.rank(rank).device_span
    return span is not None and span[0] < start and end < span[1]


def _only(trace: Trace, row: pd.Series) -> list[int] | None:
    """The one place that is known: when it shows, its event, its iteration, or its longest event."""
    ranks = [int(row["rank"])] if pd.notna(row["rank"]) else list(trace.ranks)
    at = int(row["event_rank"]) if pd.notna(row["event_rank"]) else ranks[0]
    if pd.notna(row["start_ns"]):
        return [at, int(row["start_ns"]), int(row["end_ns"])]
    if pd.notna(row["event_id"]):
        rank_trace = trace.rank(at)
        rows = np.flatnonzero(rank_trace.event_id == int(row["event_id"]))
        if len(rows):
            return [at, int(rank_trace.start[rows[0]]), int(rank_trace.end[rows[0]])]
    iterations = trace.iterations
    iterations = iterations[iterations["rank"].isin(ranks)]
    if pd.notna(row["iteration"]):
        iterations = iterations[iterations["iteration"] == int(row["iteration"])]
    elif row["name"] and (named := _longest_named(trace, ranks, str(row["name"]))):
        return named
    if not len(iterations) or (pd.isna(row["rank"]) and pd.isna(row["iteration"])):
        return None
    length: Any = iterations["end_ns"] - iterations["start_ns"]
    longest = iterations.loc[length.idxmax()]
    return [int(longest["rank"]), int(longest["start_ns"]), int(longest["end_ns"])]


def _longest_named(trace: Trace, ranks: list[int], name: str) -> list[int]:
    for number in ranks:
        rank = trace.rank(number)
        if name in rank.names:
            rows = np.flatnonzero(rank.name == rank.names.index(name))
            if len(rows):
                row = rows[np.argmax(rank.end[rows] - rank.start[rows])]
                return [number, int(rank.start[row]), int(rank.end[row])]
    return []
