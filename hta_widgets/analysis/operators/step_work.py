"""What the iterations of a rank compute and move, added up over operators."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.core.sums import exact_sums
from hta_widgets.analysis.kernels.units import UNITS
from hta_widgets.analysis.operators.attention import BACKWARD, scores_again
from hta_widgets.analysis.operators.calls import operator_calls
from hta_widgets.analysis.operators.costs import Costs, operator_costs
from hta_widgets.analysis.operators.formulas import BUILT_IN, RegisteredFormula, registered
from hta_widgets.analysis.operators.inputs import parse_shapes
from hta_widgets.analysis.operators.recomputed import recomputed
from hta_widgets.analysis.operators.roofs import call_units, name_units
from hta_widgets.arrays import Bool, Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import unique
from hta_widgets.trace.rank_trace import RankTrace

PRODUCTS: Final = {name for family in ("matmul", "convolution", "attention") for name in BUILT_IN[family]}


@dataclass(frozen=True)
class StepWork:
    """Sums over operators with device work; each array has an entry per row asked for."""

    flops: Int64  # of matrix products, convolutions and attention, as executed
    repeated: Int64  # the part of it that repeats work of the forward pass
    bytes: Int64  # compulsory memory traffic of all operators with a formula
    # how many calls' figures are only bounds
    flops_bounded: Int64
    bytes_bounded: Int64
    work_ns: Int64  # device work without communication; described_ns: the part that has a formula
    described_ns: Int64
    unknown_ns: Int64  # kernels, without copies and fills, whose operations are not known
    by_unit: Int64  # int64[rows, units] the flops by the unit that their kernels' names tell
    time_by_unit: Int64  # int64[rows, units] the time of kernels by the same


def step_work(rank_trace: RankTrace, iterations: tuple[int, ...]) -> StepWork:
    """What these iterations of a rank compute and move; calls belong to the iteration that they start in.

    The first row is all of them together, the others each of them.
    """
    numbers, work = _of_iterations(rank_trace, registered(), operator_costs(rank_trace))
    at = np.searchsorted(numbers, iterations)

    def chosen(sums: Int64) -> Int64:
        each = sums[at]
        return np.concatenate((each.sum(axis=0, keepdims=True), each))

    return StepWork(**{part.name: chosen(getattr(work, part.name)) for part in fields(work)})


@memoize_per_rank(last=2)
def _of_iterations(
    rank_trace: RankTrace, own: tuple[RegisteredFormula, ...], costs: Costs
) -> tuple[Int64, StepWork]:
    """The numbers of a rank's iterations, ascending, and what each of them does."""
    numbers = np.unique(rank_trace.iterations["iteration"].to_numpy(np.int64))
    calls, size = operator_calls(rank_trace), len(numbers)
    cover = np.full(len(calls.rows) + 1, -1, np.int64)
    _cover(calls.parent, costs.has_formula, cover)
    # What is counted: outermost calls with a formula and device work, of an iteration.
    of = np.flatnonzero((cover[:-1] == np.arange(len(calls.rows))) & (calls.device_ns > 0))
    at = _position(rank_trace.iteration[calls.rows[of]], numbers)
    of, at = of[at >= 0], at[at >= 0]
    figures = costs.figures[costs.group[of]]
    flops, moved = np.rint(np.where(np.isnan(figures), 0.0, figures)[:, :2].T).astype(np.int64)
    again = _repeated(rank_trace, own, cover, of, flops)
    multiplies = _products(rank_trace, own)[rank_trace.name[calls.rows[of]]]
    bounded = figures[:, 2] > 0

    def total(chosen: Bool, values: Int64) -> Int64:
        return exact_sums(at[chosen], values[chosen], size)

    unit = call_units(rank_trace)[of]
    known = multiplies & (unit >= 0)
    work_at = _position(rank_trace.iteration[calls.work], numbers)
    kind, dur = rank_trace.event_class[calls.work], rank_trace.dur[calls.work]
    mine = (work_at >= 0) & (kind != EventClass.COMMUNICATION)
    around = cover[calls.owner]
    has = around >= 0
    silent = np.zeros(len(cover), np.bool_)
    silent[of[multiplies & np.isnan(figures[:, 0])]] = silent[-1] = True
    unknown = mine & (kind == EventClass.COMPUTE) & silent[around]
    work_unit = name_units(rank_trace)[rank_trace.name[calls.work]]
    timed = mine & (work_unit >= 0)
    return numbers, StepWork(
        flops=total(multiplies, flops),
        repeated=total(multiplies, again),
        bytes=exact_sums(at, moved, size),
        flops_bounded=total(multiplies & bounded, np.ones_like(flops)),
        bytes_bounded=total(bounded, np.ones_like(flops)),
        work_ns=exact_sums(work_at[mine], dur[mine], size),
        described_ns=exact_sums(work_at[mine & has], dur[mine & has], size),
        unknown_ns=exact_sums(work_at[unknown], dur[unknown], size),
        by_unit=_by_unit(at[known], unit[known], flops[known], size),
        time_by_unit=_by_unit(work_at[timed], work_unit[timed], dur[timed], size),
    )


def _repeated(
    rank_trace: RankTrace, own: tuple[RegisteredFormula, ...], cover: Int64, of: Int64, flops: Int64
) -> Int64:
    """The part of the FLOPs of these calls that repeats work of the forward pass; cover: as of `_cover`."""
    calls = operator_calls(rank_trace)
    rows = calls.rows[of]
    repeats = np.zeros(len(cover), np.bool_)
    repeats[cover[calls.owner[np.isin(calls.work, recomputed(rank_trace))]]] = True
    again = np.where(repeats[of], flops, 0)
    ours = BACKWARD - {formula.name for formula in own}
    of_attention = np.array([name in ours for name in rank_trace.names] or [False], np.bool_)
    texts = rank_trace.table.dictionary("input_dims")
    attention = np.flatnonzero(of_attention[rank_trace.name[rows]] & (flops > 0))
    shapes = rank_trace.argument_codes("input_dims")[rows[attention]] if len(attention) else attention
    for code in unique(shapes).tolist():
        part, whole = scores_again(parse_shapes(texts[code]))
        alike = attention[shapes == code]
        again[alike] = flops[alike].astype(object) * part // whole  # Python's integers: may exceed 64 bits
    return again


def _products(rank_trace: RankTrace, own: tuple[RegisteredFormula, ...]) -> Bool:
    """The names of operators that count; users' own formulas do."""
    counts = PRODUCTS | {formula.name for formula in own}
    return np.array([name in counts for name in rank_trace.names] or [False], np.bool_)


def _position(iteration: npt.NDArray[np.int32], numbers: Int64) -> Int64:
    """The place of each row's iteration among the numbers, which ascend; -1 for rows of none."""
    code, found = pd.factorize(iteration)  # few differ
    return np.where(found >= 0, np.searchsorted(numbers, found), -1)[code]


def _by_unit(at: Int64, unit: npt.NDArray[np.integer], values: Int64, size: int) -> Int64:
    return exact_sums(at * len(UNITS) + unit, values, size * len(UNITS)).reshape(size, len(UNITS))


@kernel
def _cover(parent: Int64, has_formula: Bool, cover: Int64) -> None:
    """For each call the outermost one with a formula around it, or itself; callers come first.

    `cover`: -1 for each, and at last for work that no call launched.
    """
    for call in range(len(parent)):
        caller = parent[call]
        if caller >= 0 and cover[caller] >= 0:
            cover[call] = cover[caller]
        elif has_formula[call]:
            cover[call] = call
