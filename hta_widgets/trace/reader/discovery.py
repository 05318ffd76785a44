"""Finds the trace files that a path stands for.

No file is dropped silently: those of another recording and those that are no trace are listed with the
reason. What the files hold decides the rest (`trace.roles`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hta_widgets.errors import RemoteError, TraceFormatError, TraceNotFoundError
from hta_widgets.formatting import counted, did_you_mean
from hta_widgets.trace.reader.file_names import TraceFile, last_part, name_of, natural
from hta_widgets.trace.reader.foreign import EXECUTION_TRACE, HEAD_BYTES, foreign, packed
from hta_widgets.trace.reader.listing import listed
from hta_widgets.trace.reader.recordings import Recordings, find_recordings
from hta_widgets.trace.reader.remote import RemoteFile
from hta_widgets.trace.reader.remote_errors import shown
from hta_widgets.trace.reader.stated import MOST_RANKS

ENDINGS = (".json", ".gz", ".zst", ".pftrace", ".perfetto-trace")

# Files that this library, HTA and PyTorch write beside the traces. They look like traces but for their names.
# The profiler of Ascend writes many files of JSON around its trace, msprof the same events once more.
WRITTEN_BY_TOOLS = re.compile(
    r"_with_counters\.json|^overlaid_|_et\.json|memory_timeline|^profiler_(info(_\d+)?|metadata)\.json"
    r"|^communication(_matrix)?\.json|^msprof_\d+\.json|^execution_details\.json",
    re.IGNORECASE,
)
_RANK_BESIDE = re.compile(r"^profiler_info_(\d{1,6})\.json$")

_LEVELS = ("*", "*/*", "*/*/*")  # of folders, of which the first with traces is read
_MOST_OTHERS = 64  # files of other kinds that are looked into

Which = str | int | None
"""A recording, by its name or its place among those of a folder."""


@dataclass
class Discovery:
    """The files that a path stands for, in a stable order, and those left out, with the reason.

    `failed` are folders, or files of a list, that could not be reached. `recordings` are the names of those
    that lie there, where there are several, and `recording` that of the one with these files; "" for all.
    `unopened` has the recording of each file of another one. `proposed` are the recordings that the names
    suggest, if it is not certain that they are several. `elsewhere` has why files in subfolders were not
    read. `name` is that of what was asked for; "" where it has none.
    """

    files: list[TraceFile]
    skipped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    failed: dict[str, Exception] = field(default_factory=dict)
    recordings: tuple[str, ...] = ()
    recording: str = ""
    unopened: dict[str, str] = field(default_factory=dict)
    proposed: Recordings | None = None
    elsewhere: dict[str, str] = field(default_factory=dict)
    name: str = ""


def discover(path: Any, recording: Which = None) -> Discovery:
    """Find the trace files that ``path`` names.

    Args:
        path: a folder (read without its subfolders, unless only they hold traces), a file, a URL that fsspec
            understands of a folder, a file or files (`s3://bucket/run/rank*.json.gz`), a binary file object,
            a sequence of these, or {rank: one of these}.
        recording: of several recordings in one folder the one to open: its name, or its place; -1 is the
            last. Default: the last, or all where it is not certain that there are several.

    Raises:
        TraceNotFoundError: a path does not exist, there is no file to read, or no such recording.
        TraceFormatError: all files of a folder are by their names no traces.
        RemoteError: a URL cannot be asked; in a list, if that holds for all.
        TypeError: ``path`` is none of the above.
        ValueError: a rank is negative, or no number of 31 bits.
    """
    return replace(_discovered(path, recording), name=name_of(path))


def _discovered(path: Any, recording: Which) -> Discovery:
    if isinstance(path, Mapping):
        result = Discovery([])
        for rank, item in path.items():
            number, found = _given_rank(rank), _one_of(item, recording)
            result.files += [replace(entry, rank=number) for entry in found.files]
            result.failed |= found.failed
        if not result.files and result.failed:
            raise next(iter(result.failed.values()))
        return result
    if isinstance(path, str | Path):
        if isinstance(path, str) and "://" in path:
            return _discover_remote(path, recording)
        return _discover_local(Path(path), recording)
    if _is_open_file(path):
        if path.compression or path.mode != "rb":
            return Discovery([TraceFile(path, path.path.rsplit("/", 1)[-1])])
        path.fs.invalidate_cache()  # as `listed` does
        file = RemoteFile(path.fs, path.path)
        return Discovery([TraceFile(file, file.name)])
    if hasattr(path, "read"):
        return Discovery(
            [TraceFile(path, str(getattr(path, "name", "trace")).replace("\\", "/").rsplit("/", 1)[-1])]
        )
    if isinstance(path, Sequence):
        return _discover_each(path, recording)
    raise TypeError(f"a trace is a path, URL, file object, list or {{rank: file}}, not {type(path).__name__}")


def _discover_each(paths: Sequence[Any], recording: Which) -> Discovery:
    """Those of a list; a folder of another machine that is out of reach costs its own files."""
    result = Discovery([])
    for path in paths:
        found = _one_of(path, recording)
        result.files += found.files
        result.skipped |= found.skipped
        result.notes += found.notes
        result.failed |= found.failed
        result.recordings += found.recordings
        result.unopened |= found.unopened
    if not result.files:
        raise next(iter(result.failed.values()), TraceNotFoundError("the list of trace files is empty"))
    return result


def _one_of(path: Any, recording: Which) -> Discovery:
    """What one of several paths stands for; a URL that is out of reach has failed."""
    try:
        return discover(path, recording)
    except (RemoteError, TraceNotFoundError) as error:
        if not (isinstance(path, str) and "://" in path):
            raise
        return Discovery([], failed={shown(path): error})


def _given_rank(rank: Any) -> int:
    number = int(rank)
    if not 0 <= number < MOST_RANKS:
        raise ValueError(f"a rank is a number from 0 to {MOST_RANKS - 1:,}, not {rank!r}")
    return number


def _discover_local(path: Path, recording: Which) -> Discovery:
    path = path.expanduser()
    if not path.exists():
        fixed = Path(re.split(r"[*?[]", str(path))[0] + "_").parent
        matches = [] if fixed == path.parent / path.name else list(fixed.glob(str(path.relative_to(fixed))))
        if not matches:
            raise TraceNotFoundError(f"no such file or folder: {path}")
        here = [_relative(file, fixed) for file in matches if file.is_file()]
        below = [_relative(file, fixed) for folder in matches for file in _files_in(folder)]
        return _choose(str(path), here, below, recording)
    if not path.is_dir():  # a file, or a pipe such as <(zcat trace.json.gz)
        return Discovery([TraceFile(path, path.name, path.resolve().parent.name)])
    here = [TraceFile(file, file.name, path.name) for file in _files_in(path)]
    deeper: list[TraceFile] = []
    for pattern in _LEVELS:
        below = _below(path, pattern)
        deeper += below
        if not all(map(_by_tool, _candidates([*here, *below]))):
            break
    alone = all(map(_by_tool, _candidates(here)))
    unread = _below(path, f"{pattern}/*") if alone and pattern != _LEVELS[-1] else []
    here, below = _with_rank_beside(here, deeper), _with_rank_beside(below, [*here, *deeper])
    return _choose(str(path), here, below, recording, unread)


def _below(path: Path, pattern: str) -> list[TraceFile]:
    """The files in the folders of one level."""
    folders = [folder for folder in path.glob(pattern) if folder.is_dir()]
    return [_relative(file, path) for folder in folders for file in _files_in(folder)]


def _with_rank_beside(files: list[TraceFile], others: Sequence[TraceFile]) -> list[TraceFile]:
    """The files of Ascend's profiler with the rank that it writes into the name of a file above them."""
    ranks = {
        entry.name.rpartition("/")[0]: int(match[1])
        for entry in others
        if (match := _RANK_BESIDE.match(last_part(entry.name)))
    }
    if not ranks:
        return files
    found = []
    for entry in files:
        folder = entry.name.rpartition("/")[0]
        rank = ranks.get(folder, ranks.get(folder.rpartition("/")[0]))
        found.append(entry if rank is None else replace(entry, beside=rank))
    return found


def _files_in(folder: Path) -> list[Path]:
    if not folder.is_dir() or folder.name.startswith("."):
        return []
    return [file for file in folder.iterdir() if file.is_file()]


def _relative(file: Path, root: Path) -> TraceFile:
    return TraceFile(file, file.relative_to(root).as_posix(), file.parent.name)


def _is_open_file(path: Any) -> bool:
    from fsspec.core import OpenFile  # slow to import, and not needed for local files

    return isinstance(path, OpenFile)


def _discover_remote(url: str, recording: Which) -> Discovery:
    """What a URL stands for. One that names a trace file is not asked for before it is read."""
    listing = listed(url, ENDINGS)
    if listing.is_file:
        return Discovery([TraceFile(file, file.name) for file in listing.files])

    def found(files: Sequence[RemoteFile]) -> list[TraceFile]:
        names = [listing.relative(file) for file in files]
        return [
            TraceFile(file, name, name.rpartition("/")[0].rpartition("/")[2])
            for file, name in zip(files, names, strict=True)
        ]

    result = _choose(shown(url), found(listing.files), found(listing.below), recording)
    result.failed |= listing.failed
    return result


def _choose(
    where: str,
    here: list[TraceFile],
    below: list[TraceFile],
    recording: Which,
    deeper: Sequence[TraceFile] = (),
) -> Discovery:
    """The folder's own traces, or those below it (a folder per step, rank, host or job); none `deeper`."""
    notes = []
    files = _candidates(here)
    elsewhere = _candidates(below)
    if all(map(_by_tool, files)):
        elsewhere = _candidates(list(deeper))
        files = [*files, *_candidates(below)]
        if not all(map(_by_tool, files)):
            notes.append("no trace in the folder itself: those in its subfolders were read")
    if files and all(map(_by_tool, files)):
        kinds = "; ".join(f"{entry.name}: {_why_skipped(entry)}" for entry in files[:_MOST_OTHERS])
        raise TraceFormatError(where, f"no file is a usable trace: {kinds}")
    others = _others([entry for entry in [*here, *below] if not last_part(entry.name).endswith(ENDINGS)])
    if not files:
        kinds = "".join(f"; {name} is {reason}" for name, reason in others.items())
        raise TraceNotFoundError(f"no trace file ({', '.join(ENDINGS)}) in {where}{kinds}")
    skipped = others | {entry.name: _why_skipped(entry) for entry in files if _by_tool(entry)}
    kept = [entry for entry in files if entry.name not in skipped]
    if traces := [entry for entry in elsewhere if not _by_tool(entry)]:
        folders = _listed(list(dict.fromkeys(entry.name.rpartition("/")[0] for entry in traces)), 4)
        notes.append(
            f"{counted(len(traces), 'file')} in subfolders ({folders}) left out, since folders above them "
            "have traces: open a subfolder by itself"
        )
    reasons = {entry.name: "lies in a subfolder, and folders above it have traces" for entry in elsewhere}
    return _of_recording(Discovery(kept, skipped, notes, elsewhere=reasons), recording)


def _of_recording(found: Discovery, wanted: Which) -> Discovery:
    """The files of one recording, if their names say that there are several."""
    recordings = find_recordings(found.files) if len(found.files) > 1 else None
    if recordings is not None:
        choose_recording(found, recordings, wanted)
    return found


def choose_recording(found: Discovery, recordings: Recordings | None, wanted: Which) -> list[TraceFile]:
    """Leave of the files those of one recording, and say which others there are; all if that is uncertain.

    Raises:
        TraceNotFoundError: there is no recording that is called like this.
    """
    if recordings is None:
        raise TraceNotFoundError(f"there is one recording only, and none called {wanted!r}")
    names = tuple(recordings.files)
    found.recordings = names
    if wanted is None and not recordings.certain:
        found.proposed = recordings
        found.notes.append(
            f"these may be {len(names)} recordings, by {recordings.why} ({_listed(names)}), or ranks of one "
            f"job: all were read; to open one, --recording {names[0]}, or "
            f"Trace.open(..., recording={names[0]!r})"
        )
        return found.files
    if isinstance(wanted, str) and wanted not in names:
        hint = did_you_mean(wanted, names)
        raise TraceNotFoundError(
            f"there is no recording {wanted!r}{hint}: there are {_listed(names, len(names))}"
        )
    if isinstance(wanted, int) and not -len(names) <= wanted < len(names):
        raise TraceNotFoundError(f"there is no recording {wanted}: there are {len(names)}")
    found.recording = wanted if isinstance(wanted, str) else names[-1 if wanted is None else wanted]
    found.files = list(recordings.files[found.recording])
    found.unopened = {
        file.name: name
        for name, files in recordings.files.items()
        for file in files
        if name != found.recording
    }
    if wanted is None:
        found.notes = [note for note in found.notes if not note.startswith("these may be")]
        found.notes.insert(
            0,
            f"{len(names)} recordings, by {recordings.why} ({_listed(names)}): the last, {found.recording}, "
            f"was opened; to open another, --recording {names[0]}, or "
            f"Trace.open(..., recording={names[0]!r})",
        )
    return found.files


def _listed(names: Sequence[str], most: int = 6) -> str:
    shown_names = list(names) if len(names) <= most else [*names[: most - 2], "...", names[-1]]
    return ", ".join(shown_names)


def _candidates(files: list[TraceFile]) -> list[TraceFile]:
    kept = [
        entry
        for entry in files
        if last_part(entry.name).endswith(ENDINGS) and not last_part(entry.name).startswith(".")
    ]
    return sorted(kept, key=lambda entry: natural(entry.name))


def _why_skipped(entry: TraceFile) -> str:
    name = last_part(entry.name).lower()
    if "memory_timeline" in name:
        return "a memory timeline, not a trace: analysis.memory_categories reads it"
    if name.removesuffix(".gz").endswith("_et.json"):
        return str(EXECUTION_TRACE)
    return "written by an analysis tool, not a trace"


def _others(files: Sequence[TraceFile]) -> dict[str, str]:
    """What profiles of other kinds the files without the ending of a trace are, by name."""
    found: dict[str, str] = {}
    for entry in files[:_MOST_OTHERS]:
        if isinstance(entry.source, Path):  # those of other machines would have to be fetched
            try:
                with entry.source.open("rb") as file:
                    head = file.read(HEAD_BYTES)
            except OSError:
                continue
            kind = foreign(head, entry.name)
            if kind and not packed(head):
                found[entry.name] = str(kind)
    return found


def _by_tool(entry: TraceFile) -> bool:
    return bool(WRITTEN_BY_TOOLS.search(last_part(entry.name)))
