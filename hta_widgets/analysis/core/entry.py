"""`Analysis`: what panels, reports and the command line need to know about an analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pandas as pd

from hta_widgets.analysis.core.there import answer_together
from hta_widgets.charts.spec import Chart, Figure, Table
from hta_widgets.trace.far import FarTrace
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    import plotly.graph_objects as go


@dataclass(frozen=True)
class Option:
    """An argument of an analysis that can be changed in a panel."""

    name: str  # the argument's name
    label: str  # its label in the panel
    choices: tuple[str, ...] = ()  # the possible values; empty: any text
    default: str = ""  # the initial value
    hint: str = ""  # what an empty text means
    no_events: tuple[str, ...] = ()  # the choices with which rows stand for no events of one name


ONE_BAR_PER = Option("by", "One bar per", ("rank", "iteration"), "rank")


@dataclass(frozen=True)
class Analysis:
    """One analysis, described once.

    Attributes:
        kind: its identifier, e.g. in `BreakdownPanel(trace, kind)`; by default the name of `function`.
        label: a name of one to three words.
        group: the heading under which it is listed.
        title: the panel's heading.
        function: `(trace, scope=None, **options) -> DataFrame`.
        sentence: summarises a frame in one plain sentence. headline: the same of a frame, its trace and its
            scope, where more is to be known for it.
        chart: how a panel draws a frame; None: as a table only.
        requires: what the profiler must have recorded, in the words of `MissingDataError.field`.
        options: arguments of `function` that can be changed in the panel.
        chart_from: the kind of the analysis whose chart the panel draws; "": its own `chart`.
        ignores: traits of a `Selection` that the panel's own marks and notes set, so that its answer must not
            depend on them.
        asks_little: of each rank it asks no more than a few bytes per collective, through `Trace.each` and
            its like: on a cluster it is computed by the caller, and columns stay where they are.
        pictured: how `figure` draws a frame; None: as `chart` says, or as a table without one.
    """

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
    asks_little: bool = False
    pictured: Figure | None = None
    kind: str = ""
    headline: Callable[[pd.DataFrame, Trace, Scope | None], str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", self.kind or self.function.__name__)

    def splits(self, **options: Any) -> bool:
        """Whether the answer about many ranks is that about each, stacked."""
        declared: Callable[[Mapping[str, Any]], bool] | None = getattr(self.function, "splits", None)
        return declared is not None and declared(options)

    def answer(self, trace: Trace, scope: Scope | None = None, **options: Any) -> pd.DataFrame:
        """The answer of `function`, computed where the ranks lie."""
        if isinstance(trace, FarTrace) and not self.asks_little and not self.splits(**options):
            return answer_together(self.function, trace, scope or Scope(), options)
        return self.function(trace, scope, **options)

    def said(self, frame: pd.DataFrame, trace: Trace, scope: Scope | None = None) -> str:
        """The answer about a trace in one plain sentence."""
        return self.headline(frame, trace, scope) if self.headline else self.sentence(frame)

    def figure(self, frame: pd.DataFrame) -> go.Figure:
        """The plotly figure of a frame of this analysis."""
        from hta_widgets.charts import plotly  # takes half a second: only when somebody asks for a figure

        return plotly.figure(self.pictured or self.chart or Table(), frame, self.title)


class Entries(Mapping[str, Analysis]):
    """Entries by their kind, in the order of display: each is imported when it is first looked up."""

    def __init__(self, places: Mapping[str, str]) -> None:
        """`places`: kind -> module of `hta_widgets.analysis`, and after a colon a name in it ("ANALYSIS")."""
        self._places = dict(places)

    def __getitem__(self, kind: str) -> Analysis:
        module, _, name = self._places[kind].partition(":")
        return getattr(import_module(f"hta_widgets.analysis.{module}"), name or "ANALYSIS")

    def __contains__(self, kind: object) -> bool:
        return kind in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
