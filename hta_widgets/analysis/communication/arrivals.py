"""When each rank arrives at an exchange, from the durations of its kernels alone."""

from __future__ import annotations

import numpy as np
import pandas as pd

NOISE_NS = 10_000
NOISE_PERMILLE = 10

LOOSE = ("broadcast", "reduce", "gather", "scatter")
"""These may end on one rank long before another: who finishes first says nothing about who arrives last."""


def arrivals(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per matched kernel that counts: its part in its collective, as `stragglers` defines.

    Returns:
        With the index of the frame: rank, iteration (the collective's), match, start_ns, dur_ns, counted
        (int64 0 or 1), is_last (bool), waited_ns, caused_wait_ns, lateness_ns, start_offset_ns (int64, 0
        where not counted).
    """
    each = frame.loc[
        frame["match"].notna() & ~frame["collective"].isin(LOOSE),
        ["rank", "iteration", "match", "start_ns", "dur_ns"],
    ].sort_values(["match", "rank", "start_ns"], kind="stable")
    by = each.groupby("match", sort=False)
    each = each[by["rank"].transform("nunique") > 1].copy()
    by = each.groupby("match", sort=False)
    shortest, longest = by["dur_ns"].transform("min"), by["dur_ns"].transform("max")
    spread = longest - shortest
    counts = (spread > NOISE_NS) & (spread * 1000 > shortest * NOISE_PERMILLE)
    each["iteration"] = by["iteration"].transform("first")
    each["counted"] = counts.astype(np.int64)
    short = each.assign(short=each["dur_ns"] == shortest)
    # Of equally short ones the lowest rank's, so that the waiting is charged once.
    each["is_last"] = short["short"] & ~short.duplicated(["match", "short"]) & counts
    each["waited_ns"] = (each["dur_ns"] - shortest).where(counts, 0)
    waited = each.groupby("match", sort=False)["waited_ns"].transform("sum")
    each["caused_wait_ns"] = waited.where(each["is_last"], 0)
    each["lateness_ns"] = (longest - each["dur_ns"]).where(counts, 0)
    each["start_offset_ns"] = (each["start_ns"] - by["start_ns"].transform("min")).where(counts, 0)
    return each
