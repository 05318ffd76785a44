"""Recordings that lie in one folder: of several jobs, or of one job at several times.

Names propose how the files divide, and the ranks that the files state decide: the files of a recording are of
different ranks, and recordings have ranks in common. What the files neither state nor contradict is proposed,
but not taken for certain.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hta_widgets.errors import HtaWidgetsError
from hta_widgets.trace.reader.file_names import (
    TraceFile,
    coordinates,
    last_part,
    natural,
    rank_in_name,
    without_rank,
)
from hta_widgets.trace.reader.source import Source
from hta_widgets.trace.reader.stated import MOST_RANKS

# What programs call the moments that they record.
_MOMENT = re.compile(r"(?:iteration|iter|step|cycle|batch|window)[-_ =]?(\d+)(?!\d)", re.IGNORECASE)
# torch.profiler's handler writes worker.nanoseconds.pt.trace.json, SGLang seconds first; others a date.
_STAMP = re.compile(r"(?<![\d.])(\d{10,19})(?:\.\d+)?(?=-[A-Z])|\.(\d{10,19})(?=\.pt\.trace\.json)")
_DATE = re.compile(r"\.([A-Z][a-z]{2}_\d\d_\d\d_\d\d_\d\d)(?=\.)")
_PROCESS = re.compile(r"_\d+(?=\.)")  # host_123.pt.trace.json
_HEAD_BYTES = 1 << 16
_STATED_RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]{0,2000}?"rank"\s*:\s*(\d{1,9})\b')
_AT_ONCE = 16

Key = tuple[Any, str]
"""What sorts a recording among the others, and its name."""


@dataclass(frozen=True)
class Recordings:
    """How the files of a folder divide."""

    files: Mapping[str, list[TraceFile]]  # those of each recording, by its name, in order
    certain: bool  # the files cannot be of one recording; else it is what their names suggest
    why: str  # what tells them apart


def find_recordings(files: Sequence[TraceFile]) -> Recordings | None:
    """How these files divide into several recordings; None where nothing says that they do."""
    for proposed, why, of_one_rank in _RULES:
        keys = proposed(files)
        if keys is None or len(set(keys)) < 2:
            continue
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            stated = list(pool.map(_stated_rank, files))
        if (certain := _judged(files, keys, stated, of_one_rank)) is not None:
            return grouped(files, keys, certain, why)
    return None


def grouped(files: Sequence[TraceFile], keys: Sequence[Key], certain: bool, why: str) -> Recordings:
    """The recordings to which these keys assign the files."""
    names = {key: [f for f, other in zip(files, keys, strict=True) if other == key] for key in keys}
    ordered = sorted(names, key=lambda key: key[0])
    return Recordings({key[1]: names[key] for key in ordered}, certain, why)


def _judged(
    files: Sequence[TraceFile], keys: list[Key], stated: list[int | None], of_one_rank: bool
) -> bool | None:
    """Whether a division is certain; None if what the files state contradicts it, or ranks do not repeat."""
    all_state = None not in stated
    ranks = stated if all_state else [rank_in_name(file) for file in files]
    # replicas of a server number their ranks anew, and their names tell them apart
    who = [
        (rank, frozenset(coordinates(file).items())) if rank is not None or coordinates(file) else None
        for rank, file in zip(ranks, files, strict=True)
    ]
    in_recording = Counter(zip(keys, who, strict=True))
    if any(number > 1 for (_, one), number in in_recording.items() if one is not None):
        return None
    repeats = Counter(one for _, one in in_recording)
    if all_state or not of_one_rank:
        shared = any(number > 1 for one, number in repeats.items() if one is not None)
        return all_state if shared else None
    return True


def _by_moment(files: Sequence[TraceFile]) -> list[Key] | None:
    """`iteration_10/rank0_trace.json`, `rank0_step20.json`: by the number of the moment."""
    found = [_MOMENT.search(file.name) for file in files]
    if not all(found):
        return None
    numbers = [int(match[1]) for match in found if match]
    rest = [_MOMENT.sub("#", file.name, count=1) for file in files]
    if not _repeats(rest, numbers):
        return None
    return [(number, match[0]) for number, match in zip(numbers, found, strict=True) if match]


def _by_stamp(files: Sequence[TraceFile]) -> list[Key] | None:
    """`host_123.1718000000000.pt.trace.json`: the n-th time that a worker wrote, or the time next to it.

    A restarted worker has another process id: then the rank in its name or folder tells whose file it is.
    """
    for pattern, read in ((_STAMP, _nanoseconds), (_DATE, _seconds)):
        found = [pattern.search(last_part(file.name)) for file in files]
        if not all(found):
            continue
        stamps = [read(match[match.lastindex or 0]) for match in found if match]
        workers = [pattern.sub(".", file.name) for file in files]
        ranks = [rank_in_name(file) for file in files]
        ranked = [(_PROCESS.sub("", worker), rank) for worker, rank in zip(workers, ranks, strict=True)]
        for who in (workers, ranked if None not in ranks else []):
            if who and _repeats(who, stamps) and (nearest := nearest_times(who, stamps)) is not None:
                return [(at, str(at + 1)) for at in nearest]
    return None


def nearest_times(who: Sequence[Hashable], times: Sequence[int]) -> list[int] | None:
    """Of each file the recording it belongs to: the one of the most recorded whose time is nearest.

    None where two files of one worker would belong to the same.
    """
    most = Counter(who).most_common(1)[0][0]
    known = sorted(time for time, one in zip(times, who, strict=True) if one == most)
    nearest = [min(range(len(known)), key=lambda at: abs(known[at] - time)) for time in times]
    return nearest if len(set(zip(nearest, who, strict=True))) == len(times) else None


def _by_folder(files: Sequence[TraceFile]) -> list[Key] | None:
    """`run_a/rank0.json`, `run_b/rank0.json`."""
    folders = [file.name.partition("/")[0] if "/" in file.name else "" for file in files]
    return [(tuple(natural(folder)), folder) for folder in folders] if all(folders) else None


def _by_name(files: Sequence[TraceFile]) -> list[Key] | None:
    """`a_rank0.json`, `b_rank0.json`: by what remains of the name without the rank."""
    rest = [without_rank(last_part(file.name)) for file in files]
    if None in rest:
        return None
    return [(tuple(natural(text)), text) for text in rest if text is not None]


_RULES: tuple[tuple[Callable[[Sequence[TraceFile]], list[Key] | None], str, bool], ...] = (
    (_by_moment, "the moments in their names", True),
    (_by_stamp, "the times at which each worker wrote", True),
    (_by_folder, "their folders", False),
    (_by_name, "their names", False),
)
"""How names propose recordings, in words, and whether that alone says that a rank was recorded twice."""


def _repeats(who: Sequence[Hashable], when: Sequence[Hashable]) -> bool:
    """Whether somebody has several times."""
    return max(Counter(one for one, _ in set(zip(who, when, strict=True))).values()) > 1


def _nanoseconds(digits: str) -> int:
    """Of a time in s, ms, us or ns since 1970, by its length."""
    return int(digits.ljust(19, "0"))


def _seconds(date: str) -> int:
    """Of a date without a year: 2000 was a leap year."""
    try:
        return int(datetime.strptime(f"2000_{date}", "%Y_%b_%d_%H_%M_%S").timestamp())
    except ValueError:
        return 0


def _stated_rank(file: TraceFile) -> int | None:
    """The rank in the head of a file, where torch.profiler writes it."""
    try:
        with Source(file.source) as source:
            head = bytearray(_HEAD_BYTES)
            match = _STATED_RANK.search(head[: source.read_into(memoryview(head))])
    except (HtaWidgetsError, OSError):  # reading it will tell
        return None
    return int(match[1]) if match and int(match[1]) < MOST_RANKS else None
