"""The iterations of a rank, kept beside its cached columns: a few kilobytes, for which all of them are read.

As with `kept_links`, a file is named after all that it follows from, so none is ever stale.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pandas as pd

from hta_widgets.trace.arrow_frames import UNREADABLE, joined_from_arrow, keep_frame, read_frame
from hta_widgets.trace.kept_links import TRACE_CODE, code_of
from hta_widgets.trace.reader.sealed import read_sealed

_FOLDER: Final = "iterations"
_LEAST_SLICES: Final = 100_000  # in fewer they are found before a file is written
_PART_OF_BUDGET: Final = 0.02
_TRIM_EVERY: Final = 64


def file_of(folder: Path, key: str, slices: int) -> Path | None:
    """Where the iterations of a trace are kept in a cache folder; None where they are not."""
    code = code_of(*TRACE_CODE)
    return folder / _FOLDER / f"{key}-{code}" if code and slices >= _LEAST_SLICES else None


def read(file: Path, made: str) -> pd.DataFrame | None:
    """The iterations that were `made` so; None where there are none, or the file is damaged.

    Args:
        made: what else they follow from: where the file lies in time, and the clock that times them.
    """
    return read_frame(_whole(file, made))


def read_all(kept: Sequence[tuple[Path, str]]) -> tuple[pd.DataFrame, list[int]] | None:
    """The iterations of several traces, one after the other, and how many of each; None unless all are there.

    Args:
        kept: the file of each, and what it was `made` by.
    """
    try:
        return joined_from_arrow([read_sealed(_whole(file, made)) for file, made in kept])
    except UNREADABLE:
        return None


def write(file: Path, made: str, iterations: pd.DataFrame) -> None:
    """Keep iterations. That they cannot be written is no error."""
    keep_frame(_whole(file, made), iterations, _PART_OF_BUDGET, _TRIM_EVERY)


def _whole(file: Path, made: str) -> Path:
    return file.with_name(f"{file.name}-{made}.arrow")
