"""What a panel, a report and the command line need to know about one analysis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pandas as pd

from hta_widgets.charts.spec import Chart

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
        chart: how to draw a frame; None: as a table only.
        requires: what the profiler must have recorded, in the words of `MissingDataError.field`.
        options: arguments of `function` to choose in the panel.
        chart_from: the kind of the analysis whose chart the panel draws; "": its own `chart`.
        ignores: traits of a `Selection` that marks and notes of the panel set, and that its answer therefore
            does not depend on.
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

    def figure(self, frame: pd.DataFrame) -> go.Figure:
        """The plotly figure of a frame of this analysis: `hta_widgets.charts.plotly.<kind>`.

        Found by name, as pandas finds its plotting backend: analysis knows no picture, and plotly (half a
        second to import) is loaded only when somebody asks for one.
        """
        draw: Any = getattr(import_module("hta_widgets.charts.plotly"), self.kind)
        figure: go.Figure = draw(frame)
        return figure
