"""The steps of a trend: a point each, with the band around it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.charts.spec import Trend
from hta_widgets.formatting import amount, column_format, counted


def trend_points(chart: Trend, frame: pd.DataFrame) -> tuple[pd.DataFrame, str, str]:
    """What a trend shows of a frame that is not empty.

    Returns:
        A row per step, ascending, and what the line and the band are, in words. Columns: x; mid (median of
        the ranks), low, high (of the band; these three NaN in steps that do not count), most, rank (the
        slowest rank and its value), outlier (0, 1), aside (why the step does not count; "" if it does).
    """
    counts = ~frame[[column for column, _ in chart.aside]].any(axis=1)
    rows = pd.DataFrame(
        {
            "x": frame[chart.x],
            "rank": frame[chart.by],
            "value": frame[chart.value].astype("float64"),
            "counts": counts,
            "phase": frame[chart.phase] if chart.phase else "",
            "outlier": frame[chart.outlier].astype("int64"),
            "aside": np.select(
                [frame[column] for column, _ in chart.aside], [why for _, why in chart.aside], ""
            ),
        }
    ).sort_values(["x", "counts", "value"], kind="stable")
    steps = rows.groupby("x", sort=True)
    slowest = steps.last()  # of the ranks whose step counts, where there are any
    counted_rows = rows[rows["counts"]]
    own = counted_rows.groupby("x")["value"].agg(["median", "min", "max"]).reindex(slowest.index)
    ranks = rows["rank"].nunique()
    phase = counted_rows["phase"].mode().get(0, "")
    if ranks == 1:
        known = own["median"].notna()
        alike = counted_rows["phase"].eq(phase)
        own["min"], own["max"] = (counted_rows.loc[alike, "value"].quantile(q) for q in (0.25, 0.75))
        own = own.where(known)
    table = pd.DataFrame(
        {
            "x": slowest.index,
            "mid": own["median"],
            "low": own["min"],
            "high": own["max"],
            "most": slowest["value"],
            "rank": slowest["rank"],
            "outlier": steps["outlier"].max(),
            "aside": slowest["aside"],
        }
    ).reset_index(drop=True)
    return table, *_in_words(chart, table, ranks, f"{phase} " * (len(counted_rows["phase"].unique()) > 1))


def _in_words(chart: Trend, table: pd.DataFrame, ranks: int, phase: str) -> tuple[str, str]:
    """What the line and the band are."""
    quantity = column_format(chart.value, []).quantity
    shown = table.dropna(subset="mid")
    single = ranks == 1
    line = f"rank {table['rank'].iloc[0]}" if single else f"median of {counted(ranks, 'rank')}"
    band = f"middle half of its {phase}steps" if single else "fastest to slowest rank"
    if shown.empty:
        return line, band
    if single:
        low, high = (amount(float(shown[end].iloc[0]), quantity) for end in ("low", "high"))
        return line, f"{band}, {low} to {high}"
    return line, f"{band}, {amount(float((shown['high'] - shown['low']).median()), quantity)} at the median"
