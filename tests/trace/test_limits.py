"""Bombs and too little memory are errors of ours, which say what was tried and what to do."""

import gzip
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hta_widgets.errors import HtaWidgetsError, OutOfMemoryError, TraceFormatError, out_of_memory
from hta_widgets.trace import Trace
from hta_widgets.trace.reader import scanner
from hta_widgets.trace.reader.expansion import most_expansion
from tests.trace.helpers import slice_, write

EVENT = b'{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}'


def packed(*pieces: tuple[bytes, int]) -> io.BytesIO:
    target = io.BytesIO()
    with gzip.GzipFile(fileobj=target, mode="wb", compresslevel=6) as file:
        for piece, count in pieces:
            for _ in range(count):
                file.write(piece)
    return io.BytesIO(target.getvalue())


@pytest.mark.parametrize(
    "body",
    [
        (b"{}," * 100_000, 60),
        (b" " * 1_000_000, 300),
        (EVENT[:-1] + b',"x":"' + b"y" * 999_000 + b'"},', 300),
    ],
)
def test_a_small_file_that_holds_too_much_is_refused_early(body: tuple[bytes, int]) -> None:
    bomb = packed((b'{"traceEvents": [' + EVENT + b",", 1), body, (EVENT + b"]}", 1))
    with pytest.raises(TraceFormatError, match="more than a recording does; HTA_WIDGETS_EXPANSION=off"):
        scanner.scan(bomb)


def test_the_limit_can_be_moved_and_lifted(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = packed((b"[" + EVENT + b",", 1), (b"{}," * 100_000, 12), (EVENT + b"]", 1))
    with pytest.raises(TraceFormatError, match="more than a recording"):
        scanner.scan(bomb)
    monkeypatch.setenv("HTA_WIDGETS_EXPANSION", "100000")
    assert scanner.scan(bomb).n == 1_200_002
    monkeypatch.setenv("HTA_WIDGETS_EXPANSION", "off")
    assert scanner.scan(bomb).n == 1_200_002 and most_expansion() is None
    monkeypatch.setenv("HTA_WIDGETS_EXPANSION", "junk")
    assert most_expansion() == 200


def test_a_plain_file_needs_no_limit() -> None:
    assert scanner.scan(io.BytesIO(b"[" + EVENT + b"," + b"{}," * 1_200_000 + EVENT + b"]")).n == 1_200_002


def test_memory_that_runs_out_is_one_error_that_says_where(tmp_path: Path, monkeypatch: Any) -> None:
    path = write(tmp_path / "rank0.json", [slice_("a", "cpu_op", 0, 5)])

    def too_much(*_: object) -> None:
        np.empty(1 << 62, np.int8)

    with monkeypatch.context() as patched:
        patched.setattr("hta_widgets.trace.reader.columns.ColumnScanner.scan", too_much)
        with pytest.raises(OutOfMemoryError, match=r"out of memory while reading .*rank0.json") as caught:
            Trace.open(path, cache=False)
    assert isinstance(caught.value, HtaWidgetsError | MemoryError)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value) and copy.tried == caught.value.tried
    assert Trace.open(path, cache=False).ranks == [0]  # the session lives


def test_what_was_tried_first_is_named() -> None:
    with pytest.raises(OutOfMemoryError, match="while inner"), out_of_memory("outer"), out_of_memory("inner"):
        raise MemoryError
