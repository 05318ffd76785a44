"""Where the events begin: found in any layout, whatever the pieces, and in time linear in the size."""

import contextlib
import io
import json
import time
from collections.abc import Callable
from functools import partial

import pytest

from hta_widgets.errors import TraceFormatError
from hta_widgets.hta.common.trace_parser import parse_metadata_ijson
from hta_widgets.trace.reader import scanner
from hta_widgets.trace.reader.head import Events, HeadSearch
from hta_widgets.trace.reader.metadata import find_tail, read_metadata

EVENT = b'{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}'


def search(text: bytes, piece: int) -> Events | None:
    head = HeadSearch()
    for start in range(0, len(text), piece):
        found = head.feed(text[start : start + piece], last=start + piece >= len(text))
        if found is not None:
            return found
    return None


LAYOUTS = {
    "first": b'{"traceEvents":[',
    "blanks": b'{ "a" : 1 ,\r\n "traceEvents" \t:\n [',
    "as a text": b'{"a": "traceEvents", "b": "\\"traceEvents\\": [", "traceEvents": [',
    "in another value": b'{"a": {"traceEvents": [1]}, "b": ["traceEvents"], "traceEvents": [',
    "a longer key": b'{"traceEventsToo": [1], "a_traceEvents": [2], "traceEvents": [',
    "escapes": b'{"a\\\\": "\\\\\\"", "traceEvents": [',
    "a value before": b'{"traceEvents" , "traceEvents": [',
}


@pytest.mark.parametrize("piece", [1, 3, 1000])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_key_of_the_outermost_object_counts(layout: str, piece: int) -> None:
    text = LAYOUTS[layout]
    found = search(text + EVENT + b"]}", piece)
    assert found == Events(text.rindex(b'"traceEvents"'), len(text) - 1, ord("["))


@pytest.mark.parametrize("piece", [1, 1000])
@pytest.mark.parametrize(
    "head", [b'{"a": {broken, "traceEvents": [', b'{"a": 1}} "traceEvents": [', b'{"a": "b, "traceEvents": [']
)
def test_in_a_damaged_head_the_first_key_counts(head: bytes, piece: int) -> None:
    assert search(head + EVENT + b"]}", piece) == Events(head.index(b'"traceE'), len(head) - 1, ord("["))


@pytest.mark.parametrize("block_bytes", [64, 300, 4096])
def test_events_behind_a_damaged_head_are_read_whatever_the_blocks(block_bytes: int) -> None:
    text = b'{"a": {broken, "traceEvents": [' + b",".join([EVENT] * 50) + b"]}"
    assert scanner.scan(io.BytesIO(text), block_bytes=block_bytes).n == 50


@pytest.mark.parametrize(
    "text", [b"", b'{"a": 1}', b'{"traceEvents"', b'{"traceEvents":', b'["traceEvents"]']
)
def test_there_may_be_none(text: bytes) -> None:
    assert search(text, 5) is None


SHAPES: dict[str, Callable[[int], bytes]] = {
    "events are a number": lambda n: b'{"traceEvents":1},' * n,
    "events are a number in a list": lambda n: b'{"a":[' + b'{"traceEvents":1},' * n,
    "nested objects": lambda n: b'{"traceEvents":' * n,
    "keys of broken objects": lambda n: b'{"a":{broken,' + b'"traceEvents":1,' * n,
    "keys without a value": lambda n: b'{"a":[' + b'"traceEvents" ,' * n,
    "texts that hold the key": lambda n: b"{" + b'"a":"\\"traceEvents\\":[",' * n,
    "blank lines after damage": lambda n: b'{"a":broken' + b"\n" * 16 * n + b'"traceEvents":[]}',
    "blanks after a value": lambda n: b'{"traceEvents":[],"a":1' + b" " * 16 * n + b"x",
    "broken values": lambda n: b'{"traceEvents":[],' + b'"a":[1,' * 2 * n + b"!",
}


def seconds(work: Callable[[], object]) -> float:
    best = 1e9
    for _ in range(3):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return best


def reads(text: bytes) -> None:
    with contextlib.suppress(TraceFormatError):
        scanner.scan(io.BytesIO(text))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_the_time_grows_with_the_size(shape: str) -> None:
    """Eight times the text takes less than 24 times as long; with the square of the size it would be 64."""
    reads(SHAPES[shape](10))  # compiles
    small, large = (seconds(partial(reads, SHAPES[shape](n))) for n in (4_000, 32_000))
    assert large < 24 * small + 0.05, f"{small:.3f} s, {large:.3f} s"


def test_metadata_and_tails_of_blanks_are_read_in_linear_time() -> None:
    blanks = b" " * 1_000_000
    assert seconds(lambda: read_metadata(b'{"a": 1' + blanks + b'x, "traceEvents"', b"}")) < 0.5
    assert seconds(lambda: find_tail(b"}" + blanks + b"]" + blanks + b"x")) < 0.5


def test_the_metadata_of_hta_are_those_before_the_events() -> None:
    head = {"a": {"traceEvents": [1]}, "b": "x" * 100_000}
    text = json.dumps({**head, "traceEvents": [1], "late": 2}).encode()
    assert parse_metadata_ijson(io.BytesIO(text)) == head
    assert parse_metadata_ijson(io.BytesIO(b'{"a": 1}')) == {"a": 1}
