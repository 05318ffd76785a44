"""Finds the trace files that a path stands for, and the rank of each.

A rank comes from the file's ``distributedInfo``, else from the ``Rank`` argument of its collectives, else
from the file's name, else from the order of the names. No file is dropped silently: a second file of the same
rank gets a number of its own, and a file that is not a trace is reported with the reason.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hta_widgets.errors import RemoteError, TraceNotFoundError
from hta_widgets.trace.reader.listing import listed
from hta_widgets.trace.reader.remote import RemoteFile
from hta_widgets.trace.reader.remote_errors import shown
from hta_widgets.trace.reader.stated import MOST_RANKS, whole_number
from hta_widgets.trace.reader.table import EventTable

ENDINGS = (".json", ".gz", ".zst")

# Files that this library, HTA and PyTorch write beside the traces. They look like traces but for their names.
WRITTEN_BY_TOOLS = re.compile(r"_with_counters\.json|^overlaid_|_et\.json|memory_timeline", re.IGNORECASE)

# From the most to the least explicit; only short numbers, since a process id or a time stamp is not a rank.
NAME_PATTERNS = (
    re.compile(r"rank[-_ .=]?(\d{1,6})(?!\d)", re.IGNORECASE),
    re.compile(r"worker[-_ .=]?(\d{1,6})(?!\d)", re.IGNORECASE),
    re.compile(r"(?:^|[-_.])(?:tp|dp|pp|ep)[-_]?(\d{1,4})(?!\d)(?!.*(?:tp|dp|pp|ep)[-_]?\d)", re.IGNORECASE),
    re.compile(r"(?:^|[-_.])(\d{1,4})(?:\.pt)?(?:\.trace)?\.json", re.IGNORECASE),
)


@dataclass(frozen=True)
class TraceFile:
    """A file to read. `rank` is set only if the caller gave it."""

    source: Any  # what the scanner reads: Path, RemoteFile, fsspec OpenFile or binary file object
    name: str
    folder: str = ""
    rank: int | None = None


@dataclass
class Discovery:
    """The files that a path stands for, in a stable order, and those left out, with the reason.

    `failed` are folders, or files of a list, that could not be reached.
    """

    files: list[TraceFile]
    skipped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    failed: dict[str, Exception] = field(default_factory=dict)


def discover(path: Any) -> Discovery:
    """Find the trace files that ``path`` names.

    Args:
        path: a folder (read without its subfolders, unless only they hold traces), a file, a URL that fsspec
            understands of a folder, a file or files (`s3://bucket/run/rank*.json.gz`), a binary file object,
            a sequence of these, or {rank: one of these}.

    Raises:
        TraceNotFoundError: a path does not exist, or there is no file to read.
        RemoteError: a URL cannot be asked; in a list, if that holds for all.
        TypeError: ``path`` is none of the above.
        ValueError: a rank is negative, or no number of 31 bits.
    """
    if isinstance(path, Mapping):
        files = [
            TraceFile(entry.source, entry.name, entry.folder, _given_rank(rank))
            for rank, item in path.items()
            for entry in discover(item).files
        ]
        return Discovery(files)
    if isinstance(path, str | Path):
        if isinstance(path, str) and "://" in path:
            return _discover_remote(path)
        return _discover_local(Path(path))
    if _is_open_file(path):
        if path.compression or path.mode != "rb":
            return Discovery([TraceFile(path, path.path.rsplit("/", 1)[-1])])
        file = RemoteFile(path.fs, path.path)
        return Discovery([TraceFile(file, file.name)])
    if hasattr(path, "read"):
        return Discovery(
            [TraceFile(path, str(getattr(path, "name", "trace")).replace("\\", "/").rsplit("/", 1)[-1])]
        )
    if isinstance(path, Sequence):
        return _discover_each(path)
    raise TypeError(f"a trace is a path, URL, file object, list or {{rank: file}}, not {type(path).__name__}")


def _discover_each(paths: Sequence[Any]) -> Discovery:
    """Those of a list; a folder of another machine that is out of reach costs its own files."""
    result = Discovery([])
    for path in paths:
        try:
            found = discover(path)
        except (RemoteError, TraceNotFoundError) as error:
            if len(paths) == 1 or not (isinstance(path, str) and "://" in path):
                raise
            result.failed[shown(path)] = error
            continue
        result.files += found.files
        result.skipped |= found.skipped
        result.notes += found.notes
        result.failed |= found.failed
    if not result.files:
        raise next(iter(result.failed.values()), TraceNotFoundError("the list of trace files is empty"))
    return result


def _given_rank(rank: Any) -> int:
    number = int(rank)
    if not 0 <= number < MOST_RANKS:
        raise ValueError(f"a rank is a number from 0 to {MOST_RANKS - 1:,}, not {rank!r}")
    return number


def _discover_local(path: Path) -> Discovery:
    path = path.expanduser()
    if not path.exists():
        raise TraceNotFoundError(f"no such file or folder: {path}")
    if not path.is_dir():  # a file, or a pipe such as <(zcat trace.json.gz)
        return Discovery([TraceFile(path, path.name, path.resolve().parent.name)])
    here = [TraceFile(file, file.name, path.name) for file in path.iterdir() if file.is_file()]
    below = [
        TraceFile(file, f"{folder.name}/{file.name}", folder.name)
        for folder in path.iterdir()
        if folder.is_dir() and not folder.name.startswith(".")
        for file in folder.iterdir()
        if file.is_file()
    ]
    return _choose(str(path), here, below)


def _is_open_file(path: Any) -> bool:
    from fsspec.core import OpenFile  # slow to import, and not needed for local files

    return isinstance(path, OpenFile)


def _discover_remote(url: str) -> Discovery:
    """What a URL stands for. One that names a trace file is not asked for before it is read."""
    listing = listed(url, ENDINGS)
    here = [TraceFile(file, file.name) for file in listing.files]
    if listing.is_file:
        return Discovery(here)
    below = [
        TraceFile(file, f"{folder}/{file.name}", folder)
        for folder, files in listing.below.items()
        for file in files
    ]
    found = _choose(shown(url), here, below)
    found.failed |= listing.failed
    return found


def _choose(where: str, here: list[TraceFile], below: list[TraceFile]) -> Discovery:
    """The folder's own traces, or those one level down (a folder per step or host)."""
    notes = []
    files = _candidates(here)
    if not files:
        files = _candidates(below)
        if files:
            notes.append("no trace in the folder itself: those in its subfolders were read")
    if not files:
        raise TraceNotFoundError(f"no trace file ({', '.join(ENDINGS)}) in {where}")
    skipped = {entry.name: _why_skipped(entry) for entry in files if _by_tool(entry)}
    return Discovery([entry for entry in files if entry.name not in skipped], skipped, notes)


def _candidates(files: list[TraceFile]) -> list[TraceFile]:
    kept = [
        entry
        for entry in files
        if _last(entry.name).endswith(ENDINGS) and not _last(entry.name).startswith(".")
    ]
    return sorted(kept, key=lambda entry: natural(entry.name))


def _why_skipped(entry: TraceFile) -> str:
    if "memory_timeline" in _last(entry.name).lower():
        return "a memory timeline, not a trace: analysis.memory_categories reads it"
    return "written by an analysis tool, not a trace"


def _by_tool(entry: TraceFile) -> bool:
    return bool(WRITTEN_BY_TOOLS.search(_last(entry.name)))


def _last(name: str) -> str:
    return name.rsplit("/", 1)[-1]


def natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key under which rank2 comes before rank10."""
    return [
        (0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name) if part
    ]


def rank_of_table(table: EventTable) -> int | None:
    """The rank that a file states: ``distributedInfo.rank``, else the only ``Rank`` of its collectives."""
    info = table.metadata.get("distributedInfo")
    rank = whole_number(info.get("rank")) if isinstance(info, dict) else None
    if rank is not None:
        return rank
    carried = np.unique(table.sparse("process_rank")[1])
    return int(carried[0]) if len(carried) == 1 and 0 <= carried[0] < MOST_RANKS else None


def rank_of_name(entry: TraceFile) -> int | None:
    """The rank in a file's name, else in its folder's name (``rank_3/trace.json``)."""
    for pattern in NAME_PATTERNS:
        match = pattern.search(_last(entry.name))
        if match:
            return int(match[1])
    match = NAME_PATTERNS[0].search(entry.folder)
    return int(match[1]) if match else None


@dataclass(frozen=True)
class Assigned:
    """The rank number of a file, where it came from, and its label (which differs for duplicates)."""

    rank: int
    source: str
    label: str
    duplicate: bool = False


def assign_ranks(files: Sequence[TraceFile], tables: Sequence[EventTable]) -> list[Assigned]:
    """A unique rank for each file, in the order given.

    A file without a rank gets the lowest free number; a second file of a rank, the next above the highest.
    """
    claims = [_claim(entry, table) for entry, table in zip(files, tables, strict=True)]
    taken: dict[int, int] = {}
    for position, (rank, _) in enumerate(claims):
        if rank is not None:
            taken.setdefault(rank, position)
    assigned: dict[int, Assigned] = {
        position: Assigned(rank, claims[position][1], str(rank)) for rank, position in taken.items()
    }
    free = (number for number in range(len(files) + len(taken) + 1) if number not in taken)
    for position, (rank, _) in enumerate(claims):
        if rank is None:
            number = next(free)
            assigned[position] = Assigned(number, "order", str(number))
    highest = max((assignment.rank for assignment in assigned.values()), default=-1)
    for position, (rank, source) in enumerate(claims):
        if position not in assigned:
            highest += 1
            assigned[position] = Assigned(highest, source, f"{rank} ({files[position].name})", duplicate=True)
    return [assigned[position] for position in range(len(files))]


def _claim(entry: TraceFile, table: EventTable) -> tuple[int | None, str]:
    if entry.rank is not None:
        return entry.rank, "caller"
    rank = rank_of_table(table)
    if rank is not None:
        return rank, "file"
    named = rank_of_name(entry)
    return named, "name" if named is not None else "order"
