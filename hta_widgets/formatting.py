"""Numbers in sentences: durations with three significant digits and a unit, percentages with one decimal."""

from __future__ import annotations

__all__ = ["brief", "duration", "gigabytes", "percent"]

_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))


def duration(ns: float) -> str:
    """`4312345` -> `4.31 ms`. The full value stands in the table next to the sentence."""
    for size, unit in _UNITS:
        # The margin sends 999.6 µs up to "1.00 ms", instead of rounding it to "1000 µs".
        if abs(ns) >= size * 0.9995:
            value = ns / size
            decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
            return f"{value:.{decimals}f} {unit}"
    return f"{ns:.0f} ns"


def percent(value: float) -> str:
    """`23.04` -> `23.0 %`."""
    return f"{value:.1f} %"


def brief(name: str, length: int = 60) -> str:
    """A name that a sentence can hold: its beginning and its end, if it is longer than `length`."""
    if len(name) <= length:
        return name
    kept = (length - 1) // 2
    return f"{name[:kept]}…{name[-kept:]}"


def gigabytes(per_second: float) -> str:
    """`2312.4` -> `2,312`: a rate in GB/s with three digits or all that stand before the point."""
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.3g}"
