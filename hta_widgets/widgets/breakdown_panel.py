"""One analysis of what is selected: the answer in a sentence, as bars, as a table, and as a DataFrame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd
import traitlets as t

from hta_widgets.analysis.registry import ANALYSES, Stack
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.computed import Computed
from hta_widgets.widgets.memo import answer, known
from hta_widgets.widgets.part import variable_name
from hta_widgets.widgets.selection import Integers, Selection, Window
from hta_widgets.widgets.wire import Table, encode

if TYPE_CHECKING:
    import plotly.graph_objects as go

# A page cannot lay out a million rows; the frame in Python has them all.
SHOWN_ROWS = 500


class BreakdownPanel(Computed):
    """An analysis of the selected ranks, iterations and window; follows the selection.

    Args:
        trace: an open `Trace`, or anything `Trace.open` takes.
        kind: a key of `analysis.ANALYSES`, such as "temporal_breakdown" or "comm_comp_overlap".
        selection: the `Selection` to share with other parts.
        spell: returns the Python expression of the panel's frame, for its export menu.
        options: further arguments of the analysis, such as `operator="aten::linear"` for "kernel_sequences".

    Raises:
        ValueError: there is no analysis `kind`.
        TypeError: the analysis has no such option.
    """

    _view = t.Unicode("breakdown").tag(sync=True)
    _depends: ClassVar = ("ranks", "iterations", "window", "streams")

    ranks = Integers(help="ranks analysed; () means all").tag(sync=True)
    iterations = Integers(help="iterations analysed; () means all")
    window = Window(help="(start, end) in ns analysed; None means all time")
    streams = Integers(help="streams analysed; () means all")

    kind = t.Unicode(help="name of the analysis").tag(sync=True)
    title = t.Unicode(help="heading").tag(sync=True)
    sentence = t.Unicode(help="the answer in words").tag(sync=True)
    chart: t.Dict[str, Any] = t.Dict(
        help="how to draw the answer: fields of a `Stack` or `Bars`, and type"
    ).tag(sync=True)
    table = Table(help="the answer, or the beginning of a long one").tag(sync=True)
    rows = t.Int(help="rows of the whole answer").tag(sync=True)
    expression = t.Unicode(help="Python expression of the panel's frame").tag(sync=True)

    def __init__(
        self,
        trace: Any,
        kind: str = "temporal_breakdown",
        *,
        selection: Selection | dict[str, Any] | None = None,
        spell: Callable[[], str] | None = None,
        **options: Any,
    ) -> None:
        analysis = ANALYSES[known(kind)]
        signature(analysis.function).bind(trace, None, **options)
        self._options = options
        self._spell = spell or (lambda: f"{variable_name(self, 'panel')}.frame()")
        super().__init__(
            trace,
            selection=selection,
            kind=kind,
            title=analysis.title,
            chart={"type": type(analysis.chart).__name__.lower(), **asdict(analysis.chart)}
            if analysis.chart
            else {},
        )

    def frame(self) -> pd.DataFrame:
        """The DataFrame that the panel shows; see the analysis of the same name for its columns."""
        return answer(self.trace, self.kind, self.selection.scope, self._options).copy()

    def figure(self) -> go.Figure:
        """The plotly figure of `frame()`."""
        return ANALYSES[self.kind].figure(self.frame())

    def _compute(self, scope: Scope) -> tuple[pd.DataFrame, str]:
        frame = answer(self.trace, self.kind, scope, self._options)
        return frame, ANALYSES[self.kind].sentence(frame)

    def _show(self, result: tuple[pd.DataFrame, str]) -> None:
        frame, self.sentence = result
        self.table = encode(frame.head(SHOWN_ROWS))
        self.rows = len(frame)
        self.expression = self._spell()
        chart = ANALYSES[self.kind].chart
        # no row, or none with any time in the selection
        if frame.empty or (isinstance(chart, Stack) and not frame[chart.whole].any()):
            self.status, self.message = "empty", self.sentence

    def __repr__(self) -> str:
        return super().__repr__().replace("(", f"({self.kind!r}, ", 1)
