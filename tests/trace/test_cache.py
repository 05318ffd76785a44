"""The column cache: same table, misses when the trace changes, never an obstacle."""

import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hta_widgets.trace.reader import cache, parallel, sealed
from hta_widgets.trace.reader.cache_budget import CacheBudget
from hta_widgets.trace.reader.discovery import discover
from hta_widgets.trace.reader.parallel import read_all
from hta_widgets.trace.reader.schema import NULL
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


@pytest.mark.parametrize("at", [0, 123_456, 500_000, 876_543, 999_999])
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
    again = cache.load(trace, cache=folder)
    told = again.problems.pop()  # a damaged copy is never passed over in silence
    assert (told.check, told.severity) == ("cache", "warning") and "read again" in told.detail
    assert_same(first, again)
    stored = cache.read_table(entry)
    assert stored is not None and stored.problems == first.problems
    assert_same(first, cache.load(trace, cache=folder))


def test_no_block_is_believed_unread(trace: Path, tmp_path: Path) -> None:
    """Every part of an entry is zeroed once: the table is the same, or nothing was changed."""
    folder = tmp_path / "cache"
    first = cache.load(trace, cache=folder)
    (entry,) = files(folder)
    content = entry.read_bytes()
    silent = 0
    for start in range(0, len(content), 64):
        damaged = content[:start] + bytes(len(content[start : start + 64])) + content[start + 64 :]
        entry.write_bytes(damaged)
        again = cache.load(trace, cache=folder)
        if again.problems[-1].check == "cache":
            again.problems.pop()
        else:
            silent += 1
            assert damaged == content  # these bytes were zero before
        assert_same(first, again)
    assert silent < len(content) // 64


@pytest.mark.parametrize("size", [0, 1, sealed.BLOCK - 1, sealed.BLOCK, 3 * sealed.BLOCK + 5])
def test_sealed_files_are_read_as_written_and_each_bit_counts(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    content = bytes(range(256)) * (size // 256) + bytes(size % 256)
    with path.open("wb") as file:
        sealing = sealed.Sealing(file)
        for start in range(0, size, 700_001):
            sealing.write(content[start : start + 700_001])
        sealing.seal()
    assert sealed.read_sealed(path).to_pybytes() == content
    stored = path.read_bytes()
    for at in {0, size // 2, max(0, size - 1), size, len(stored) - 13, len(stored) - 1}:
        path.write_bytes(stored[:at] + bytes([stored[at] ^ 1]) + stored[at + 1 :])
        with pytest.raises(sealed.DamagedFileError):
            sealed.read_sealed(path)
    for cut in (0, 5, len(stored) // 2, len(stored) - 1):
        path.write_bytes(stored[:cut])
        with pytest.raises(sealed.DamagedFileError):
            sealed.read_sealed(path)


def test_an_entry_cut_while_its_table_is_in_use_does_not_end_the_process(trace: Path, tmp_path: Path) -> None:
    """A mapped file that is cut would be SIGBUS."""
    code = """
import os, sys
from pathlib import Path
from hta_widgets.trace.reader import cache
trace, folder = Path(sys.argv[1]), Path(sys.argv[2])
table = cache.load(trace, cache=folder)
table = cache.load(trace, cache=folder)
(entry,) = folder.iterdir()
os.truncate(entry, 0)
print(int(table.ints("start_ns").sum()), len(table.dictionary("name")))
"""
    write(trace, 20_000)
    argv = [sys.executable, "-c", code, str(trace), str(tmp_path / "cache")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(sum(range(20_000)) * 1000 + NULL), "7"]


GONE = 4_000_000_000  # no process has this number


def test_columns_are_written_from_where_they_lie(tmp_path: Path) -> None:
    table = EventTable("t", 1 << 20, {"start_ns": np.arange(1 << 20)}, {}, {}, {})
    usual = pa.default_memory_pool()
    counting = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counting)
    try:
        cache.write_table(table, tmp_path / "t.arrow", compressed=False)
    finally:
        pa.set_memory_pool(usual)
    most = counting.max_memory()
    assert most is not None and most < table.nbytes // 8
    read = cache.read_table(tmp_path / "t.arrow")
    assert read is not None
    assert_same(table, read)


def test_columns_are_compressed_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_AT_ONCE", 1 << 20)
    dense = {f"c{i}": np.arange(i, i + (1 << 16)) for i in range(16)}
    rows = np.arange(0, 1 << 16, 7, np.int32)
    table = EventTable("t", 1 << 16, dense, {"few": (rows, rows * 2), "none": (rows[:0], rows[:0])}, {}, {})
    cache.write_table(table, tmp_path / "t.arrow", compressed=True)
    stored = pa.ipc.open_file(pa.BufferReader(sealed.read_sealed(tmp_path / "t.arrow")))
    sizes = [stored.get_batch(at).nbytes for at in range(stored.num_record_batches)]
    assert len(sizes) > 4 and max(sizes) < 2 << 20
    read = cache.read_table(tmp_path / "t.arrow")
    assert read is not None
    assert_same(table, read)


def test_of_an_entry_that_cannot_be_finished_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_some = sealed.Sealing.write
    written: list[int] = []

    def full(self: sealed.Sealing, data: object) -> int:
        if sum(written) >= 1 << 20:
            raise OSError(28, "No space left on device")
        written.append(write_some(self, data))
        return written[-1]

    monkeypatch.setattr(sealed.Sealing, "write", full)
    table = EventTable("t", 1 << 17, {f"c{i}": np.arange(1 << 17) for i in range(4)}, {}, {}, {})
    with pytest.raises(OSError, match="No space left"):
        cache.write_table(table, tmp_path / "t.arrow", compressed=False)
    assert sum(written) >= 1 << 20 and not files(tmp_path)


def test_what_killed_writers_left_goes_and_what_others_write_counts(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    cache.load(trace, cache=folder)
    (entry,) = files(folder)
    left = [folder / f".a.trace.arrow.{GONE}.0", folder / f"b.{GONE}.tmp", folder / "tmpold.tmp"]
    kept = [folder / f".c.trace.arrow.{os.getpid()}.0", folder / "tmpnew.tmp", folder / "notes.txt"]
    for file in (*left, *kept):
        file.write_bytes(bytes(10_000))
    os.utime(folder / "tmpold.tmp", (0, 0))
    CacheBudget(folder).fit()
    assert set(files(folder)) == {entry, *kept}
    monkeypatch.setenv("HTA_WIDGETS_CACHE_BYTES", str(20_000 + entry.stat().st_size - 1))
    CacheBudget(folder).fit()
    assert set(files(folder)) == set(kept)


def test_verify_reads_every_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTA_WIDGETS_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "trace.json"
    write(path, 40_000)
    status, before = path.stat(), cache.load(path, cache="verify")
    text = path.read_bytes()
    at = text.index(b'"ts": 20017,')
    path.write_bytes(text[:at] + b'"ts": 30017,' + text[at + 12 :])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    after = cache.load(path, cache="verify")
    changed = np.flatnonzero(before.ints("start_ns") != after.ints("start_ns"))
    assert changed.tolist() == [20_017] and after.ints("start_ns")[20_017] == 30_017_000
    with monkeypatch.context() as hit:
        forbid_scan(hit)
        assert_same(after, cache.load(path, cache="verify"))


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
    CacheBudget(folder).fit()
    assert len(files(folder)) == 2 and oldest not in files(folder)
    monkeypatch.setenv("HTA_WIDGETS_CACHE_BYTES", "0")
    assert cache.load(traces[0], cache=folder).n == 51
    assert len(files(folder)) == 1


def test_a_job_larger_than_the_budget_is_partly_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, folder = tmp_path / "job", tmp_path / "cache"
    job.mkdir()
    for rank in range(6):
        write(job / f"rank{rank}.json", 50)
    other = tmp_path / "other.json"
    write(other, 50)
    cache.load(other, cache=folder, budget=CacheBudget(folder, 1 << 40))  # compressed, as these will be
    (before,) = files(folder)
    size = before.stat().st_size
    monkeypatch.setenv("HTA_WIDGETS_CACHE_BYTES", str(3 * size + size // 2))
    monkeypatch.setattr(parallel, "WORKERS", 1)  # of files that are read side by side any may be the first
    listed, scanned = [], []
    iterdir, scan = Path.iterdir, cache.scan
    monkeypatch.setattr(Path, "iterdir", lambda path: (listed.append(path), iterdir(path))[1])
    monkeypatch.setattr(cache, "scan", lambda source, **how: (scanned.append(source), scan(source, **how))[1])

    def opened() -> int:
        listed.clear()
        scanned.clear()
        tables, failed = read_all(discover(job).files, folder)
        assert [table.n for table in tables if table] == [51] * 6 and not failed
        return len(scanned)

    assert opened() == 6
    assert listed.count(folder) == 1
    kept = files(folder)
    assert len(kept) == 3 and before not in kept  # the other job's was used less recently
    assert opened() == 3  # a job that displaced its own files would read all of them again
    assert files(folder) == kept
    monkeypatch.delenv("HTA_WIDGETS_CACHE_BYTES")
    assert [opened(), opened()] == [3, 0]


def test_what_another_thread_was_writing_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTA_WIDGETS_CACHE_BYTES", "300")
    first, second, third = (tmp_path / f"{key}.trace.arrow" for key in "abc")
    unfinished = tmp_path / f".{second.name}.{os.getpid()}.7"
    for file in (first, unfinished):
        file.write_bytes(bytes(100))
    budget = CacheBudget(tmp_path)
    budget.wrote(first)
    unfinished.rename(second)
    budget.wrote(second)
    third.write_bytes(bytes(100))
    budget.wrote(third)
    assert not budget.full and files(tmp_path) == [first, second, third]


def test_columns_of_jobs_that_would_take_much_of_the_budget_are_compressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "trace.json"
    write(trace, 2_000)
    plain = cache.load(trace, cache=tmp_path / "plain")
    monkeypatch.setenv("HTA_WIDGETS_CACHE_BYTES", str(20 * plain.nbytes))
    for files_of_each, is_compressed in ((1, False), (2, False), (4, True)):
        folder = tmp_path / f"job of {files_of_each}"
        table = cache.load(trace, cache=folder, budget=CacheBudget(folder, files_of_each))
        (file,) = files(folder)
        assert (file.stat().st_size < plain.nbytes / 2) == is_compressed
        again = cache.read_table(file)
        assert again is not None and again.n == table.n == plain.n
        assert np.array_equal(again.ints("start_ns"), plain.ints("start_ns"))
        assert np.array_equal(again.codes("name"), plain.codes("name"))


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
    CacheBudget(folder).fit()
    assert files(folder) == sorted([entries[0], entries[2]])
    monkeypatch.setenv("HTA_WIDGETS_CACHE_BYTES", str(sizes[0]))
    CacheBudget(folder).fit()
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
