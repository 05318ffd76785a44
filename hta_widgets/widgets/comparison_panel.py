"""A panel with one comparison of runs: a sentence, a chart, a table and a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd
import traitlets as t

from hta_widgets.analysis.compare.check_table import check_table
from hta_widgets.analysis.compare.registry import COMPARISONS
from hta_widgets.charts.marks import Marks, marks
from hta_widgets.engine import UI_LOCK, start
from hta_widgets.formatting import capitalised
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.answer_cache import cached_comparison
from hta_widgets.widgets.changed_lines import COLUMNS, changed_lines
from hta_widgets.widgets.files import as_bytes
from hta_widgets.widgets.of_runs import OfRuns
from hta_widgets.widgets.panel import Panel, PanelState
from hta_widgets.widgets.part import describe
from hta_widgets.widgets.runs import Selections, opened, selections_of

_SEVERITIES = {"doubt": "warning", "refuse": "error"}


class Sort(t.TraitType[list[Any], Any]):
    """[column, descending], or [] for the order of the answer."""

    info_text = "[] or [column of the table, whether descending]"
    default_value: Any = ()

    def validate(self, obj: t.HasTraits, value: Any) -> list[Any]:
        given = list(value) if isinstance(value, list | tuple) else [value]
        if given and (len(given) != 2 or given[0] not in COLUMNS or not isinstance(given[1], bool)):
            self.error(obj, value)
        return given


class Line(t.TraitType[tuple[str, str] | None, Any]):
    """(kind, line) of a row of `diff`, or None."""

    info_text = "None or a pair of texts (kind, line)"
    default_value = None

    def validate(self, obj: t.HasTraits, value: Any) -> tuple[str, str] | None:
        if value is None:
            return None
        pair = list(value) if isinstance(value, list | tuple) else []
        if len(pair) != 2 or not all(isinstance(text, str) for text in pair):
            self.error(obj, value)
        return pair[0], pair[1]


@dataclass(frozen=True)
class _Asked:
    """What the panel shows, apart from the runs."""

    scopes: Mapping[str, Scope]
    options: Mapping[str, Any]
    search: str
    sort: list[Any]
    only_significant: bool


@dataclass(frozen=True)
class _Compared(PanelState):
    doubts: list[dict[str, str]]


class ComparisonPanel(OfRuns, Panel):
    """A comparison of two or more runs, of what is selected in each; follows the selections.

    In the panel of "diff" lines can be searched, sorted and chosen; its table has the rows of all runs but
    the first, `frame()` all of them.

    Args:
        runs: {name: open `Trace`, or anything `Trace.open` takes}; the first is the base that the others are
            compared with.
        kind: a key of `analysis.COMPARISONS`, such as "step_waterfall" or "diff".
        selections: {name: the `Selection` of that run, to share with other parts}.
        python_expression: returns the Python expression of the panel's frame, for its export menu.
        options: further arguments of the comparison, such as `by="op"` for "diff".

    Raises:
        ValueError: there is no comparison `kind`, or fewer than two runs.
        TypeError: the comparison has no such option.

    >>> ComparisonPanel({"before": a, "after": b}, "diff", by="op")    # doctest: +SKIP
    """

    _depends: ClassVar = ("options", "search", "sort", "only_significant")
    _from_browser: ClassVar[Sequence[str]] = ("search", "sort", "only_significant", "line")

    search = t.Unicode(None, allow_none=True, help="text that the lines shown hold; None: no lines").tag(
        sync=True
    )
    sort = Sort(help="[column, descending], or [] for the line that changed most first").tag(sync=True)
    only_significant = t.Bool(False, help="whether changes that are not significant are left out").tag(
        sync=True
    )
    line = Line(help="(kind, line) of the chosen row, or None").tag(sync=True)
    doubts: t.List[Any] = t.List(help="reasons to doubt the comparison: [{severity, text}]")

    def __init__(
        self,
        runs: Mapping[str, Any],
        kind: str = "diff",
        *,
        selections: Selections | None = None,
        python_expression: Callable[[], str] | None = None,
        **options: Any,
    ) -> None:
        analysis = COMPARISONS[known_comparison(kind)]
        described = self._describe(analysis, analysis.chart, options, python_expression)
        self._runs = opened(runs)
        self._trace = next(iter(self._runs.values()))
        self.selections = selections_of(list(self._runs), selections)
        lines = {"search": ""} if kind == "diff" else {}
        start()
        with UI_LOCK:
            self._bind(next(iter(self.selections.values())), {**described, **lines})
            self._follow(self.selections)

    @property
    def runs(self) -> dict[str, Trace]:
        """The runs by name."""
        return dict(self._runs)

    def frame(self) -> pd.DataFrame:
        """The DataFrame of the comparison with all runs; see the function of the same name for columns."""
        question = self._question()
        return cached_comparison(self._runs, self.kind, question.scopes, question.options).copy()

    @t.observe("options")
    def _other_lines(self, change: Any) -> None:
        """Other options make other lines, so none is chosen."""
        before = change["old"] or {}
        if isinstance(before, dict) and before.get("by") != self.options.get("by"):
            self.line = None

    def _question(self) -> _Asked:
        with UI_LOCK:
            return _Asked(
                {run: selection.scope for run, selection in self.selections.items()},
                self._given(),
                self.search or "",
                self.sort,
                self.only_significant,
            )

    def _compute(self, question: _Asked) -> _Compared:
        frame = cached_comparison(self._runs, self.kind, question.scopes, question.options)
        chart = self.analysis.chart
        return _Compared(
            self._readable(frame, question),
            self.analysis.sentence(frame),
            marks(chart, frame) if chart and len(frame) else Marks(pd.DataFrame()),
            [],
            [],
            frame.empty,
            _doubts(frame) if self.kind == "comparability" else [],
        )

    def _readable(self, frame: pd.DataFrame, question: _Asked) -> pd.DataFrame:
        """The rows and columns of the frame that the table shows."""
        if self.kind == "diff":
            return changed_lines(frame, question.search, question.sort, question.only_significant)
        return check_table(frame) if self.kind == "comparability" else frame

    def _written(self, form: str) -> bytes:
        return as_bytes(self._readable(self.frame(), self._question()), form)

    def _show(self, shown: PanelState) -> None:
        super()._show(shown)
        if isinstance(shown, _Compared):
            self.doubts = shown.doubts

    def __repr__(self) -> str:
        runs = [f"{name!r}: {describe(trace)}" for name, trace in self._runs.items()]
        return f"{type(self).__name__}({self.kind!r}, {'; '.join(runs)})"


def known_comparison(kind: str) -> str:
    """`kind`, if there is such a comparison.

    Raises:
        ValueError: there is none; the message lists those there are.
    """
    if kind not in COMPARISONS:
        raise ValueError(f"there is no comparison {kind!r}; the comparisons are {', '.join(COMPARISONS)}")
    return kind


def _doubts(frame: pd.DataFrame) -> list[dict[str, str]]:
    """What a `comparability` frame says, as notices; refusals first."""
    worse = frame[frame["severity"].isin(_SEVERITIES)].drop_duplicates("check")
    worse = worse.sort_values("severity", ascending=False, kind="stable")
    runs = tuple(frame["run"].unique())
    return [
        {"severity": _SEVERITIES[severity], "text": f"{_begun(reason, runs)}."}
        for severity, reason in zip(worse["severity"], worse["reason"], strict=True)
    ]


def _begun(sentence: str, names: tuple[str, ...]) -> str:
    """With a capital, unless it begins with a name."""
    return sentence if sentence.startswith(names) else capitalised(sentence)
