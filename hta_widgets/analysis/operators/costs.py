"""What the calls of a rank cost, evaluated once for each distinct operator and inputs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.peaks import Peaks, peaks_of_rank
from hta_widgets.analysis.kernels.units import UNITS
from hta_widgets.analysis.operators import compiled
from hta_widgets.analysis.operators.calls import Calls, module_calls, operator_calls
from hta_widgets.analysis.operators.cost import Cost, Formula
from hta_widgets.analysis.operators.formulas import BUILT_IN, RegisteredFormula, formula_of, registered
from hta_widgets.analysis.operators.inputs import Inputs, UnknownInputError
from hta_widgets.analysis.operators.recorded import recorded_inputs
from hta_widgets.analysis.operators.roofs import SIMT, Roofs, call_units, roofs_of
from hta_widgets.arrays import Bool, Float64, Int8, Int32, Int64
from hta_widgets.jit import inline, kernel
from hta_widgets.trace.ordering import numbered
from hta_widgets.trace.rank_trace import RankTrace

SUMS: Final = (
    "flops", "counted", "bytes", "sized", "timed_flops", "flops_ns", "timed_bytes", "bytes_ns", "both_flops",
    "both_bytes", "covered_ns", "device_ns", "bounded", "compute_roof_ns", "memory_roof_ns", "roof_ns",
    "roofed_ns",
)  # fmt: skip
"""The columns of `Costs.of`.

counted, sized: calls with flops, with bytes. timed_flops, timed_bytes: those of calls with device work;
flops_ns, bytes_ns: its time. both_flops, both_bytes: those of calls with both. covered_ns: device work of
calls with a formula; device_ns: of all. bounded: calls whose figures are bounds. compute_roof_ns,
memory_roof_ns: time of the operations and of the traffic at the peaks; roof_ns: the longer one of each call;
roofed_ns: device work of calls whose roofs are known.
"""
(
    _FLOPS, _COUNTED, _BYTES, _SIZED, _TIMED_FLOPS, _FLOPS_NS, _TIMED_BYTES, _BYTES_NS, _BOTH_FLOPS,
    _BOTH_BYTES, _COVERED_NS, _DEVICE_NS, _BOUNDED, _COMPUTE_ROOF_NS, _MEMORY_ROOF_NS, _ROOF_NS, _ROOFED_NS,
) = range(len(SUMS))  # fmt: skip


# Only of these does it depend on the kernel which unit does the work.
_PRODUCTS = {name for family in ("matmul", "convolution", "attention") for name in BUILT_IN[family]}


class Known(NamedTuple):
    """What is known of calls, as kernels take it; `figures_of` makes the columns `SUMS` of it.

    Calls that a formula describes are evaluated when they are asked for: a table of all is mostly zeros, and
    takes longer to fill than to evaluate.
    """

    # int32 for each call the number of its operator and inputs, -1 where no formula gave figures
    group: Int32
    figures: Float64  # float64[groups, 3] flops, bytes (NaN: unknown), and whether they are bounds
    unit: Int8  # int8 for each call its place in ``speeds``: float64 operations per ns, NaN where unknown
    speeds: Float64
    bandwidth: float  # bytes per ns, NaN where unknown
    device_ns: Int64  # int64 device work of each call
    place: Int32  # row of each call without figures of its own in ``inside``, -1 for none
    inside: Float64  # float64[rows, len(SUMS)], sums over the calls in these


class Costs:
    """Figures of calls that can be added up.

    A formula describes a call with all that it calls. A call without one costs what the calls in it cost.

    Attributes:
        described: what those are made of that a formula describes. known: the same, and of calls without a
            formula what the calls in them cost. Both are put together when they are first asked for.
        has_formula: for each call whether a formula gave figures.
        group, figures: those of it alone, as in `Known`.
        named: for each call whether its operator has a formula at all.
    """

    def __init__(
        self,
        describe: Callable[[], Known],
        add_up: Callable[[Known], Known],
        group: Int32,
        figures: Float64,
        named: Bool,
    ) -> None:
        self._describe, self._add_up = describe, add_up
        self.group, self.figures = group, figures
        self.has_formula, self.named = group >= 0, named

    @cached_property
    def described(self) -> Known:
        return self._describe()

    @cached_property
    def known(self) -> Known:
        return self._add_up(self.described)

    def of(self, calls: npt.NDArray[np.integer]) -> Float64:
        """float64[len(calls), len(SUMS)]."""
        found = np.zeros((len(calls), len(SUMS)), np.float64)
        known = self.described if self.has_formula[calls].all() else self.known
        _add_all(known, calls.astype(np.int64), np.arange(len(calls)), found)
        return found


def operator_costs(rank_trace: RankTrace) -> Costs:
    """The costs of `operator_calls`, by the formulas and peaks that are registered now."""
    return costs_under(rank_trace, peaks_of_rank(rank_trace))


def costs_under(rank_trace: RankTrace, peaks: Peaks | None) -> Costs:
    """The same under other peaks."""
    return _operator_costs(rank_trace, registered(), roofs_of(peaks))


def module_costs(rank_trace: RankTrace) -> Costs:
    """The costs of `module_calls`: of the operators that work for each module, and for those in it."""
    return _module_costs(rank_trace, registered(), roofs_of(peaks_of_rank(rank_trace)))


@memoize_per_rank(last=2)
def _operator_costs(rank_trace: RankTrace, own: tuple[RegisteredFormula, ...], roofs: Roofs | None) -> Costs:
    calls = operator_calls(rank_trace)
    formulas = [formula_of(name, own) for name in rank_trace.names]
    name = rank_trace.name[calls.rows]
    named = np.array([formula is not None for formula in formulas] or [False], np.bool_)[name]
    chosen = np.flatnonzero(named)
    arguments = _Arguments(rank_trace, calls)
    group, examples = arguments.distinct(chosen)
    found = [_cost(formulas[name[call]], arguments.inputs(call)) for call in examples.tolist()]
    figures = np.array([(cost.flops, cost.bytes, not cost.exact) for cost in found], np.float64)
    figures = figures.reshape(-1, 3)
    number = np.where(np.isnan(figures[:, 0]) & np.isnan(figures[:, 1]), -1, np.arange(len(figures)))
    of_call = np.full(len(calls.rows), -1, np.int32)
    of_call[chosen] = number[group]
    describe = partial(_described, rank_trace, of_call, figures, roofs)
    return Costs(describe, partial(_added_up, calls.parent), of_call, figures, named)


def _described(rank_trace: RankTrace, group: Int32, figures: Float64, roofs: Roofs | None) -> Known:
    """What is known of the operators of a rank that formulas describe, by their numbers and figures."""
    calls = operator_calls(rank_trace)
    unit, speeds = np.zeros(len(calls.rows), np.int8), np.full(len(UNITS) + 1, np.nan)
    if roofs is not None:
        products = np.array([*map(_is_product, rank_trace.names)] or [False], np.bool_)
        speeds = roofs.flops_per_ns(np.arange(len(speeds)))
        unit = call_units(rank_trace).copy()
        unit[(unit < 0) & ~products[rank_trace.name[calls.rows]]] = SIMT
        unit[unit < 0] = len(UNITS)
    nowhere, nothing = np.full(len(calls.rows), -1, np.int32), np.zeros((0, len(SUMS)))
    bandwidth = roofs.memory_gb_s if roofs else np.nan
    return Known(group, figures, unit, speeds, bandwidth, calls.device_ns, nowhere, nothing)


def _added_up(parent: Int64, described: Known) -> Known:
    """The same with what the calls inside calls without a formula cost."""
    place = described.place.copy()
    inside = np.zeros((_find_around(parent, described.group, place), len(SUMS)))
    known = described._replace(place=place, inside=inside)
    _from_inside(parent, known)
    return known


@memoize_per_rank(last=2)
def _module_costs(rank_trace: RankTrace, own: tuple[RegisteredFormula, ...], roofs: Roofs | None) -> Costs:
    calls, module = module_calls(rank_trace)
    operators, costs = operator_calls(rank_trace), _operator_costs(rank_trace, own, roofs)
    within = np.zeros(len(operators.rows), np.bool_)
    _mark_inside(operators.parent, costs.has_formula, within)
    counted = np.flatnonzero(costs.has_formula & ~within & (module >= 0))
    size = len(calls.rows)
    inside = np.zeros((size, len(SUMS)))
    _add_all(costs.described, counted, module[counted], inside)
    known = Known(
        np.full(size, -1, np.int32), np.empty((0, 3)), np.zeros(size, np.int8), costs.described.speeds,
        np.nan, calls.device_ns, np.arange(size, dtype=np.int32), inside,
    )  # fmt: skip
    _from_inside(calls.parent, known)
    return Costs(
        lambda: known, lambda all_of_it: all_of_it, known.group, known.figures, np.zeros(size, np.bool_)
    )


def _is_product(name: str) -> bool:
    return name in _PRODUCTS or compiled.is_product(name)


def _cost(formula: Formula | None, inputs: Inputs) -> Cost:
    try:
        return formula(inputs) if formula else Cost()
    except UnknownInputError:
        return Cost()


class _Arguments:
    """The recorded inputs of calls."""

    def __init__(self, rank_trace: RankTrace, calls: Calls) -> None:
        self.names, self.name = rank_trace.names, rank_trace.name[calls.rows]
        self.rows, self.recorded = calls.rows, recorded_inputs(rank_trace)
        self.element = _element_names(rank_trace, calls)

    def distinct(self, chosen: Int64) -> tuple[Int64, Int64]:
        """A number for the operator and inputs of each of these calls, and a call of each number."""
        passed = self.recorded.of_row[self.rows[chosen]]
        code = numbered(self.name[chosen], passed, self.element[chosen])
        examples = np.zeros(int(code.max(initial=-1)) + 1, np.int64)
        examples[code] = chosen
        return code, examples

    def inputs(self, call: int) -> Inputs:
        """Those of one call."""
        found = self.recorded.of(int(self.rows[call]))
        if self.element[call] >= 0 and found.types[:1] == ("TensorList",):
            found = replace(found, types=(_element_of(self.names[self.element[call]]), *found.types[1:]))
        return found


_ELEMENT = re.compile(r"Functor<\s*(double|float|c10::Half|c10::BFloat16)\b|OpaqueType<(\d+)u?>")
_OF_SIZE = {"1": "uint8", "2": "int16", "4": "int32", "8": "int64", "16": "complex128"}
_CTYPES = {"double": "float64", "float": "float32", "c10::Half": "float16", "c10::BFloat16": "bfloat16"}


@cache
def _element_of(kernel_name: str) -> str:
    """The type of the elements of a list of tensors, of which their kernel is an instance; "" if unknown."""
    found = _ELEMENT.search(kernel_name)
    if not found:
        return ""
    return _CTYPES[found[1]] if found[1] else _OF_SIZE.get(found[2], "")


def _element_names(rank_trace: RankTrace, calls: Calls) -> Int64:
    """For each call the name of a kernel that tells the type of the elements in its lists, -1 for none."""
    tells = np.array([bool(_element_of(name)) for name in rank_trace.names] or [False], np.bool_)
    name = rank_trace.name[calls.work].astype(np.int64)
    useful = np.flatnonzero(tells[name] & (calls.owner >= 0))
    found = np.full(len(calls.rows), -1, np.int64)
    found[calls.owner[useful]] = name[useful]
    return found


@inline
def figures_of(known: Known, call: int, sums: Float64) -> bool:
    """Write the columns `SUMS` of a call, unless all of them are 0: then the answer is False."""
    place, time = known.place[call], known.device_ns[call]
    if place < 0 and known.group[call] < 0 and time == 0:
        return False
    for column in range(len(sums)):
        sums[column] = known.inside[place, column] if place >= 0 else 0.0
    sums[_DEVICE_NS] = time
    if known.group[call] >= 0:
        _evaluate(known, call, time, sums)
    return True


@inline
def _evaluate(known: Known, call: int, time: int, sums: Float64) -> None:
    """The columns `SUMS`, all of them 0 but device_ns, of a call that a formula describes."""
    group = known.group[call]
    flops, moved, bounded = known.figures[group, 0], known.figures[group, 1], known.figures[group, 2]
    if flops == flops:  # no NaN
        sums[_FLOPS], sums[_COUNTED] = flops, 1
        if time:
            sums[_TIMED_FLOPS], sums[_FLOPS_NS] = flops, time
    if moved == moved:
        sums[_BYTES], sums[_SIZED] = moved, 1
        if time:
            sums[_TIMED_BYTES], sums[_BYTES_NS] = moved, time
    if sums[_COUNTED] and sums[_SIZED]:
        sums[_BOTH_FLOPS], sums[_BOTH_BYTES] = flops, moved
    sums[_COVERED_NS], sums[_BOUNDED] = time, bounded
    compute, memory = 0.0, 0.0
    if sums[_TIMED_FLOPS]:
        compute = sums[_TIMED_FLOPS] / known.speeds[known.unit[call]]
    if sums[_BYTES_NS]:
        memory = sums[_TIMED_BYTES] / known.bandwidth
    # that nothing is computed says nothing where it is not known what is moved
    if (sums[_TIMED_FLOPS] or sums[_BYTES_NS]) and compute == compute and memory == memory:
        sums[_COMPUTE_ROOF_NS], sums[_MEMORY_ROOF_NS] = compute, memory
        sums[_ROOF_NS], sums[_ROOFED_NS] = max(compute, memory), time


@kernel
def _find_around(parent: Int64, group: Int32, place: Int32) -> int:
    """Number the calls that have no figures, but calls with some inside them; callers come first."""
    for call in range(len(parent) - 1, -1, -1):
        caller = parent[call]
        if caller >= 0 and group[caller] < 0 and (group[call] >= 0 or place[call] >= 0):
            place[caller] = 0
    count = np.int32(0)
    for call in range(len(parent)):
        if place[call] >= 0:
            place[call] = count
            count += 1
    return int(count)


@kernel
def _from_inside(parent: Int64, known: Known) -> None:
    """Add the figures of calls to those of their callers without a formula; callers come first."""
    each = np.empty(known.inside.shape[1], np.float64)
    for call in range(len(parent) - 1, -1, -1):
        caller = parent[call]
        if caller < 0 or known.place[caller] < 0 or (known.group[call] < 0 and known.place[call] < 0):
            continue
        figures_of(known, call, each)
        for column in range(len(each)):
            known.inside[known.place[caller], column] += each[column]


@kernel
def _add_all(known: Known, calls: Int64, to: Int64, sums: Float64) -> None:
    """Add the figures of each of these calls to a row of sums."""
    each = np.empty(sums.shape[1], np.float64)
    for i in range(len(calls)):
        if figures_of(known, calls[i], each):
            for column in range(len(each)):
                sums[to[i], column] += each[column]


@kernel
def _mark_inside(parent: Int64, has_formula: Bool, inside: Bool) -> None:
    """Which calls are part of one with a formula; callers come first."""
    for call in range(len(parent)):
        caller = parent[call]
        inside[call] = caller >= 0 and (has_formula[caller] or inside[caller])
