"""What a Perfetto trace says, packet by packet, and what is said of cut, damaged and foreign ones."""

from __future__ import annotations

import io
import json
import random
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hta_widgets.errors import ForeignFileError, TraceFormatError
from hta_widgets.trace.reader import scanner
from hta_widgets.trace.reader.raw import RawTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.reader.table import EventTable
from tests.trace.perfetto.proto import data, double, fixed64, number, packet
from tests.trace.perfetto.writer import annotation, kineto, pytorch

pytestmark = pytest.mark.slow

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def event(time: int, kind: int, *parts: bytes, track: int = 2, sequence: int = 1) -> bytes:
    inner = number(9, kind) + number(11, track) + b"".join(parts)
    return packet(number(8, time), number(10, sequence), data(11, inner))


def begin(time: int, name: str, *parts: bytes, track: int = 2) -> bytes:
    return event(time, BEGIN, data(23, name), *parts, track=track)


def end(time: int, track: int = 2) -> bytes:
    return event(time, END, track=track)


PROCESS = packet(data(60, number(1, 1) + data(3, number(1, 10) + data(6, "python") + data(8, "CPU"))))
THREAD = packet(
    data(60, number(1, 2) + number(5, 1) + data(4, number(1, 10) + number(2, 11) + data(5, "main")))
)


def read(*packets: bytes, extra_args: Sequence[str] = (), block_bytes: int | None = None) -> EventTable:
    return scanner.scan(io.BytesIO(b"".join(packets)), extra_args=extra_args, block_bytes=block_bytes)


def cells(table: EventTable, name: str) -> dict[int, Any]:
    rows, values = table.sparse(name)
    if name in table.text_columns:
        return {row: table.dictionary(name)[code] for row, code in zip(rows, values, strict=True)}
    return dict(zip(rows.tolist(), values.tolist(), strict=True))


def names(table: EventTable) -> list[str]:
    return [table.dictionary("name")[code] if code >= 0 else "" for code in table.codes("name")]


def slices(table: EventTable) -> list[tuple[str, int, int]]:
    phase = table.dictionary("phase")
    return [
        (name, start, dur)
        for name, code, start, dur in zip(
            names(table), table.codes("phase"), table.ints("start_ns"), table.ints("dur_ns"), strict=True
        )
        if phase[code] == "X"
    ]


def checks(table: EventTable) -> set[str]:
    return {problem.check for problem in table.problems}


def test_slices_nest_and_have_places() -> None:
    table = read(PROCESS, THREAD, begin(5, "a"), begin(6, "b"), end(8), end(9))
    assert slices(table) == [("a", 5, 4), ("b", 6, 2)]
    assert {table.dictionary("pid")[code] for code in table.codes("pid")[:2]} == {"10"}
    assert {table.dictionary("tid")[code] for code in table.codes("tid")[:2]} == {"11"}
    assert set(cells(table, "args_name").values()) == {"python", "main"}
    assert set(cells(table, "args_labels").values()) == {"CPU"}


def test_groups_of_begins_and_ends_are_paired_by_place() -> None:
    touching = [begin(0, "a"), begin(10, "b"), begin(20, "c"), end(10), end(20), end(20)]
    assert slices(read(PROCESS, THREAD, *touching)) == [("a", 0, 10), ("b", 10, 10), ("c", 20, 0)]


@pytest.mark.parametrize(
    ("old", "found"),
    [
        (number(2, 88) + number(3, 7), [("a", 5, 7000)]),  # X, and how many microseconds it takes
        (number(3, 7) + number(7, 66) + number(2, 88), [("a", 5, 7000)]),  # other fields are no phases
        (number(2, 66), [("a", 5, 4)]),  # B
        (number(2, 73), []),  # I
    ],
)
def test_old_events_have_a_phase_where_they_have_no_kind(old: bytes, found: list[Any]) -> None:
    plain = packet(number(8, 5), number(10, 1), data(11, number(11, 2) + data(23, "a") + data(6, old)))
    assert slices(read(PROCESS, THREAD, plain, end(9))) == found
    assert slices(read(PROCESS, THREAD, begin(5, "a", data(6, number(2, 73))), end(9))) == [("a", 5, 4)]


def test_a_slice_without_an_end_is_said() -> None:
    table = read(PROCESS, THREAD, begin(0, "a"), begin(10, "b"), end(11))
    assert slices(table) == [("b", 10, 1)]
    assert table.ints("dur_ns")[0] == NULL and "unfinished_slice" in checks(table)


def test_arguments_of_all_kinds() -> None:
    given: dict[str, Any] = {
        "correlation": 7,
        "External id": -3,
        "blocks per SM": 0.25,
        "est. achieved occupancy %": 50,
        "Input Dims": [[4, 8], [], [[2], [3]]],
        "Concrete Inputs": ["", "[2, 2]", "é"],
        "kernel_kwargs": {"BLOCK": 128, "deep": {"x": [True, None, 1.5]}},
        "dtype": "BFloat16",
        "Call stack": "a;b",
        "Sequence number": "12",
        "Ev Idx": "0x1f",
        "device": True,
        "Collective name": None,
        "unknown": [1],
    }
    parts = [data(4, annotation(key, value)) for key, value in given.items()]
    table = read(PROCESS, THREAD, begin(5, "a", *parts), end(6), extra_args=["unknown"])
    found = {name: cells(table, name).get(0) for name in table.sparse_columns}
    assert (found["correlation"], found["external_id"], found["sequence_number"]) == (7, -3, 12)
    assert (found["blocks_per_sm"], found["occupancy_pct"]) == (0.25, 50.0)
    assert (found["ev_idx"], found["device"], found["dtype"], found["call_stack"]) == (
        31,
        1,
        "BFloat16",
        "a;b",
    )
    assert json.loads(found["input_dims"]) == given["Input Dims"]
    assert json.loads(found["concrete_inputs"]) == given["Concrete Inputs"]
    assert json.loads(found["kernel_kwargs"]) == {"BLOCK": 128, "deep": {"x": [True, "null", 1.5]}}
    assert json.loads(found["unknown"]) == [1]
    assert "collective_name" not in table.columns


def test_ids_mean_what_their_sequence_says_last() -> None:
    def interned(sequence: int, name: str, key: str, value: str, clear: bool = True) -> bytes:
        inner = data(2, number(1, 1) + data(2, name)) + data(1, number(1, 1) + data(2, f"of {name}"))
        inner += data(3, number(1, 1) + data(2, key)) + data(29, number(1, 1) + data(2, value))
        return packet(number(10, sequence), number(13, 1 if clear else 2), data(12, inner))

    def uses(sequence: int, time: int) -> bytes:
        nested = data(4, number(1, 1) + data(11, number(1, 1) + number(17, 1)))
        plain = data(4, data(10, "Collective name") + number(17, 1))
        return event(time, INSTANT, number(10, 1), number(3, 1), nested, plain, sequence=sequence)

    table = read(
        interned(1, "a", "kernel_kwargs", "one"), uses(1, 1),
        interned(2, "b", "kernel_kwargs", "two"), uses(2, 2), uses(1, 3),
        interned(1, "c", "kernel_kwargs", "three"), uses(1, 4), uses(9, 5),
    )  # fmt: skip
    assert names(table) == ["a", "b", "a", "c", ""]
    assert cells(table, "collective_name") == {0: "one", 1: "two", 2: "one", 3: "three"}
    nested = {row: json.loads(text)["kernel_kwargs"] for row, text in cells(table, "kernel_kwargs").items()}
    assert nested == {0: "one", 1: "two", 2: "one", 3: "three"}
    categories = [table.dictionary("category")[code] for code in table.codes("category")[:4]]
    assert categories == ["of a", "of b", "of a", "of c"]
    assert "unresolved_name" in checks(table)


def test_flows_become_events_of_their_own() -> None:
    table = read(
        PROCESS, THREAD, begin(5, "launch", fixed64(47, 77)), end(6),
        begin(9, "kernel", fixed64(48, 77)), end(10),
        begin(20, "alone", fixed64(47, 5)), end(21),
    )  # fmt: skip
    rows, ids = table.sparse("flow_id")
    phases = [table.dictionary("phase")[code] for code in table.codes("phase")[rows]]
    assert (phases, ids.tolist(), table.ints("start_ns")[rows].tolist()) == (["s", "f"], [77, 77], [5, 9])


def test_counters_of_tracks_and_devices() -> None:
    track = packet(data(60, number(1, 5) + number(5, 1) + data(2, "queue") + data(8, b"")))
    specs = data(1, number(1, 3) + data(2, "SM Active (%)"))
    descriptor = number(1, 1) + number(3, 2) + data(2, specs)
    interned = packet(number(10, 1), number(13, 1), data(12, data(47, descriptor)))
    sample = number(4, 1) + data(2, number(1, 3) + double(3, 62.5))
    table = read(
        PROCESS, track, interned,
        event(5, COUNTER, number(30, 4), track=5), event(6, COUNTER, double(44, 1.5), track=5),
        packet(number(8, 7), number(10, 1), data(52, sample)),
    )  # fmt: skip
    assert names(table)[:3] == ["queue", "queue", "SM Active (%)"]
    assert [json.loads(text) for text in cells(table, "counter_args").values()] == [
        {"queue": 4}, {"queue": 1.5}, {"": 62.5},
    ]  # fmt: skip
    pids = [table.dictionary("pid")[code] for code in table.codes("pid")[:3]]
    assert pids == ["10", "10", "GPU 2 Counters"]


def test_work_of_a_device_lies_on_the_stream_that_it_states_or_else_on_its_queue() -> None:
    queues = {101: "Queue 4", 102: "compute"}
    interned = b"".join(data(24, number(1, iid) + data(2, name)) for iid, name in queues.items())
    stream = data(6, data(1, "stream id") + data(2, "7"))

    def work(time: int, queue: int, *stated: bytes) -> bytes:
        inner = number(2, 5) + number(11, 0) + number(13, queue) + b"".join(stated)
        return packet(number(8, time), number(10, 1), data(53, inner))

    table = read(
        packet(number(10, 1), number(13, 1), data(12, interned)),
        work(1, 101, stream), work(2, 102, stream), work(3, 101), work(4, 102),
    )  # fmt: skip
    assert table.ints("start_ns").tolist() == [1, 2, 3, 4]
    assert [table.dictionary("tid")[code] for code in table.codes("tid")] == ["7", "7", "4", "compute"]


def test_clocks_are_tied_to_each_other() -> None:
    def clock(number_of_clock: int, time: int, *more: bytes) -> bytes:
        return data(1, number(1, number_of_clock) + number(2, time) + b"".join(more))

    clocks = (
        clock(6, 1000) + clock(1, 5_000_000) + clock(3, 400) + clock(64, 10, number(3, 1), number(4, 1000))
    )
    snapshot = packet(number(10, 1), data(6, clocks))
    defaults = packet(number(10, 1), number(13, 1), data(59, number(58, 64) + data(11, number(11, 2))))
    table = read(
        PROCESS, THREAD, snapshot, defaults,
        packet(number(8, 5), number(10, 1), data(11, number(9, BEGIN) + data(23, "a"))),
        packet(number(8, 2), number(10, 1), data(11, number(9, END))),
        packet(number(8, 450), number(58, 3), number(10, 1), data(11, number(9, INSTANT) + data(23, "b"))),
        packet(number(8, 1), number(58, 5), number(10, 1), data(11, number(9, INSTANT) + data(23, "c"))),
    )  # fmt: skip
    assert slices(table) == [("a", 5000, 2000)]
    assert table.ints("start_ns")[1] == 50
    assert table.metadata["baseTimeNanoseconds"] == 5_000_000
    assert "clocks" in checks(table)


def test_packets_within_packets_are_read() -> None:
    inner = begin(5, "a") + end(7)
    assert slices(read(PROCESS, THREAD, packet(data(50, zlib.compress(inner))))) == [("a", 5, 2)]
    assert "malformed_event" in checks(read(PROCESS, begin(1, "b"), end(2), packet(data(50, b"no zlib"))))


def test_a_bomb_is_refused() -> None:
    bomb = zlib.compress(bytes(300 << 20), 9)
    with pytest.raises(TraceFormatError, match="more than a recording"):
        read(PROCESS, begin(1, "b"), end(2), packet(data(50, bomb)))


@pytest.mark.parametrize("block", [64, 200, 4096, None])
def test_blocks_of_any_size_give_the_same(block: int | None) -> None:
    text = pytorch(DOCUMENT)
    whole = scanner.scan(io.BytesIO(text))
    parts = scanner.scan(io.BytesIO(text), block_bytes=block)
    assert parts.n == whole.n and set(parts.columns) == set(whole.columns)
    for name in whole.columns:
        for mine, theirs in zip(whole.sparse(name), parts.sparse(name), strict=True):
            assert np.array_equal(mine, theirs), name


DOCUMENT: dict[str, Any] = {
    "distributedInfo": {"rank": 3, "world_size": 4},
    "deviceProperties": [{"id": 0, "name": "H100"}],
    "traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 10, "tid": 0, "ts": 0, "args": {"name": "python"}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 10, "tid": 11, "ts": 1.5, "dur": 20,
         "args": {"External id": 1, "Input Dims": [[2, 3], [3, 4]]}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10, "tid": 11, "ts": 4,
         "dur": 5.001, "args": {"cbid": 211, "correlation": 9}},
        {"ph": "X", "cat": "kernel", "name": "gemm<1>", "pid": 0, "tid": 7, "ts": 15, "dur": 30,
         "args": {"device": 0, "stream": 7, "context": 1, "correlation": 9, "grid": [4, 1, 1],
                  "block": [128, 1, 1], "registers per thread": 32, "shared memory": 1024, "External id": 1}},
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 20, "ts": 50, "dur": 3,
         "args": {"device": 0, "stream": 20, "correlation": 12, "bytes": 4096}},
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 10, "tid": 11, "ts": 0.5,
         "dur": 60, "args": {"External id": 2}},
        {"ph": "C", "name": "Power", "pid": 0, "ts": 5, "args": {"W": 300}},
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 10, "tid": 11, "ts": 6, "s": "t",
         "args": {"Addr": 123, "Bytes": 512, "Device Type": 1}},
    ],
}  # fmt: skip


def test_pytorchs_layout_has_the_columns_of_json() -> None:
    table = scanner.scan(io.BytesIO(pytorch(DOCUMENT)))
    expected = scanner.scan(io.BytesIO(json.dumps(DOCUMENT).encode()))
    assert table.metadata["distributedInfo"] == {"rank": 3, "world_size": 4}
    assert table.metadata["deviceProperties"] == DOCUMENT["deviceProperties"]

    def by_name(of: EventTable, column: str) -> dict[str, Any]:
        return {names(of)[row]: value for row, value in cells(of, column).items()}

    for column in (
        "correlation",
        "external_id",
        "stream",
        "device",
        "registers_per_thread",
        "shared_memory",
        "bytes",
    ):
        assert by_name(table, column) == by_name(expected, column), column
    assert json.loads(by_name(table, "grid")["gemm<1>"]) == [4, 1, 1]
    for column in ("category", "pid", "tid", "phase"):
        place = {
            n: of for n, of in zip(names(table), table.codes(column), strict=True) if n in names(expected)
        }
        for name, code in zip(names(expected), expected.codes(column), strict=True):
            if name != "process_name" and code >= 0:
                assert table.dictionary(column)[place[name]] == expected.dictionary(column)[code], (
                    name,
                    column,
                )
    assert sorted(slices(table)) == sorted(slices(expected))


def test_kinetos_layout_has_inferred_categories() -> None:
    table = scanner.scan(io.BytesIO(kineto(DOCUMENT)))
    categories = {
        name: table.dictionary("category")[code]
        for name, code in zip(names(table), table.codes("category"), strict=True)
        if code >= 0
    }
    del categories["Memcpy HtoD"], categories["ac2g"]
    assert categories == {
        "aten::mm": "cpu_op", "cudaLaunchKernel": "cuda_runtime", "gemm<1>": "kernel",
        "ProfilerStep#3": "user_annotation",
    }  # fmt: skip
    assert cells(table, "correlation")[names(table).index("gemm<1>")] == 9
    assert "category_inferred" in checks(table)
    assert table.metadata["distributedInfo"]["rank"] == 3


def test_operators_are_known_by_an_argument_or_by_their_name() -> None:
    stated = data(4, annotation("External id", 1))
    table = read(
        PROCESS, THREAD,
        begin(1, "mine::gemm", stated), end(2), begin(3, "aten::mm"), end(4), begin(5, "my loop"), end(6),
    )  # fmt: skip
    categories = [*table.dictionary("category"), None]
    found = [categories[code] for code in table.codes("category")]
    assert dict(zip(names(table), found, strict=True)).items() >= {
        ("mine::gemm", "cpu_op"), ("aten::mm", "cpu_op"), ("my loop", None)
    }  # fmt: skip


def test_what_needs_the_text_of_json_says_so(tmp_path: Path) -> None:
    path = tmp_path / "trace.pftrace"
    path.write_bytes(pytorch(DOCUMENT))
    with pytest.raises(TraceFormatError, match=r"counters.* need JSON: export_chrome_trace"):
        RawTrace.read(path)


def test_a_cut_file_keeps_its_complete_packets() -> None:
    text = pytorch(DOCUMENT)
    table = scanner.scan(io.BytesIO(text[:-3]))
    assert "truncated" in checks(table) and table.n > 3
    with pytest.raises(TraceFormatError, match="no packet is complete"):
        scanner.scan(io.BytesIO(packet(number(8, 5), data(11, bytes(200)))[:40]))


def test_damage_costs_the_packets_it_hits() -> None:
    packets = [
        PROCESS,
        THREAD,
        *(part for k in range(40) for part in (begin(10 * k, f"s{k}"), end(10 * k + 5))),
    ]
    text = bytearray(b"".join(packets))
    at = len(b"".join(packets[:30]))
    text[at : at + 2] = b"\xff\xff"
    table = scanner.scan(io.BytesIO(bytes(text)))
    assert "malformed_event" in checks(table)
    assert len(slices(table)) >= 38


def test_traces_of_other_programs_are_named() -> None:
    ftrace = packet(number(10, 1), data(1, bytes.fromhex("0800")))
    with pytest.raises(ForeignFileError, match=r"without slices, kernels or counters.*ftrace_events"):
        read(ftrace, ftrace)
    table = read(PROCESS, THREAD, ftrace, begin(1, "doFrame"), end(2))
    other = next(problem for problem in table.problems if problem.check == "not_pytorch")
    assert "1 ftrace_events" in other.detail


def test_mutated_traces_never_crash() -> None:
    good = [pytorch(DOCUMENT), kineto(DOCUMENT)]
    read_again = 0
    for seed in range(500):
        dice = random.Random(seed)
        text = bytearray(dice.choice(good))
        for _ in range(dice.choice((1, 1, 2, 5))):
            at = dice.randrange(len(text))
            match dice.randrange(4):
                case 0:
                    text[at] = dice.randrange(256)
                case 1:
                    del text[at : at + dice.choice((1, 3, 40))]
                case 2:
                    text[at:at] = text[at : at + dice.randrange(60)]
                case _:
                    text[at : at + 1] = bytes([dice.randrange(256) | 0x80]) * dice.choice((1, 3, 9, 11))
        try:
            table = scanner.scan(io.BytesIO(bytes(text)), block_bytes=dice.choice((64, 300, 4096)))
        except TraceFormatError:
            continue
        read_again += 1
        for name in table.text_columns:
            codes = table.codes(name)
            assert ((codes >= -1) & (codes < len(table.dictionary(name)))).all()
        for name in table.columns:
            rows, values = table.sparse(name)
            assert len(rows) == len(values) <= table.n
            assert (rows[1:] > rows[:-1]).all() and (rows < table.n).all()
    assert read_again > 100
