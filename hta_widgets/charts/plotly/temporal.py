"""The picture of a temporal breakdown."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.charts.plotly.bars import stacked_bars

__all__ = ["temporal_breakdown"]


def temporal_breakdown(frame: pd.DataFrame) -> go.Figure:
    """Stacked bars of a `analysis.temporal_breakdown` frame, by rank or by rank and iteration."""
    return stacked_bars(frame, ANALYSES["temporal_breakdown"])
