"""What the folder of cached columns may take on the disk: one `CacheBudget` per opening of a job.

The folder is listed once per opening, not once per file, and room is made by deleting what was used least
recently.  What the opening itself used or wrote is never deleted for its later files: a job larger than the
budget is read from first to last each time, so that each file would go just before it is asked for, and the
cache would serve nothing.  The files that came first stay instead, and serve next time.

HTA_WIDGETS_CACHE_BYTES is the budget (4 GiB). Small files in folders beside the columns (`trim`) have a part
of it to themselves.
"""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from itertools import count
from pathlib import Path
from threading import Lock

from hta_widgets.whole_files import is_left_over

SUFFIX = ".trace.arrow"

_LITTLE = 1 / 8
_BUDGET = 4 << 30
_written: defaultdict[Path, count[int]] = defaultdict(count)  # files, by folder


class CacheBudget:
    """Keeps a folder within its budget while a job is opened. Thread-safe.

    Attributes:
        full: the files of this opening alone fill the budget: more need not be written.
    """

    def __init__(self, folder: Path, files: int = 1) -> None:
        """`files`: how many the opening is about."""
        self.full = False
        self._files = files
        self._folder = folder
        self._lock = Lock()
        self._own: set[Path] = set()
        self._others: list[tuple[int, Path]] | None = None  # the latest used first
        self._sizes: dict[str, int] = {}  # one that is being written has its later name, so as to count once
        self._total = 0

    def is_ample(self, size: int) -> bool:
        """Whether files of this size for the whole opening would take little of the budget."""
        return size * self._files <= _LITTLE * _allowed()

    def used(self, file: Path) -> None:
        """A file of the folder serves this opening."""
        with self._lock:
            self._own.add(file)

    def wrote(self, file: Path) -> None:
        """A file was written: others go until all fit; where only this opening's are left, it goes itself."""
        with self._lock:
            if self._others is None:
                self._others = self._listed()
            else:
                with contextlib.suppress(OSError):
                    self._count(file.name, file.stat().st_size)
            first = not self._own
            self._own.add(file)
            self._fit()
            if self._total > _allowed() and not first:
                self.full = True
                self._delete(file)

    def fit(self) -> None:
        """Make all fit as it is now."""
        with self._lock:
            self._others = self._listed()
            self._fit()

    def _fit(self) -> None:
        allowed = _allowed()
        kept = []
        while self._others and self._total > allowed:
            entry = self._others.pop()
            if entry[1] in self._own:
                kept.append(entry)
            else:
                self._delete(entry[1])
        self._others = [*(self._others or []), *reversed(kept)]

    def _listed(self) -> list[tuple[int, Path]]:
        """The files of the folder by when they were used; what killed writers left is deleted.

        Files that others are writing count.
        """
        files: list[tuple[int, Path]] = []
        self._sizes, self._total = {}, 0
        for file in self._folder.iterdir():
            with contextlib.suppress(OSError):
                status = file.stat()
                if file.name.endswith(SUFFIX):
                    files.append((status.st_mtime_ns, file))
                    self._count(file.name, status.st_size)
                elif not _is_unfinished(file.name):
                    continue
                elif is_left_over(file):
                    file.unlink()
                else:
                    self._count(_later_name(file.name), status.st_size)
        return sorted(files, reverse=True)

    def _count(self, name: str, size: int) -> None:
        self._total += size - self._sizes.get(name, 0)
        self._sizes[name] = size

    def _delete(self, file: Path) -> None:
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)
            self._count(file.name, 0)


def fits(size: int, part: float) -> bool:
    """Whether a file takes at most a part of the budget, so that `trim` leaves it."""
    return size <= part * _allowed()


def trim(folder: Path, part: float) -> None:
    """Delete the files of a folder that were used least recently until they fit a part of the budget."""
    left, files = part * _allowed(), list[tuple[int, int, Path]]()
    with contextlib.suppress(OSError):
        for file in folder.iterdir():
            with contextlib.suppress(OSError):
                status = file.stat()
                files.append((status.st_mtime_ns, status.st_size, file))
    for _, size, file in sorted(files, reverse=True):
        left -= size
        if left < 0:
            with contextlib.suppress(OSError):
                file.unlink()


def trim_at_times(folder: Path, part: float, every: int) -> None:
    """`trim`, which lists a folder, after the first file that a process writes there, and each so many."""
    if next(_written[folder]) % every == 0:
        trim(folder, part)


def _allowed() -> int:
    try:
        return int(os.environ.get("HTA_WIDGETS_CACHE_BYTES", _BUDGET))
    except ValueError:
        return _BUDGET


def _is_unfinished(name: str) -> bool:
    return name.endswith(".tmp") or (name.startswith(".") and f"{SUFFIX}." in name)


def _later_name(unfinished: str) -> str:
    before, suffix, _ = unfinished.rpartition(f"{SUFFIX}.")
    return before.removeprefix(".") + SUFFIX if suffix else unfinished
