"""Numbers as text. `js/src/format.ts` prints the same; `tests/formatting_cases.json` holds both to it.

A number has three significant digits, but never fewer than all digits before the decimal point, and at most
six decimals; halves round away from zero. A value that would round to 1000 of its unit (1024 for bytes) is
given in the next larger one. Of a share below 0.01 % there is only that. What cannot be divided (ns, bytes,
FLOP, things counted) has all its digits where it is whole and in its own unit. Zero has no sign and no
decimals; below zero stands a minus sign, no hyphen; for no value there is a dash.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from itertools import pairwise
from typing import Final, NamedTuple

_ABSENT: Final = "–"
_DECIMALS: Final = 6
_LEAST_PCT: Final = 0.01
_DIGITS: Final = Context(prec=3, rounding=ROUND_HALF_UP)
_ALL_DIGITS: Final = Context(prec=400, rounding=ROUND_HALF_UP)


class Unit(NamedTuple):
    """A unit, and how many of the unit that is stored make one of it."""

    name: str
    scale: float


# By the suffix of a column's name. Smallest first; the unit with the scale 1 is the one that is stored.
_UNITS: Final[Mapping[str, tuple[Unit, ...]]] = {
    "ns": (Unit("ns", 1), Unit("µs", 1e3), Unit("ms", 1e6), Unit("s", 1e9)),
    "bytes": (Unit("B", 1), Unit("KiB", 2**10), Unit("MiB", 2**20), Unit("GiB", 2**30), Unit("TiB", 2**40)),
    "gbps": (Unit("B/s", 1e-9), Unit("kB/s", 1e-6), Unit("MB/s", 1e-3), Unit("GB/s", 1)),
    "flops": (
        Unit("FLOP", 1), Unit("kFLOP", 1e3), Unit("MFLOP", 1e6), Unit("GFLOP", 1e9), Unit("TFLOP", 1e12),
        Unit("PFLOP", 1e15),
    ),
    "gb_s": (Unit("GB/s", 1),),
    "tflops_s": (Unit("TFLOP/s", 1),),
    "flops_per_byte": (Unit("FLOP/byte", 1),),
    "pct": (Unit("%", 1),),
    "": (Unit("", 1),),
}  # fmt: skip
_DIVISIBLE: Final = ("gbps", "gb_s", "tflops_s", "flops_per_byte", "pct")
_SUFFIX: Final = re.compile(r"(?:^|_)(ns|pct|bytes|gbps|gb_s|flops|tflops_s|flops_per_byte)$")


def significant(value: float) -> str:
    """`1234.5` -> `1,235`, `9.996` -> `10.0`: the digits alone."""
    if not math.isfinite(value):
        return _ABSENT
    if value == 0:
        return "0"
    exact = Decimal(repr(float(value)))  # the shortest decimal that means this float, as a browser rounds it
    decimals = min(max(2 - _DIGITS.plus(exact).adjusted(), 0), _DECIMALS)
    return with_minus(f"{exact.quantize(Decimal(1).scaleb(-decimals), context=_ALL_DIGITS):,f}")


def plain(value: float) -> str:
    """A number without a unit: `12345` -> `12,345`, `2.5` -> `2.50`."""
    return amount(value, "")


def duration(ns: float) -> str:
    """`4312345` -> `4.31 ms`."""
    return amount(ns, "ns")


def byte_size(count: float) -> str:
    """`3221225472` -> `3.00 GiB`."""
    return amount(count, "bytes")


def bandwidth(gbps: float) -> str:
    """`2312.4` -> `2,312 GB/s`; a GB is 1e9 bytes."""
    return amount(gbps, "gbps")


def flop_count(count: float) -> str:
    """`2e12` -> `2.00 TFLOP`."""
    return amount(count, "flops")


def percent(value: float) -> str:
    """`23.04` -> `23.0 %`."""
    return amount(value, "pct")


def amount(value: float, quantity: str) -> str:
    """A value in the unit in which it reads best.

    Args:
        value: in the unit that is stored: ns, bytes, GB/s, FLOP or %.
        quantity: "ns", "bytes", "gbps", "flops", "pct", or "" for a number without a unit.
    """
    if not math.isfinite(value):
        return _ABSENT
    unit = unit_of(quantity, [value])
    return f"{_in_unit(value, quantity, unit)} {unit.name}".rstrip()


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1, "line"` -> `1 line`; 0 and 2 are `0 lines` and `2 lines`. `plural`: if it is irregular."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def did_you_mean(text: str, known: Iterable[str]) -> str:
    """` (did you mean 'idle_gaps'?)`, to follow a name that is unknown; "" if none of these is like it."""
    similar = difflib.get_close_matches(text, list(known), 1)
    return f" (did you mean {similar[0]!r}?)" if similar else ""


def signed(value: float, text: str) -> str:
    """The text of a value that is a change: with a plus sign if the value is above zero, and known."""
    return f"+{text}" if value > 0 and not text.startswith("<") else text


def with_minus(number: str) -> str:
    """A number with a minus sign, where Python writes a hyphen."""
    return number.replace("-", "\N{MINUS SIGN}")


def unit_of(quantity: str, values: Iterable[float]) -> Unit:
    """The unit in which the largest of the values reads best; the one that is stored if all are zero."""
    units = _UNITS[quantity]
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0)
    if largest == 0:
        return next(unit for unit in units if unit.scale == 1)
    # What would round to as many of a unit as make the next one is given in the next one.
    fitting = [unit for smaller, unit in pairwise(units) if largest >= unit.scale - smaller.scale / 2]
    return fitting[-1] if fitting else units[0]


@dataclass(frozen=True)
class ColumnFormat:
    """How to print a column of a table."""

    heading: str  # the name in words, without the unit
    unit: Unit  # what its values share
    quantity: str  # what it measures, see `amount`
    change: bool  # whether its values have signs

    def cell(self, value: float) -> str:
        """The value in the column's unit, without the unit's name."""
        text = _in_unit(value, self.quantity, self.unit)
        return signed(value, text) if self.change else text


def column_format(name: str, values: Iterable[float], unit: Unit | None = None) -> ColumnFormat:
    """The format of a column by the suffix of its name; a column `change_...` has signs.

    Args:
        name: a column, such as `idle_ns`, `change_pct`, `peak_bytes`, `rank`.
        values: what it holds, by which its unit is chosen; NaN for no value.
        unit: the unit to use instead.
    """
    match = _SUFFIX.search(name)
    quantity = match[1] if match else ""
    stem = name[: match.start()] if match else name
    return ColumnFormat(
        stem.replace("_", " "), unit or unit_of(quantity, values), quantity, name.startswith("change_")
    )


def brief(name: str, length: int = 60) -> str:
    """A name that a sentence can hold: its beginning and its end, if it is longer than `length`."""
    if len(name) <= length:
        return name
    kept = (length - 1) // 2
    return f"{name[:kept]}…{name[-kept:]}"


def _in_unit(value: float, quantity: str, unit: Unit) -> str:
    if quantity == "pct" and 0 < abs(value) < _LEAST_PCT:
        return f"< {_LEAST_PCT}" if value > 0 else with_minus(f"> -{_LEAST_PCT}")
    if unit.scale == 1 and quantity not in _DIVISIBLE and math.isfinite(value) and value == int(value):
        return with_minus(f"{int(value):,}")
    return significant(value / unit.scale)


def encodable(text: str) -> str:
    """`text` as UTF-8 can hold it: the bytes of a file name that are no UTF-8 become ``\\xff``.

    >>> encodable("rank\\udcff.json")
    'rank\\\\xff.json'
    """
    if text.isascii():
        return text
    return "".join(
        f"\\x{ord(letter) - 0xDC00:02x}"
        if "\udc80" <= letter <= "\udcff"
        else f"\\u{ord(letter):04x}"
        if "\ud800" <= letter <= "\udfff"
        else letter
        for letter in text
    )


def capitalised(text: str) -> str:
    """`text` as a sentence begins; the rest of it stays."""
    return text[:1].upper() + text[1:]


def decapitalised(text: str) -> str:
    """`text` as it stands within a sentence; the rest of it stays, and so does an abbreviation such as CPU.

    >>> decapitalised("Late launches"), decapitalised("DDP bucket copies"), decapitalised("A late rank")
    ('late launches', 'DDP bucket copies', 'a late rank')
    """
    if text[1:2].isupper():
        return text
    return text[:1].lower() + text[1:]


def runs_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """(first, last) of each run of consecutive numbers.

    >>> runs_of([0, 1, 2, 7])
    [(0, 2), (7, 7)]
    """
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs


def in_words(words: list[str]) -> str:
    """`a`, `a and b`, or `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def ranks_in_words(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 1, 2 and 5`, or how many if they are more than four."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) > 4:
        return f"{len(ranks)} ranks"
    return f"ranks {in_words([str(rank) for rank in ranks])}"


def none_of(ranks: Sequence[int]) -> str:
    """That no rank has what is missing: `rank 3 has none`, or `ranks 1, 2 and 5 have none`."""
    return f"{ranks_in_words(ranks)} {'has' if len(ranks) == 1 else 'have'} none"
