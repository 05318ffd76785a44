"""The kernel that writes arguments as JSON says what the slow decoder says, or leaves them to it."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np

from hta_widgets.trace.reader.dictionary import Dictionary
from hta_widgets.trace.reader.perfetto.annotations import as_json, decoded
from hta_widgets.trace.reader.perfetto.rendered import as_json_texts
from tests.trace.perfetto.proto import data
from tests.trace.perfetto.writer import annotation

GENERATION = bytes(8)
NUMBERS = [0, 7, 10, 99, 100, -1, 2**31, 10**18, 10**19 - 2**64, 2**63 - 1, -(2**63)]
TEXTS = ["", "a", "float", "a b/c:d~", "[1]"]
OTHERS: list[Any] = [1.5, True, "é", 'quote "', "back\\slash", "line\n"]


def value(dice: random.Random, leaves: list[Any], depth: int = 0) -> Any:
    kind = dice.randrange(3) if depth < 4 else 0
    if kind == 0:
        return dice.choice(leaves)
    items = [value(dice, leaves, depth + 1) for _ in range(dice.randrange(4))]
    return items if kind == 1 else {f"key {k}": item for k, item in enumerate(items)} or []


def rendered(messages: list[bytes]) -> list[str | None]:
    """What the kernel makes of them; equal ones have one code."""
    texts = Dictionary(4, 64)
    codes = []
    for message in messages:  # as Dictionary.add, for bytes
        entries = texts.entries
        raw = message + GENERATION
        texts.reserve(1, len(raw))
        entries = texts.entries
        at = int(entries.used[1])
        entries.text[at : at + len(raw)] = np.frombuffer(raw, np.uint8)
        code = texts.add_blank()
        entries.offset[code], entries.length[code] = at, len(raw)
        entries.used[1] = at + len(raw)
        codes.append(code)
    return as_json_texts(texts, np.array(codes, np.int64))


def test_plain_values_are_written_as_json() -> None:
    dice = random.Random(1)
    values = [value(dice, NUMBERS + TEXTS) for _ in range(2000)]
    found = rendered([annotation("Input Dims", item) for item in values])
    assert found == [json.dumps(item) for item in values]


def test_what_is_not_plain_is_left_to_the_decoder() -> None:
    assert rendered([annotation("x", item) for item in OTHERS]) == [None] * len(OTHERS)
    assert rendered([annotation("x", [1, {"a": item}]) for item in OTHERS]) == [None] * len(OTHERS)
    deep: Any = []
    for _ in range(200):
        deep = [deep]
    assert rendered([annotation("x", deep), annotation("x", [])]) == [None, "[]"]
    assert rendered([]) == []


def test_damaged_messages_are_read_as_the_decoder_reads_them() -> None:
    dice = random.Random(2)
    messages = []
    for _ in range(4000):
        message = bytearray(annotation("x", value(dice, NUMBERS + TEXTS + OTHERS)))
        for _ in range(dice.randrange(3)):
            at = dice.randrange(len(message))
            match dice.randrange(3):
                case 0:
                    message[at] = dice.randrange(256)
                case 1:
                    del message[at:]
                case _:
                    message[at:at] = data(
                        dice.choice((4, 6, 10, 11, 12)), bytes(message[: dice.randrange(9)])
                    )
            if not message:
                break
        messages.append(bytes(message))
    read = 0
    for message, text in zip(messages, rendered(messages), strict=True):
        if text is not None:
            read += 1
            assert json.loads(text) == json.loads(as_json(decoded(message, lambda *_: "")))
    assert read > 500
