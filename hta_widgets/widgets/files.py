"""Frames as files to take along: safe for a spreadsheet, or with every text as it is."""

from __future__ import annotations

import io

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

__all__ = ["CHUNK_BYTES", "FORMATS", "as_bytes"]

FORMATS = ("csv", "parquet")
# What fits into one message to the browser.
CHUNK_BYTES = 900_000

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def as_bytes(frame: pd.DataFrame, form: str) -> bytes:
    """A frame as the bytes of a CSV or Parquet file.

    Text in a CSV that a spreadsheet would run as a formula gets a quote in front; Parquet keeps every text
    as it is.

    Raises:
        ValueError: no such format.
    """
    if form not in FORMATS:
        raise ValueError(f"there is no format {form!r}; the formats are {', '.join(FORMATS)}")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    out = io.BytesIO()
    if form == "parquet":
        pyarrow.parquet.write_table(table, out, compression="zstd")
    else:
        columns = [_plain(column) for column in table.columns]
        pyarrow.csv.write_csv(pa.table(columns, names=table.column_names), out)
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
