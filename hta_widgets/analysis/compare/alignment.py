"""The longest common subsequence of two long sequences, in bounded time.

Items that occur once in both sequences split them into stretches (those of them that are in the same order:
patience diff, after Bram Cohen), and so on within long stretches. In each stretch the pairs are those of
Myers' algorithm (*An O(ND) Difference Algorithm and Its Variations*, Algorithmica 1, 1986), whose time grows
with the number of differences. If it has not reached the end after `_REACH` differences, the path that got
farthest is taken, and it starts anew from there: so time grows at worst with the length of the sequences
times `_REACH`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hta_widgets.arrays import Int64
from hta_widgets.jit import inline, kernel

_REACH: Final = 256
_LONG: Final = 64  # items of a stretch from which on it is worth looking for unique ones


def aligned(first: Int64, second: Int64) -> Int64:
    """int64[n, 2] places of equal items in both sequences, both columns rising.

    Args:
        first, second: items as numbers from 0.
    """
    ends = np.array([[len(first), len(second)]], np.int64)
    pairs = np.empty((min(len(first), len(second)), 2), np.int64)
    front = np.empty((_REACH + 1, 2 * _REACH + 5), np.int64)
    made = _myers(first, second, np.append(_splits(first, second), ends, axis=0), front, pairs)
    return pairs[:made]


def longest_rise(values: Int64) -> Int64:
    """int64 places of the longest strictly rising subsequence (Fredman 1975)."""
    ends, before = np.empty(len(values), np.int64), np.empty(len(values), np.int64)
    length = _rise(values, ends, before)
    return ends[:length]


def _splits(first: Int64, second: Int64) -> Int64:
    """int64[n, 2] positions of pairs that certainly correspond, both columns rising."""
    if min(len(first), len(second)) < _LONG:
        return np.empty((0, 2), np.int64)
    size = int(max(first.max(), second.max())) + 1
    once = (np.bincount(first, minlength=size) == 1) & (np.bincount(second, minlength=size) == 1)
    place = np.empty(size, np.int64)
    place[second] = np.arange(len(second))
    at = np.flatnonzero(once[first])
    to = place[first[at]]
    rising = longest_rise(to)
    pairs = np.stack([at[rising], to[rising]], axis=1)
    if not len(pairs):
        return pairs
    bounds = np.concatenate([[[-1, -1]], pairs, [[len(first), len(second)]]])
    parts = [pairs]
    for stretch in np.flatnonzero((np.diff(bounds, axis=0) > _LONG).all(axis=1)).tolist():
        low, high = bounds[stretch] + 1, bounds[stretch + 1]
        parts.append(_splits(first[low[0] : high[0]], second[low[1] : high[1]]) + low)
    found = np.concatenate(parts)
    return found[np.argsort(found[:, 0])]


@kernel
def _rise(values: Int64, ends: Int64, before: Int64) -> int:
    """Leaves the places found in `ends`."""
    length = 0
    for place in range(len(values)):
        low, high = 0, length
        while low < high:
            middle = (low + high) // 2
            if values[ends[middle]] < values[place]:
                low = middle + 1
            else:
                high = middle
        before[place] = ends[low - 1] if low else -1
        ends[low] = place
        length = max(length, low + 1)
    at = ends[length - 1] if length else -1
    for number in range(length - 1, -1, -1):
        ends[number] = at
        at = before[at]
    return length


@inline
def _steps(front: Int64, middle: int, k: int, n: int, m: int) -> tuple[int, int]:
    """How far one more item of `first`, or of `second`, leads on diagonal k; -1 where out of the stretch."""
    right, down = front[middle + k - 1], front[middle + k + 1]
    return (
        right + 1 if right >= 0 and right < n else -1,
        down if down >= 0 and down - k <= m else -1,
    )


@kernel
def _myers(first: Int64, second: Int64, splits: Int64, front: Int64, pairs: Int64) -> int:
    """Pairs in the stretches before each split, and the splits but the last, which is the sequences' end.

    front[d, k + middle]: how far in `first` a path with d differences comes on diagonal k, that is with k
    items more of `first` than of `second`; -1 where it cannot come. Read only where d and k are both odd or
    both even.
    """
    reach, middle, made = len(front) - 1, len(front) + 1, 0
    a = b = 0
    for split in range(len(splits)):
        n, m = splits[split, 0], splits[split, 1]
        while a < n and b < m:
            last, best = 0, 0
            for d in range(reach + 1):
                last = d
                for beside in (d + 1, d + 2):
                    front[d, middle - beside] = front[d, middle + beside] = -1
                farthest = -1
                for k in range(-d, d + 1, 2):
                    x = 0
                    if d:
                        right, down = _steps(front[d - 1], middle, k, n - a, m - b)
                        x = max(right, down)
                    if x >= 0:
                        while a + x < n and b + x - k < m and first[a + x] == second[b + x - k]:
                            x += 1
                        if 2 * x - k > farthest:
                            farthest, best = 2 * x - k, k
                    front[d, middle + k] = x
                if farthest == (n - a) + (m - b):
                    break
            # Back along the path.
            before, k, x = made, best, front[last, middle + best]
            next_a, next_b = a + x, b + x - k
            for d in range(last, -1, -1):
                begin, from_k = 0, k
                if d:
                    right, down = _steps(front[d - 1], middle, k, n - a, m - b)
                    begin, from_k = (right, k - 1) if right >= down else (down, k + 1)
                for at in range(x - 1, begin - 1, -1):
                    pairs[made, 0], pairs[made, 1] = a + at, b + at - k
                    made += 1
                if d:
                    x, k = front[d - 1, middle + from_k], from_k
            for at in range((made - before) // 2):
                for side in range(2):
                    low, high = before + at, made - 1 - at
                    pairs[low, side], pairs[high, side] = pairs[high, side], pairs[low, side]
            a, b = next_a, next_b
        if split < len(splits) - 1:
            pairs[made, 0], pairs[made, 1] = n, m
            made += 1
        a, b = n + 1, m + 1
    return made
