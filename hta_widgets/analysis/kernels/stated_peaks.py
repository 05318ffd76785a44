"""Peaks that a user states for devices of one answer, in place of what their datasheets say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, get_args

from hta_widgets.analysis.kernels.peaks import Peaks, peaks_of_rank, recorded_name
from hta_widgets.analysis.kernels.units import Unit
from hta_widgets.trace.rank_trace import RankTrace

StatedPeaks = Mapping[str, Mapping[str, Any]]
"""Device -> {"memory_gb_s": GB/s, "tflops": {unit: TFLOP/s}, "achievable": {unit: TFLOP/s}}."""

_MEMORY: Final = "memory_gb_s"
_BY_UNIT: Final = ("tflops", "achievable")
_MOST: Final = 1e9  # what is above is a slip of the unit
_SOURCE: Final = "entered by hand"


def device_name(rank_trace: RankTrace) -> str:
    """The device that a rank used: its model if that is known, else the name recorded; "" without one."""
    peaks = peaks_of_rank(rank_trace)
    return peaks.device if peaks else recorded_name(rank_trace)


def stated_peaks(rank_trace: RankTrace, stated: StatedPeaks | None = None) -> Peaks | None:
    """The peaks of the device that a rank used: what is stated of it, and for the rest its datasheet's.

    Args:
        stated: `checked_peaks`, by `device_name`.

    Returns:
        The peaks, or None for a device of which nothing is known.

    Raises:
        ValueError: an achievable speed is above the peak, or nobody says how fast the device's memory is.
    """
    known, device = peaks_of_rank(rank_trace), device_name(rank_trace)
    own = (stated or {}).get(device)
    if not own:
        return known
    tflops = {**(known.tflops if known else {}), **own.get("tflops", {})}
    achievable = {
        unit: speed
        for unit, speed in (known.achievable if known else {}).items()
        if speed <= tflops.get(unit, 0)  # of a peak that is stated lower, it says nothing
    }
    achievable |= own.get("achievable", {})
    for unit, speed in achievable.items():
        if speed > tflops.get(unit, math.inf):
            raise ValueError(
                f"{unit} of {device!r}: achievable {speed:g} is above the peak, {tflops[unit]:g} TFLOP/s"
            )
    memory = own.get(_MEMORY, known.memory_gb_s if known else None)
    if memory is None:
        raise ValueError(f"{_MEMORY} of {device!r} is needed: no datasheet of it is known")
    return Peaks(
        device,
        tflops,
        memory,
        f"{_SOURCE}; else {known.source}" if known else _SOURCE,
        achievable,
        _SOURCE if own.get("achievable") else known.achievable_source if known else "",
    )


def checked_peaks(stated: Any) -> dict[str, dict[str, Any]]:
    """What a user states, as plain values; devices of which nothing is stated are left out.

    Raises:
        ValueError: it is no `StatedPeaks`, or a number is none that a peak can be.
    """
    if not isinstance(stated, Mapping):
        raise ValueError(f"peaks must be a dict by device, not {stated!r}")
    return {device: found for device, own in stated.items() if (found := _checked(device, own))}


def _checked(device: Any, own: Any) -> dict[str, Any]:
    if not isinstance(device, str) or not isinstance(own, Mapping):
        raise ValueError(f"peaks of {device!r} must be a dict, not {own!r}")
    unknown = sorted(map(str, own.keys() - {_MEMORY, *_BY_UNIT}))
    if unknown:
        raise ValueError(
            f"peaks of {device!r}: {', '.join(unknown)} is none of {_MEMORY}, {', '.join(_BY_UNIT)}"
        )
    found: dict[str, Any] = {}
    if own.get(_MEMORY) is not None:
        found[_MEMORY] = _speed(f"{_MEMORY} of {device!r}", own[_MEMORY])
    for name in _BY_UNIT:
        by_unit = own.get(name) or {}
        if not isinstance(by_unit, Mapping):
            raise ValueError(f"{name} of {device!r} must be a dict by unit, not {by_unit!r}")
        foreign = sorted(map(str, by_unit.keys() - set(get_args(Unit))))
        if foreign:
            raise ValueError(f"{', '.join(foreign)}: no such unit; there are {', '.join(get_args(Unit))}")
        if by_unit:
            found[name] = {unit: _speed(f"{unit} of {device!r}", speed) for unit, speed in by_unit.items()}
    return found


def _speed(what: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{what} must be a number, not {value!r}")
    if not 0 < value <= _MOST:  # false for NaN too
        raise ValueError(f"{what} must be above 0 and at most {_MOST:g}, not {value!r}")
    return float(value)
