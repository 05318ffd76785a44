"""One analysis of what is selected: the answer in a sentence, as a chart, as a table, and as a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd
import traitlets as t

from hta_widgets.analysis.registry import ANALYSES, Analysis, Stack
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.computed import Computed
from hta_widgets.widgets.files import Downloads, as_bytes
from hta_widgets.widgets.marks import Marks, marks
from hta_widgets.widgets.memo import answer, known
from hta_widgets.widgets.notes import Note, notes_on
from hta_widgets.widgets.part import variable_name
from hta_widgets.widgets.selection import Focus, Integers, Names, Selection, Window
from hta_widgets.widgets.wire import Table, encode

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["BreakdownPanel"]

# A page cannot lay out a million rows; the frame in Python has them all.
SHOWN_ROWS = 500


@dataclass(frozen=True)
class _Shown:
    frame: pd.DataFrame
    sentence: str
    drawn: Marks
    notes: list[Note]
    extent: tuple[int, int]
    nothing: bool  # no row to draw, or none with any time in the selection


class BreakdownPanel(Downloads, Computed):
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
    _depends: ClassVar = ("ranks", "iterations", "window", "streams", "options")

    ranks = Integers(help="ranks analysed; () means all").tag(sync=True)
    iterations = Integers(help="iterations analysed; () means all").tag(sync=True)
    window = Window(help="(start, end) in ns analysed; None means all time").tag(sync=True)
    streams = Integers(help="streams analysed; () means all")
    names = Names(help="names of the events chosen by clicking marks").tag(sync=True)
    focus = Focus(help="(rank, event_id) of the event looked at, or None").tag(sync=True)

    kind = t.Unicode(help="name of the analysis").tag(sync=True)
    title = t.Unicode(help="heading").tag(sync=True)
    sentence = t.Unicode(help="the answer in words").tag(sync=True)
    chart: t.Dict[str, Any] = t.Dict(
        help="how to draw the answer: type and fields of a chart of `analysis.charts`"
    ).tag(sync=True)
    marks = Table(help="what the chart draws").tag(sync=True)
    legend: t.List[str] = t.List(help="names of the chart's lines").tag(sync=True)
    left_out = t.Int(help="marks there was no room for").tag(sync=True)
    extent: t.List[int] = t.List(help="(start, end) in ns of the time that is shown").tag(sync=True)
    notes: t.List[Any] = t.List(help="details in words, as `notes.Note` describes them").tag(sync=True)
    table = Table(help="the answer, or the beginning of a long one").tag(sync=True)
    rows = t.Int(help="rows of the whole answer").tag(sync=True)
    form: t.List[Any] = t.List(help="options to choose: [{name, label, choices, default, hint}]").tag(
        sync=True
    )
    options: t.Dict[str, Any] = t.Dict(help="arguments of the analysis, by name").tag(sync=True)
    expression = t.Unicode(help="Python expression of the panel's frame").tag(sync=True)
    drawing = t.Unicode(help="Python expression of the panel's plotly figure").tag(sync=True)

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
        chart = ANALYSES[analysis.picture or kind].chart
        self._own = analysis.own
        self._spell = spell or (lambda: f"{variable_name(self, 'panel')}.frame()")
        super().__init__(
            trace,
            selection=selection,
            kind=kind,
            title=analysis.title,
            chart={"type": type(chart).__name__.lower(), **asdict(chart)} if chart else {},
            form=[asdict(option) for option in analysis.options],
            options=options,
        )

    @property
    def analysis(self) -> Analysis:
        """The entry of `analysis.ANALYSES` that the panel shows."""
        return ANALYSES[self.kind]

    def frame(self) -> pd.DataFrame:
        """The DataFrame that the panel shows; see the analysis of the same name for its columns."""
        return answer(self.trace, self.kind, self._scope(), self._given()).copy()

    def figure(self) -> go.Figure:
        """The plotly figure of `frame()`."""
        return self.analysis.figure(self.frame())

    @t.validate("options")
    def _known_options(self, proposal: Mapping[str, Any]) -> dict[str, Any]:
        """The browser may choose what the form offers, and nothing else may be smuggled in as an argument."""
        given = dict(proposal["value"])
        try:
            signature(ANALYSES[self.kind].function).bind(None, None, **given)
        except TypeError as error:
            raise t.TraitError(str(error)) from None
        for option in ANALYSES[self.kind].options:
            if option.choices and given.get(option.name, option.default) not in option.choices:
                raise t.TraitError(f"{option.name} must be one of {', '.join(option.choices)}")
        return given

    def _scope(self) -> Scope:
        return self.selection.scope_without(self._own)

    def _given(self) -> dict[str, Any]:
        """The options that differ from what holds anyway."""
        usual = {option.name: option.default for option in self.analysis.options}
        return {name: value for name, value in self.options.items() if value != usual.get(name, ...)}

    def _compute(self, scope: Scope) -> _Shown:
        frame = answer(self.trace, self.kind, scope, self._given())
        picture = self.analysis.picture
        pictured = answer(self.trace, picture, scope) if picture else frame
        chart = ANALYSES[picture or self.kind].chart
        drawn = marks(chart, pictured) if chart and len(pictured) else Marks(pd.DataFrame())
        without_time = isinstance(chart, Stack) and not chart.part and not pictured[chart.whole].any()
        return _Shown(
            frame,
            self.analysis.sentence(frame),
            drawn,
            notes_on(self.trace, self.kind, scope),
            scope.window_ns or self.trace.extent_ns,
            pictured.empty or without_time,
        )

    def _show(self, shown: _Shown) -> None:
        frame = shown.frame
        self.sentence = shown.sentence
        self.marks, self.legend = encode(shown.drawn.table), shown.drawn.legend
        self.left_out, self.notes, self.extent = shown.drawn.left_out, list(shown.notes), list(shown.extent)
        self.table = encode(frame.head(SHOWN_ROWS))
        self.rows = len(frame)
        self.expression = self._spelled("frame")
        self.drawing = self._spelled("figure")
        if shown.nothing:
            self.status, self.message = "empty", self.sentence

    def _spelled(self, method: str) -> str:
        text = self._spell()
        given = self._given()
        if given and "frame(" in text and not text.endswith("frame()"):
            text = f"{text[:-1]}, {', '.join(f'{name}={value!r}' for name, value in given.items())})"
        return text.replace(".frame(", f".{method}(")

    def _written(self, form: str) -> bytes:
        return as_bytes(answer(self.trace, self.kind, self._scope(), self._given()), form)

    def close(self) -> None:
        """Take the part down and let go of what it holds."""
        super().close()
        self._file = None

    def __repr__(self) -> str:
        return super().__repr__().replace("(", f"({self.kind!r}, ", 1)
