"""No name hides letters or turns the text around it; js/test/visible.test.ts reads the same table."""

import json
import unicodedata
from pathlib import Path

import pytest

from hta_widgets.visible import visible

CASES = json.loads((Path(__file__).parent / "visible_cases.json").read_text("utf-8"))
OPEN, CLOSE = "\u2068", "\u2069"


@pytest.mark.parametrize(("text", "shown"), CASES["cases"])
def test_text(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(shown) == shown


def test_every_letter_is_hidden_or_isolated_as_the_table_says() -> None:
    hidden, isolated = (
        {code for first, last in CASES[kind] for code in range(int(first, 16), int(last, 16) + 1)}
        for kind in ("hidden", "isolated")
    )
    wrong = [hex(code) for code in range(0x110000) if _kind(chr(code)) != (code in hidden, code in isolated)]
    assert not wrong


def _kind(letter: str) -> tuple[bool, bool]:
    shown = visible(letter)
    return shown.startswith("\\") and shown != letter, shown == f"{OPEN}{letter}{CLOSE}"


def test_no_letter_that_turns_text_is_forgotten() -> None:
    """By the Unicode tables of Python, which the ranges were not made from."""
    kept = {
        code: unicodedata.bidirectional(chr(code))
        for code in range(0x110000)
        if visible(chr(code)) == chr(code)
    }
    turning = {"R", "AL", "AN", "RLE", "LRE", "RLO", "LRO", "PDF", "RLI", "LRI", "FSI", "PDI"}
    assert [hex(code) for code, kind in kept.items() if kind in turning] == []
    assert [hex(code) for code in kept if unicodedata.category(chr(code)) in ("Cc", "Zl", "Zp", "Cs")] == [
        "0x9",
        "0xa",
    ]
