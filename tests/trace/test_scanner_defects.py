"""Damaged files: whatever is complete is read, whatever is broken is counted, and a file of nothing is an
error.
"""

import gzip
import io
import json
from pathlib import Path

import pytest

from hta_widgets.errors import TraceFormatError
from hta_widgets.trace.reader import scanner
from hta_widgets.trace.reader.table import EventTable


def event(i: int, **more: object) -> bytes:
    return json.dumps(
        {"ph": "X", "cat": "cpu_op", "name": f"n{i}", "pid": 1, "tid": 2, "ts": i + 0.5, "dur": 1, **more}
    ).encode()


A, B, C = event(0), event(1), event(2)
HEAD = b'{"schemaVersion": 1, "traceEvents": ['
TAIL = b'], "distributedInfo": {"rank": 3}}'


def pretty(text: bytes) -> bytes:
    """Line breaks and blanks as kineto writes them."""
    return text.replace(b"{", b"\r\n  {\n    ").replace(b", ", b",\n   ").replace(b"}", b" \n }\t\n")


def check(table: EventTable) -> dict[str, int]:
    return {problem.check: problem.count for problem in table.problems}


def named(change: bytes) -> bytes:
    """The second event, `change` in place of its name's text."""
    return B.replace(b'"n1"', b'"' + change + b'"')


WHOLE = {
    "ok": HEAD + b", ".join([A, B, C]) + TAIL,
    "NaN value": HEAD + b", ".join([A, event(1, args={"bytes": float("nan")}), C]) + TAIL,
    "Infinity value": HEAD + b", ".join([A, event(1, args={"bytes": float("inf")}), C]) + TAIL,
    "bare nan": HEAD
    + b", ".join([A, event(1, args={"memory bandwidth (GB/s)": 0}).replace(b": 0}", b": -nan}"), C])
    + TAIL,
    "bare inf": HEAD
    + b", ".join([A, event(1, args={"memory bandwidth (GB/s)": 0}).replace(b": 0}", b": inf}"), C])
    + TAIL,
    "raw control character": HEAD + b", ".join([A, named(b"a\nb\x01c"), C]) + TAIL,
    "invalid UTF-8": HEAD + b", ".join([A, named(b"a\xff\xfeb"), C]) + TAIL,
    "invalid escape": HEAD + b", ".join([A, named(rb"C:\x\q"), C]) + TAIL,
    "lone surrogate": HEAD + b", ".join([A, named(rb"a\ud800b"), C]) + TAIL,
    "duplicate key": HEAD + b", ".join([A, B.replace(b'"pid": 1', b'"pid": 9, "pid": 1'), C]) + TAIL,
    "trailing comma": HEAD + b", ".join([A, B, C, b""]) + TAIL,
    "missing comma": HEAD + A + b" " + B + b"\n" + C + TAIL,
    "empty element": HEAD + A + b",," + B + b", , " + C + TAIL,
    "int above 2**64": HEAD + b", ".join([A, event(1, args={"Addr": 2**70}), C]) + TAIL,
    "uint64": HEAD + b", ".join([A, event(1, args={"Addr": 2**64 - 1}), C]) + TAIL,
    "quoted numbers": HEAD
    + b", ".join([A, B.replace(b"1.5", b'"1.5"').replace(b'"dur": 1', b'"dur": "1"'), C])
    + TAIL,
    "pid text among ints": HEAD + b", ".join([A, event(1, pid="Spans"), C]) + TAIL,
    "args null": HEAD + b", ".join([A, event(1, args=None), C]) + TAIL,
    "BOM": b"\xef\xbb\xbf" + HEAD + b", ".join([A, B, C]) + TAIL,
    "bare array": b"[" + b", ".join([A, B, C]) + b"]",
    "braces in a name": HEAD + b", ".join([A, named(b'}, {\\"ph\\": \\"X\\"'), C]) + TAIL,
}


@pytest.mark.parametrize("layout", [bytes, pretty], ids=["compact", "pretty"])
@pytest.mark.parametrize("defect", WHOLE)
def test_every_event_is_read(defect: str, layout: type) -> None:
    text = WHOLE[defect] if defect == "braces in a name" else layout(WHOLE[defect])
    table = scanner.scan(io.BytesIO(text))
    assert table.n == 3
    assert table.ints("start_ns").tolist() == [500, 1500, 2500]
    assert "malformed_event" not in check(table)
    if defect != "bare array":
        assert table.metadata["distributedInfo"] == {"rank": 3}


BROKEN = {
    "unescaped quote": named(b'a"b'),
    "unescaped quote before a comma": named(b'a", b'),
    "missing closing quote": B.replace(b'"n1"', b'"n1'),
    "missing colon": B.replace(b'"pid":', b'"pid"'),
    "unclosed bracket": B[:-1] + b', "args": {"Input Dims": [[1, 2]}}',
    "many unclosed brackets": B[:-1] + b', "args": {"Input Dims": [[[[[[[1}}',
    "cut off": B[:30],
    "null": b"null",
    "number": b"17",
    "list": b"[1, 2]",
}


@pytest.mark.parametrize("layout", [bytes, pretty], ids=["compact", "pretty"])
@pytest.mark.parametrize("block_bytes", [100, 4096])
@pytest.mark.parametrize("defect", BROKEN)
def test_only_the_broken_event_is_lost(defect: str, block_bytes: int, layout: type) -> None:
    text = layout(HEAD + A + b", ") + layout(BROKEN[defect]) + layout(b", " + C + TAIL)
    table = scanner.scan(io.BytesIO(text), block_bytes=block_bytes)
    assert table.ints("start_ns").tolist() == [500, 2500]
    assert table.metadata["distributedInfo"] == {"rank": 3}
    (problem,) = table.problems
    assert (problem.check, problem.count) == ("malformed_event", 1)
    assert problem.offset == text.index(b"{", text.index(b"n0")) if BROKEN[defect][:1] == b"{" else True


@pytest.mark.parametrize("length", [10, 50_000, 100_000])
def test_a_broken_event_is_located_behind_one_of_many_blocks(length: int) -> None:
    before = HEAD + A + b", " + named(b"x" * length) + b", "
    text = before + b'{"ph": "X", "name" 5}' + b", " + C + TAIL
    table = scanner.scan(io.BytesIO(text), block_bytes=4096)
    assert table.n == 3
    assert [(problem.check, problem.offset) for problem in table.problems] == [
        ("malformed_event", len(before))
    ]


def test_broken_last_event_costs_no_metadata() -> None:
    table = scanner.scan(io.BytesIO(HEAD + A + b", " + named(b'a"b') + TAIL))
    assert table.n == 1
    assert table.metadata == {"schemaVersion": 1, "distributedInfo": {"rank": 3}}


def test_surplus_brace_costs_no_event() -> None:
    table = scanner.scan(io.BytesIO(HEAD + A + b"}, " + B + TAIL))
    assert table.n == 2 and check(table) == {"malformed_event": 1}


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("kept", [2, 3])
def test_truncated_text_keeps_complete_events(kept: int, pack: type) -> None:
    text = HEAD + b", ".join([A, B, C])
    table = scanner.scan(io.BytesIO(pack(text if kept == 3 else text[:-5])))
    assert table.n == kept
    assert check(table) == {"truncated": 1}
    assert table.metadata == {"schemaVersion": 1}
    if kept == 2:
        assert table.problems[0].offset == text.rindex(b'{"ph"')


def test_truncated_gzip_keeps_complete_events() -> None:
    text = HEAD + b", ".join(event(i, args={"Addr": i * 7919 % 1000}) for i in range(5000)) + TAIL
    packed = gzip.compress(text)
    table = scanner.scan(io.BytesIO(packed[: len(packed) // 2]))
    assert 1000 < table.n < 5000
    assert table.ints("start_ns").tolist() == [i * 1000 + 500 for i in range(table.n)]
    assert check(table) == {"compression": 1, "truncated": 1}


def test_wrong_checksum_keeps_everything() -> None:
    packed = bytearray(gzip.compress(WHOLE["ok"]))
    packed[-8] ^= 1
    table = scanner.scan(io.BytesIO(bytes(packed)))
    assert table.n == 3 and table.metadata["distributedInfo"] == {"rank": 3}
    assert check(table) == {"compression": 1}


def test_gzip_of_junk_is_called_damaged_not_empty(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json.gz"
    path.write_bytes(b"\x1f\x8b\x08\x00" + b"junk" * 20)
    with pytest.raises(TraceFormatError, match="gzip stream"):
        scanner.scan(path)


def test_gzip_members_and_trailing_bytes() -> None:
    text = WHOLE["ok"]
    members = gzip.compress(text[:100]) + gzip.compress(text[100:])
    assert check(scanner.scan(io.BytesIO(members))) == {}
    assert check(scanner.scan(io.BytesIO(members + b"\0" * 512))) == {}
    assert check(scanner.scan(io.BytesIO(members + b"junk"))) == {"compression": 1}


@pytest.mark.parametrize("block_bytes", [1, 4096])
def test_what_a_gzip_header_may_hold_is_passed_over(block_bytes: int) -> None:
    """RFC 1952: an extra field of a stated length, a name, a comment, and a checksum of these."""
    parts = {4: b"\x04\x00BC\x00\x00", 8: b"rank0.json\0", 16: b"step 3\0", 2: b"\x12\x34"}
    packed = gzip.compress(WHOLE["ok"])
    for flags in range(0, 32, 2):
        header = packed[:3] + bytes([flags]) + packed[4:10]
        further = b"".join(part for flag, part in parts.items() if flags & flag)
        table = scanner.scan(io.BytesIO(header + further + packed[10:]), block_bytes=block_bytes)
        assert table.n == 3 and check(table) == {}, flags


def test_damaged_metadata_is_read_key_by_key() -> None:
    text = b'{"a": 1,\n"b": {broken,\n"c": [3],\n"traceEvents": [' + A + b'], "d": 4, "e": tru, "f": 5'
    table = scanner.scan(io.BytesIO(text))
    assert table.n == 1
    assert {"a": 1, "c": [3], "d": 4, "f": 5}.items() <= table.metadata.items()
    assert "metadata" in check(table)


NOTHING = {
    "empty": b"",
    "blank": b" \n ",
    "html": b"<!DOCTYPE html><html></html>",
    "text": b"no such bucket",
    "binary": bytes(range(128, 256)) * 10,
    "object": b'{"schema": "1.1.1", "nodes": []}',
    "events not an array": b'{"traceEvents": {"ph": "X"}}',
    "events null": b'{"traceEvents": null}',
    "list of lists": b"[[1, 2], [3, 4]]",
    "list of other objects": b'[{"a": 1}, {"a": 2}]',
    "cut in the head": b'{"schemaVersion": 1, "trace',
    "zip": b"PK\x03\x04" + bytes(100),
    "gzip of nothing": gzip.compress(b""),
    "cut gzip header": b"\x1f\x8b\x08",
    "gzip of junk": b"\x1f\x8b\x08" + bytes(7) + b"\xff" * 50,
}


@pytest.mark.parametrize("kind", NOTHING)
def test_nothing_usable_is_an_error(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(NOTHING[kind])
    with pytest.raises(TraceFormatError) as caught:
        scanner.scan(path)
    assert caught.value.path == str(path) and caught.value.reason


@pytest.mark.parametrize("text", [b'{"traceEvents": []}', b"[]", b'{"traceEvents":[\n ]}'])
def test_no_events_is_no_error(text: bytes) -> None:
    table = scanner.scan(io.BytesIO(text))
    assert table.n == 0 and table.problems == []
