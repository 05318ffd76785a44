"""Launches, nesting and iterations of a file's slices, kept beside its cached columns.

They follow from the file and this code alone, and finding them takes longer than reading the columns. A file
of links is named after the content of the trace and the code that found them, so none is ever stale.
"""

from __future__ import annotations

import contextlib
import hashlib
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hta_widgets.trace.reader.cache_budget import trim_at_times
from hta_widgets.trace.reader.sealed import DamagedFileError, read_sealed, sealed

BYTES: Final = 14
"""What is kept of a slice."""

_HERE: Final = Path(__file__).parent
TRACE_CODE: Final = (_HERE, _HERE / "records")
"""The folders of the code that makes slices, links and iterations of a file."""

_FOLDER: Final = "links"
_PART_OF_BUDGET: Final = 0.2
_TRIM_EVERY: Final = 64


class Links(NamedTuple):
    """Columns of a `RankTrace`, by the names they have there."""

    launch: npt.NDArray[np.int32]
    parent: npt.NDArray[np.int32]
    depth: npt.NDArray[np.int16]
    iteration: npt.NDArray[np.int32]


def file_of(folder: Path, key: str) -> Path | None:
    """Where the links of a trace are kept in a cache folder; None where this code cannot be named."""
    code = _code()
    return folder / _FOLDER / f"{key}-{code}.arrow" if code else None


def read(file: Path, n: int) -> Links | None:
    """The kept links of n slices; None where there are none, or the file is damaged."""
    try:
        batch = pa.ipc.open_stream(read_sealed(file)).read_next_batch()
        found = Links(*(batch.column(name).to_numpy() for name in Links._fields))
    except (OSError, DamagedFileError, KeyError, ValueError, StopIteration, pa.ArrowException):
        return None
    return found if all(len(column) == n for column in found) else None


def write(file: Path, links: Links) -> None:
    """Keep links. That they cannot be written is no error."""
    with contextlib.suppress(OSError, pa.ArrowException):
        batch = pa.record_batch([pa.array(column) for column in links], names=list(Links._fields))
        with sealed(file) as sealing, pa.ipc.new_stream(pa.PythonFile(sealing, "w"), batch.schema) as writer:
            writer.write_batch(batch)
        trim_at_times(file.parent, _PART_OF_BUDGET, _TRIM_EVERY)


def _code() -> str:
    return code_of(*TRACE_CODE)


@cache
def code_of(*folders: Path) -> str:
    """Names the modules in folders by what they say; "" where their files cannot be read."""
    digest = hashlib.blake2b(digest_size=8)
    try:
        for file in (file for folder in folders for file in sorted(folder.glob("*.py"))):
            digest.update(file.read_bytes())
    except OSError:  # installed as something else than files
        return ""
    return digest.hexdigest()
