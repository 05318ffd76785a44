"""The parts of each stacked bar side by side, whichever way the frame holds them."""

from __future__ import annotations

import pandas as pd

from hta_widgets.charts.spec import Stack


def stacked(chart: Stack, frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The frame with a row per bar and a column per part, and the columns that name a bar."""
    keys = [name for name in dict.fromkeys([*chart.label, "iteration"]) if name in frame]
    if not chart.part:
        return frame, keys
    parts = [series.column for series in chart.series]
    rows = frame.assign(**{chart.part: frame[chart.part].astype("str")})
    wide = rows.pivot_table(index=keys, columns=chart.part, values=chart.value, aggfunc="sum", fill_value=0)
    wide = wide.reindex(columns=parts, fill_value=0).astype("int64").reset_index()
    wide[chart.whole] = wide[parts].sum(axis=1)
    return wide, keys
