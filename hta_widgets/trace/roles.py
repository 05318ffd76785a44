"""What each file of a folder is to the job: a rank, a rank of another recording, or none.

Names propose (`reader.discovery`); what the files hold decides. A file that holds what others hold (a copy, a
merged file beside its parts), the capture of graphs that another file replays, and a process without a device
beside all ranks of a job are no further ranks; the others may be several recordings (`several_recordings`).
Nothing is left out without a reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from hta_widgets.errors import ForeignFileError
from hta_widgets.formatting import counted, encodable
from hta_widgets.trace.rank_events import Header
from hta_widgets.trace.reader.discovery import Discovery, Which, choose_recording
from hta_widgets.trace.reader.file_names import TraceFile, last_part, rank_in_name
from hta_widgets.trace.reader.ranks import Assigned, assign_ranks, stated_rank
from hta_widgets.trace.several_recordings import recordings_of, spans_of, worker_of

FILES = {"file": "str", "taken_as": "str", "rank": "Int64", "recording": "str", "reason": "str"}
"""Columns of `Trace.files`, and their dtypes."""
FileRow = tuple[str, str, int | None, str, str]
"""A row of it."""

_FRONT_END = re.compile(r"async_llm|front_?end|api_?server|tokenizer_manager", re.IGNORECASE)
_STEM = re.compile(r"(\.gz|\.zst)$")


@dataclass(frozen=True)
class Settled:
    """The files that are ranks, by their position among those read, and what became of the others."""

    positions: list[int]  # of the ranks
    assigned: list[Assigned]  # the rank of each
    found: Discovery  # the files as they were found, with what was left out and the recordings


def settle(files: Sequence[TraceFile], headers: Sequence[Header], found: Discovery, wanted: Which) -> Settled:
    """What each file that could be read is.

    Args:
        files: the file of each header; several have one file, if it holds several ranks.
        headers: what is known of each rank.
        found: how the files were found.
        wanted: the recording that the caller wants.

    Raises:
        TraceNotFoundError: there is no such recording.
    """
    given = any(file.rank is not None for file in files)
    left_out = {} if given else _no_ranks(files, headers)
    positions = [at for at in range(len(files)) if at not in left_out]
    skipped = {**found.skipped, **{files[at].name: reason for at, reason in left_out.items()}}
    found = replace(found, skipped=skipped, notes=list(found.notes), unopened=dict(found.unopened))
    if not given and not found.recording:
        by_time = recordings_of(files, headers, positions, found.proposed)
        if by_time is not None:
            keys, recordings = by_time
            opened = set(map(id, choose_recording(found, recordings, wanted)))
            positions = [at for at in positions if id(keys[at]) in opened]
        elif wanted not in (None, 0, -1) and not found.recordings:
            choose_recording(found, None, wanted)
    _note_merged(files, positions, found)
    assigned = assign_ranks([files[at] for at in positions], [headers[at].stated for at in positions])
    world = max((headers[at].stated.world for at in positions), default=0)
    most = max(world, *(each.world for each in assigned))
    if 1 < most < len(positions):
        found.notes.append(
            f"{len(positions)} files for a job of {counted(most, 'rank')}: Trace.open({{rank: file}}) says "
            "which are its ranks"
        )
    return Settled(positions, assigned, found)


def _note_merged(files: Sequence[TraceFile], positions: Sequence[int], found: Discovery) -> None:
    parts = Counter(files[at].name for at in positions)
    found.notes += [
        f"{name} holds {number} ranks, divided by the names of their processes"
        for name, number in parts.items()
        if number > 1
    ]


def without_foreign(
    failed: Mapping[str, Exception], found: Discovery
) -> tuple[dict[str, Exception], Discovery]:
    """What could not be read of the traces; files of other kinds are left out.

    A file that is named like a rank and holds nothing that is known is missing, not of another kind.
    """
    opened = {file.name.rpartition("/")[0] for file in found.files if file.name not in failed}

    def is_named(name: str) -> bool:
        folder = name.rpartition("/")[0]
        alone = folder if folder not in opened else ""
        return rank_in_name(TraceFile(None, name, alone)) is not None

    foreign = {
        name: error.reason
        for name, error in failed.items()
        if isinstance(error, ForeignFileError) and (error.known or not is_named(name))
    }
    others = {name: error for name, error in failed.items() if name not in foreign}
    return others, replace(found, skipped={**found.skipped, **foreign})


# -- files that are no rank of their own -------------------------------------------------------------------


def _no_ranks(files: Sequence[TraceFile], headers: Sequence[Header]) -> dict[int, str]:
    left_out: dict[int, str] = {}
    if len(files) < 2:
        return left_out
    for rule in (_copies, _merged_parts, _captures, _front_ends):
        others = [at for at in range(len(files)) if at not in left_out]
        left_out |= rule(files, headers, others)
    return left_out


def _copies(files: Sequence[TraceFile], headers: Sequence[Header], among: Sequence[int]) -> dict[int, str]:
    """Files with the same events at the same moment, such as `trace.json` beside `trace.json.gz`."""
    first: dict[tuple[object, ...], int] = {}
    copies = {}
    for at in among:
        stem = "" if spans_of([headers[at]]) else _STEM.sub("", files[at].name)
        known = first.setdefault((headers[at].evidence.digest, stem, worker_of(files[at], headers[at])), at)
        if known != at and files[known].name != files[at].name:
            copies[at] = f"a copy of {files[known].name}"
    return copies


def _merged_parts(
    files: Sequence[TraceFile], headers: Sequence[Header], among: Sequence[int]
) -> dict[int, str]:
    """The ranks of merged files whose own files lie here as well."""
    ranks_of = Counter(map(id, files))
    merged = [at for at in among if headers[at].parts == 1 and ranks_of[id(files[at])] > 1]
    single = sorted({*among} - {*merged})
    shapes = Counter(_shape(headers[at]) for at in single)
    ranks = {rank for at in single if (rank := stated_rank(headers[at].stated)[0]) is not None}
    left_out = {}
    for at in merged:
        if shapes[_shape(headers[at])] > 0 or stated_rank(headers[at].stated)[0] in ranks:
            left_out[at] = "a merged file, whose ranks lie here in files of their own"
    complete = {files[at].name for at in merged} - {files[at].name for at in merged if at not in left_out}
    return {at: reason for at, reason in left_out.items() if files[at].name in complete}


def _shape(header: Header) -> tuple[int, int]:
    """What tools that merge files leave as it was: the number of slices, and how long they take."""
    return header.slices, header.extent[1] - header.extent[0] if header.extent else 0


def _captures(files: Sequence[TraceFile], headers: Sequence[Header], among: Sequence[int]) -> dict[int, str]:
    """The captures of graphs that other files replay: of the same server, and nothing in them runs."""
    replays = {_identity(headers[at]): at for at in among if headers[at].evidence.graphs == "replay"}
    return {
        at: f"the capture of the graphs that {files[replay].name} replays: nothing in it runs; open it alone "
        "to see it"
        for at in among
        if headers[at].evidence.graphs == "capture"
        and (replay := replays.get(_identity(headers[at]))) is not None
    }


def _identity(header: Header) -> tuple[int | None, int]:
    return stated_rank(header.stated)[0], header.stated.world


def _front_ends(
    files: Sequence[TraceFile], headers: Sequence[Header], among: Sequence[int]
) -> dict[int, str]:
    """Processes without a device and a rank: named as front ends, or beside all ranks of the job."""
    working = [at for at in among if headers[at].evidence.device_events]
    silent = [
        at
        for at in among
        if not headers[at].evidence.device_events
        and stated_rank(headers[at].stated)[0] is None
        and rank_in_name(TraceFile(None, last_part(files[at].name))) is None
    ]
    world = max((headers[at].stated.world for at in working), default=0)
    complete = world > 1 and len({worker_of(files[at], headers[at]) for at in working} - {None}) >= world
    return {
        at: "a process without a device or a rank, such as a server's front end: open it alone to see it"
        for at in silent
        if working and (complete or _FRONT_END.search(last_part(files[at].name)))
    }


# -- the table ---------------------------------------------------------------------------------------------


def files_frame(rows: Sequence[FileRow]) -> pd.DataFrame:
    """`Trace.files` of its rows."""
    shown = [
        (encodable(file), taken_as, rank, encodable(recording), encodable(reason))
        for file, taken_as, rank, recording, reason in rows
    ]
    return pd.DataFrame(shown, columns=list(FILES)).astype(FILES)
