"""Frames as bytes, from which they come back the same in every bit."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

__all__ = ["from_arrow", "to_arrow"]

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


def from_arrow(content: pa.Buffer | bytes) -> pd.DataFrame:
    """The frame of such a stream."""
    threads = len(content) > _FOR_THREADS
    frame: pd.DataFrame = pa.ipc.open_stream(content).read_all().to_pandas(use_threads=threads)
    return frame
