"""Recorded and simulated traces side by side: where does the simulator differ from the machine?"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from hta_widgets import Trace
from recorder.samples import fields, samples

QUANTILES = {"p10": 0.1, "median": 0.5, "p90": 0.9}
KEYS = ["quantity", "group", "unit"]


def compare(first: Trace, second: Trace, names: tuple[str, str]) -> tuple[pd.DataFrame, dict[str, str]]:
    """How are launch latency, idle gaps, durations, nesting and events per step distributed in two traces?

    Args:
        first, second: the traces.
        names: what to call them.

    Returns:
        One row per quantity and group that either trace has, and for each trace and quantity that it cannot
        tell, why. Index: quantity, group, unit (str). Columns: for each name (name, "n"), (name, "p10"),
        (name, "median"), (name, "p90"), and ("ratio", "median"), the first median by the second (float64; NaN
        where a trace has no such sample).
    """
    sides: dict[str, pd.DataFrame] = {}
    missing: dict[str, str] = {}
    for name, trace in zip(names, (first, second), strict=True):
        rows, untold = samples(trace)
        grouped = rows.groupby(KEYS)["value"]
        sides[name] = pd.DataFrame(
            {"n": grouped.size(), **{label: grouped.quantile(q) for label, q in QUANTILES.items()}}
        )
        missing |= {f"{name}, {what}": why for what, why in untold.items()}
    frame = pd.concat(sides, axis=1).astype("float64")
    frame["ratio", "median"] = frame[names[0], "median"] / frame[names[1], "median"]
    return frame.sort_index(), missing


def compare_fields(first: Trace, second: Trace, names: tuple[str, str]) -> pd.DataFrame:
    """Which arguments do the events of only one of two traces have, or one much more often?

    Categories that only one trace has are left out: `compare` shows them.

    Returns:
        One row per category and field whose shares differ by more than a tenth. Index: category, field.
        Columns: the names: share of the category's events that have the field (float64, 0 to 1).
    """
    shares: Mapping[str, pd.Series] = dict(zip(names, (fields(first), fields(second)), strict=True))
    frame = pd.DataFrame(shares)
    categories = [set(side.index.get_level_values("category")) for side in shares.values()]
    frame = frame[frame.index.get_level_values("category").isin(categories[0] & categories[1])].fillna(0.0)
    return frame[(frame[names[0]] - frame[names[1]]).abs() > 0.1].sort_index()
