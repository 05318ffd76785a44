"""Texts to read: small traces of every shape, and what happens to them."""

from __future__ import annotations

import gzip
import json
import random
from typing import Any

from hta_widgets.trace.reader.schema import ARGUMENT_COLUMNS, EVENT_COLUMNS
from tests.fuzz.corpus import Members, corpus

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
SPELLINGS = [
    "-0", "1E5", "1e+2", "0.1e-3", "1e-400", "1e400", "-9223372036854775808", "-9223372036854775809",
    "9223372036854775.807", "9223372036854775.8075", "1751410836123456.789012", "0.0005", "0.0015", "1.0",
    "0.0005" + "0" * 30 + "1", "1e-99999999", "0e999",
    "123456789012345678901234567890", "0." + "3" * 40, "4" * 400, "1e99999999999",
    '"\\u00e9"', '"\\ud83d\\ude80"',
    '"\\ud800"', '"\\/\\b\\f\\n\\r\\t"', '"\\u0000"', '"' + "x" * 300 + '"', "[[1,[2]],{}]", '{"a":{"b":[]}}',
    '"9223372036854775808"', '" 5"', '"1e3"', '"-0x1"', '"0x1ffffffffffffffff"', "[1,2,3]", '{"ph":"X"}',
]  # fmt: skip
PHASES = ['"X"', '"B"', '"E"', '"i"', '"C"', '"M"', '"s"', '"t"', '"f"', '""', "null", "5"]
VALUES = [json.dumps(value) for value in NUMBERS + TEXTS] + SPELLINGS
EVENT_KEYS = [json.dumps(key) for key in ("args", "x", *(column.key for column in EVENT_COLUMNS))]
ARGUMENT_KEYS = [json.dumps(key) for column in ARGUMENT_COLUMNS for key in (column.key, *column.aliases)]
HEAD_KEYS = [json.dumps(key) for key in (
    "schemaVersion", "distributedInfo", "baseTimeNanoseconds", "deviceProperties", "displayTimeUnit",
    "traceName", "rank", "record_shapes", "trace_id", "nested",
)]  # fmt: skip
INFORMATION = [json.dumps(key) for key in ("rank", "world_size", "backend", "pg_config", "nccl_version")]
ALPHABET = b'"\\{}[]:,0123456789.-+eE nulltrueNaN\n\t\x00\xff'
LAYOUTS = [
    (",", ":", ","),
    (",", ":", ",\n  "),
    (", ", ": ", ", "),
    (",\n    ", ": ", ",\n"),
    (" ,\t", " :\r\n", ","),
]


def value(dice: random.Random, depth: int = 0) -> Any:
    """Any JSON value."""
    kind = dice.randrange(8)
    if kind < 4:
        return dice.choice(NUMBERS)
    if kind < 6 or depth > 3:
        return dice.choice(TEXTS)
    inside = [value(dice, depth + 1) for _ in range(dice.randrange(4))]
    return inside if kind == 6 else {dice.choice(TEXTS): item for item in inside}


def document(dice: random.Random) -> bytes:
    """A trace as a whole, mostly as profilers write it, in one of the layouts that they use."""
    seeds = corpus()
    comma, colon, between = dice.choice(LAYOUTS)
    head = list(dice.choice(seeds.heads)) if dice.random() < 0.5 else []
    if dice.random() < 0.3:
        _change_head(head, dice)
    events = [_event(dice, comma, colon) for _ in range(dice.choice((0, 1, 1, 2, 2, 3, 5)))]
    inside = "[" + between.join(events) + "]"
    if dice.random() < 0.05:
        return inside.encode("utf-8", "surrogatepass")
    tail = comma + '"traceName"' + colon + dice.choice(VALUES) if dice.random() < 0.3 else ""
    text = "".join(f"{key}{colon}{item}{comma}" for key, item in head)
    return f'{{{text}"traceEvents"{colon}{inside}{tail}}}'.encode("utf-8", "surrogatepass")


def _event(dice: random.Random, comma: str, colon: str) -> str:
    seed = dice.choice(corpus().events)
    members, arguments = list(seed.members), list(seed.arguments)
    for _ in range(dice.choice((0, 0, 1, 1, 2, 4))):
        if dice.random() < 0.6:
            _change(arguments, ARGUMENT_KEYS, dice)
        else:
            _change(members, EVENT_KEYS, dice)
    inside = comma.join([f"{key}{colon}{item}" for key, item in arguments])
    return "{" + comma.join([f"{key}{colon}{item or '{' + inside + '}'}" for key, item in members]) + "}"


def _change(members: Members, keys: list[str], dice: random.Random) -> None:
    """One member changed, left out, doubled, renamed, moved or put in."""
    kind = dice.randrange(9)
    if not members or kind == 0:
        members.insert(dice.randrange(len(members) + 1), (dice.choice(keys), dice.choice(VALUES)))
        return
    at = dice.randrange(len(members))
    key, item = members[at]
    if kind == 1:
        del members[at]
    elif kind == 2:
        members[at] = (dice.choice(keys), item)
    elif kind == 3:
        members.append((key, dice.choice(VALUES)))
    elif kind == 4:
        members.append(members.pop(at))
    elif key == '"ph"':
        members[at] = (key, dice.choice(PHASES))
    else:
        members[at] = (key, dice.choice(VALUES))


def _change_head(head: Members, dice: random.Random) -> None:
    key = dice.choice(HEAD_KEYS)
    item = dice.choice(VALUES)
    if key == '"distributedInfo"' and dice.random() < 0.7:
        item = "{" + ",".join(f"{dice.choice(INFORMATION)}:{dice.choice(VALUES)}" for _ in range(2)) + "}"
    elif key == '"deviceProperties"' and dice.random() < 0.7:
        item = f'[{{"id":{dice.choice(VALUES)},"name":{dice.choice(VALUES)}}}]'
    elif key == '"nested"':
        item = f'{{"traceEvents":[{dice.choice(VALUES)}]}}'
    head.insert(dice.randrange(len(head) + 1), (key, item))


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
