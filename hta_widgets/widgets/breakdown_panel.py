"""One analysis of what is selected: the answer in a sentence, as bars, as a table, and as a DataFrame."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd
import traitlets as t

from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.computed import Computed
from hta_widgets.widgets.memo import answer, known
from hta_widgets.widgets.part import variable_name
from hta_widgets.widgets.selection import Integers, Selection, Window
from hta_widgets.widgets.wire import Table, encode

if TYPE_CHECKING:
    import plotly.graph_objects as go


class BreakdownPanel(Computed):
    """An analysis of the selected ranks, iterations and window; follows the selection.

    Args:
        trace: an open `Trace`, or anything `Trace.open` takes.
        kind: a key of `analysis.ANALYSES`, such as "temporal_breakdown" or "comm_comp_overlap".
        selection: the `Selection` to share with other parts.
        spell: returns the Python expression of the panel's frame, for its export menu.

    Raises:
        ValueError: there is no analysis `kind`.
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
    series: t.List[Any] = t.List(help="the parts of a bar: [{column, label, time_class}]").tag(sync=True)
    whole = t.Unicode(help="the column that the parts of a bar add up to").tag(sync=True)
    table = Table(help="the answer").tag(sync=True)
    expression = t.Unicode(help="Python expression of the panel's frame").tag(sync=True)

    def __init__(
        self,
        trace: Any,
        kind: str = "temporal_breakdown",
        *,
        selection: Selection | dict[str, Any] | None = None,
        spell: Callable[[], str] | None = None,
    ) -> None:
        analysis = ANALYSES[known(kind)]
        self._spell = spell or (lambda: f"{variable_name(self, 'panel')}.frame()")
        super().__init__(
            trace,
            selection=selection,
            kind=kind,
            title=analysis.title,
            series=[vars(part) for part in analysis.series],
            whole=analysis.whole,
        )

    def frame(self) -> pd.DataFrame:
        """The DataFrame that the panel shows; see the analysis of the same name for its columns."""
        return answer(self.trace, self.kind, self.selection.scope).copy()

    def figure(self) -> go.Figure:
        """The plotly figure of `frame()`."""
        return ANALYSES[self.kind].figure(self.frame())

    def _compute(self, scope: Scope) -> tuple[pd.DataFrame, str]:
        frame = answer(self.trace, self.kind, scope)
        return frame, ANALYSES[self.kind].sentence(frame)

    def _show(self, result: tuple[pd.DataFrame, str]) -> None:
        frame, self.sentence = result
        self.table = encode(frame)
        self.expression = self._spell()
        if not frame[self.whole].any():  # no rank, or none with any time in the selection
            self.status, self.message = "empty", self.sentence

    def __repr__(self) -> str:
        return super().__repr__().replace("(", f"({self.kind!r}, ", 1)
