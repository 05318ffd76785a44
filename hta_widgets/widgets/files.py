"""Frames as files to download: CSV, safe for a spreadsheet, or Parquet, with every text unchanged."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd
import pyarrow as pa

from hta_widgets.engine import checkpoint
from hta_widgets.widgets.rpc import rpc_method

FORMATS = ("csv", "parquet")
# What fits into one message to the browser.
CHUNK_BYTES = 900_000

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Downloads:
    """Mixin for a part whose view downloads files: in pieces that fit a message, one file at a time.

    The view makes up a key for each download; `js/src/export.ts` is the browser's half.
    """

    _file: tuple[str, bytes] | None = None  # the download under way, by its key

    def _written(self, form: str) -> bytes:
        """The file; called in a worker thread."""
        raise NotImplementedError

    @rpc_method("file")
    def _on_file(self, params: dict[str, Any]) -> tuple[dict[str, int], list[bytes]]:
        """One piece of the file, which is made for the first and dropped after the last."""
        key, number = str(params["key"]), int(params["chunk"])
        if number == 0:
            data = self._written(str(params["form"]))
            checkpoint()  # the download may have been cancelled meanwhile
            self._file = key, data
        file = self._file
        if file is None or file[0] != key:
            raise LookupError("another download has begun since")
        _, data = file
        chunks = max(1, -(-len(data) // CHUNK_BYTES))
        if number >= chunks - 1:
            self._file = None
        return {"chunks": chunks}, [data[number * CHUNK_BYTES : (number + 1) * CHUNK_BYTES]]

    @rpc_method("forget_file")
    def _forget_file(self, params: dict[str, Any]) -> None:
        """The view has cancelled the download."""
        if self._file is not None and self._file[0] == params["key"]:
            self._file = None


def as_bytes(frame: pd.DataFrame, form: str) -> bytes:
    """A frame as the bytes of a CSV or Parquet file.

    In CSV, text that a spreadsheet would run as a formula gets a leading quote; Parquet keeps all text as is.

    Raises:
        ValueError: no such format.
    """
    if form not in FORMATS:
        raise ValueError(f"there is no format {form!r}; the formats are {', '.join(FORMATS)}")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    out = io.BytesIO()
    if form == "parquet":
        from pyarrow import parquet  # with every file system that Arrow knows

        parquet.write_table(table, out, compression="zstd")
    else:
        from pyarrow import csv

        columns = [_plain(column) for column in table.columns]
        csv.write_csv(pa.table(columns, names=table.column_names), out)
    return out.getvalue()


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """A column as CSV can hold it: its texts made safe, each distinct one once."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.dictionary_encode()  # of several ranks, of which some lack it
    if not pa.types.is_dictionary(column.type):
        return column
    if not len(column):
        return pa.array([], pa.large_string())
    coded = column.unify_dictionaries().combine_chunks()
    texts = pa.array([_safe(text) for text in coded.dictionary.to_pylist()], pa.large_string())
    return texts.take(coded.indices)


def _safe(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) and not _number(text) else text


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
