"""The column cache: same table, misses when the trace changes, never an obstacle."""

import io
import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from hta_widgets.trace.reader import cache
from hta_widgets.trace.reader.table import EventTable


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "rank0.json"
    write(path, 50)
    return path


def write(path: Path, n: int) -> None:
    events = [
        {
            "ph": "X",
            "name": f"k{i % 7} é",
            "ts": i,
            "dur": 1.5,
            "args": {"stream": i % 3, "memory bandwidth (GB/s)": i / 4},
        }
        for i in range(n)
    ]
    path.write_text(
        json.dumps({"traceEvents": [*events, {"ph": "X", "ts": "x"}], "distributedInfo": {"rank": 1}})
    )


def assert_same(a: EventTable, b: EventTable) -> None:
    assert (a.n, a.path, a.metadata, a.problems, a.columns) == (
        b.n,
        b.path,
        b.metadata,
        b.problems,
        b.columns,
    )
    for name in a.columns:
        for item, other in zip(a.sparse(name), b.sparse(name), strict=True):
            assert item.dtype == other.dtype and np.array_equal(item, other)
        assert a.dictionary(name) == b.dictionary(name)


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


def forbid_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    def scan(*args: object, **keywords: object) -> EventTable:
        raise AssertionError("scanned again")

    monkeypatch.setattr(cache, "scan", scan)


def test_second_load_comes_from_disk(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    first = cache.load(trace, cache=folder)
    forbid_scan(monkeypatch)
    assert_same(first, cache.load(trace, cache=folder))
    assert len(files(folder)) == 1
    copy = io.BytesIO(trace.read_bytes())
    with pytest.raises(AssertionError):
        cache.load(copy, cache=folder)


def test_a_trace_that_was_moved_is_found_under_its_new_name(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.load(trace, cache=tmp_path / "cache")
    moved = trace.rename(tmp_path / "moved.json")
    forbid_scan(monkeypatch)
    assert cache.load(moved, cache=tmp_path / "cache").path == str(moved)


@pytest.mark.parametrize("later", [-1, 1])
def test_an_entry_of_another_version_is_not_read(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: int
) -> None:
    cache.load(trace, cache=tmp_path / "cache")
    (entry,) = files(tmp_path / "cache")
    assert cache.read_table(entry) is not None
    monkeypatch.setattr(cache, "FORMAT_VERSION", cache.FORMAT_VERSION + later)
    assert cache.read_table(entry) is None


def test_same_bytes_in_memory_hit(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.load(io.BytesIO(trace.read_bytes()), cache=tmp_path / "cache")
    forbid_scan(monkeypatch)
    assert cache.load(io.BytesIO(trace.read_bytes()), cache=tmp_path / "cache").n == 51


def test_changed_trace_and_other_arguments_miss(trace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    assert cache.load(trace, cache=folder).n == 51
    write(trace, 60)
    assert cache.load(trace, cache=folder).n == 61
    assert cache.load(trace, cache=folder, extra_args=["x"]).n == 61
    assert len(files(folder)) == 3


@pytest.mark.parametrize("at", [0, 500_000, 999_999])
def test_other_bytes_of_the_same_size_and_time_are_another_trace(tmp_path: Path, at: int) -> None:
    path = tmp_path / "trace.json"
    content = bytearray(1_000_000)
    path.write_bytes(content)
    status, before = path.stat(), cache.fingerprint(path)
    content[at] = 1
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert cache.fingerprint(path) != before


@pytest.mark.parametrize("damage", [b"", b"junk", None])
def test_damaged_entry_is_rebuilt(trace: Path, tmp_path: Path, damage: bytes | None) -> None:
    folder = tmp_path / "cache"
    first = cache.load(trace, cache=folder)
    (entry,) = files(folder)
    entry.write_bytes(entry.read_bytes()[:-100] if damage is None else damage)
    assert_same(first, cache.load(trace, cache=folder))
    assert cache.read_table(entry) is not None


def test_environment_moves_or_disables(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "elsewhere"
    monkeypatch.setenv("HTA_WIDGETS_CACHE", str(folder))
    cache.load(trace)
    assert len(files(folder)) == 1
    for off in ("0", "off", "OFF"):
        monkeypatch.setenv("HTA_WIDGETS_CACHE", off)
        assert cache.cache_folder() is None
    assert cache.load(trace).n == 51


def test_folder_that_cannot_be_written(trace: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert cache.load(trace, cache=blocked).n == 51


def test_least_recently_used_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    traces = [tmp_path / f"{i}.json" for i in range(3)]
    for i, path in enumerate(traces):
        write(path, 50 + i)
        cache.load(path, cache=folder)
        for entry in files(folder):
            if entry.stat().st_mtime > 1e6:
                os.utime(entry, (i, i))
    oldest = min(files(folder), key=lambda entry: entry.stat().st_mtime)
    monkeypatch.setenv("HTA_WIDGETS_CACHE_BYTES", str(2 * oldest.stat().st_size + 2000))
    cache.evict(folder)
    assert len(files(folder)) == 2 and oldest not in files(folder)
    monkeypatch.setenv("HTA_WIDGETS_CACHE_BYTES", "0")
    assert cache.load(traces[0], cache=folder).n == 51
    assert len(files(folder)) == 1


def test_reading_an_entry_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    entries: list[Path] = []
    traces = [tmp_path / f"{i}.json" for i in range(3)]
    for path in traces:
        write(path, 50)
        cache.load(path, cache=folder)
        (entry,) = set(files(folder)) - set(entries)
        entries.append(entry)
    for day, entry in enumerate(entries, 1):
        os.utime(entry, (86_400 * day, 86_400 * day))
    cache.load(traces[0], cache=folder)
    sizes = [entry.stat().st_size for entry in entries]
    monkeypatch.setenv("HTA_WIDGETS_CACHE_BYTES", str(sum(sizes) - 1))
    cache.evict(folder)
    assert files(folder) == sorted([entries[0], entries[2]])
    monkeypatch.setenv("HTA_WIDGETS_CACHE_BYTES", str(sizes[0]))
    cache.evict(folder)
    assert files(folder) == [entries[0]]


def test_two_loads_at_once(trace: Path, tmp_path: Path) -> None:
    tables: list[EventTable] = []
    threads = [
        threading.Thread(target=lambda: tables.append(cache.load(trace, cache=tmp_path / "cache")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [table.n for table in tables] == [51] * 4
    assert len(files(tmp_path / "cache")) == 1
