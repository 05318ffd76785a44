"""What a panel, a report and the command line need to know about one analysis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from hta_widgets.charts.spec import Chart, Figure, Table

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["ONE_BAR_PER", "Analysis", "Option"]


@dataclass(frozen=True)
class Option:
    """An argument of an analysis that a reader may want to change.

    Attributes:
        name: of the argument.
        label: in words.
        choices: those to choose from; none: any text.
        default: what holds until somebody chooses.
        hint: what an empty text means.
    """

    name: str
    label: str
    choices: tuple[str, ...] = ()
    default: str = ""
    hint: str = ""


ONE_BAR_PER = Option("by", "One bar per", ("rank", "iteration"), "rank")


@dataclass(frozen=True)
class Analysis:
    """One analysis, described once.

    Attributes:
        kind: the name to ask for it by, e.g. in `BreakdownPanel(trace, kind)`.
        label: a name of one to three words.
        group: the heading under which it stands in a list.
        title: heading, in words.
        function: `(trace, scope=None, **options) -> DataFrame`.
        sentence: the answer of a frame in one plain sentence.
        chart: how a panel draws a frame; None: as a table only.
        requires: what the profiler must have recorded, in the words of `MissingDataError.field`.
        options: arguments of `function` to choose in the panel.
        chart_from: the kind of the analysis whose chart the panel draws; "": its own `chart`.
        ignores: traits of a `Selection` that marks and notes of the panel set, and that its answer therefore
            does not depend on.
        pictured: how `figure` draws a frame; None: as `chart` says, or as a table without one.
    """

    kind: str
    label: str
    group: str
    title: str
    function: Callable[..., pd.DataFrame]
    sentence: Callable[[pd.DataFrame], str]
    chart: Chart | None
    requires: tuple[str, ...]
    options: tuple[Option, ...] = ()
    chart_from: str = ""
    ignores: tuple[str, ...] = ()
    pictured: Figure | None = None

    def figure(self, frame: pd.DataFrame) -> go.Figure:
        """The plotly figure of a frame of this analysis."""
        from hta_widgets.charts import plotly  # takes half a second: only when somebody asks for a figure

        return plotly.figure(self.pictured or self.chart or Table(), frame, self.title)
