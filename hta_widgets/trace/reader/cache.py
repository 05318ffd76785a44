"""The cache of scanned columns: one Arrow IPC file per trace, memory-mapped when the trace is opened again.

A file's key combines a fingerprint of the trace (not its name), the format version and the extra arguments,
so that a changed trace or a newer library misses.  Files are written under a temporary name and renamed, so
that no reader sees a partial file; the least recently used are deleted when the folder exceeds its budget.  A
cache that cannot be read or written is no error: the trace is scanned.

HTA_WIDGETS_CACHE names the folder ("0" or "off": no cache); HTA_WIDGETS_CACHE_BYTES its budget (4 GiB).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import platformdirs
import pyarrow as pa

from hta_widgets.trace.reader.scanner import Progress, scan
from hta_widgets.trace.reader.schema import FORMAT_VERSION
from hta_widgets.trace.reader.source import TraceSource, describe, is_url
from hta_widgets.trace.reader.table import EventTable, Problem

_BUDGET = 4 << 30
_SAMPLE = 1 << 16
_OFF = ("0", "off")
_SUFFIX = ".trace.arrow"


def load(
    source: TraceSource,
    *,
    cache: bool | Path = True,
    extra_args: Sequence[str] = (),
    progress: Progress | None = None,
) -> EventTable:
    """`scanner.scan` with a cache: the same arguments, the same table, the same errors.

    `cache` is True for the default folder, False for none, or a folder.
    """
    folder = cache_folder(cache)
    key = fingerprint(source, extra_args) if folder is not None else None
    if folder is None or key is None:
        return scan(source, extra_args=extra_args, progress=progress)
    file = folder / f"{key}{_SUFFIX}"
    table = read_table(file)
    if table is not None:
        table.path = describe(source)
        if progress is not None:
            progress(1, 1)
        return table
    table = scan(source, extra_args=extra_args, progress=progress)
    with contextlib.suppress(OSError, pa.ArrowException):
        write_table(table, file)
        evict(folder, keep=file)
    return table


def cache_folder(cache: bool | Path = True) -> Path | None:
    """The folder in use, None where there is no cache."""
    if cache is False:
        return None
    if cache is not True:
        return Path(cache)
    named = os.environ.get("HTA_WIDGETS_CACHE", "")
    if named.lower() in _OFF:
        return None
    return Path(named) if named else Path(platformdirs.user_cache_dir("hta_widgets", appauthor=False))


def fingerprint(source: Any, extra_args: Sequence[str] = ()) -> str | None:
    """A key that changes with the trace's content; None if that would take reading all of it.

    Local files: size, modification time and samples of head, middle and tail.  URLs and fsspec files: what
    the file system reports (size, ETag, modification time).  Streams: all of their bytes.
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
            _sample_file(Path(source), digest)
    except Exception:  # any file system, any failure: the scan itself will report what is wrong
        return None
    return digest.hexdigest()


def _sample_file(path: Path, digest: Any) -> None:
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        digest.update(f"{status.st_size} {status.st_mtime_ns}".encode())
        for at in sorted({0, max(0, status.st_size // 2 - _SAMPLE // 2), max(0, status.st_size - _SAMPLE)}):
            file.seek(at)
            digest.update(file.read(_SAMPLE))


def write_table(table: EventTable, file: Path) -> None:
    """Write a table; a reader sees the old file or the whole new one.  Raises OSError."""
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
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(suffix=".tmp", dir=file.parent)
    os.close(handle)
    try:
        with pa.OSFile(temporary, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(pa.record_batch(lists, schema=schema))
        Path(temporary).replace(file)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def read_table(file: Path) -> EventTable | None:
    """The table in a cache file, its columns mapped, not read; None where there is none or it is damaged."""
    try:
        with pa.memory_map(str(file)) as mapped:
            batch = pa.ipc.open_file(mapped).get_batch(0)
        about = json.loads(batch.schema.metadata[b"about"])
        if about["version"] != FORMAT_VERSION:
            return None
        parts: dict[str, dict[str, Any]] = {"dense": {}, "rows": {}, "values": {}, "text": {}}
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            part, _, column_name = name.partition("/")
            parts[part][column_name] = column.values
        dense = {name: array.to_numpy() for name, array in parts["dense"].items()}
        sparse = {
            name: (array.to_numpy(), parts["values"][name].to_numpy())
            for name, array in parts["rows"].items()
        }
        n = about["n"]
        if any(len(array) != n for array in dense.values()):
            return None
        problems = [Problem(**problem) for problem in about["problems"]]
        with contextlib.suppress(OSError):
            os.utime(file)  # marks it as recently used
        return EventTable(about["path"], n, dense, sparse, _Texts(parts["text"]), about["metadata"], problems)
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, pa.ArrowException):
        return None


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


def evict(folder: Path, keep: Path | None = None) -> None:
    """Delete the least recently used files, but never `keep`, until the folder fits its budget."""
    try:
        budget = int(os.environ.get("HTA_WIDGETS_CACHE_BYTES", _BUDGET))
    except ValueError:
        budget = _BUDGET
    files = []
    for file in folder.glob(f"*{_SUFFIX}"):
        with contextlib.suppress(OSError):
            status = file.stat()
            files.append((status.st_mtime_ns, status.st_size, file))
    total = sum(size for _, size, _ in files)
    for _, size, file in sorted(files):
        if total <= budget:
            return
        if file != keep:
            with contextlib.suppress(OSError):
                file.unlink()
                total -= size
