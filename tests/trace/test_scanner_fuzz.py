"""Mutated files: any answer or TraceFormatError, never a crash or a hang; `tests/fuzz` checks the bounds."""

import gzip
import io
import random

import pytest

from hta_widgets.errors import TraceFormatError
from hta_widgets.trace.reader import scanner
from tests.fuzz.mutators import mutate

pytestmark = pytest.mark.slow

SEED_TEXT = b"""{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}],
"traceEvents": [
  {"ph": "X", "cat": "kernel", "name": "void k<int>(char*, \\"x\\")", "pid": 0, "tid": 7,
   "ts": 1751410836123456.789, "dur": 12.5,
   "args": {"External id": 5, "stream": 7, "correlation": 99, "grid": [1, 2, 3],
            "memory bandwidth (GB/s)": 1.25,
   "est. achieved occupancy %": 50, "Input Dims": [[4, 8], [], [[2], [3]]], "kernel_file": "a/b.py"}},
  {"ph": "M", "name": "process_name", "pid": "Spans", "ts": 1e3,
   "args": {"name": "python", "sort_index": -1}},
  {"ph": "s", "id": 99, "pid": 0, "tid": 7, "ts": 4, "cat": "ac2g", "name": "ac2g", "bp": "e"},
  {"ph": "C", "name": "GPU 0", "pid": 0, "ts": "5.0005", "args": {"SM": 0.5, "text": "}]"}}
], "distributedInfo": {"rank": 3, "pg_config": [{"ranks": [0, 1]}]}, "traceName": "x.json"}"""


def run(first: int, count: int) -> None:
    for seed in range(first, first + count):
        dice = random.Random(seed)
        text = mutate(SEED_TEXT, dice)
        if dice.random() < 0.2:
            text = mutate(gzip.compress(text), dice)
        try:
            table = scanner.scan(
                io.BytesIO(text), extra_args=["text"], block_bytes=dice.choice((64, 300, 4096))
            )
        except TraceFormatError:
            continue
        for name in table.text_columns:
            codes = table.codes(name)
            assert ((codes >= -1) & (codes < len(table.dictionary(name)))).all()
        for name in table.columns:
            rows, values = table.sparse(name)
            assert len(rows) == len(values) <= table.n
            assert (rows[1:] > rows[:-1]).all() and (rows < table.n).all()


def test_mutated_files() -> None:
    run(0, 600)


def test_runs_of_structure_do_not_hang() -> None:
    for text in (
        b"[" * 100_000,
        b'[{"a":' * 50_000,
        b'{"traceEvents":[' + b"[" * 300_000,
        b'[{"ph":"X","args":{"x":[' * 20_000,
    ):
        with pytest.raises(TraceFormatError):
            scanner.scan(io.BytesIO(text))
