"""How many blocks of a launch a device has room for at once, and what bounds that.

The arithmetic of NVIDIA's occupancy calculator, which Kineto uses as well: a multiprocessor holds as many
blocks of a kernel as it has registers, shared memory and threads for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson
import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.arrays import Float64, Int32, Int64
from hta_widgets.trace.ordering import first_of_each, numbered
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL

LIMITERS: Final = np.array(["none", "grid", "registers", "shared memory", "block size", "unknown"])
OCCUPANCY_REMEDY: Final = (
    "Measure it with the profiler of the device's vendor: torch.profiler estimates it on few devices."
)
_NONE, GRID, _RESOURCES, _UNKNOWN = 0, 1, 2, 5
_RECORDED, _COMPUTED, _NO_SOURCE = 0, 1, 2
# What, beside the device, tells kinds of launches apart.
_NUMBERS = ("occupancy_pct", "registers_per_thread", "shared_memory")
_SIDES = ("block", "grid")
_SMALL = 1 << 20  # what a multiprocessor has of anything
_PROPERTIES = (
    "numSms",
    "warpSize",
    "maxThreadsPerMultiprocessor",
    "regsPerMultiprocessor",
    "sharedMemPerMultiprocessor",
    "computeMajor",
)
# Of CUDA devices since compute capability 3: a warp gets registers by 256, from one of four parts of a
# multiprocessor. Since 8.0 the system keeps 1 KiB of shared memory of each block.
_REGISTER_UNIT, _PARTS, _RESERVED_SHARED, _RESERVING_MAJOR = 256, 4, 1024, 8
_DEFAULT_SHARED = 48 * 1024  # of a block on every CUDA device, unless its kernel opts in to more
_ROUNDING_PCT = 1.0  # the profiler writes whole percents


@dataclass(frozen=True)
class Residency:
    """How launches fill their device, one by one.

    Attributes:
        occupancy_pct: of the warps that a multiprocessor can hold; NaN: unknown.
        limiter: what bounds it, as a place in `LIMITERS`.
        source: of the occupancy: 0 recorded, 1 computed, 2 unknown.
        filled_pct: the occupancy as it is computed here, not rounded; NaN where that does not explain what
            was recorded.
        blocks: of the launch. multiprocessors: of the device. resident: how many of the blocks one of these
            has room for. 0: unknown, of all three where what was recorded is not explained.
    """

    occupancy_pct: Float64
    limiter: Int64
    source: Int64
    filled_pct: Float64
    blocks: Int64
    multiprocessors: Int64
    resident: Int64


def residency(rank_trace: RankTrace, rows: Int64) -> Residency:
    """How these launches fill their device; of a recording without occupancy, all of it is unknown."""
    number, known = _different(rank_trace)
    of = number[rows]
    return Residency(**{name: values[of] for name, values in vars(known).items()})


@memoize_per_rank()
def _different(rank_trace: RankTrace) -> tuple[Int32, Residency]:
    """For each device row the number of its kind of launch, and how each of these few kinds fills it."""
    rows = rank_trace.device_rows
    place = np.full(rank_trace.n, -1, np.int32)
    place[rows] = np.arange(len(rows), dtype=np.int32)

    def at_rows(name: str, null: int) -> npt.NDArray[Any]:
        having, found = rank_trace.recorded(name)
        at = place[having]
        values = np.full(len(rows), np.nan if found.dtype.kind == "f" else null)
        values[at[at >= 0]] = found[at >= 0]
        return values

    numbers = [*(at_rows(name, NULL) for name in _NUMBERS), rank_trace.device[rows]]
    sides = [at_rows(name, -1) for name in _SIDES]
    of = numbered(*map(_codes, numbers), *sides)
    number = np.zeros(rank_trace.n, np.int32)
    number[rows] = of
    example = first_of_each(of)
    occupancy, registers, shared, device = (values[example] for values in numbers)
    block, grid = (values[example] for values in sides)
    return number, _of_launches(rank_trace, occupancy, registers, shared, block, grid, device)


def _codes(values: npt.NDArray[Any]) -> Int64:
    """Numbers as codes for `numbered`: as they are where they are small, and NULL is -1."""
    if values.dtype.kind == "i":
        known = values != NULL
        if not (known & ((values < 0) | (values > _SMALL))).any():
            return np.where(known, values, -1)
    return pd.factorize(values, use_na_sentinel=False)[0].astype(np.int64)


def _of_launches(
    rank_trace: RankTrace,
    occupancy: npt.NDArray[Any],
    registers: Int64,
    shared: Int64,
    block: Int32,
    grid: Int32,
    device: Int64,
) -> Residency:
    recorded = occupancy.astype(np.float64)
    threads, blocks = _products(rank_trace, "block", block), _products(rank_trace, "grid", grid)
    estimated = recorded >= 0  # Kineto writes less where it fails
    complete = (threads > 0) & (blocks > 0) & (registers != NULL) & (shared != NULL) & estimated
    opted_in = (recorded == 0) & (shared > _DEFAULT_SHARED)
    value = np.where(estimated & ~opted_in, recorded, np.nan)
    source = np.where(estimated & ~opted_in, _RECORDED, _NO_SOURCE)
    limiter = np.full(len(recorded), _UNKNOWN, np.int64)
    filled = np.full(len(recorded), np.nan)
    held, resident, known = (np.zeros(len(recorded), np.int64) for _ in range(3))
    for number, limits in _devices(rank_trace).items():
        own = np.flatnonzero((device == number) & complete)
        computed, bound, fits = _calculated(limits, threads[own], blocks[own], registers[own], shared[own])
        zeroed = opted_in[own]
        value[own[zeroed]], source[own[zeroed]] = computed[zeroed], _COMPUTED
        explained = zeroed | (np.abs(computed - recorded[own]) <= _ROUNDING_PCT)
        limiter[own[explained]] = bound[explained]
        held[own[explained]], resident[own[explained]] = limits["numSms"], fits[explained]
        known[own[explained]], filled[own[explained]] = blocks[own[explained]], computed[explained]
    return Residency(value, limiter, source, filled, known, held, resident)


def _calculated(
    limits: dict[str, int], threads: Int64, blocks: Int64, registers: Int64, shared: Int64
) -> tuple[Float64, Int64, Int64]:
    """The occupancy of launches (%), what bounds it, and how many blocks a multiprocessor has room for."""
    warp, held = limits["warpSize"], limits["maxThreadsPerMultiprocessor"]
    warps = -(-threads // warp)
    per_warp = np.maximum(-(-registers * warp // _REGISTER_UNIT), 1) * _REGISTER_UNIT
    per_block = shared + (_RESERVED_SHARED if limits["computeMajor"] >= _RESERVING_MAJOR else 0)
    room = np.stack(
        [
            limits["regsPerMultiprocessor"] // _PARTS // per_warp * _PARTS // warps,
            limits["sharedMemPerMultiprocessor"] // np.maximum(per_block, 1),
            held // (warps * warp),
        ]
    )
    given = blocks / limits["numSms"]
    fits = room.min(axis=0)
    filled: Float64 = 100.0 * np.minimum(given, fits) * threads / held
    bound = np.where(given < fits, GRID, _RESOURCES + room.argmin(axis=0))
    return filled, np.where(filled >= 100.0 - _ROUNDING_PCT / 2, _NONE, bound), fits


def _products(rank_trace: RankTrace, column: str, codes: Int32) -> Int64:
    """How many threads or blocks ``[x, y, z]`` are; 0 where absent or malformed."""
    texts = rank_trace.table.dictionary(column)
    product = np.array([*map(product_of, texts), 0], np.int64)
    return product[codes]  # -1, absent, is the last


def product_of(text: str) -> int:
    """How many threads or blocks a text like `[128, 4, 1]` is; 0 where it is malformed."""
    try:
        sides = orjson.loads(text)
    except orjson.JSONDecodeError:
        return 0
    if not isinstance(sides, list) or not all(type(side) is int and 0 < side < 2**31 for side in sides):
        return 0
    x, y, z = (*sides, 1, 1, 1)[:3]
    return min(int(x * y * z), 2**62)


def _devices(rank_trace: RankTrace) -> dict[int, dict[str, int]]:
    """The limits of each device whose properties the file has, all of them, by its number."""
    recorded: Any = rank_trace.metadata.get("deviceProperties")
    known = [device for device in recorded if isinstance(device, dict)] if isinstance(recorded, list) else []
    return {
        device["id"]: {name: device[name] for name in _PROPERTIES}
        for device in known
        if type(device.get("id")) is int
        and all(type(device.get(name)) is int and 0 < device[name] < 2**40 for name in _PROPERTIES)
    }
