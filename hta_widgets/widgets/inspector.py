"""The inspector: all that is known about the event, the gap or the window that is selected."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import pandas as pd
import traitlets as t

from hta_widgets.analysis.inspect.event import inspect_event, with_replay
from hta_widgets.analysis.inspect.gap import GapFacts, inspect_gap
from hta_widgets.analysis.inspect.record import EventFacts
from hta_widgets.analysis.inspect.step_difference import difference_of
from hta_widgets.analysis.inspect.steps import compare_iterations
from hta_widgets.analysis.inspect.window import WINDOW_BY, WindowBy, inspect_window, same_stretch
from hta_widgets.engine import UI_LOCK
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import counted
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.answer_cache import cached_analysis
from hta_widgets.widgets.chosen_events import Chosen, chosen_frame
from hta_widgets.widgets.computed import Computed
from hta_widgets.widgets.files import Downloads, as_bytes
from hta_widgets.widgets.inspector_content import (
    Content,
    area_content,
    event_content,
    gap_content,
    host_steps_content,
    nothing_content,
    steps_content,
)
from hta_widgets.widgets.part import variable_name
from hta_widgets.widgets.rpc import rpc_method
from hta_widgets.widgets.selection import Focus, Gap, Integers, Selection, Window
from hta_widgets.widgets.table_codec import Table, encode

MOST_RANKS = 8  # whose statistics of a window are shown
MOST_ROWS = 100


class _Question(NamedTuple):
    trace: Trace
    focus: tuple[int, int] | None
    gap: tuple[int, int, int] | None
    scope: Scope
    by: WindowBy


class _Answer(NamedTuple):
    """What is shown; `more`: computes a fuller answer to the same question."""

    content: Content
    table: pd.DataFrame | None = None
    facts: EventFacts | GapFacts | None = None
    more: Callable[[], Any] | None = None


class Inspector(Downloads, Computed):
    """All that a trace holds about what is selected.

    That is an event, else a gap of a stream, else a window of time, else two iterations that are compared.

    Every event that it names is a link, which selects that event.

    Args:
        trace: an open `Trace`, or anything `Trace.open` takes.
        selection: the `Selection` to share with other parts.
        trace_expression: the Python expression of the trace, for "Copy as Python"; default: the notebook's
            variable.

    >>> inspector = Inspector(trace)                        # doctest: +SKIP
    >>> inspector.focus = (0, 1234)                         # doctest: +SKIP
    >>> inspector.facts                                     # doctest: +SKIP
    """

    _view = t.Unicode("inspector").tag(sync=True)
    _depends = ("focus", "gap", "window", "ranks", "iterations", "streams", "by")
    _from_browser: ClassVar[Sequence[str]] = ("by",)

    focus = Focus(help="(rank, event_id) of the event looked at, or None").tag(sync=True)
    gap = Gap(help="(rank, stream, time_ns) of the gap looked at, or None").tag(sync=True)
    window = Window(help="selected (start, end) in ns; None means all time").tag(sync=True)
    ranks = Integers(help="ranks whose window is looked at; () means all").tag(sync=True)
    iterations = Integers(help="selected iterations; () means all")
    streams = Integers(help="selected streams; () means all")
    by = t.Enum(WINDOW_BY, "name", help="what a row of `table` is").tag(sync=True)
    content: t.Dict[str, Any] = t.Dict(help="what is shown, as `inspector_content` makes it").tag(sync=True)
    table = Table(help="statistics of the window").tag(sync=True)
    python = t.Unicode(help="Python expression of what is shown").tag(sync=True)

    def __init__(
        self,
        trace: Any,
        *,
        selection: Selection | dict[str, Any] | None = None,
        trace_expression: Callable[[], str] | None = None,
    ) -> None:
        self._trace_expression = trace_expression or (lambda: variable_name(self.trace, "trace"))
        self._facts: EventFacts | GapFacts | None = None
        super().__init__(trace, selection=selection)

    @property
    def facts(self) -> EventFacts | GapFacts | None:
        """What is known about the event or the gap that is shown, as `analysis.inspect_event` and
        `analysis.inspect_gap` give it; None for a window, and before the answer is there.
        """
        return self._facts

    @rpc_method("json")
    def _json(self, _params: dict[str, Any]) -> str:
        if self._facts is None:
            raise LookupError("there is no answer yet")
        return json.dumps(self._facts.to_dict(), indent=1)

    def _question(self) -> _Question:
        return _Question(self.trace, self.focus, self.gap, self.selection.scope, self.by)

    def _compute(self, question: _Question) -> _Answer:
        trace, focus, gap = question.trace, question.focus, question.gap
        if focus is not None:
            facts = inspect_event(trace, *focus, replay=False)
            return _Answer(event_content(facts), facts=facts, more=lambda: _replayed(trace, facts))
        if gap is not None:
            found = inspect_gap(trace, *gap)
            if found is None:
                return _Answer({**nothing_content(), "title": "The stream runs something then"})
            return _Answer(gap_content(found), facts=found)
        if question.scope.window_ns is not None:
            return _area(trace, question.scope, question.scope.window_ns, question.by)
        if len(question.scope.iterations or ()) == 2:
            return _steps(trace, question.scope)
        return _Answer(nothing_content())

    def _written(self, form: str) -> bytes:
        """The events of the selection, as `TraceExplorer.events` has them."""
        return as_bytes(chosen_frame(self.trace, Chosen.by(self.selection)), form)

    def _deliver(self, answer: _Answer) -> None:
        with UI_LOCK, self.hold_sync():
            self.message = ""
            self._show(answer)
            if answer.more is not None:
                self._latest.submit(answer.more)
            elif self.status == "busy":  # last: a waiting thread then finds the answer in place
                self.status = "idle"

    def _show(self, answer: _Answer) -> None:
        self._facts = answer.facts
        self.content = answer.content
        self.table = None if answer.table is None else encode(answer.table)
        self.python = self._python(answer.content["kind"])

    def _fail(self, error: BaseException) -> None:
        with UI_LOCK, self.hold_sync():
            self._show(_Answer(nothing_content()))
            super()._fail(error)

    def _python(self, kind: str) -> str:
        name = self._trace_expression()
        if kind == "event" and self.focus is not None:
            return f"analysis.inspect_event({name}, {self.focus[0]}, {self.focus[1]})"
        if kind == "gap" and self.gap is not None:
            return f"analysis.inspect_gap({name}, {', '.join(map(str, self.gap))})"
        if kind == "steps":
            scope = self.selection.scope
            first, second = scope.iterations or (0, 0)
            own = replace(scope, iterations=None)
            return f"analysis.step_difference({name}, {first}, {second}, {own!r})"
        if kind == "area":
            return f"analysis.inspect_window({name}, {self.selection.scope!r}, by={self.by!r})"
        return ""


def _replayed(trace: Trace, facts: EventFacts) -> _Answer:
    fuller = with_replay(trace, facts)
    return _Answer(event_content(fuller), facts=fuller)


def _steps(trace: Trace, scope: Scope) -> _Answer:
    ranks = trace.ranks_of(scope)
    note = _left_out(len(ranks))
    own = replace(scope, ranks=tuple(ranks[:MOST_RANKS]), iterations=None)
    first, second = scope.iterations or (0, 0)
    try:
        return _Answer(steps_content(difference_of(trace, first, second, own), note))
    except MissingDataError as missing:
        note = str(missing)
    try:
        changes = compare_iterations(trace, first, second, own, "name")
    except MissingDataError:
        changes = pd.DataFrame()
    return _Answer(host_steps_content(first, second, changes, note))


def _left_out(ranks: int) -> str:
    if ranks <= MOST_RANKS:
        return ""
    return f"the first {MOST_RANKS} of {counted(ranks, 'rank')}: choose ranks to see others"


def _area(trace: Trace, scope: Scope, window: tuple[int, int], by: WindowBy) -> _Answer:
    ranks = trace.ranks_of(scope)
    note = _left_out(len(ranks))
    scope = replace(scope, ranks=tuple(ranks[:MOST_RANKS]))
    empty = pd.DataFrame()
    try:
        busy = cached_analysis(trace, "temporal_breakdown", scope)
        idle = cached_analysis(trace, "idle_breakdown", scope)
    except MissingDataError:
        busy, idle = empty, empty
    elsewhere: pd.DataFrame | str = "no rank is selected"
    try:
        elsewhere = same_stretch(trace, ranks[0], window) if ranks else elsewhere
    except MissingDataError as error:
        elsewhere = error.detail or str(error)
    try:
        table = inspect_window(trace, scope, by).head(MOST_ROWS)
    except MissingDataError as error:
        table, note = empty, str(error)
    return _Answer(area_content(window, busy, idle, elsewhere, note), table)
