"""A panel with one analysis of the selection: a sentence, a chart, a table and a DataFrame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pandas as pd
import traitlets as t

from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.analysis.wholes import shown_scope, whole_of
from hta_widgets.charts.marks import Marks, marks
from hta_widgets.charts.spec import Bars, Chart, Lines, Stack
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.answer_cache import cached_analysis, check_kind
from hta_widgets.widgets.notes import notes_on
from hta_widgets.widgets.panel import Panel, PanelState
from hta_widgets.widgets.selection import Focus, Integers, Names, Selection, Window
from hta_widgets.widgets.table_order import outliers_first


@dataclass(frozen=True)
class _Answer(PanelState):
    whole: str
    table_order: str


def _seen_by(kind: str, scope: Scope) -> Scope:
    """A scope without what the marks of analysis `kind` select: they must not filter themselves away."""
    names = {"window_ns" if name == "window" else name for name in ANALYSES[kind].ignores}
    return replace(scope, **dict.fromkeys(names, None))


class BreakdownPanel(Panel):
    """An analysis of the selected ranks, iterations and window; follows the selection.

    Args:
        trace: an open `Trace`, or anything `Trace.open` takes.
        kind: a key of `analysis.ANALYSES`, such as "temporal_breakdown" or "comm_comp_overlap".
        selection: the `Selection` to share with other parts.
        python_expression: returns the Python expression of the panel's frame, for its export menu.
        options: further arguments of the analysis, such as `operator="aten::linear"` for "kernel_sequences".

    Raises:
        ValueError: there is no analysis `kind`.
        TypeError: the analysis has no such option.
    """

    _depends: ClassVar[tuple[str, ...]] = ("ranks", "iterations", "window", "streams", "options")

    ranks = Integers(help="ranks analysed; () means all").tag(sync=True)
    iterations = Integers(help="iterations analysed; () means all").tag(sync=True)
    window = Window(help="(start, end) in ns analysed; None means all time").tag(sync=True)
    streams = Integers(help="streams analysed; () means all")
    names = Names(help="names of the events chosen by clicking marks").tag(sync=True)
    whole = t.Unicode(help="the time that the answer is about, in words").tag(sync=True)
    focus = Focus(help="(rank, event_id) of the focused event, or None").tag(sync=True)
    table_order = t.Unicode(help="how the table's rows are ordered, where not as in the frame").tag(sync=True)

    def __init__(
        self,
        trace: Any,
        kind: str = "temporal_breakdown",
        *,
        selection: Selection | dict[str, Any] | None = None,
        python_expression: Callable[[], str] | None = None,
        **options: Any,
    ) -> None:
        analysis = ANALYSES[check_kind(kind)]
        self._ignores = analysis.ignores
        chart = ANALYSES[analysis.chart_from or kind].chart
        super().__init__(
            trace, selection=selection, **self._describe(analysis, chart, options, python_expression)
        )

    def frame(self) -> pd.DataFrame:
        """The DataFrame that the panel shows; see the analysis of the same name for its columns."""
        scope = shown_scope(self.trace, self.kind, self._question())
        return cached_analysis(self.trace, self.kind, scope, self._given()).copy()

    def _compute(self, question: Scope) -> _Answer:
        scope = shown_scope(self.trace, self.kind, question)
        frame = cached_analysis(self.trace, self.kind, scope, self._given())
        picture = self.analysis.chart_from
        pictured = cached_analysis(self.trace, picture, _seen_by(picture, scope)) if picture else frame
        chart = ANALYSES[picture or self.kind].chart
        if isinstance(chart, Bars) and any(
            self.options.get(option.name) in option.no_events for option in self.analysis.options
        ):
            chart = replace(chart, names="")
        drawn = marks(chart, pictured) if chart and len(pictured) else Marks(pd.DataFrame())
        table, order = outliers_first(self.trace, scope, frame)
        without_time = isinstance(chart, Stack) and not chart.part and not pictured[chart.whole].any()
        return _Answer(
            table,
            self.analysis.said(frame, self.trace, scope),
            drawn,
            notes_on(self.trace, self.kind, scope, frame),
            self._extent(chart, pictured, scope),
            pictured.empty or without_time,
            whole_of(self.trace, self.kind, scope),
            order,
        )

    def _extent(self, chart: Chart | None, frame: pd.DataFrame, scope: Scope) -> list[int]:
        """The axis of time: that of lines which end, else what is selected, else all there is."""
        if isinstance(chart, Lines) and chart.end and len(frame):
            return [int(frame[chart.time].min()), int(frame[chart.end].max())]
        return list(scope.window_ns or self.trace.extent_ns)

    def _show(self, shown: PanelState) -> None:
        super()._show(shown)
        assert isinstance(shown, _Answer)
        self.whole, self.table_order = shown.whole, shown.table_order
