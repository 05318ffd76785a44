"""A counter at the resolution of a screen: the least and the greatest value that each pixel shows."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hta_widgets.arrays import Float64
from hta_widgets.timeline.pack import Packed, shuffled


def pixels_of(
    time: NDArray[np.int64], value: Float64, t0: float, t1: float, pixels: int
) -> tuple[Float64, Float64]:
    """(least, greatest) of the values that hold at some moment of each of `pixels` equal parts of [t0, t1).

    A value holds from its time to the next. NaN where none is known yet.
    """
    edges = t0 + (t1 - t0) * np.arange(pixels + 1) / pixels
    first = np.searchsorted(time, edges[:-1], side="right") - 1  # what holds at the start of a pixel
    last = np.searchsorted(time, edges[1:], side="left")  # up to what changes within it
    unknown = last <= np.maximum(first, 0)
    bounds = np.stack([np.maximum(first, 0), np.maximum(last, np.maximum(first, 0) + 1)], axis=1).ravel()
    padded = np.append(value, np.nan)
    bounds = np.minimum(bounds, len(value))
    least, greatest = (reduce.reduceat(padded, bounds)[::2] for reduce in (np.fmin, np.fmax))
    return np.where(unknown, np.nan, least), np.where(unknown, np.nan, greatest)


def pack_counters(
    parts: Sequence[tuple[NDArray[np.int64], Float64]], t0: float, t1: float, pixels: int
) -> Packed:
    """For each (time, value) its least values, then its greatest, one float64 per pixel."""
    found = [column for time, value in parts for column in pixels_of(time, value, t0, t1, pixels)]
    layout = {"t0": t0, "t1": t1, "px": pixels}
    return Packed(layout, zlib.compress(b"".join(shuffled(column) for column in found), 1))
