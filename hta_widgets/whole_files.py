"""Files that are there as a whole or not at all, and what writers that were killed left behind.

A file is written beside its place, under a name of its own, and renamed. A process that is killed leaves that
second file; the next one that writes to the same place removes it, once the process is gone.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

_number = itertools.count()
_UNFINISHED = re.compile(r"\.(?P<pid>\d{1,10})(?:\.\d+)?(?:\.tmp)?\Z")
_LONGEST_NAME = 200  # of the 255 bytes that file systems allow
_ABANDONED_SECONDS = 24 * 3600.0  # for names without a process, and where processes cannot be asked


@contextmanager
def replacing(target: Path, *, tidy: bool = True) -> Iterator[BinaryIO]:
    """A file to write, which replaces `target` when the context is left without an exception.

    Args:
        target: an existing file is replaced; a device or a pipe is written to.
        tidy: remove what killed writers of the same file left, for which the folder is listed.

    Raises:
        OSError: it cannot be written.
    """
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    prefix = f".{os.fsdecode(os.fsencode(target.name)[:_LONGEST_NAME])}."
    if tidy:
        _remove_left_over(target.parent, prefix)
    beside = target.with_name(f"{prefix}{os.getpid()}.{next(_number)}")
    try:
        with beside.open("xb") as file:
            yield file
        beside.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def write_whole(target: Path, fill: Callable[[BinaryIO], Any]) -> None:
    """Write a file with `fill`, as `replacing` does.

    Raises:
        OSError: it cannot be written.
    """
    with replacing(target) as file:
        fill(file)


def is_left_over(file: Path) -> bool:
    """Whether nobody will finish an unfinished file: its process is gone, or, if that is unknown, it is old.

    Raises:
        OSError: it is not there any more.
    """
    match = _UNFINISHED.search(file.name)
    if match is None or os.name == "nt":  # where asking for a process would end it
        return time.time() - file.stat().st_mtime > _ABANDONED_SECONDS
    return not _is_running(int(match["pid"]))


def _remove_left_over(folder: Path, prefix: str) -> None:
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name.startswith(prefix) and _UNFINISHED.fullmatch(entry.name, len(prefix) - 1):
                with contextlib.suppress(OSError):
                    if is_left_over(Path(entry.path)):
                        Path(entry.path).unlink()


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is somebody else's
        return True
    return True


def private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are not there, for this user alone; others stay as they are.

    Raises:
        OSError: it cannot be made.
    """
    if not folder.is_dir():
        for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(exist_ok=True)  # raises if a file is there
