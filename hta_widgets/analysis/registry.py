"""The analyses that a panel can show, each described once.

A panel, a report and the command line need the same facts about an analysis: what it computes, which columns
stack up to which whole, how to say the answer in a sentence. They read them here and hold no table of their
own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pandas as pd

from hta_widgets.analysis import overlap, temporal

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["ANALYSES", "Analysis", "Bars", "Chart", "Series", "Stack"]


@dataclass(frozen=True)
class Series:
    """One part of a stacked bar: a column in ns, its label, and the class of time whose colour it takes."""

    column: str
    label: str
    time_class: str


@dataclass(frozen=True)
class Stack:
    """One bar per rank, of parts that make up a whole.

    Attributes:
        series: the columns that stack up to `whole`, in drawing order from the bottom.
        whole: the column that the series add up to, exactly.
    """

    series: tuple[Series, ...]
    whole: str


@dataclass(frozen=True)
class Bars:
    """One bar per row, in the frame's order, as long as the number in a column.

    Attributes:
        value: the column that gives the length; its suffix (`_ns`, `_pct`, ...) tells the unit.
        label: the columns that name a bar.
        time_class: the class of time whose colour the bars take, or the column that tells it row by row.
    """

    value: str
    label: tuple[str, ...]
    time_class: str


Chart = Stack | Bars


@dataclass(frozen=True)
class Analysis:
    """What a panel needs to know about one analysis.

    Attributes:
        kind: the name to ask for it by, e.g. in `BreakdownPanel(trace, kind)`.
        title: heading, in words.
        function: `(trace, scope=None, **options) -> DataFrame`.
        sentence: the answer of a frame in one plain sentence.
        chart: how to draw a frame; None: as a table only.
        requires: what the profiler must have recorded, in the words of `MissingDataError.field`.
    """

    kind: str
    title: str
    function: Callable[..., pd.DataFrame]
    sentence: Callable[[pd.DataFrame], str]
    chart: Chart | None
    requires: tuple[str, ...]

    def figure(self, frame: pd.DataFrame) -> go.Figure:
        """The plotly figure of a frame of this analysis: `hta_widgets.figures.<kind>`.

        Found by name, as pandas finds its plotting backend: analysis knows no picture, and plotly (half a
        second to import) is loaded only when somebody asks for one.
        """
        draw: Any = getattr(import_module("hta_widgets.figures"), self.kind)
        figure: go.Figure = draw(frame)
        return figure


ANALYSES: dict[str, Analysis] = {
    analysis.kind: analysis
    for analysis in (
        Analysis(
            kind="temporal_breakdown",
            title="Where the time of each device goes",
            function=temporal.temporal_breakdown,
            sentence=temporal.sentence,
            chart=Stack(
                (
                    Series("compute_ns", "Compute", "compute"),
                    Series("exposed_communication_ns", "Exposed communication", "communication"),
                    Series("exposed_memory_ns", "Exposed memory", "memory"),
                    Series("idle_ns", "Idle", "idle"),
                ),
                "window_ns",
            ),
            requires=("device events",),
        ),
        Analysis(
            kind="comm_comp_overlap",
            title="How much communication hides behind compute",
            function=overlap.comm_comp_overlap,
            sentence=overlap.sentence,
            chart=Stack(
                (
                    Series("overlapped_ns", "Hidden behind compute", "compute"),
                    Series("exposed_ns", "Exposed", "communication"),
                ),
                "communication_ns",
            ),
            requires=("device events",),
        ),
    )
}
