"""The events of one rank's file: in memory, or read when they are needed and dropped when memory is short.

What opening a job asks of a file (its extent, clock, host and counts) is its `Header`: about a kilobyte, kept
beside the cached columns under the same key, so that a job is opened again without reading any column.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from hta_widgets.engine import checkpoint, in_forked_child
from hta_widgets.errors import TraceFormatError
from hta_widgets.trace import kept_iterations, kept_links
from hta_widgets.trace.evidence import Evidence, evidence_of
from hta_widgets.trace.memory import Memory, bytes_of
from hta_widgets.trace.reader import cache as _cache
from hta_widgets.trace.reader.cache import Cache
from hta_widgets.trace.reader.cache_budget import SUFFIX, CacheBudget
from hta_widgets.trace.reader.file_names import TraceFile
from hta_widgets.trace.reader.merged import by_rank, note_several
from hta_widgets.trace.reader.parallel import read_file
from hta_widgets.trace.reader.ranks import Assigned, Stated
from hta_widgets.trace.reader.renumbered import renumbered, renumbered_metadata
from hta_widgets.trace.reader.scanner import Progress
from hta_widgets.trace.reader.sealed import DamagedFileError, keep, read_sealed
from hta_widgets.trace.reader.source import describe
from hta_widgets.trace.reader.table import EventTable
from hta_widgets.trace.slices import Slices, find_slices

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

Part = TypeVar("Part")

# Changes with what a header holds, and with what is marked of the records.
_VERSION = 5
_HEADERS = "headers"
# Of the budget of the cache: of 4 GiB some 30,000 headers of large files.
_PART_OF_BUDGET = 0.02
_TRIM_EVERY = 1024
_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Header:
    """What is known of a file without its columns."""

    path: str  # the file
    # how many it holds
    events: int
    slices: int
    nbytes: int  # of the columns
    # (first start, last end) of the slices in ns as in the file; None without slices
    extent: tuple[int, int] | None
    metadata: dict[str, Any]  # the top-level keys of the file
    evidence: Evidence  # what its events say about which file it is
    parts: int = 1  # how many ranks were merged into it; 1 where its processes do not tell them apart
    repair: bool = True  # records whose times cannot be true are estimated or left out; else all are believed
    marked: int = 0  # how many such records there are

    @property
    def stated(self) -> Stated:
        """What the file says of its rank."""
        return Stated(self.metadata, self.evidence.ranks, self.evidence.group)


def header_of(table: EventTable, slices: Slices, repair: bool = True) -> Header:
    """The header of a file that was read."""
    n = len(slices.rows)
    extent = (int(slices.start.min()), slices.last_end) if n else None
    parts = len(by_rank(table))
    return Header(
        table.path, table.n, n, table.nbytes, extent, table.metadata, evidence_of(table), parts, repair,
        len(slices.marked),
    )  # fmt: skip


class RankEvents:
    """The events of one file, shared by the traces that show them.

    Attributes:
        header: what is known without them.
        key: of the file's content, "" where nothing is kept on disk.
        links: where launches, nesting and iterations are kept (`kept_links`); None where they are not.
        iterations: the same of the frame of iterations (`kept_iterations`).
    """

    counted_apart = True

    def __init__(
        self,
        header: Header,
        table: EventTable | None = None,
        slices: Slices | None = None,
        reload: Callable[[], EventTable] | None = None,
        memory: Memory | None = None,
        key: str = "",
        links: Path | None = None,
        iterations: Path | None = None,
    ) -> None:
        if table is None and reload is None:
            raise ValueError("either a table or a way to read it again is required")
        self.header, self.key, self.links, self.iterations = header, key, links, iterations
        self._table, self._slices, self._reload, self._memory = table, slices, reload, memory
        self._views: WeakSet[RankTrace] = WeakSet()
        self._lock = Lock()
        self._reading: Event | None = None  # until a thread has read them again
        in_forked_child(self)
        self._shift: tuple[int, int] | None = None
        if table is not None:
            self._note_several(table)
            self.used()

    @classmethod
    def of(cls, table: EventTable, repair: bool = True) -> RankEvents:
        """The events of a table, which stay in memory."""
        slices = find_slices(table, repair)
        return cls(header_of(table, slices, repair), table, slices)

    def by_rank(self) -> list[RankEvents]:
        """Those of each rank that was merged into the file, which stay in memory; these, if it is one's."""
        if self.header.parts == 1:
            return [self]
        return [RankEvents.of(part, self.header.repair) for part in by_rank(self.table)]

    def renumber(self, assigned: Assigned) -> None:
        """Count the ranks that the file states from the first of its replica on (`Assigned.shift`)."""
        if not assigned.world or self._shift is not None:
            return
        self._shift = assigned.shift, assigned.world
        metadata = renumbered_metadata(self.header.metadata, *self._shift)
        self.header = replace(self.header, metadata=metadata)
        if self._table is not None:
            self._table = renumbered(self._table, *self._shift)

    @property
    def table(self) -> EventTable:
        """All events. Raises what reading them again raises."""
        return self._held()[0]

    @property
    def slices(self) -> Slices:
        """Those with a duration."""
        return self._held()[1]

    @property
    def here(self) -> bool:
        """They are in memory now."""
        return self._table is not None

    @property
    def stays(self) -> bool:
        """They stay in memory, since they cannot be read again."""
        return self._reload is None

    def shown_by(self, view: RankTrace) -> None:
        """A rank that is made of these events, and holds nothing either once they are dropped."""
        self._views.add(view)

    def used(self) -> None:
        """They are in use, if they are in memory."""
        if self._memory is not None and self._reload is not None and self._table is not None:
            self._memory.used(self)

    def _held(self) -> tuple[EventTable, Slices]:
        """In memory, read again by one thread at a time; without a lock, since that starts a thread."""
        while True:
            table, slices = self._table, self._slices
            if table is not None and slices is not None:
                return table, slices
            mine: Event | None = None
            try:
                with self._lock:
                    if (reading := self._reading) is None:
                        mine = self._reading = Event()
                if reading is None:
                    table, slices = self._read()
                    self.used()
                    return table, slices
            finally:
                if mine is not None:
                    self._reading = None
                    mine.set()
            while not reading.wait(_POLL_SECONDS):
                checkpoint()

    def _read(self) -> tuple[EventTable, Slices]:
        table, slices = self._table, self._slices
        if table is None:
            assert self._reload is not None
            table, slices = self._reload(), None
            if self._shift is not None:
                table = renumbered(table, *self._shift)
            self._note_several(table)
        if slices is None:  # a file of which nothing was marked need not be looked at again
            slices = find_slices(table, self.header.marked > 0)
            if len(slices.rows) != self.header.slices:  # events are repeated
                slices = find_slices(table, self.header.repair)
        self._slices, self._table = slices, table
        return table, slices

    def renew(self) -> None:
        """In a forked child nobody reads on."""
        self._lock, self._reading = Lock(), None

    def _note_several(self, table: EventTable) -> None:
        if self.header.parts == 1:
            note_several(table, self.header.evidence.ranks)

    def held_things(self) -> int:
        """How many columns and results there are."""
        return sum(view.held_things() for view in list(self._views))

    def held_bytes(self) -> int:
        """The bytes of the columns and of all that was made of them."""
        views = [thing for view in list(self._views) for thing in view.held()]
        return bytes_of([self._table, self._slices, *views])

    def drop(self) -> None:
        """Hold nothing; what is asked for later is read again."""
        for view in list(self._views):
            view.drop()
        self._table = self._slices = None


def ranks_apart(
    files: Sequence[TraceFile], read: Sequence[Sequence[Part]]
) -> tuple[list[TraceFile], list[Part]]:
    """A file and the part of each rank.

    Args:
        read: what there is of each file, rank by rank.
    """
    parted: list[tuple[TraceFile, Part]] = []
    for file, parts in zip(files, read, strict=True):
        if len(parts) > 1:
            file = replace(file, rank=None)  # the caller named one rank for all
        parted += [(file, part) for part in parts]
    return [file for file, _ in parted], [part for _, part in parted]


def open_rank(
    file: TraceFile,
    cache: Cache,
    progress: Progress | None,
    budget: CacheBudget | None,
    memory: Memory,
    repair: bool = True,
) -> RankEvents:
    """The events of a file: only their header where that and the columns are in the cache, else all of them.

    With `repair`, records whose times cannot be true are estimated or left out.

    Raises:
        What `cache.load` raises, and TraceFormatError for a file without events.
    """
    folder = _cache.cache_folder(cache)
    key = _cache.fingerprint(file.source, whole=cache == "verify") if folder is not None else None
    if folder is None or key is None:
        table = read_file(file, False, progress)
        return RankEvents.of(table, repair)
    reload = partial(_read_again, file, cache, folder, key)
    columns = folder / f"{key}{SUFFIX}"
    content = key
    key = key if repair else f"{key}-as-recorded"  # of all that follows from the slices
    header = _read_header(folder, key)
    if header is not None and columns.exists():
        if budget is not None:
            budget.used(columns)
        if progress is not None:
            progress(1, 1)
        kept = _links(folder, key, header, budget), kept_iterations.file_of(folder, key, header.slices)
        return RankEvents(_at(header, describe(file.source)), None, None, reload, memory, key, *kept)
    table = read_file(file, cache, progress, budget, content)
    slices = find_slices(table, repair)
    header = header_of(table, slices, repair)
    _write_header(folder, key, header)
    again = None if hasattr(file.source, "read") else reload
    kept = _links(folder, key, header, budget), kept_iterations.file_of(folder, key, header.slices)
    return RankEvents(header, table, slices, again, memory, key, *kept)


def _links(folder: Path, key: str, header: Header, budget: CacheBudget | None) -> Path | None:
    """Where the links of a file are kept; of large jobs, whose links would fill the cache, nowhere."""
    is_ample = budget is None or budget.is_ample(header.slices * kept_links.BYTES)
    return kept_links.file_of(folder, key) if is_ample else None


def _at(header: Header, path: str) -> Header:
    """A header of content that was found under another name before."""
    return Header(**{**vars(header), "path": path})


def _read_again(file: TraceFile, cache: Cache, folder: Path, key: str) -> EventTable:
    """The columns once more.

    Raises:
        TraceFormatError: the cache does not have them any more, and the file is another one now.
    """
    if not (folder / f"{key}{SUFFIX}").exists():
        now = _cache.fingerprint(file.source, whole=cache == "verify")
        if now != key:
            why = "is gone" if now is None else "has changed"
            raise TraceFormatError(
                describe(file.source),
                f"the file {why} since the trace was opened, and its columns are no longer in the cache: "
                "open the trace again",
            )
    return _cache.load(file.source, cache=cache, key=key)


def _header_file(folder: Path, key: str) -> Path:
    return folder / _HEADERS / f"{key}.json"


def _read_header(folder: Path, key: str) -> Header | None:
    """The header of a file; None where there is none for this version, or it is damaged."""
    try:
        known = json.loads(read_sealed(_header_file(folder, key)).to_pybytes())
        if known.pop("version") != _VERSION:
            return None
        extent = known.pop("extent")
        extent = None if extent is None else (int(extent[0]), int(extent[1]))
        evidence = Evidence(**known.pop("evidence"))
        meetings = tuple((int(key), int(end)) for key, end in evidence.meetings)
        evidence = replace(
            evidence, ranks=tuple(evidence.ranks), group=tuple(evidence.group), meetings=meetings,
            program=tuple(evidence.program),
        )  # fmt: skip
        return Header(**known, extent=extent, evidence=evidence)
    except (OSError, DamagedFileError, ValueError, KeyError, TypeError):
        return None


def _write_header(folder: Path, key: str, header: Header) -> None:
    content = json.dumps({"version": _VERSION, **asdict(header)}).encode()
    keep(_header_file(folder, key), content, _PART_OF_BUDGET, _TRIM_EVERY)
