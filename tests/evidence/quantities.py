"""Reads the numbers of prose, and whether each of them is the value of a field: without the package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

__all__ = ["strangers"]

_SCALES = {
    "%": 1.0, "ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9, "B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20,
    "GiB": 2.0**30, "TiB": 2.0**40,
}  # fmt: skip
_QUANTITY = re.compile(
    r"(?<![\w.])(\d[\d,]*(?:\.\d+)?) (%|ns|µs|ms|s|B|KiB|MiB|GiB|TiB|times|GB/s|TFLOP/s)(?!\w)"
)
_NAME = re.compile(r"`[^`]*`")
_PROSE = ("claim", "do", "risk", "needs", "wrong_if", "unknown_because")


def strangers(document: dict[str, Any]) -> list[str]:
    """The quantities in the prose of a document that no field holds."""
    fields = [*_numbers(document)]
    vetoes = " ".join(veto["because"] for veto in document["trust"]["vetoes"])  # quoted as they stand there
    found = []
    for text in _prose(document):
        for number, unit in _QUANTITY.findall(_NAME.sub("", text)):
            value = float(number.replace(",", "")) * _SCALES.get(unit, 1.0)
            if f"{number} {unit}" in vetoes:
                continue
            if not any(abs(value - field) <= 0.006 * max(abs(field), 1e-3) for field in fields):
                found.append(f"{number} {unit}: {text}")
    return found


def _prose(document: dict[str, Any]) -> Iterator[str]:
    yield document["verdict"]
    for finding in document["findings"]:
        yield from (finding[name] for name in _PROSE if name in finding)
        yield finding["saving"].get("unknown_because", "")


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
