"""When each rank arrives at an exchange, from the durations of its kernels alone."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.medians import medians
from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.ordering import distinct, paired

NOISE_NS = 10_000
NOISE_PERMILLE = 10

LOOSE = ("broadcast", "reduce", "gather", "scatter")
"""These may end on one rank long before another: then who finishes first says nothing about who is last.

Where all ranks end together, by clocks that other exchanges set, all have waited for the last one.
"""

APART: Final = 4
"""Ranks that wait for the same one leave together, within this part of the waiting, or `NOISE_NS`."""


def arrivals(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per matched kernel that counts: its part in its collective, as `stragglers` defines.

    Returns:
        With the index of the frame: rank, iteration (the collective's), match, start_ns, dur_ns, counted
        (int64 0 or 1), is_last (bool), waited_ns, caused_wait_ns, lateness_ns, start_offset_ns (int64, 0
        where not counted).
    """
    rows = np.flatnonzero(frame["match"].notna())
    match, rank, start, dur = (
        frame[name].to_numpy(np.int64, na_value=0)[rows] for name in ("match", "rank", "start_ns", "dur_ns")
    )
    order = np.lexsort((start, rank, match))
    match, rank, start, dur, rows = (each[order] for each in (match, rank, start, dur, rows))
    loose = frame["collective"].isin(LOOSE).to_numpy()[rows]
    together = ~loose | ~np.isin(match, uneven_ends(match, rank, start, dur, ~loose))
    match, rank, start, dur, rows = (each[together] for each in (match, rank, start, dur, rows))
    begins = np.flatnonzero(np.diff(match, prepend=-1))
    size = np.diff(begins, append=len(match))
    ends, of = begins + size - 1, np.repeat(np.arange(len(begins)), size)
    place = np.arange(len(match))

    shortest, longest = np.minimum.reduceat(dur, begins), np.maximum.reduceat(dur, begins)
    spread = longest - shortest
    counts = (spread > NOISE_NS) & (spread * 1000 > shortest * NOISE_PERMILLE)
    waited = np.where(counts[of], dur - shortest[of], 0)
    # Of equally short ones the lowest rank's, so that the waiting is charged once.
    last = np.minimum.reduceat(np.where(dur == shortest[of], place, len(place)), begins)
    is_last = counts[of] & (place == last[of])
    known = frame["iteration"].notna().to_numpy()[rows]
    first_known = np.minimum.reduceat(np.where(known, place, ends[of]), begins)
    offset = start - np.minimum.reduceat(start, begins)[of]
    each = pd.DataFrame(
        {
            "rank": rank,
            "iteration": frame["iteration"].array[rows[first_known[of]]],
            "match": frame["match"].array[rows],
            "start_ns": start,
            "dur_ns": dur,
            "counted": counts[of].astype(np.int64),
            "is_last": is_last,
            "waited_ns": waited,
            "caused_wait_ns": np.where(is_last, np.add.reduceat(waited, begins)[of], 0),
            "lateness_ns": np.where(counts[of], longest[of] - dur, 0),
            "start_offset_ns": np.where(counts[of], offset, 0),
        },
        frame.index[rows],
    )
    return each[(rank[begins] != rank[ends])[of]]


def uneven_ends(
    match: Int64, rank: Int64, start: Int64, dur: Int64, sets_clocks: Bool | None = None
) -> Int64:
    """The matches whose ranks do not leave together, with their clocks set by the median.

    Args:
        match, rank, start, dur: of kernels, match after match, of each the lowest rank first.
        sets_clocks: those that tell how clocks differ, default all. Without any of two ranks, these leave no
            exchange together.
    """
    begins = np.flatnonzero(np.diff(match, prepend=-1))
    of = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(match)))
    ahead = start + dur - (start + dur)[begins][of]
    pairs, pair = distinct(paired(rank[begins][of], rank))
    chosen = np.ones(len(match), np.bool_) if sets_clocks is None else sets_clocks
    off = np.abs(ahead - medians(pair[chosen], ahead[chosen], len(pairs))[pair])
    spread = np.maximum.reduceat(dur, begins) - np.minimum.reduceat(dur, begins)
    return np.unique(match[~((off <= NOISE_NS) | (off * APART <= spread[of]))])
