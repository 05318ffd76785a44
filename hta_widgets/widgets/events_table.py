"""The table of the selected events: sorted, searched and read page by page, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import pandas as pd
import traitlets as t

from hta_widgets.arrays import Int32
from hta_widgets.engine import UI_LOCK
from hta_widgets.trace.model import Trace
from hta_widgets.widgets.chosen_events import Chosen, chosen_frame
from hta_widgets.widgets.column_filters import Filters, checked, expression
from hta_widgets.widgets.computed import Computed
from hta_widgets.widgets.event_columns import (
    DEFAULT_COLUMNS,
    KNOWN_COLUMNS,
    NATURAL,
    available_columns,
    is_text,
)
from hta_widgets.widgets.event_order import EventList, sorting
from hta_widgets.widgets.files import Downloads, as_bytes
from hta_widgets.widgets.part import variable_name
from hta_widgets.widgets.rpc import rpc_method
from hta_widgets.widgets.selection import Focus, Integers, Names, Selection, Window
from hta_widgets.widgets.table_codec import encode

MOST_ROWS = 1000  # of a page

# The view needs these of every event, shown or not: to focus it, to choose its name and to colour it.
_ALWAYS = ("rank", "event_id", "name", "event_class")


@dataclass(frozen=True)
class PanelState:
    """What the table shows: the chosen events in an order."""

    events: EventList
    order: Int32 | None
    sort: str


class _Question(NamedTuple):
    trace: Trace
    chosen: Chosen
    filters: Filters
    sort: str
    events: EventList | None


class EventsTable(Downloads, Computed):
    """The selected events, one row each; follows the selection, its names and its query.

    Args:
        trace: an open `Trace`, or anything `Trace.open` takes.
        selection: the `Selection` to share with other parts.
        sort: column to sort by, prefixed with "-" to sort descending; "" sorts by rank and start.
        columns: the columns to show.
        height: height in CSS pixels.
        python_expression: returns the Python expression of the selected events, for the export menu.

    >>> table = EventsTable(trace, sort="-dur_ns")          # doctest: +SKIP
    >>> table.selection.query = "nccl"                      # doctest: +SKIP
    >>> table.frame()                                       # doctest: +SKIP
    """

    _view = t.Unicode("events").tag(sync=True)
    _from_browser: ClassVar[Sequence[str]] = ("sort", "columns", "height", "filters")
    _depends: ClassVar = ("ranks", "iterations", "window", "streams", "names", "query", "sort", "filters")

    ranks = Integers(help="ranks; () means all")
    iterations = Integers(help="iterations; () means all")
    window = Window(help="(start, end) in ns; None means all time")
    streams = Integers(help="streams; () means all")
    names = Names(help="exact names of the chosen events; () means all").tag(sync=True)
    query = t.Unicode("", help="text to search for in the names of events").tag(sync=True)
    focus = Focus(help="(rank, event_id) of the focused event, or None").tag(sync=True)

    sort = t.Unicode("", help='column to sort by, "-" in front: descending; "" by rank and start').tag(
        sync=True
    )
    columns = t.Tuple(help="names of the columns shown").tag(sync=True)
    filters: t.Dict[str, Any] = t.Dict(
        help="filters by column: a text that its values hold, or (least, greatest), None for no limit"
    ).tag(sync=True)
    height = t.Int(360, min=120, help="height in CSS pixels").tag(sync=True)

    available_columns: t.List[Any] = t.List(help="the columns there are: [{name, title, type}]").tag(
        sync=True
    )
    rows = t.Int(help="number of selected events").tag(sync=True)
    total = t.Int(help="number of events in the trace").tag(sync=True)
    version = t.Int(help="counts the answers: pages of an older one are void").tag(sync=True)
    expression = t.Unicode(help="Python expression of the events as they are shown").tag(sync=True)

    _shown: PanelState | None = None

    def __init__(
        self,
        trace: Any,
        *,
        selection: Selection | dict[str, Any] | None = None,
        sort: str = "",
        columns: tuple[str, ...] = DEFAULT_COLUMNS,
        height: int = 360,
        python_expression: Callable[[], str] | None = None,
    ) -> None:
        self._python_expression = python_expression or (lambda: f"{variable_name(self, 'table')}.frame()")
        super().__init__(trace, selection=selection, sort=sort, columns=tuple(columns), height=height)

    def close(self) -> None:
        """Close the table and release its data."""
        super().close()
        self._shown = self._file = None

    def frame(self) -> pd.DataFrame:
        """The selected events, by rank and start, whatever filters; columns as in `Trace.events`."""
        return chosen_frame(self.trace, Chosen.by(self.selection))

    @t.validate("sort")
    def _known_sort(self, proposal: Any) -> str:
        value: str = proposal["value"]
        if value:
            _known(sorting(value)[0])
        return value

    @t.validate("filters")
    def _known_filters(self, proposal: Any) -> dict[str, Any]:
        return dict(checked(proposal["value"]))

    @t.validate("columns")
    def _known_columns(self, proposal: Any) -> tuple[str, ...]:
        return tuple(dict.fromkeys(_known(name) for name in proposal["value"]))

    # -- the answer

    def _question(self) -> _Question:
        events = self._shown.events if self._shown else None
        return _Question(
            self.trace, Chosen.by(self.selection), tuple(self.filters.items()), self.sort, events
        )

    def _compute(self, question: _Question) -> tuple[PanelState, list[dict[str, str]]]:
        trace, chosen, filters, sort, events = question
        if events is None or (events.trace, events.chosen, events.filters) != (trace, chosen, filters):
            events = EventList(trace, chosen, filters, events)
        columns = self.available_columns or available_columns(trace)
        return PanelState(events, events.order(sort), sort), columns

    def _show(self, result: tuple[PanelState, list[dict[str, str]]]) -> None:
        self._shown, self.available_columns = result
        self.rows, self.total = self._shown.events.n, self.trace.summary["events"]
        filters = expression(self._shown.events.filters)
        self.expression = self._python_expression() + filters + _sort_expression(self._shown.sort)
        self.version += 1
        if not self.rows:
            passed = self._shown.events.kept is not None and len(self._shown.events.kept)
            self.status = "empty"
            self.message = "No event passes the filters." if passed else "No event lies in the selection."

    # -- what the view asks

    @rpc_method("page")
    def _page(self, params: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        shown, version = self._now()
        first, count = max(int(params["first"]), 0), min(int(params["count"]), MOST_ROWS)
        columns = dict.fromkeys([*_ALWAYS, *(_known(name) for name in params["columns"])])
        table = encode(shown.events.page(shown.order, first, count, list(columns)))
        data = table.pop("data")
        return {**table, "version": version}, [data]

    @rpc_method("distribution")
    def _distribution(self, params: dict[str, Any]) -> dict[str, Any]:
        shown, _ = self._now()
        return shown.events.unfiltered.distribution(_known(params["column"]))

    @rpc_method("find")
    def _find(self, params: dict[str, Any]) -> dict[str, int]:
        shown, version = self._now()
        place = shown.events.find(shown.order, int(params["rank"]), int(params["event_id"]))
        return {"row": place, "version": version}

    def _written(self, form: str) -> bytes:
        shown, _ = self._now()
        frame = chosen_frame(shown.events.trace, shown.events.chosen)
        if shown.events.kept is not None:
            frame = frame[shown.events.kept].reset_index(drop=True)
        return as_bytes(frame if shown.order is None else frame.take(shown.order), form)

    def _now(self) -> tuple[PanelState, int]:
        with UI_LOCK:
            if self._shown is None:
                raise LookupError("the table is not ready")
            return self._shown, self.version


def _known(name: str) -> str:
    if name not in KNOWN_COLUMNS:
        raise t.TraitError(f"no column {name!r}; the columns are {', '.join(KNOWN_COLUMNS)}")
    return name


def _sort_expression(sort: str) -> str:
    """The pandas call that sorts a frame of events like this; "" where pandas cannot."""
    name, descending = sorting(sort)
    if not sort or name in NATURAL:
        return ""
    # a categorical column sorts by its categories, which are in file order
    key = ', key=lambda text: text.astype("string")' * is_text(name)
    return f'.sort_values("{name}"{", ascending=False" * descending}{key}, kind="stable")'
