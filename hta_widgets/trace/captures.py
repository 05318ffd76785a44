"""Recordings of the capture of graphs, which name what a replay leaves out: beside the replay, or given."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hta_widgets.errors import TraceNotFoundError
from hta_widgets.trace.reader.file_names import TraceFile, rank_in_name

# What engines name them: graph_capture_rank_0.*.json.gz (vLLM), bs_32_rank0.json.gz (SGLang), and folders.
_NAMED = re.compile(r"capture|^bs_\d+_", re.IGNORECASE)
_TRACE = re.compile(r"\.json(?:\.gz|\.zst)?$")


def given_captures(capture: Any) -> tuple[Path, ...]:
    """The files that a caller names: a path, or several; of a folder all its traces.

    Raises:
        TraceNotFoundError: one of them does not exist.
        TypeError: one is no path.
    """
    if capture is None:
        return ()
    several = isinstance(capture, Iterable) and not isinstance(capture, (str, os.PathLike))
    found: list[Path] = []
    for each in capture if several else [capture]:
        path = Path(os.fspath(each))
        if not path.exists():
            raise TraceNotFoundError(f"no capture {path}")
        found += _traces(path) if path.is_dir() else [path]
    return tuple(found)


def captures_beside(files: Sequence[TraceFile], left_out: Sequence[TraceFile]) -> tuple[Path, ...]:
    """The captures that lie beside the files of a job.

    Args:
        files: those of its ranks.
        left_out: files that were read, and found to be captures.
    """
    found = {path: None for file in left_out if (path := _local(file)) is not None}
    folders = {path.parent: None for file in files if (path := _local(file)) is not None}
    known = {_local(file) for file in files}
    for folder in folders:
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            if not _NAMED.search(path.name) or path in known:
                continue
            if path.is_dir():
                found |= dict.fromkeys(_traces(path))
            elif _TRACE.search(path.name):
                found[path] = None
    return tuple(found)


def of_rank(captures: Sequence[Path], rank: int) -> tuple[Path, ...]:
    """Those of a rank: that name it, or no rank at all."""
    named = {path: rank_in_name(TraceFile(path, path.name)) for path in captures}
    return tuple(path for path, stated in named.items() if stated in (None, rank))


def _local(file: TraceFile) -> Path | None:
    return file.source if isinstance(file.source, Path) else None


def _traces(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if _TRACE.search(path.name) and path.is_file())
