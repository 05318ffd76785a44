"""`Analysis`: what panels, reports and the command line need to know about an analysis."""

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
    """An argument of an analysis that can be changed in a panel.

    Attributes:
        name: the argument's name.
        label: its label in the panel.
        choices: the possible values; empty: any text.
        default: the initial value.
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
        kind: its identifier, e.g. in `BreakdownPanel(trace, kind)`.
        label: a name of one to three words.
        group: the heading under which it is listed.
        title: the panel's heading.
        function: `(trace, scope=None, **options) -> DataFrame`.
        sentence: summarises a frame in one plain sentence.
        chart: how to draw a frame; None: as a table only.
        requires: what the profiler must have recorded, in the words of `MissingDataError.field`.
        options: arguments of `function` that can be changed in the panel.
        chart_from: the kind of the analysis whose chart the panel draws; "": its own `chart`.
        ignores: traits of a `Selection` that the panel's own marks and notes set, so that its answer must not
            depend on them.
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

        It is looked up by name, as pandas looks up its plotting backend: this package does not depend on
        charts, and plotly (half a second to import) is loaded on first use.
        """
        draw: Any = getattr(import_module("hta_widgets.charts.plotly"), self.kind)
        figure: go.Figure = draw(frame)
        return figure
