"""How large are cached columns in each format, and what does it cost to write and to read them?

CPU per event on one thread, the least of 3 and of 5, beside that of the checksum and of scanning the trace.

    python benchmarks/cache_formats.py trace.json.gz
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from isal import isal_zlib

from hta_widgets.trace.reader import cache
from hta_widgets.trace.reader.scanner import scan

Written = Callable[[io.BytesIO], Any]


def least(work: Callable[[], Any], times: int) -> float:
    """CPU seconds."""
    spent = []
    for _ in range(times):
        begun = time.process_time()
        work()
        spent.append(time.process_time() - begun)
    return min(spent)


def formats(batch: pa.RecordBatch) -> dict[str, tuple[Written, Callable[[pa.Buffer], Any]]]:
    """Name -> (how to write, how to read)."""

    def arrow(sink: io.BytesIO, codec: pa.Codec | None) -> None:
        options = pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)
        with pa.ipc.new_file(sink, batch.schema, options=options) as writer:
            writer.write_batch(batch)

    def read(content: pa.Buffer) -> list[Any]:
        options = pa.ipc.IpcReadOptions(use_threads=False)
        columns = pa.ipc.open_file(pa.BufferReader(content), options=options).get_batch(0).columns
        return [column.values for column in columns]

    def parquet(sink: io.BytesIO, **how: Any) -> None:
        pq.write_table(pa.Table.from_batches([batch]), sink, **how)

    def read_parquet(content: pa.Buffer) -> list[Any]:
        table = pq.read_table(pa.BufferReader(content), use_threads=False)
        return [column.chunk(0).values for column in table.columns]

    codecs = {"none": None, "lz4": pa.Codec("lz4"), "zstd": pa.Codec("zstd", compression_level=1)}
    return {
        **{
            f"Arrow, {name}": (lambda sink, codec=codec: arrow(sink, codec), read)
            for name, codec in codecs.items()
        },
        "Parquet, zstd": (
            lambda sink: parquet(sink, compression="zstd", compression_level=1, use_dictionary=False),
            read_parquet,
        ),
        "Parquet, zstd, dictionaries": (lambda sink: parquet(sink, compression="zstd"), read_parquet),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", type=Path)
    path = parser.parse_args().trace
    table = scan(path)
    per_event = 1e9 / table.n
    print(f"{path.name}: {table.n:,} events, {table.nbytes / table.n:.1f} bytes each in memory")
    print(f"scanning takes {least(lambda: scan(path), 3) * per_event:.0f} ns")
    for name, (write, read) in formats(cache.record_batch(table)).items():
        sink = io.BytesIO()
        write(sink)
        content = pa.py_buffer(sink.getvalue())
        writing = least(lambda write=write: write(io.BytesIO()), 3) * per_event
        reading = least(lambda read=read, content=content: read(content), 5) * per_event
        checking = least(lambda content=content: isal_zlib.crc32(content), 5) * per_event
        print(
            f"{name:28} {content.size / table.n:6.1f} bytes, written in {writing:5.0f} ns, "
            f"read in {reading:5.1f} ns, checksum {checking:4.1f} ns"
        )


if __name__ == "__main__":
    main()
