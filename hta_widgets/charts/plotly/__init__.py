"""Charts as plotly figures: `figure(chart, frame, title)`, a module for each type of chart."""

from hta_widgets.charts.plotly.figure import figure

__all__ = ["figure"]
