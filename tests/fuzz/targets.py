"""What is fuzzed. Each target takes a seed and says what became of the input."""

from __future__ import annotations

import io
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import traitlets

from hta_widgets import EventsTable, TimelineScrubber, examples
from hta_widgets.errors import HtaWidgetsError
from hta_widgets.trace import Trace
from hta_widgets.trace.reader import cache as table_cache
from hta_widgets.trace.reader import columns, scanner
from hta_widgets.trace.reader.blocks import Block, BlockReader
from hta_widgets.trace.reader.sealed import DamagedFileError
from hta_widgets.trace.reader.table import EventTable
from tests.fuzz.answers import answers
from tests.fuzz.formats import packets, snapshots
from tests.fuzz.mutators import document, mutate, packed, value
from tests.fuzz.oracle import differences, events_of, looks_like_a_trace

BLOCKS = (256, 300, 1000, 4096, 1 << 14)
TOLD = {"malformed_event", "truncated", "compression"}  # what explains events that are not there
GOOD = (
    b'{"distributedInfo": {"rank": 0}, "traceEvents": '
    b'[{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}'
)
PARAMETERS: dict[str, Any] = {
    "chunk": 0, "start": 0, "end": 10**9, "t0": 0, "t1": 10**9, "t": 5, "px": 100, "bins": 10, "lanes": [0],
    "id": 3, "step": 1, "to": "parent", "first": 0, "count": 20, "columns": ["name"], "rank": 0,
    "event_id": 5, "names": ["a"], "query": "a", "ranks": [0], "iterations": [], "window": None,
    "view": "x", "run": 0,
}  # fmt: skip
TABLES = 24  # that cache files are made of


def reading(seed: int) -> str:
    """A trace, whole or damaged, through the scanner, compared with `json.loads`."""
    dice = random.Random(seed)
    text = document(dice)
    damaged = dice.random() < 0.6
    if damaged:
        text = mutate(text, dice)
    source = packed(text, dice) if dice.random() < 0.15 else text
    small = dice.random() < 0.95
    try:
        with _small_rooms() if small else nullcontext():
            table = scanner.scan(io.BytesIO(source), block_bytes=dice.choice(BLOCKS))
    except HtaWidgetsError:
        if not damaged and source is text:
            assert not looks_like_a_trace(events_of(text)), "JSON was refused"
        return "refused"
    events = events_of(text)
    problems = {problem.check for problem in table.problems}
    if events is None:
        return "accepted, no JSON"
    if problems & TOLD:
        assert source is not text, f"JSON is called {problems & TOLD}"
        return "accepted in part"
    if "second_events" in problems:
        return "accepted, the first of two traceEvents"
    assert "not_json" not in problems, "JSON is called none"
    found = differences(table, events)
    assert not found, found[:3]
    return "accepted and equal"


@contextmanager
def _small_rooms() -> Iterator[None]:
    """A scanner that runs out of room after a few events and names, as it does in files of a gigabyte.

    It reads in one thread: starting another takes a fifth of the time.
    """
    usual = columns._LEAST_ROOM, columns._NAMES, columns._NAME_BYTES
    columns._LEAST_ROOM, columns._NAMES, columns._NAME_BYTES = 2, 16, 200  # type: ignore[misc]
    scanner.BlockReader = _InOneThread  # type: ignore[misc]
    try:
        yield
    finally:
        columns._LEAST_ROOM, columns._NAMES, columns._NAME_BYTES = usual  # type: ignore[misc]
        scanner.BlockReader = BlockReader  # type: ignore[misc]


class _InOneThread(BlockReader):
    """The same blocks, without the thread that reads ahead."""

    def __iter__(self) -> Iterator[Block]:
        buffer = self._buffer()
        while True:
            block = self._read(buffer)
            yield block
            if block.last:
                return


def opening(seed: int) -> str:
    """Two files as a job: all of it answers, and a bad file does not sink the other."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "rank0.json").write_bytes(GOOD)
        (Path(folder) / "rank1.json").write_bytes(document(dice))
        trace = Trace.open(folder, cache=False)
        assert 0 in trace.ranks
        _ = trace.health, trace.events(), trace.iterations, trace.summary
    return "answered"


@cache
def _place() -> tempfile.TemporaryDirectory[str]:
    """A folder as long as the process lives, in memory where that can be had."""
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(prefix="hta_widgets-fuzz-", dir=memory if memory.is_dir() else None)


@cache
def _cached(number: int) -> tuple[EventTable, bytes]:
    """A table and its cache file."""
    dice = random.Random(number)
    file = Path(_place().name) / "written"
    while True:
        try:
            table = scanner.scan(io.BytesIO(document(dice)))
        except HtaWidgetsError:
            continue
        table_cache.write_table(table, file, compressed=dice.random() < 0.5)
        return table, file.read_bytes()


def caching(seed: int) -> str:
    """A cache file with changed bytes is refused."""
    dice = random.Random(seed)
    table, before = _cached(dice.randrange(TABLES))
    after = mutate(before, dice)
    file = Path(_place().name) / "changed"
    file.write_bytes(after)
    try:
        again = table_cache.read_table(file)
    except DamagedFileError:
        return "refused"
    assert again is not None and after == before, "a changed cache file was believed"
    for column in table.columns:
        assert again.sparse(column)[1].tobytes() == table.sparse(column)[1].tobytes()
    return "accepted and equal"


def loading(seed: int) -> str:
    """A trace whose cache file changed gives the same table, and the change is told."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        path, folder = Path(name) / "rank0.json", Path(name) / "cache"
        path.write_bytes(document(dice))
        try:
            first = table_cache.load(path, cache=folder)
        except HtaWidgetsError:
            return "refused"
        (entry,) = folder.iterdir()
        before = entry.read_bytes()
        entry.write_bytes(mutate(before, dice))
        again = table_cache.load(path, cache=folder)
        told = [problem for problem in again.problems if problem.check == "cache"]
        assert told or entry.read_bytes() == before, "a changed cache file was believed"
        for column in first.columns:
            assert again.sparse(column)[1].tobytes() == first.sparse(column)[1].tobytes()
    return "told" if told else "unchanged"


@cache
def _parts() -> list[Any]:
    trace = examples.load("gpt2_baseline")
    return [TimelineScrubber(trace), EventsTable(trace)]


def messages(seed: int) -> str:
    """What a browser may send: traits and calls of any shape."""
    dice = random.Random(seed)
    part = dice.choice(_parts())
    if dice.random() < 0.5:
        names = [*part.keys, "nothing"]
        state = {dice.choice(names): value(dice) for _ in range(dice.randrange(1, 4))}
        try:
            part.set_state(state)
        except traitlets.TraitError:
            return "refused"
        return "set"
    method = dice.choice([name for name in (*part._rpc_methods, "nothing") if name != "file"])  # writes one
    params = {name: value(dice) if dice.random() < 0.3 else usual for name, usual in PARAMETERS.items()}
    params = {name: params[name] for name in params if dice.random() < 0.95}
    try:
        part.ask(method, params)
    except (HtaWidgetsError, traitlets.TraitError, LookupError, TypeError, ValueError, OverflowError):
        return "refused"  # the view gets the message
    return "answered"


TARGETS: dict[str, Callable[[int], str]] = {
    "answers": answers,
    "reading": reading,
    "packets": packets,
    "snapshots": snapshots,
    "caching": caching,
    "messages": messages,
    "loading": loading,
    "opening": opening,
}
OF_A_THOUSAND = {
    "answers": 100, "reading": 400, "packets": 120, "snapshots": 40, "caching": 170, "messages": 167,
    "loading": 2, "opening": 1,
}  # fmt: skip
