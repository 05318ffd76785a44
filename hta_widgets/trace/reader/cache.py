"""The cache of scanned columns: one Arrow IPC file per trace, with checksums (`sealed`).

Columns of large jobs are compressed: by zstd a row takes 16 bytes instead of 79, so that the budget holds
five times as many ranks, and reading one takes 65 to 95 ns of CPU instead of 4, about a tenth of scanning.
Parquet is as small and takes twice as long (`benchmarks/cache_formats.py`). A job that takes little of the
budget is not compressed: it is opened again in half the time.

A file's key combines a fingerprint of the trace (not its name), the format version and the extra arguments,
so that a changed trace or a newer library misses.  Files are written under a temporary name, forced to the
disk and renamed, so that no reader sees a partial file; `cache_budget` says what may stay.  A cache that
cannot be read or written is no error: the trace is scanned.  A damaged file is deleted, the trace scanned
again, and the table says so.

HTA_WIDGETS_CACHE names the folder ("0" or "off": no cache).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import platformdirs
import pyarrow as pa
from isal import isal_zlib

from hta_widgets.trace.reader.cache_budget import SUFFIX, CacheBudget
from hta_widgets.trace.reader.scanner import Progress, scan
from hta_widgets.trace.reader.schema import FORMAT_VERSION
from hta_widgets.trace.reader.sealed import DamagedFileError, read_sealed, sealed
from hta_widgets.trace.reader.source import TraceSource, describe, is_url
from hta_widgets.trace.reader.table import EventTable, Problem

Cache = bool | Path | Literal["verify"]

_SAMPLE = 1 << 16
_SAMPLES = 17  # the first is the head, the last the tail
_HELD_BACK = 1 << 16  # bytes, written together
_AT_ONCE = 64 << 20  # bytes of columns, compressed together
_OFF = ("0", "off")


def load(
    source: TraceSource,
    *,
    cache: Cache = True,
    extra_args: Sequence[str] = (),
    progress: Progress | None = None,
    budget: CacheBudget | None = None,
    key: str | None = None,
) -> EventTable:
    """`scanner.scan` with a cache: the same arguments, the same table, the same errors.

    `cache` is True for the default folder, False for none, a folder, or "verify": the default folder, with a
    key for which every byte of the trace is read. `budget` is that of the opening that the file belongs to,
    where it has several. `key` is the fingerprint, where the caller has it.
    """
    folder = cache_folder(cache)
    if folder is not None and key is None:
        key = fingerprint(source, extra_args, whole=cache == "verify")
    if folder is None or key is None:
        return scan(source, extra_args=extra_args, progress=progress)
    budget = budget or CacheBudget(folder)
    file = folder / f"{key}{SUFFIX}"
    damage = None
    try:
        table = read_table(file)
    except DamagedFileError as error:
        table, damage = None, error
        with contextlib.suppress(OSError):
            file.unlink()
    if table is not None:
        budget.used(file)
        table.path = describe(source)
        if progress is not None:
            progress(1, 1)
        return table
    table = scan(source, extra_args=extra_args, progress=progress)
    if not budget.full:
        with contextlib.suppress(OSError, pa.ArrowException):
            write_table(table, file, compressed=not budget.is_ample(table.nbytes))
            budget.wrote(file)
    if damage is not None:  # not part of what is written: it is true of this reading alone
        detail = f"the cached copy was damaged ({damage}); the file was read again"
        table.problems.append(Problem("cache", "warning", 1, None, detail))
    return table


def cache_folder(cache: Cache = True) -> Path | None:
    """The folder in use, None where there is no cache."""
    if cache is False:
        return None
    if cache is not True and cache != "verify":
        return Path(cache)
    named = os.environ.get("HTA_WIDGETS_CACHE", "")
    if named.lower() in _OFF:
        return None
    return Path(named) if named else Path(platformdirs.user_cache_dir("hta_widgets", appauthor=False))


def fingerprint(source: Any, extra_args: Sequence[str] = (), *, whole: bool = False) -> str | None:
    """A key that changes with the trace's content; None if that would take reading all of it.

    Local files: size, modification time and samples from head to tail, with `whole` all of their bytes.  URLs
    and fsspec files: what the file system reports (size, ETag, modification time).  Streams: all of their
    bytes.
    """
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps([FORMAT_VERSION, list(extra_args)]).encode())
    try:
        if hasattr(source, "read"):
            if not source.seekable():
                return None
            source.seek(0)
            while data := source.read(1 << 20):
                digest.update(data)
            source.seek(0)
        elif is_url(source) or hasattr(source, "fs"):
            import fsspec

            fs, path = (source.fs, source.path) if hasattr(source, "fs") else fsspec.url_to_fs(source)
            digest.update(f"{source if is_url(source) else path}".encode())
            digest.update(str(fs.ukey(path)).encode())
        else:
            _sample_file(Path(source), digest, whole)
    except Exception:  # any file system, any failure: the scan itself will report what is wrong
        return None
    return digest.hexdigest()


def _sample_file(path: Path, digest: Any, whole: bool) -> None:
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError("what a pipe holds can be read once")
    with path.open("rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        digest.update(f"{status.st_size} {status.st_mtime_ns} {whole}".encode())
        if whole:
            while data := file.read(1 << 20):
                digest.update(data)
            return
        last = max(0, status.st_size - _SAMPLE)
        for at in sorted({last * k // (_SAMPLES - 1) for k in range(_SAMPLES)}):
            file.seek(at)
            # of a megabyte per rank a checksum each: the digest itself would take 2 ms of it
            digest.update(isal_zlib.crc32(file.read(_SAMPLE)).to_bytes(4, "little"))


def write_table(table: EventTable, file: Path, *, compressed: bool) -> None:
    """Write a table; a reader sees the old file or the whole new one.  Raises OSError."""
    batch = record_batch(table)
    options = pa.ipc.IpcWriteOptions(compression=_compression() if compressed else None)
    with (
        sealed(file) as sealing,
        # Arrow writes in pieces, many of a few bytes, slowly to what is not its own: small ones are held back
        pa.BufferedOutputStream(pa.PythonFile(sealing, "w"), _HELD_BACK) as sink,
        pa.ipc.new_file(sink, batch.schema, options=options) as writer,
    ):
        for part in _in_turn(batch):
            writer.write_batch(part)


def _in_turn(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A record as several, in each of which some of its lists are and the others are empty: Arrow compresses
    all of one before it writes any of it, and that of a long recording takes a third of its columns' memory.
    """
    turns = [end // _AT_ONCE for end in accumulate(column.nbytes for column in batch.columns)]
    for turn in dict.fromkeys(turns):
        lists = [
            column if at == turn else pa.array([[]], column.type)
            for at, column in zip(turns, batch.columns, strict=True)
        ]
        yield pa.record_batch(lists, schema=batch.schema)


def record_batch(table: EventTable) -> pa.RecordBatch:
    """A table as it is written: one row of lists, with what else is known of it in the schema."""
    fields: dict[str, pa.Array] = {}
    for name in table.dense_columns:
        fields[f"dense/{name}"] = pa.array(
            table.codes(name) if name in table.text_columns else table.ints(name)
        )
    for name in table.sparse_columns:
        rows, values = table.sparse(name)
        fields[f"rows/{name}"] = pa.array(rows)
        fields[f"values/{name}"] = pa.array(values)
    for name in table.text_columns:
        fields[f"text/{name}"] = pa.array(table.dictionary(name), pa.large_string())
    # one record of list values: Arrow wants columns of one length
    lists = [pa.LargeListArray.from_arrays(pa.array([0, len(a)], pa.int64()), a) for a in fields.values()]
    about = {
        "version": FORMAT_VERSION,
        "path": table.path,
        "n": table.n,
        "metadata": table.metadata,
        "problems": [vars(problem) for problem in table.problems],
    }
    schema = pa.schema(
        [pa.field(name, array.type) for name, array in zip(fields, lists, strict=True)],
        metadata={"about": json.dumps(about)},
    )
    return pa.record_batch(lists, schema=schema)


def _compression() -> pa.Codec | None:
    """What columns are compressed with; None where pyarrow was built without it."""
    return pa.Codec("zstd", compression_level=1) if pa.Codec.is_available("zstd") else None


def read_table(file: Path) -> EventTable | None:
    """The table in a cache file; None where there is none for this version.

    Raises:
        DamagedFileError: the file is not what was written.
    """
    try:
        content = read_sealed(file)
    except OSError:
        return None
    try:
        stored = pa.ipc.open_file(pa.BufferReader(content))
        about = json.loads(stored.schema.metadata[b"about"])
        if about["version"] != FORMAT_VERSION:
            return None
        parts: dict[str, dict[str, Any]] = {"dense": {}, "rows": {}, "values": {}, "text": {}}
        for batch in map(stored.get_batch, range(stored.num_record_batches)):
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                part, _, column_name = name.partition("/")
                if len(column.values) or column_name not in parts[part]:
                    parts[part][column_name] = column.values
        dense = {name: array.to_numpy() for name, array in parts["dense"].items()}
        sparse = {
            name: (array.to_numpy(), parts["values"][name].to_numpy())
            for name, array in parts["rows"].items()
        }
        n = about["n"]
        if any(len(array) != n for array in dense.values()):
            raise DamagedFileError("its columns differ in length")
        problems = [Problem(**problem) for problem in about["problems"]]
        with contextlib.suppress(OSError):
            os.utime(file)  # marks it as recently used
        return EventTable(about["path"], n, dense, sparse, _Texts(parts["text"]), about["metadata"], problems)
    except DamagedFileError:
        raise
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, pa.ArrowException) as error:
        raise DamagedFileError(f"{type(error).__name__}: {error}") from error


class _Texts(Mapping[str, list[str]]):
    """Dictionaries that are converted to Python strings on first use."""

    def __init__(self, arrays: dict[str, pa.Array]) -> None:
        self._arrays = arrays
        self._read: dict[str, list[str]] = {}

    def __getitem__(self, name: str) -> list[str]:
        if name not in self._read:
            self._read[name] = self._arrays[name].to_pylist()
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)
