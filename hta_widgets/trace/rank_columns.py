"""One rank's slices as aligned columns: what its file says of each, with its class and its place.

Columns are built on first use. Rows are in file order; `event_id` is the row of the `EventTable`, which holds
the arguments. Times are int64 ns on the job's axis (see `clocks`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hta_widgets.arrays import Bool, Int32, Int64
from hta_widgets.trace.classify import EventClass, Rule, classify_events, registered
from hta_widgets.trace.ordering import among
from hta_widgets.trace.rank_events import RankEvents
from hta_widgets.trace.reader.schema import KINDS, NULL, Kind
from hta_widgets.trace.reader.table import EventTable
from hta_widgets.trace.slices import Slices

Made = TypeVar("Made")

_LOOK = 1 << 12  # events that are looked at together
_LAST_NUMBER = re.compile(r"(?:^| )(-?[0-9]{1,18})\Z")
# The columns that number calls as they are made, and of which classes.
_NUMBERED = {
    "python_id": (EventClass.PYTHON,),
    "correlation": (EventClass.RUNTIME,),
    "external_id": (EventClass.HOST_OP, EventClass.ANNOTATION),
    "ev_idx": (EventClass.HOST_OP, EventClass.ANNOTATION, EventClass.PYTHON),
}


class RankColumns:
    """The slices of one rank, as its file has them.

    Attributes:
        rank, label, path: the rank's number, how to show it, and its file.
        events: the events of the file, which several ranks may show; ``table``: as columns.
        metadata: the file's top-level keys.
        rules: the user's rules for classes of device work, which come before the built-in ones.
        n: number of slices. All arrays below have this length.
        event_id: int32 row in ``table``.
        start, end, dur: int64 ns on the job's axis.
        name, category, pid, tid: int32 codes into ``names``, ``categories``, ``pids``, ``tids`` (never
            negative).
        event_class: uint8 `EventClass`.
        is_device: bool, work of the accelerator (no waiting, no annotations).
        unclassified: bool, the class is a guess.
    """

    def __init__(
        self,
        events: RankEvents | EventTable,
        rank: int,
        label: str | None = None,
        offset_ns: int = 0,
        kept: Bool | None = None,
        rules: Sequence[Rule] | None = None,
    ) -> None:
        self.events = RankEvents.of(events) if isinstance(events, EventTable) else events
        self.rank, self.label, self.path = rank, label or str(rank), self.events.header.path
        self.metadata: dict[str, Any] = self.events.header.metadata
        self.rules = registered() if rules is None else tuple(rules)
        self._kept = None if kept is None else (len(kept), np.packbits(kept))
        self.offset_ns = offset_ns
        self._columns: dict[str, Any] = {}  # what no clock changes: shared with this rank by other clocks

    @property
    def table(self) -> EventTable:
        """All events of the file."""
        return self.events.table

    @property
    def slices(self) -> Slices:
        """The slices as in the file."""
        slices = self.events.slices
        if self._kept is None:
            return slices
        length, bits = self._kept
        return slices.keep(np.unpackbits(bits, count=length).view(np.bool_))

    @cached_property
    def n(self) -> int:
        if self._kept is None:
            return self.events.header.slices
        length, bits = self._kept
        return int(np.unpackbits(bits, count=length).sum())

    def _column(self, name: str, make: Callable[[], Made]) -> Made:
        """What `make` returns, made once for this rank by any clock."""
        known: Made | None = self._columns.get(name)
        return self._columns.setdefault(name, make()) if known is None else known

    @property
    def _times(self) -> tuple[Int32, Int64, Int64]:
        return self._column("times", self._read_times)

    def _read_times(self) -> tuple[Int32, Int64, Int64]:
        slices = self.slices
        return slices.rows, slices.start - self.offset_ns, slices.dur

    @property
    def event_id(self) -> Int32:
        return self._times[0]

    @property
    def start(self) -> Int64:
        return self._times[1]

    @property
    def dur(self) -> Int64:
        return self._times[2]

    @cached_property
    def end(self) -> Int64:
        return self.start + self.dur

    @property
    def _texts(self) -> dict[str, tuple[Int32, list[str]]]:
        columns = ("name", "category", "pid", "tid")
        return self._column("texts", lambda: {column: self._text(column) for column in columns})

    @property
    def name(self) -> Int32:
        return self._texts["name"][0]

    @property
    def names(self) -> list[str]:
        return self._texts["name"][1]

    @property
    def category(self) -> Int32:
        return self._texts["category"][0]

    @property
    def categories(self) -> list[str]:
        return self._texts["category"][1]

    @property
    def pid(self) -> Int32:
        return self._texts["pid"][0]

    @property
    def pids(self) -> list[str]:
        return self._texts["pid"][1]

    @property
    def tid(self) -> Int32:
        return self._texts["tid"][0]

    @property
    def tids(self) -> list[str]:
        return self._texts["tid"][1]

    def _text(self, column: str) -> tuple[Int32, list[str]]:
        """Codes and texts of a column; null is the empty text, which the file may have as well."""
        table = self.table
        codes, texts = table.codes(column)[self.event_id], table.dictionary(column)
        null = codes < 0
        if null.any() or not texts:
            texts = texts if "" in texts else [*texts, ""]
            codes = np.where(null, texts.index(""), codes).astype(np.int32)
        return codes, texts

    @property
    def _classes(self) -> tuple[npt.NDArray[np.uint8], Bool, Bool]:
        return self._column("classes", self._classify)

    def _classify(self) -> tuple[npt.NDArray[np.uint8], Bool, Bool]:
        classes, is_device, unclassified = classify_events(
            self.category, self.categories, self.name, self.names, self.rules
        )
        # A kernel that carries collective metadata is communication, whatever its name.
        if self.table.has("collective_name"):
            collective = self.argument_codes("collective_name") >= 0
            classes[collective & is_device] = EventClass.COMMUNICATION
        return classes, is_device, unclassified

    @property
    def event_class(self) -> npt.NDArray[np.uint8]:
        return self._classes[0]

    @property
    def is_device(self) -> Bool:
        return self._classes[1]

    @property
    def unclassified(self) -> Bool:
        return self._classes[2]

    @cached_property
    def device_rows(self) -> Int64:
        """int64 rows of the accelerator's work. Shared: not to be changed."""
        rows = np.flatnonzero(self.is_device)
        rows.flags.writeable = False
        return rows

    @cached_property
    def compute_rows(self) -> Int64:
        """int64 rows of the accelerator's computing. Shared: not to be changed."""
        rows: Int64 = self.device_rows[self.event_class[self.device_rows] == EventClass.COMPUTE]
        rows.flags.writeable = False
        return rows

    def argument(self, column: str) -> npt.NDArray[Any]:
        """The values of a numeric column for each row.

        Args:
            column: a name of `schema`, whether or not the file has it.

        Returns:
            int64 with `schema.NULL` where absent, or float64 with NaN for the columns that hold fractions.

        Raises:
            ValueError: there is no such column, or it holds text.
        """
        kind = self._kind(column)
        if kind in ("text", "json"):
            raise ValueError(f"column {column!r} holds text: use argument_codes")
        if kind == "float":
            return self._values(column, np.nan, np.dtype(np.float64))
        return self._values(column, NULL, np.dtype(np.int64))

    def argument_of(self, column: str, rows: Int64) -> Int64:
        """The same as ``argument(column)[rows]`` of a column of whole numbers, for few rows."""
        if self._kind(column) != "int":
            return self.argument(column)[rows]
        return self.table.ints_of(column, self.event_id[rows])

    def argument_codes_of(self, column: str, rows: Int64) -> Int32:
        """The same as ``argument_codes(column)[rows]``, for few rows."""
        if self._kind(column) in ("int", "float"):
            return self.argument_codes(column)[rows]  # which says that it holds numbers
        return self.table.codes_of(column, self.event_id[rows])

    def argument_codes(self, column: str) -> Int32:
        """The texts of a text or JSON column for each row, as codes.

        Args:
            column: a name of `schema`, whether or not the file has it, or of an extra argument that was read.

        Returns:
            int32 codes into ``table.dictionary(column)``, -1 where absent.

        Raises:
            ValueError: there is no such column, or it holds numbers.
        """
        if self._kind(column) in ("int", "float"):
            raise ValueError(f"column {column!r} holds numbers: use argument")
        return self._values(column, -1, np.dtype(np.int32))

    def has_argument(self, column: str) -> bool:
        """Whether any row has a value in a column of texts or whole numbers."""
        event, found = self.table.sparse(column)
        null = NULL if self._kind(column) == "int" else -1
        # where a column is recorded at all, one of its first events is mostly a row
        return any(
            ((self.row_of_event[event[at : at + _LOOK]] >= 0) & (found[at : at + _LOOK] != null)).any()
            for at in range(0, len(event), _LOOK)
        )

    def recorded(self, column: str) -> tuple[Int32, npt.NDArray[Any]]:
        """The rows that have a column of the table, ascending, and what it holds there: cheap where few do.

        Args:
            column: as for `argument`, or for `argument_codes` if it holds text.
        """
        event, found = self.table.sparse(column)
        row = self.row_of_event[event]
        kept = row >= 0
        return (row, found) if kept.all() else (row[kept], found[kept])

    def _values(self, column: str, null: float, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """A column of the table for each row, `null` where absent."""
        values = np.full(self.n, null, dtype)
        row, found = self.recorded(column)
        values[row] = found
        return values

    @cached_property
    def row_of_event(self) -> Int32:
        """int32 row of each event of the table, -1 for those that are none."""
        row = np.full(self.table.n, -1, np.int32)
        row[self.event_id] = np.arange(self.n, dtype=np.int32)
        return row

    def _kind(self, column: str) -> Kind:
        """What a column holds; the extra arguments of a scan, which `schema` does not know, are JSON."""
        if column in KINDS:
            return KINDS[column]
        if column in self.table.columns:
            return "json"
        names = ", ".join(sorted({*KINDS, *self.table.columns}))
        raise ValueError(f"no column {column!r}; there are {names}")

    @cached_property
    def _on_device_side(self) -> Bool:
        """Rows on the device's tracks: its work, its waits and its side of annotations."""
        named = np.array([text.startswith("gpu_") for text in self.categories], np.bool_)
        waits: Bool = self.event_class == EventClass.SYNC
        return self.is_device | waits | named[self.category]

    @cached_property
    def on_host(self) -> Bool:
        """bool, rows of the host: on no stream, and no work of the accelerator."""
        on_host: Bool = ~self.is_device & (self.stream == NULL)
        return on_host

    @cached_property
    def correlation(self) -> Int64:
        """int64 id that ties device rows to their launching call, NULL where absent."""
        return self.argument("correlation")

    @cached_property
    def device(self) -> Int64:
        """int64 device of device-side rows: their argument, else the number in their pid; NULL elsewhere."""
        return self._placed("device", self.pid, self.pids)

    @cached_property
    def stream(self) -> Int64:
        """int64 stream of device-side rows: their argument, else the number in their tid; NULL elsewhere.

        A compiled Triton launch is a host call though it carries a stream: it has none here.
        """
        return self._placed("stream", self.tid, self.tids)

    def _placed(self, argument: str, code: Int32, texts: list[str]) -> Int64:
        placed = np.full(self.n, NULL, np.int64)
        rows = np.flatnonzero(self._on_device_side)
        placed[rows] = np.array([_number_in(text) for text in texts], np.int64)[code[rows]]
        stated, found = self.recorded(argument)
        known = self._on_device_side[stated] & (found != NULL)
        placed[stated[known]] = found[known]
        return placed

    @cached_property
    def thread(self) -> Int64:
        """int64 number of the thread (or stream) that each row is on: one per pid and tid."""
        return self.pid.astype(np.int64) * len(self.tids) + self.tid

    @cached_property
    def extent(self) -> tuple[int, int]:
        """(first start, last end) of all rows in ns; (0, 0) without rows."""
        known = self.events.header.extent
        if self._kept is None and known is not None:
            return known[0] - self.offset_ns, known[1] - self.offset_ns
        return (int(self.start.min()), int(self.end.max())) if self.n else (0, 0)

    @cached_property
    def by_start(self) -> Int64:
        """int64 row positions sorted by start, then in the order of the calls, then of the file."""
        order = np.argsort(self.start, kind="stable")
        start = self.start[order]
        tied = np.zeros(len(order) + 1, np.bool_)
        tied[1:-1] = start[1:] == start[:-1]
        places = np.flatnonzero(tied[1:] | tied[:-1])
        rows = order[places]
        order[places] = rows[np.lexsort((self._call_number(rows), self.event_class[rows], start[places]))]
        return order

    def _call_number(self, rows: Int64) -> Int64:
        """For each of these rows a number that grows from call to call of its class on a thread; 0 for none.

        Files that were merged, or sorted anew, hold calls of equal times in another order.
        """
        number = np.zeros(len(rows), np.int64)
        event_class = self.event_class[rows]
        for column, classes in _NUMBERED.items():
            at = np.flatnonzero(among(event_class, classes) & (number == 0))
            if len(at):
                number[at] = np.maximum(self.argument_of(column, rows[at]), 0)
        return number


def _number_in(text: str) -> int:
    """The number at the end of a pid or tid: 7 for ``"7"`` and ``"stream 7"``, NULL for ``"Spans"``."""
    match = _LAST_NUMBER.search(text)
    return int(match[1]) if match else NULL
