"""One quantity of a rank over time: a value that holds from each change to the next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hta_widgets.arrays import Float64, Int64


@dataclass(frozen=True, eq=False)
class Counter:
    """A quantity of one rank, of one of its devices or of one stream."""

    rank: int
    name: str  # what is counted ("queue length")
    key: str  # of what ("stream 7", "cuda:0")
    unit: str  # "" if unknown
    # (device, stream) that it belongs to; None for a counter of the whole rank
    stream: tuple[int, int] | None
    time: Int64  # ns on the job's axis, ascending, no time twice
    value: Float64  # float64 from that time to the next; before the first it is not known

    @classmethod
    def of_changes(
        cls,
        name: tuple[int, str, str, str],
        time: Int64,
        value: Int64 | Float64,
        stream: tuple[int, int] | None = None,
    ) -> Counter:
        """A counter (rank, name, key, unit) from changes by time; of some at once the last counts."""
        last = np.append(time[1:] != time[:-1], True)[: len(time)]
        return cls(*name, stream, time[last], value[last].astype(np.float64))

    def within(self, first: int, last: int) -> tuple[Int64, Float64]:
        """The changes from one time up to another, beginning with the value at the start if one is known."""
        low, high = np.searchsorted(self.time, (first, last), side="left")
        time, value = self.time[low:high], self.value[low:high]
        if low and not (len(time) and time[0] == first):
            return np.append(first, time), np.append(self.value[low - 1], value)
        return time, value
