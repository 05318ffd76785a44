"""Frames as bytes, from which they come back the same in every bit."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pyarrow as pa

from hta_widgets.trace.reader.sealed import DamagedFileError, keep, read_sealed

# What reading a frame from a file raises, whatever was done to the file.
UNREADABLE = (OSError, DamagedFileError, ValueError, KeyError, TypeError, pa.ArrowException)
# Of a smaller frame, and of a job there are thousands, more than half of the time would be that of threads.
_FOR_THREADS = 1 << 20


def to_arrow(frame: pd.DataFrame) -> pa.Buffer | None:
    """The stream of Arrow that holds a frame; None if `from_arrow` would make another one of it."""
    try:
        table = pa.Table.from_pandas(frame)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        content = sink.getvalue()
        pd.testing.assert_frame_equal(from_arrow(content), frame, check_exact=True, check_freq=False)
    except (ValueError, TypeError, pa.ArrowException, AssertionError):
        return None
    return content


def read_frame(file: Path) -> pd.DataFrame | None:
    """The frame that is kept in a sealed file; None where there is none, or it is damaged."""
    try:
        frame = from_arrow(read_sealed(file))
    except UNREADABLE:
        return None
    with suppress(OSError):
        os.utime(file)  # marks it as recently used
    return frame


def keep_frame(file: Path, frame: pd.DataFrame, part: float, trim_every: int = 1) -> None:
    """`keep` a frame, if it can be read back as it is."""
    if (content := to_arrow(frame)) is not None:
        keep(file, content, part, trim_every)


def from_arrow(content: pa.Buffer | bytes) -> pd.DataFrame:
    """The frame of such a stream."""
    return _frame(pa.ipc.open_stream(content).read_all(), len(content))


def joined_from_arrow(contents: Sequence[pa.Buffer]) -> tuple[pd.DataFrame, list[int]]:
    """The frames of such streams one after the other, with rows numbered anew, and how many of each.

    Nearly all of the time that `from_arrow` takes for a frame of a few rows is spent once here.

    Raises:
        pa.ArrowException: a stream is none, or has other columns.
        ValueError: columns of frames differ in type, or are categories, which may differ from frame to frame.
    """
    tables = [pa.ipc.open_stream(content).read_all() for content in contents]
    schemas = {table.schema.metadata[b"pandas"] for table in tables}
    if len({json.dumps(json.loads(each)["columns"]) for each in schemas}) > 1:
        raise ValueError("the frames' columns differ")
    if any(map(pa.types.is_dictionary, tables[0].schema.types)):
        raise ValueError("columns of categories")
    frame = _frame(pa.concat_tables(tables), sum(map(len, contents)))
    return frame.reset_index(drop=True), [table.num_rows for table in tables]


def _frame(table: pa.Table, size: int) -> pd.DataFrame:
    return table.to_pandas(use_threads=size > _FOR_THREADS)
