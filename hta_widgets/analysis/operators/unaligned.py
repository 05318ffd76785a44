"""Matrix products whose sizes keep their kernels from loading 16 bytes at once.

Tensor cores are fed by loads of 16 bytes: eight numbers of 16 bits, four of fp32. Where rows do not begin at
multiples of that, cuBLAS and CUTLASS run kernels that load less, whose names say so (`align1`, `align2`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.classes import kernel_class
from hta_widgets.analysis.kernels.peaks import peaks_of_rank
from hta_widgets.analysis.kernels.units import UNITS
from hta_widgets.analysis.operators.calls import operator_calls
from hta_widgets.analysis.operators.costs import SUMS, operator_costs
from hta_widgets.analysis.operators.inputs import Shape
from hta_widgets.analysis.operators.recorded import RecordedInputs, recorded_inputs
from hta_widgets.analysis.operators.roofs import Roofs, roofs_of
from hta_widgets.analysis.operators.unfused_attention import unfused_attentions
from hta_widgets.arrays import Int64
from hta_widgets.trace.ordering import unique
from hta_widgets.trace.rank_trace import RankTrace

_ELEMENTS: Final = {"tensor_tf32": 4, "tensor_16bit": 8, "tensor_8bit": 16}
"""Unit -> how many of its numbers are 16 bytes."""
_REACHED: Final = 0.5
"""Of the peak of its unit, what a product of aligned sizes reaches at least, if it is large."""
_ENOUGH_NS: Final = 1_000_000
"""Aligned products that take less in all say nothing about large ones."""


@dataclass(frozen=True)
class Product:
    """A product of sizes that are not aligned."""

    row: int  # of its operator
    unit: str  # what multiplies
    multiple: int  # of how many numbers the sizes should be
    batch: int  # how many of them
    # [rows, inner] times [inner, columns]
    rows: int
    inner: int
    columns: int

    @property
    def odd(self) -> tuple[int, ...]:
        """Its sizes that are no such multiple."""
        sizes = (self.rows, self.inner, self.columns)
        return tuple(sorted({size for size in sizes if size % self.multiple}))

    @property
    def padding(self) -> float:
        """How many times as large it is with all of them padded."""
        times = 1.0
        for size in (self.rows, self.inner, self.columns):
            times *= -(-size // self.multiple) * self.multiple / size
        return times


def unaligned_kernels(rank_trace: RankTrace) -> Int64:
    """Rows of the kernels on tensor cores whose names say that they load less than 16 bytes at once."""
    compute = rank_trace.device_rows
    slow = np.zeros(len(rank_trace.names) + 1, np.bool_)
    for code in unique(rank_trace.name[compute]).tolist():
        slow[code] = _loads_less(rank_trace.names[code])
    return compute[slow[rank_trace.name[compute]]]


@memoize_per_rank()
def unaligned_products(rank_trace: RankTrace) -> tuple[tuple[Product, ...], Int64, Int64]:
    """The products with such kernels and sizes, the rows of their kernels, and the product of each.

    Left out are those of attention that is not fused, and sizes that are aligned: there it is a stride.
    """
    calls, recorded = operator_calls(rank_trace), recorded_inputs(rank_trace)
    rows = np.setdiff1d(unaligned_kernels(rank_trace), unfused_attentions(rank_trace).work)
    found: list[Product] = []
    number: dict[int, int] = {}
    factors: dict[int, tuple[Shape, Shape] | None] = {}
    kept, of = [], []
    for row in rows.tolist():
        call = int(calls.around[row])
        if call < 0:
            continue
        if call not in number:
            unit = str(kernel_class(rank_trace.names[rank_trace.name[row]]).unit)
            operator = int(calls.rows[call])
            passed = int(recorded.of_row[operator])
            if passed not in factors:
                factors[passed] = _factors(recorded, operator)
            product = _product(operator, unit, factors[passed])
            number[call] = len(found) if product else -1
            found += [product] if product else []
        if number[call] >= 0:
            kept.append(row)
            of.append(number[call])
    return tuple(found), np.array(kept, np.int64), np.array(of, np.int64)


def aligned_ns(rank_trace: RankTrace) -> tuple[Int64, Int64]:
    """The kernels of `unaligned_products`, and how much of each is left if sizes are padded, ns.

    As long as the padded operations at the share of the peak of their unit that aligned products reach in
    this recording, at least at half of it, or the bytes at the peak of memory; none are left out where the
    peaks are unknown.
    """
    roofs = roofs_of(peaks_of_rank(rank_trace))
    found, rows, of = unaligned_products(rank_trace)
    if roofs is None or not found:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    calls = operator_calls(rank_trace).around[[product.row for product in found]]
    sums = operator_costs(rank_trace).of(calls)
    flops, moved = (sums[:, SUMS.index(name)] for name in ("flops", "bytes"))
    speed = roofs.flops_per_ns(np.array([UNITS.index(product.unit) for product in found]))
    padding = np.array([product.padding for product in found])
    shares = {unit: _reached(rank_trace, roofs, unit) for unit in {product.unit for product in found}}
    reached = np.array([shares[product.unit] for product in found])
    least = padding * np.maximum(flops / (reached * speed), moved / roofs.memory_gb_s)
    least[(flops == 0) | (moved == 0)] = np.nan
    taken = np.bincount(of, rank_trace.dur[rows], len(found))
    share = np.minimum(least / np.maximum(taken, 1), 1.0)[of]
    known = share < 1.0  # not of NaN
    return rows[known], np.ceil(rank_trace.dur[rows][known] * share[known]).astype(np.int64)


def _reached(rank_trace: RankTrace, roofs: Roofs, unit: str) -> float:
    """Which share of the roof the aligned products of a unit reach, of all of their time; at least half."""
    calls = operator_calls(rank_trace)
    names = [kernel_class(name) for name in rank_trace.names]
    of_unit = np.array([found.operation == "gemm" and found.unit == unit for found in names] or [False])
    rows = calls.work[of_unit[rank_trace.name[calls.work]]]
    rows = np.setdiff1d(rows, unaligned_kernels(rank_trace))
    around = calls.around[rows]
    rows, around = rows[around >= 0], around[around >= 0]
    products, of = np.unique(around, return_inverse=True)
    sums = operator_costs(rank_trace).of(products)
    flops, moved = (sums[:, SUMS.index(name)] for name in ("flops", "bytes"))
    taken = np.bincount(of, rank_trace.dur[rows], len(products))
    known = (flops > 0) & (moved > 0)
    if taken[known].sum() < _ENOUGH_NS:
        return _REACHED
    speed = roofs.flops_per_ns(np.full(len(products), UNITS.index(unit)))
    least = np.maximum(flops / speed, moved / roofs.memory_gb_s)
    return max(_REACHED, min(float(least[known].sum() / taken[known].sum()), 1.0))


def _loads_less(name: str) -> bool:
    found = kernel_class(name)
    if found.operation != "gemm" or found.alignment is None or found.unit not in _ELEMENTS:
        return False
    return found.alignment < _ELEMENTS[found.unit]


def _factors(recorded: RecordedInputs, row: int) -> tuple[Shape, Shape] | None:
    """The shapes of the last two inputs next to each other that can be multiplied."""
    shapes = [shape for shape in recorded.of(row).shapes if isinstance(shape, tuple) and len(shape) in (2, 3)]
    pairs = pairwise(shapes)
    fits = [pair for pair in pairs if pair[0][-1] == pair[1][-2] and pair[0][:-2] == pair[1][:-2]]
    return fits[-1] if fits else None


def _product(row: int, unit: str, factors: tuple[Shape, Shape] | None) -> Product | None:
    if factors is None or not all(size > 0 for shape in factors for size in shape):
        return None
    left, right = factors
    product = Product(row, unit, _ELEMENTS[unit], math.prod(left[:-2]), left[-2], left[-1], right[-1])
    return product if product.odd else None
