"""Chance without a library: the same seed gives the same trace on every machine and Python version.

`random.Random` promises that only for `random()`, and `hash()` changes from process to process, so the
simulator rolls its own rng with SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) in integer arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

_MASK = (1 << 64) - 1


class SeededRng:
    """A stream of pseudo-random integers that depends on its seeds and on nothing else."""

    def __init__(self, *seeds: int) -> None:
        self._state = 0
        for seed in seeds:
            self._state = (self._next() ^ seed) & _MASK

    def _next(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def between(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return low + self._next() % (high - low + 1)

    def within(self, spread: Sequence[int]) -> int:
        """An integer from one of the equally likely parts between these ends; of one, that."""
        if len(spread) == 1:
            return spread[0]
        at = self.between(0, len(spread) - 2) if len(spread) > 2 else 0
        return self.between(spread[at], spread[at + 1])

    def around(self, value: int, permille: int) -> int:
        """`value`, changed by at most `permille` thousandths either way."""
        spread = value * permille // 1000
        return value + self.between(-spread, spread)
