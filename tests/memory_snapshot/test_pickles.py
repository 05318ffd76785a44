"""Pickles are read as plain data; whatever else they hold is refused before anything runs."""

from __future__ import annotations

import gzip
import os
import pickle
import pickletools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hta_widgets import MemorySnapshot
from hta_widgets.errors import ForeignFileError, HtaWidgetsError, TraceFormatError
from hta_widgets.memory_snapshot.pickles import (
    BOOL,
    CONTAINER,
    FLOAT,
    IN_LIST,
    INT,
    NONE,
    TEXT,
    Graph,
    PickleError,
    plain_values,
)
from tests.memory_snapshot.allocator import MB, Allocator, snapshot, write
from tests.support import EVERY_CASE

CALLS: list[str] = []
ALLOWED = """
    PROTO FRAME EMPTY_DICT EMPTY_LIST EMPTY_TUPLE MARK BININT BININT1 BININT2 LONG1 LONG4 BINFLOAT
    SHORT_BINUNICODE BINUNICODE BINUNICODE8 NONE NEWTRUE NEWFALSE APPEND APPENDS SETITEM SETITEMS TUPLE TUPLE1
    TUPLE2 TUPLE3 BINPUT LONG_BINPUT MEMOIZE BINGET LONG_BINGET STOP
"""


class Evil:
    """Would run when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return CALLS.append, ("called",)


class Stateful:
    def __setstate__(self, state: object) -> None:
        CALLS.append("state")


def read(data: bytes) -> Any:
    graph = plain_values(np.frombuffer(data, np.uint8))
    return rebuilt(graph, graph.root)


def rebuilt(graph: Graph, container: int) -> Any:
    at = np.flatnonzero(graph.container == container)
    items = [(int(graph.key[k]), plain(graph, int(graph.kind[k]), int(graph.value[k]))) for k in at.tolist()]
    if items and items[0][0] != IN_LIST:
        return {graph.text(key): value for key, value in items}
    return [value for _, value in items]


def plain(graph: Graph, kind: int, value: int) -> Any:
    return {
        NONE: lambda: None,
        BOOL: lambda: bool(value),
        INT: lambda: value,
        FLOAT: lambda: float(np.int64(value).view(np.float64)),
        TEXT: lambda: graph.text(value),
        CONTAINER: lambda: rebuilt(graph, value),
    }[kind]()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("value", [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [(5, 6)]])
def test_a_tuple_is_a_list_also_where_nothing_is_around_it(protocol: int, value: Any) -> None:
    found = read(pickle.dumps(value, protocol))
    assert found == ([[5, 6]] if value == [(5, 6)] else list(value))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_equal_lists_of_the_same_frames_are_one_and_others_stay_apart(protocol: int) -> None:
    a, b, c = ({"name": name} for name in "abc")
    stacks = [[a, b], [a, b], [b, a], [a, b, c], [a], [{"name": "a"}, b], [a, b], [a, c], []]
    long = [[a, b] * 700, [a, b] * 500, [a, b] * 700, [a, b]]  # put in by a thousand at once
    named = stacks[1]
    data = {"stacks": stacks, "long": long, "again": [named, named], "mixed": [[a, 1], [a, 1], [[a, b]]]}
    assert read(pickle.dumps(data, protocol)) == data


def test_stacks_take_memory_once() -> None:
    frames = [{"name": f"f{k}"} for k in range(60)]
    events = [{"frames": list(frames)} for _ in range(500)]
    graph = plain_values(np.frombuffer(pickle.dumps({"events": events}, 4), np.uint8))
    assert len(graph.value) < 4 * len(events)
    assert read(pickle.dumps({"events": events}, 4)) == {"events": events}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_data_is_what_python_reads(protocol: int) -> None:
    shared = ["a", {"x": 1}]
    data = {
        "numbers": [
            0,
            1,
            255,
            256,
            65535,
            65536,
            -1,
            -(2**31),
            2**31,
            2**62,
            -(2**63),
            2**63 - 1,
            1.5,
            -0.25,
        ],
        "texts": ["", "é東🚀", "x" * 300, "y" * 70_000],
        "others": [True, False, None],
        "tuples": [[1], [1, 2], [1, 2, 3], [1, 2, 3, 4], [shared, shared]],
        "many": list(range(2500)),
        "dict": {str(k): k for k in range(2500)},
        "shared": shared,
        "empty": [{}, [], []],
    }
    written = {**data, "tuples": [tuple(item) for item in data["tuples"]], "empty": [{}, [], ()]}
    expected = {**data, "empty": [[], [], []]}
    assert read(pickle.dumps(written, protocol)) == expected


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "value",
    [Evil(), Stateful(), os.system, b"bytes", bytearray(b"x"), {1, 2}, frozenset((1,)), 1 + 2j, Path("/x")],
)
def test_anything_else_is_refused_and_nothing_runs(tmp_path: Path, value: object, protocol: int) -> None:
    CALLS.clear()
    path = tmp_path / "evil.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [], "x": value}, protocol))
    with pytest.raises(TraceFormatError):
        MemorySnapshot.open(path)
    assert CALLS == []


def test_every_opcode_but_those_of_plain_data_is_refused() -> None:
    allowed = set(ALLOWED.split())
    for opcode in pickletools.opcodes:
        if opcode.name not in allowed:
            code = opcode.code.encode("latin-1")
            with pytest.raises(PickleError, match="more than plain data"):
                read(b"\x80\x04}" + code + b"os\nsystem\n" + bytes(16) + b".")


@pytest.mark.parametrize(
    "body",
    [
        b"", b"}", b".", b"K\x01.", b"}h\x05.", b"}(K\x01u.", b"}u.", b"]e.", b"](e", b"\x87.", b"(t",
        b"X\xff\xff\xff\xff", b"\x8d" + b"\xff" * 8, b"\x8d" + b"\xff" * 7 + b"\x7f",
        b"}r\xff\xff\xff\xff.", b"\x8b\xff\xff\xff\x7f", b"(((((((.",
        b"\x94}.", b"}(\x94u.", b"q\x00}.",
    ],
)  # fmt: skip
def test_damaged_pickles_are_typed_errors(body: bytes) -> None:
    with pytest.raises(PickleError):
        read(b"\x80\x04" + body)


def test_mutated_snapshots_never_crash(tmp_path: Path) -> None:
    allocator = Allocator(100 * MB)
    for _ in range(5):
        allocator.alloc(3 * MB, "/app/a.py:1:f")
    good = pickle.dumps(snapshot(allocator), 4)
    path = tmp_path / "s.pickle"
    opened = 0
    seeds = range(600 if EVERY_CASE else 150)
    for seed in seeds:
        dice = random.Random(seed)
        data = bytearray(good)
        for _ in range(dice.choice((1, 1, 2, 5))):
            at = dice.randrange(len(data))
            match dice.randrange(3):
                case 0:
                    data[at] = dice.randrange(256)
                case 1:
                    del data[at : at + dice.choice((1, 3, 40))]
                case _:
                    data[at:at] = data[at : at + dice.randrange(30)]
        path.write_bytes(data)
        try:
            found = MemorySnapshot.open(path)
            found.sentence()
            found.owners()
            found.blockers()
            opened += 1
        except HtaWidgetsError:
            continue
    assert opened > len(seeds) / 12


def test_other_pickles_are_named(tmp_path: Path) -> None:
    path = tmp_path / "other.pickle"
    path.write_bytes(pickle.dumps({"entries": []}, 4))
    with pytest.raises(ForeignFileError, match="not a memory snapshot: it has no segments"):
        MemorySnapshot.open(path)
    path.write_bytes(b"{}")
    with pytest.raises(TraceFormatError, match="no pickle"):
        MemorySnapshot.open(path)


def test_a_gzipped_snapshot_opens(tmp_path: Path) -> None:
    allocator = Allocator(100 * MB)
    allocator.alloc(3 * MB, "/app/a.py:1:f")
    path = write(tmp_path / "s.pickle", allocator)
    packed = tmp_path / "s.pickle.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert MemorySnapshot.open(packed).owners()["bytes"].tolist() == [3 * MB]
