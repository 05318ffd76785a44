"""Reads the numbers of prose, and whether each of them is the value of a field: without the package."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["strangers", "strangers_of_page"]

_SCALES = {
    "%": 1.0, "ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9, "B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20,
    "GiB": 2.0**30, "TiB": 2.0**40,
}  # fmt: skip
_NUMBER = r"(?<![\w.=])(\d[\d,]*(?:\.\d+)?)"
_QUANTITY = re.compile(_NUMBER + r" (%|ns|µs|ms|s|B|KiB|MiB|GiB|TiB|times|GB/s|TFLOP/s)(?!\w)")
_BARE = re.compile(_NUMBER + r"(?![\w%])()")
_NAME = re.compile(r"`[^`]*`")
_LESS = re.compile(r"< 0\.01 %")  # of a share that is too small for three digits
# numbers of things, which are no measurements, and types of numbers
_OF_THINGS = re.compile(
    r"\b(?:rank|iteration|step|process)(?:e?s)? \d+(?:(?:, | and | to |–|-)\d+)*", re.IGNORECASE
)
_OF_TYPES = re.compile(r"\b16 bits\b")
_PROSE = ("claim", "do", "risk", "needs", "wrong_if")


def strangers(document: dict[str, Any]) -> list[str]:
    """The numbers in the prose of a document that no field holds: of a finding, no field of its own."""
    said = [veto["because"] for veto in document["trust"]["vetoes"]]  # quoted as they stand there
    found = [*_strangers(document["verdict"], document, said)]
    found += _strangers(document["verdict"], document, said, _BARE)
    around = [document["recording"], document["scope"], document["time"]]
    for finding in document["findings"]:
        own = [finding, *around]
        texts = [finding[name] for name in _PROSE if name in finding]
        for text in [*texts, finding["saving"].get("unknown_because", "")]:
            found += _strangers(text, own, said)
        found += _strangers(finding["claim"], own, said, _BARE)
    return found


def strangers_of_page(page: str, document: dict[str, Any]) -> list[str]:
    """The quantities of a page that no field of its document holds."""
    said = [veto["because"] for veto in document["trust"]["vetoes"]]
    said += [text for each in document["unknown"] for text in each.values()]
    return [*_strangers(page.replace("\\", ""), document, said)]


def _strangers(
    text: str, fields: Any, said: Iterable[str], numbers: re.Pattern[str] = _QUANTITY
) -> Iterator[str]:
    known, quoted = [*_numbers(fields)], " ".join(said)
    plain = _LESS.sub("", _NAME.sub("", text))
    if numbers is _BARE:
        plain = _OF_TYPES.sub("", _OF_THINGS.sub("", _QUANTITY.sub("", plain)))
    for number, unit in numbers.findall(plain):
        value = float(number.replace(",", "")) * _SCALES.get(unit, 1.0)
        if f"{number} {unit}".strip() in quoted:
            continue
        if not any(abs(value - abs(field)) <= 0.006 * max(abs(field), 1e-3) for field in known):
            yield f"{number} {unit}: {text}"


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield float(value)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _numbers(each)
    elif isinstance(value, list):
        for each in value:
            yield from _numbers(each)
