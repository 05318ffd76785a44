"""How long work that reports its progress will still take, in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import monotonic

_SECONDS_BEFORE_A_GUESS = 1.0
_MINUTES_FROM_SECONDS = 100


class Pace:
    """The time left of one piece of work, if it goes on as fast as it went so far.

    It is counted from the first report of anything done: what comes before (a compilation, a connection) is
    paid once and says nothing about the rest.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._first: tuple[float, float] | None = None

    def left(self, share: float) -> str:
        """`, about 12 s left` once a second has passed; "" before, and when less than a second is left.

        Args:
            share: how much of the work is done, from 0 to 1.
        """
        now = self._clock()
        if self._first is None:
            if share > 0:
                self._first = now, share
            return ""
        began, had = self._first
        if now - began < _SECONDS_BEFORE_A_GUESS or share <= had:
            return ""
        seconds = math.ceil((now - began) / (share - had) * (1 - share))
        if seconds < 1:
            return ""
        if seconds < _MINUTES_FROM_SECONDS:
            return f", about {seconds} s left"
        return f", about {math.ceil(seconds / 60)} min left"
