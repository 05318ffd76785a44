"""Perfetto traces and memory snapshots, whole and damaged: tables that hang together, or a typed refusal."""

from __future__ import annotations

import io
import json
import pickle
import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hta_widgets.errors import HtaWidgetsError, MissingDataError
from hta_widgets.memory_snapshot.snapshot import MemorySnapshot
from hta_widgets.trace.reader import scanner
from hta_widgets.trace.reader.table import EventTable
from tests.fuzz.mutators import document, packed
from tests.memory_snapshot.allocator import MB, Allocator, snapshot
from tests.trace.perfetto.writer import kineto, pytorch

BLOCKS = (64, 300, 4096)


def damaged(data: bytes, dice: random.Random) -> bytes:
    """Bytes changed, left out, doubled, made longer numbers, or cut off."""
    text = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 3, 8))):
        at = dice.randrange(len(text) + 1)
        match dice.randrange(6):
            case 0:
                text[at : at + 1] = bytes([dice.randrange(256)])
            case 1:
                del text[at : at + dice.choice((1, 3, 40))]
            case 2:
                text[at:at] = text[at : at + dice.randrange(60)]
            case 3:
                text[at : at + 1] = bytes([dice.randrange(256) | 0x80]) * dice.choice((1, 3, 9, 11))
            case 4:
                text[at:at] = bytes([dice.randrange(256)]) * dice.choice((2, 64))
            case _:
                del text[at + dice.randrange(200) :]
    return bytes(text)


@cache
def _documents() -> list[dict[str, Any]]:
    """Traces of every shape that Perfetto can say, too."""
    found = []
    for seed in range(400):
        try:
            one = json.loads(document(random.Random(seed)).decode("utf-8", "surrogatepass"))
            pytorch(one), kineto(one)
        except (ValueError, TypeError, KeyError, ArithmeticError, AttributeError):
            continue
        if one["traceEvents"]:
            found.append(one)
    return found


def packets(seed: int) -> str:
    """A Perfetto trace in one of the layouts, mostly damaged."""
    dice = random.Random(seed)
    data = dice.choice((pytorch, kineto))(dice.choice(_documents()))
    if dice.random() < 0.8:
        data = damaged(data, dice)
    if dice.random() < 0.1:
        data = packed(data, dice)
    try:
        table = scanner.scan(io.BytesIO(data), block_bytes=dice.choice(BLOCKS))
    except HtaWidgetsError:
        return "refused"
    hangs_together(table)
    return "accepted"


def hangs_together(table: EventTable) -> None:
    """Every code is of a text, and every cell of an event."""
    for name in table.text_columns:
        codes = table.codes(name)
        assert ((codes >= -1) & (codes < len(table.dictionary(name)))).all(), name
    for name in table.columns:
        rows, values = table.sparse(name)
        assert len(rows) == len(values) <= table.n, name
        assert (rows[1:] > rows[:-1]).all() and (rows < table.n).all(), name


@cache
def _snapshots() -> list[bytes]:
    found = []
    for seed in range(8):
        dice = random.Random(seed)
        allocator = Allocator(100 * MB, expandable=seed % 2 == 1)
        held = [allocator.alloc(dice.randrange(1, 5 * MB), f"/app/a.py:{k}:f") for k in range(6)]
        for address in held[::2]:
            allocator.free(address)
        found.append(pickle.dumps(snapshot(allocator), dice.choice((2, 4, 5))))
    return found


def snapshots(seed: int) -> str:
    """A memory snapshot, damaged."""
    dice = random.Random(seed)
    data = damaged(dice.choice(_snapshots()), dice)
    with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
        Path(file.name).write_bytes(data)
        try:
            opened = MemorySnapshot.open(file.name)
        except HtaWidgetsError:
            return "refused"
    for ask in (
        opened.summary,
        opened.peak,
        opened.owners,
        opened.fragmentation,
        opened.blockers,
        opened.timeline,
    ):
        try:
            frame = ask()
        except MissingDataError:
            continue
        assert np.isfinite(frame.select_dtypes("number").to_numpy(float)).all()
    opened.sentence()
    return "accepted"
