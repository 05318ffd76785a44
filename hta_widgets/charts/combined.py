"""The rows of each bar as one value: their sum, their greatest, or their mean by weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.charts.spec import Bars

MOST_BARS = 20


@dataclass(frozen=True)
class Combined:
    """The bars that are shown.

    Attributes:
        bars: a row per bar in drawing order, indexed by its group. Columns: value (float64), count (int64,
            rows that it combines), first (int64, position of the first of them).
        group: int64 per row of the frame, its group.
        left_out: how many bars there was no room for.
    """

    bars: pd.DataFrame
    group: npt.NDArray[np.int64]
    left_out: int


def combined(chart: Bars, frame: pd.DataFrame) -> Combined:
    """Combine the rows of each label as the chart tells, and choose the bars that are shown.

    Rows without a value take no part. Sums and maxima of 0 make no bar; a mean of 0 does, as it can be the
    worst of all, but rows without weight do not. With a window each row is a bar of its own.
    """
    if chart.window:
        group: npt.NDArray[np.int64] = np.arange(len(frame))
    else:
        named = [*chart.label, *([chart.note] if chart.note else [])]
        keys = frame.groupby(named, sort=False, dropna=False, observed=True)
        group = keys.ngroup().to_numpy().astype(np.int64)
    value = frame[chart.value].astype("Float64").to_numpy(np.float64, na_value=np.nan)
    known = ~np.isnan(value)
    rows = pd.DataFrame({"group": group, "value": value, "first": np.arange(len(frame))})[known]
    if chart.combine == "mean":
        weight = frame[chart.weight].astype("Float64").to_numpy(np.float64, na_value=0.0)[known]
        rows["weight"], rows["value"] = weight, rows["value"] * weight
    groups = rows.groupby("group", sort=True)
    bars = groups.agg(count=("value", "size"), first=("first", "min"))
    if chart.combine == "mean":
        weights = groups["weight"].sum()
        bars["value"] = groups["value"].sum() / weights
        rank_by = weights[weights > 0]
    else:
        bars["value"] = groups["value"].max() if chart.combine == "max" else groups["value"].sum()
        rank_by = bars.loc[bars["value"] > 0, "value"]
    shown = rank_by.sort_values(ascending=chart.ascending and not chart.weight, kind="stable").head(MOST_BARS)
    chosen = bars.loc[shown.index].sort_values("value", ascending=chart.ascending, kind="stable")
    return Combined(chosen, group, len(rank_by) - len(chosen))


def cumulative_shares(chart: Bars, frame: pd.DataFrame, bars: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Of each bar the % of all rows' sum that it and those above make up; 0 where that sum is 0."""
    whole = float(frame[chart.value].sum())
    return 100.0 * bars["value"].to_numpy(np.float64).cumsum() / whole if whole else np.zeros(len(bars))
