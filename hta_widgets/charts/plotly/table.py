"""A frame as a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from hta_widgets.charts.plotly.text import plain
from hta_widgets.charts.spec import Table
from hta_widgets.formatting import column_format


def table(chart: Table, frame: pd.DataFrame) -> go.Figure:
    """All columns and rows, with those of `across` side by side."""
    if chart.across:
        frame = _side_by_side(chart, frame)
    columns = [_column(str(name), column) for name, column in frame.items()]
    return go.Figure(
        go.Table(
            header={"values": [heading for heading, _ in columns], "align": "left"},
            cells={"values": [cells for _, cells in columns], "align": "left"},
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


def _column(name: str, series: pd.Series) -> tuple[str, list[str]]:
    """A column's heading and its cells."""
    if is_bool_dtype(series) or not is_numeric_dtype(series):
        texts = series.astype("object").where(series.notna(), "")
        return plain(name.replace("_", " ")), [plain(str(text)) for text in texts]
    values = series.astype("object").where(series.notna(), np.nan).tolist()
    shown = column_format(name, values)
    return plain(f"{shown.heading} {shown.unit.name}".strip()), [shown.cell(value) for value in values]
