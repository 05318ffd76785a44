"""A quantity that changes in steps, such as a queue length; in integers, so that sums are exact."""

from __future__ import annotations

import numpy as np

from hta_widgets.arrays import Int64


class StepFunction:
    """The value after each change, 0 before the first.

    Attributes:
        time: int64 ns of each change, ascending; of several changes at one time, the last counts.
        value: int64 value from that change to the next.
    """

    def __init__(self, time: Int64, value: Int64) -> None:
        self.time, self.value = time, value

    @classmethod
    def of_changes(cls, time: Int64, change: Int64) -> StepFunction:
        """The running sum of changes that are in order of time."""
        return cls(time, np.cumsum(change))

    def at(self, time: int) -> int:
        """The value at a time."""
        before = int(np.searchsorted(self.time, time, side="right"))
        return int(self.value[before - 1]) if before else 0

    def within(self, windows: Int64) -> tuple[Int64, Int64]:
        """(value, ns) of each stretch of constant value inside the windows; the ns add up to the windows."""
        low, high = np.searchsorted(self.time, windows.T, side="right")
        # Of each window the value that it begins with, then its changes.
        stretches = 1 + np.maximum(high - low, 0)
        begins = np.cumsum(stretches) - stretches
        change = np.arange(stretches.sum()) + np.repeat(low - 1 - begins, stretches)
        value = np.append(self.value, 0)[change]
        since = np.append(self.time, 0)[change]
        since[begins] = windows[:, 0]
        until = np.append(since[1:], windows[-1:, 1])
        until[begins[1:] - 1] = windows[:-1, 1]
        return value, until - since


def quantile(value: Int64, weight: Int64, share: float) -> int:
    """The smallest value that is not exceeded for `share` of the total weight; 0 if that is 0."""
    held = weight > 0
    value, weight = value[held], weight[held]
    if not len(value):
        return 0
    order = np.argsort(value, kind="stable")
    reached = np.cumsum(weight[order])
    at = int(np.searchsorted(reached, share * reached[-1], side="left"))
    return int(value[order][min(at, len(value) - 1)])


def time_with(came: Int64, left: Int64, many: int) -> int:
    """For how long (ns) at least so many of what came had not left again.

    Args:
        came, left: when each one came and left, in any order; none leaves before it came.
        many: at least 1.
    """
    if len(came) < many:
        return 0
    came, left = np.sort(came, kind="stable"), np.sort(left, kind="stable")  # quick: almost in order
    # So many are there from when that many more came than have left, until the next one leaves.
    since, until = came[many - 1 :], left[: len(left) - many + 1]
    since[1:] = np.maximum(since[1:], until[:-1])
    return int(np.maximum(until - since, 0).sum())
