"""How fast each call could be at most: the peak of the unit that its kernels use, and of the memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.classes import kernel_class
from hta_widgets.analysis.kernels.peaks import Peaks
from hta_widgets.analysis.kernels.units import UNITS, Unit
from hta_widgets.analysis.operators.calls import operator_calls
from hta_widgets.arrays import Float64, Int8, Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import unique
from hta_widgets.trace.rank_trace import RankTrace

SIMT: Final = UNITS.index("simt_fp32")
"""The unit of kernels that multiply no matrices."""


@dataclass(frozen=True)
class Roofs:
    """The peaks of a device, as values that can be compared."""

    tflops: tuple[float, ...]  # of each unit of `UNITS`, 0 where unknown
    memory_gb_s: float  # of its memory

    def flops_per_ns(self, unit: Int64) -> Float64:
        """The speed of units by their position in `UNITS`; NaN for -1 and where it is unknown."""
        speed = np.array([*self.tflops, 0.0]) * 1e3
        return np.where(speed > 0, speed, np.nan)[unit]


def roofs_of(peaks: Peaks | None) -> Roofs | None:
    """The roofs of a device, None if nothing is known of it."""
    if peaks is None:
        return None
    return Roofs(tuple(peaks.tflops.get(unit, 0.0) for unit in UNITS), peaks.memory_gb_s)


@memoize_per_rank()
def name_units(rank_trace: RankTrace) -> Int64:
    """For each name of device work the unit that it tells, -1 for none and for other names."""
    work = rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC)
    units = np.full(len(rank_trace.names) + 1, -1, np.int64)
    for code in unique(rank_trace.name[work]).tolist():
        units[code] = _position(kernel_class(rank_trace.names[code]).unit)
    return units


@memoize_per_rank()
def call_units(rank_trace: RankTrace) -> Int8:
    """For each of `operator_calls` the unit of the longest kernel in it whose name tells one, -1 for none."""
    calls = operator_calls(rank_trace)
    unit = name_units(rank_trace)[rank_trace.name[calls.work]]
    found, longest = np.full(len(calls.rows), -1, np.int8), np.zeros(len(calls.rows), np.int64)
    _find_longest(calls.parent, calls.owner, unit, rank_trace.dur[calls.work], found, longest)
    return found


def _position(unit: Unit | None) -> int:
    return -1 if unit is None else UNITS.index(unit)


@kernel
def _find_longest(parent: Int64, owner: Int64, unit: Int64, dur: Int64, found: Int8, longest: Int64) -> None:
    for i in range(len(owner)):
        call = owner[i]
        while call >= 0 and unit[i] >= 0:
            if found[call] < 0 or dur[i] > longest[call]:
                found[call], longest[call] = unit[i], dur[i]
            call = parent[call]
