"""Parses ranks, times and options given on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from hta_widgets.cli.exits import UsageError
from hta_widgets.formatting import runs_of

TIME_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9}
_TIME = re.compile(r"(\d+(?:\.\d*)?|\.\d+) ?([a-zµμ]*)")
_NUMBERS = re.compile(r"(\d+)(?:-(\d+))?")


@dataclass(frozen=True)
class Numbers:
    """Numbers and ranges of numbers, ends included: `0,2-5`."""

    ranges: tuple[tuple[int, int], ...]

    def among(self, known: Iterable[int], noun: str) -> tuple[int, ...]:
        """The numbers among `known` that these select.

        Raises:
            UsageError: a number or a whole range is not among them; the answer would otherwise be empty.
        """
        there = sorted(set(known))
        chosen: set[int] = set()
        for first, last in self.ranges:
            found = [number for number in there if first <= number <= last]
            if not found:
                asked = f"{noun} {first}" if first == last else f"{noun} from {first} to {last}"
                raise UsageError(f"no {asked}: there is {number_ranges(there) or 'none'}")
            chosen.update(found)
        return tuple(sorted(chosen))


@dataclass(frozen=True)
class Span:
    """A stretch of time in ns since the job's start; None at an end leaves it open."""

    start: int | None
    end: int | None

    def within(self, extent: tuple[int, int]) -> tuple[int, int]:
        """The span with its open ends closed.

        Raises:
            UsageError: it is empty or outside the job.
        """
        start = extent[0] if self.start is None else self.start
        end = extent[1] if self.end is None else self.end
        if start >= end or end <= extent[0] or start >= extent[1]:
            raise UsageError(
                f"the window from {start} ns to {end} ns holds nothing: the job lasts from {extent[0]} ns "
                f"to {extent[1]} ns"
            )
        return start, end


def numbers(text: str) -> Numbers:
    """`0,2-5` as `Numbers`."""
    found = [_NUMBERS.fullmatch(part.strip()) for part in text.split(",")]
    ranges = tuple((int(match[1]), int(match[2] or match[1])) for match in found if match)
    if len(ranges) < len(found) or any(first > last for first, last in ranges):
        raise UsageError(f"{text!r} is not a list of numbers and ranges such as 0,2-5")
    return Numbers(ranges)


def span(text: str) -> Span:
    """`10ms:25ms` as `Span`; an end may be left out, its unit may not (but that of 0)."""
    edges = [edge.strip() for edge in text.split(":")]
    if len(edges) != 2 or not any(edges):
        raise UsageError(f"{text!r} is not a window such as 10ms:25ms, 1.5s: or :800us")
    start, end = (_ns(edge) if edge else None for edge in edges)
    if start is not None and end is not None and start >= end:
        raise UsageError(f"the window {text!r} ends before it begins")
    return Span(start, end)


def assignment(text: str) -> tuple[str, str]:
    """`key=value` as a pair."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"{text!r} is not an option such as by=iteration")
    return key.strip(), value


def number_ranges(known: Iterable[int]) -> str:
    """Ascending numbers in short: `0-3, 7`; of very many, the first."""
    runs, most = runs_of(known), 12
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in runs[:most]]
    return ", ".join(texts) + (", …" if len(runs) > most else "")


def _ns(text: str) -> int:
    match = _TIME.fullmatch(text.lower())
    if not match or (match[2] not in TIME_UNITS and (match[2] or Decimal(match[1]))):
        missing = "has no unit: write" if match and not match[2] else "is not a time such as"
        raise UsageError(f"{text!r} {missing} 10ms; the units are ns, us, ms and s")
    ns = Decimal(match[1]) * TIME_UNITS.get(match[2], 1)
    if ns != int(ns):
        raise UsageError(f"{text!r} is finer than a nanosecond")
    return int(ns)
