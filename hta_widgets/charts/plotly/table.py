"""A frame as a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from hta_widgets.charts.plotly.text import plain
from hta_widgets.charts.spec import Table

__all__ = ["table"]


def table(chart: Table, frame: pd.DataFrame) -> go.Figure:
    """All columns and rows, with those of `across` side by side."""
    if chart.across:
        frame = _side_by_side(chart, frame)
    return go.Figure(
        go.Table(
            header={"values": [plain(str(name)) for name in frame], "align": "left"},
            cells={
                "values": [[plain(_cell(value)) for value in column] for _, column in frame.items()],
                "align": "left",
            },
        )
    )


def _side_by_side(chart: Table, frame: pd.DataFrame) -> pd.DataFrame:
    keys = [name for name in frame if name not in (chart.across, chart.value)]
    order = list(dict.fromkeys(frame[chart.across]))
    rows = frame.groupby(keys, sort=False, dropna=False).ngroup()
    places = [rows.rename("_row"), frame[chart.across]]
    wide = frame[chart.value].groupby(places).first().unstack()[order]  # noqa: PD010
    kept = frame[keys].groupby(rows).first()
    return pd.concat([kept, wide], axis=1)


def _cell(value: object) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:,.2f}" if isinstance(value, float) else str(value)
