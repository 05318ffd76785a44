"""Plotly figures of answers: `figures.<analysis>(frame) -> Figure`. They draw a frame and compute nothing."""

from hta_widgets.figures.overlap import comm_comp_overlap
from hta_widgets.figures.temporal import temporal_breakdown

__all__ = ["comm_comp_overlap", "temporal_breakdown"]
