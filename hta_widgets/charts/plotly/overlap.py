"""The picture of communication hidden behind compute."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.charts.plotly.bars import stacked_bars

__all__ = ["comm_comp_overlap"]


def comm_comp_overlap(frame: pd.DataFrame) -> go.Figure:
    """Stacked bars of a `analysis.comm_comp_overlap` frame: hidden and exposed share of communication."""
    return stacked_bars(frame, ANALYSES["comm_comp_overlap"])
