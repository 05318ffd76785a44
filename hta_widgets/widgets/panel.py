"""The base of panels: an answer as a sentence, a chart, a table and a DataFrame."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd
import traitlets as t

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.charts.marks import Marks
from hta_widgets.charts.spec import Chart
from hta_widgets.widgets.computed import Computed
from hta_widgets.widgets.files import Downloads, as_bytes
from hta_widgets.widgets.notes import Note
from hta_widgets.widgets.part import variable_name
from hta_widgets.widgets.table_codec import Table, encode

if TYPE_CHECKING:
    import plotly.graph_objects as go

# A page cannot lay out a million rows; the frame in Python has them all.
SHOWN_ROWS = 500


@dataclass(frozen=True)
class PanelState:
    """An answer as a panel shows it."""

    table: pd.DataFrame  # the rows of the table, of which the page gets the first
    sentence: str  # the answer in words
    drawn: Marks  # what the chart draws
    notes: list[Note]  # details in words
    extent: list[int]  # start and end of the time that is shown, ns; [] where a chart has no axis of time
    nothing: bool  # no row to draw, or none with any time in the selection


class Panel(Downloads, Computed):
    """A panel of one entry of a registry; subclasses say of what (`frame`, `_compute`)."""

    _view = t.Unicode("breakdown").tag(sync=True)
    _from_browser: ClassVar[Sequence[str]] = ("options",)

    kind = t.Unicode(help="name of the analysis").tag(sync=True)
    label = t.Unicode(help="heading").tag(sync=True)
    title = t.Unicode(help="the question that the panel answers").tag(sync=True)
    sentence = t.Unicode(help="the answer in words").tag(sync=True)
    chart: t.Dict[str, Any] = t.Dict(
        help="how to draw the answer: type and fields of a chart of `charts.spec`"
    ).tag(sync=True)
    marks = Table(help="what the chart draws").tag(sync=True)
    legend: t.List[str] = t.List(
        help="names of the chart's lines, or the bands and strips of many ranks"
    ).tag(sync=True)
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

    _analysis: Analysis

    def _describe(
        self,
        analysis: Analysis,
        chart: Chart | None,
        options: dict[str, Any],
        python_expression: Callable[[], str] | None,
    ) -> dict[str, Any]:
        """The traits that an entry gives its panel.

        Raises:
            TypeError: the analysis has no such option.
        """
        signature(analysis.function).bind(None, None, **options)
        self._analysis = analysis
        self._python_expression = python_expression or (lambda: f"{variable_name(self, 'panel')}.frame()")
        return {
            "kind": analysis.kind,
            "label": analysis.label,
            "title": analysis.title,
            "chart": {"type": type(chart).__name__.lower(), **asdict(chart)} if chart else {},
            "form": [asdict(option) for option in analysis.options],
            "options": options,
        }

    @property
    def analysis(self) -> Analysis:
        """The entry of the registry that the panel shows."""
        return self._analysis

    def frame(self) -> pd.DataFrame:
        """The DataFrame that the panel shows; see the analysis of the same name for its columns."""
        raise NotImplementedError

    def figure(self) -> go.Figure:
        """The plotly figure of `frame()`."""
        return self.analysis.figure(self.frame())

    @t.validate("options")
    def _known_options(self, proposal: Mapping[str, Any]) -> dict[str, Any]:
        """The browser may set only the options of the form, to no other values than it offers."""
        given = dict(proposal["value"])
        try:
            signature(self.analysis.function).bind(None, None, **given)
        except TypeError as error:
            raise t.TraitError(str(error)) from None
        try:
            json.dumps(given, allow_nan=False, default=str)
        except ValueError:
            raise t.TraitError("an option is no number that JSON lacks") from None
        for option in self.analysis.options:
            if option.choices and given.get(option.name, option.default) not in option.choices:
                raise t.TraitError(f"{option.name} must be one of {', '.join(option.choices)}")
        return given

    def _given(self) -> dict[str, Any]:
        """The options that differ from the defaults."""
        usual = {option.name: option.default for option in self.analysis.options}
        return {name: value for name, value in self.options.items() if value != usual.get(name, ...)}

    def _show(self, shown: PanelState) -> None:
        self.sentence = shown.sentence
        self.marks, self.legend = encode(shown.drawn.table), shown.drawn.legend
        self.left_out, self.notes, self.extent = shown.drawn.left_out, list(shown.notes), list(shown.extent)
        self.table = encode(shown.table.head(SHOWN_ROWS))
        self.rows = len(shown.table)
        self.expression = self._python_of("frame")
        self.drawing = self._python_of("figure")
        if shown.nothing:
            self.status, self.message = "empty", self.sentence

    def _python_of(self, method: str) -> str:
        text = self._python_expression()
        given = self._given()
        if given and "frame(" in text and not text.endswith("frame()"):
            text = f"{text[:-1]}, {', '.join(f'{name}={value!r}' for name, value in given.items())})"
        return text.replace(".frame(", f".{method}(")

    def _written(self, form: str) -> bytes:
        return as_bytes(self.frame(), form)

    def close(self) -> None:
        """Take the part down and let go of what it holds."""
        super().close()
        self._file = None

    def __repr__(self) -> str:
        return super().__repr__().replace("(", f"({self.kind!r}, ", 1)
