"""Texts to read: small traces of every shape, and what happens to them."""

from __future__ import annotations

import gzip
import json
import random
from typing import Any

PHASES = ["X", "X", "X", "X", "B", "E", "i", "C", "M", "s", "f", "", None, 5]
TEXTS = [
    "",
    "a",
    "gemm<int>(char*)",
    'quote " and \\ back',
    "é東🚀",
    "\u202eevil",
    "\ud800",
    "a\x00b",
    "²",
    "--5",
    "]}",
]
NUMBERS: list[Any] = [
    0, 1, -1, 7, 0.5, -0.0, 1e3, 12345678, 123456789012, 1751410836123456.789, 2**31, 2**53 + 1,
    2**63 - 1, 2**63, 2**64 - 1, 2**64, 1e300, float("nan"), float("inf"), True, None, "5", "0x1f", "1.5",
    "x", [], {}, [1],
]  # fmt: skip
KEYS = ["ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "bp", "args"]
ARGUMENTS = ["stream", "device", "correlation", "External id", "bytes", "Rank", "grid", "Input Dims",
             "unknown", "est. achieved occupancy %", "Collective name", "Addr", "name"]  # fmt: skip
ALPHABET = b'"\\{}[]:,0123456789.-+eE nulltrueNaN\n\t\x00\xff'


def value(dice: random.Random, depth: int = 0) -> Any:
    """Any JSON value."""
    kind = dice.randrange(8)
    if kind < 4:
        return dice.choice(NUMBERS)
    if kind < 6 or depth > 3:
        return dice.choice(TEXTS)
    inside = [value(dice, depth + 1) for _ in range(dice.randrange(4))]
    return inside if kind == 6 else {dice.choice(TEXTS): item for item in inside}


def event(dice: random.Random) -> dict[str, Any]:
    """An event, mostly as profilers write it."""
    found: dict[str, Any] = {
        "ph": dice.choice(PHASES),
        "cat": dice.choice(["kernel", "cpu_op", "cuda_runtime", "user_annotation", "gpu_memcpy", ""]),
        "name": dice.choice(TEXTS),
        "pid": dice.choice([0, 1, "Spans"]),
        "tid": dice.choice([7, "stream 7", ""]),
        "ts": dice.randrange(10**6) / dice.choice([1, 10, 1000]),
        "dur": dice.randrange(1000),
        "args": {dice.choice(ARGUMENTS): value(dice) for _ in range(dice.randrange(4))},
    }
    for _ in range(dice.choice([0, 0, 0, 1, 2])):
        key = dice.choice(KEYS)
        if dice.random() < 0.5:
            found.pop(key, None)
        else:
            found[key] = value(dice)
    return found


def document(dice: random.Random) -> dict[str, Any]:
    """A trace as a whole."""
    info = {dice.choice(["rank", "world_size", "backend", "pg_config"]): value(dice) for _ in range(3)}
    head = {"schemaVersion": 1, "distributedInfo": dice.choice([info, {"rank": 0}, value(dice)])}
    if dice.random() < 0.3:
        head["baseTimeNanoseconds"] = value(dice)
        head["deviceProperties"] = dice.choice([value(dice), [{"id": value(dice), "name": value(dice)}]])
    if dice.random() < 0.2:
        head["nested"] = {"traceEvents": [value(dice)]}
    tail = {"traceName": dice.choice(TEXTS)} if dice.random() < 0.5 else {}
    return {**head, "traceEvents": [event(dice) for _ in range(dice.choice([0, 1, 3, 10]))], **tail}


def text_of(trace: dict[str, Any], dice: random.Random) -> bytes:
    """JSON in one of the layouts that writers use."""
    layout: dict[str, Any] = dice.choice([{}, {"indent": 1}, {"separators": (",", ":")}])
    text = json.dumps(trace, ensure_ascii=dice.random() < 0.7, **layout)
    return text.encode("utf-8", "surrogatepass")


def mutate(text: bytes, dice: random.Random) -> bytes:
    """Bytes put in, left out, changed, doubled or cut off."""
    data = bytearray(text)
    for _ in range(dice.choice((1, 1, 2, 3, 8))):
        i = dice.randrange(len(data) + 1)
        match dice.randrange(6):
            case 0:
                data[i:i] = bytes([dice.choice(ALPHABET)])
            case 1:
                del data[i : i + dice.choice((1, 1, 2, 10, 100))]
            case 2:
                data[i : i + 1] = bytes([dice.randrange(256)])
            case 3:
                data[i:i] = data[i : i + dice.randrange(200)]
            case 4:
                data[i:i] = bytes([dice.choice(ALPHABET)]) * dice.choice((2, 64, 200, 1000))
            case _:
                del data[i:]
    return bytes(data)


def packed(text: bytes, dice: random.Random) -> bytes:
    """The text as gzip, of one or several members, whole or damaged."""
    at = dice.randrange(len(text) + 1)
    data = (
        gzip.compress(text[:at], 1) + gzip.compress(text[at:], 1)
        if dice.random() < 0.3
        else gzip.compress(text, 1)
    )
    return mutate(data, dice) if dice.random() < 0.3 else data
