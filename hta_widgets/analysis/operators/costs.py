"""What the calls of a rank cost, evaluated once for each distinct operator and inputs."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.peaks import Peaks, peaks_of_rank
from hta_widgets.analysis.operators import compiled
from hta_widgets.analysis.operators.calls import Calls, module_calls, operator_calls
from hta_widgets.analysis.operators.cost import Cost, Formula
from hta_widgets.analysis.operators.formulas import BUILT_IN, RegisteredFormula, formula_of, registered
from hta_widgets.analysis.operators.inputs import Inputs, UnknownInputError
from hta_widgets.analysis.operators.recorded import RecordedInputs
from hta_widgets.analysis.operators.roofs import SIMT, Roofs, call_units, roofs_of
from hta_widgets.jit import kernel

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["SUMS", "Costs", "costs_under", "module_costs", "operator_costs"]

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

SUMS: Final = (
    "flops", "counted", "bytes", "sized", "timed_flops", "flops_ns", "timed_bytes", "bytes_ns", "both_flops",
    "both_bytes", "covered_ns", "device_ns", "bounded", "compute_roof_ns", "memory_roof_ns", "roof_ns",
    "roofed_ns",
)  # fmt: skip
"""The columns of `Costs.sums`.

counted, sized: calls with flops, with bytes. timed_flops, timed_bytes: those of calls with device work;
flops_ns, bytes_ns: its time. both_flops, both_bytes: those of calls with both. covered_ns: device work of
calls with a formula; device_ns: of all. bounded: calls whose figures are bounds. compute_roof_ns,
memory_roof_ns: time of the operations and of the traffic at the peaks; roof_ns: the longer one of each call;
roofed_ns: device work of calls whose roofs are known.
"""


# Only of these does it depend on the kernel which unit does the work.
_PRODUCTS = {name for family in ("matmul", "convolution", "attention") for name in BUILT_IN[family]}


class Costs:
    """Figures of calls that can be added up.

    A formula describes a call with all that it calls. A call without one costs what the calls in it cost.

    Attributes:
        sums: float64[rows, len(SUMS)], of the calls of which any of them is not 0.
        place: int32 row of each call in `sums`, -1 for none.
        has_formula: for each call whether a formula gave figures.
        named: for each call whether its operator has a formula at all.
    """

    def __init__(self, sums: Float64, place: Int32, has_formula: Bool, named: Bool) -> None:
        self.sums, self.place, self.has_formula, self.named = sums, place, has_formula, named

    def of(self, calls: Int64) -> Float64:
        """float64[len(calls), len(SUMS)]."""
        found, place = np.zeros((len(calls), len(SUMS)), np.float64), self.place[calls]
        found[place >= 0] = self.sums[place[place >= 0]]
        return found

    def column(self, name: str) -> Float64:
        """One of `SUMS`, for each call."""
        column = np.zeros(len(self.place), np.float64)
        column[self.place >= 0] = self.sums[:, SUMS.index(name)]
        return column


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
    has_formula = np.zeros(len(calls.rows), np.bool_)
    has_formula[chosen] = ~(np.isnan(figures[:, 0]) & np.isnan(figures[:, 1]))[group]
    speed = np.full(len(chosen), np.nan)
    if roofs is not None:
        products = np.array([*map(_is_product, rank_trace.names)] or [False], np.bool_)
        unit = call_units(rank_trace)[chosen]
        speed = roofs.flops_per_ns(np.where((unit < 0) & ~products[name[chosen]], SIMT, unit))
    place = np.full(len(calls.rows), -1, np.int32)
    sums = np.empty((_find_some(calls.parent, has_formula, calls.device_ns, place), len(SUMS)))
    _evaluate(
        chosen, group, figures, calls.device_ns, speed, roofs.memory_gb_s if roofs else np.nan, place, sums
    )
    _from_inside(calls.parent, has_formula, place, sums)
    sums[:, SUMS.index("device_ns")] = calls.device_ns[place >= 0]
    return Costs(sums, place, has_formula, named)


@memoize_per_rank(last=2)
def _module_costs(rank_trace: RankTrace, own: tuple[RegisteredFormula, ...], roofs: Roofs | None) -> Costs:
    calls, module = module_calls(rank_trace)
    operators, costs = operator_calls(rank_trace), _operator_costs(rank_trace, own, roofs)
    inside = np.zeros(len(operators.rows), np.bool_)
    _mark_inside(operators.parent, costs.has_formula, inside)
    counted = np.flatnonzero(costs.has_formula & ~inside & (module >= 0))
    values = np.zeros((len(calls.rows), len(SUMS)))
    np.add.at(values, module[counted], costs.of(counted))
    nothing, place = np.zeros(len(calls.rows), np.bool_), np.arange(len(calls.rows), dtype=np.int32)
    _from_inside(calls.parent, nothing, place, values)
    values[:, SUMS.index("device_ns")] = calls.device_ns
    return Costs(values, place, nothing, nothing)


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
        self.rows, self.recorded = calls.rows, RecordedInputs(rank_trace)
        self.codes = [codes[calls.rows] for codes in self.recorded.codes]
        self.element = _element_names(rank_trace, calls)

    def distinct(self, chosen: Int64) -> tuple[Int64, Int64]:
        """A number for the operator and inputs of each of these calls, and a call of each number."""
        code = self.name[chosen].astype(np.int64)
        arguments: list[npt.NDArray[np.integer]] = [*self.codes, self.element]
        for argument in arguments:
            of = argument[chosen].astype(np.int64) + 1
            code = pd.factorize(code * (int(of.max(initial=0)) + 1) + of)[0].astype(np.int64)
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


@kernel
def _evaluate(
    chosen: Int64, group: Int64, figures: Float64, device_ns: Int64, speed: Float64, bandwidth: float,
    place: Int32, values: Float64,
) -> None:  # fmt: skip
    """The columns `SUMS` of the calls chosen, from (flops, bytes, bounded) of their groups, NaN for unknown;
    0 for others.

    speed: operations per ns of the unit of each call; bandwidth: bytes per ns.
    """
    values[:] = 0.0
    for i in range(len(chosen)):
        call = chosen[i]
        if place[call] < 0:
            continue
        flops, moved, bounded = figures[group[i], 0], figures[group[i], 1], figures[group[i], 2]
        time = device_ns[call]
        sums = values[place[call]]
        if flops == flops:  # no NaN
            sums[0], sums[1] = flops, 1
            if time:
                sums[4], sums[5] = flops, time
        if moved == moved:
            sums[2], sums[3] = moved, 1
            if time:
                sums[6], sums[7] = moved, time
        if sums[1] and sums[3]:
            sums[8], sums[9] = flops, moved
        if sums[1] or sums[3]:
            sums[10], sums[12] = time, bounded
        compute, memory = 0.0, 0.0
        if sums[4]:
            compute = sums[4] / speed[i]
        if sums[7]:
            memory = sums[6] / bandwidth
        if (sums[5] or sums[7]) and compute == compute and memory == memory:
            sums[13], sums[14], sums[15], sums[16] = compute, memory, max(compute, memory), time


@kernel
def _find_some(parent: Int64, has_formula: Bool, device_ns: Int64, place: Int32) -> int:
    """Number the calls that have figures or device work, or that call such; callers come first."""
    for call in range(len(parent) - 1, -1, -1):
        if has_formula[call] or device_ns[call]:
            place[call] = 0
        if place[call] >= 0 and parent[call] >= 0:
            place[parent[call]] = 0
    count = 0
    for call in range(len(parent)):
        if place[call] >= 0:
            place[call] = count
            count += 1
    return count


@kernel
def _from_inside(parent: Int64, has_formula: Bool, place: Int32, values: Float64) -> None:
    """Add the figures of calls to those of their callers without a formula; callers come first."""
    for call in range(len(parent) - 1, -1, -1):
        if place[call] < 0:
            continue
        caller = parent[call]
        if caller >= 0 and not has_formula[caller]:
            for column in range(values.shape[1]):
                values[place[caller], column] += values[place[call], column]


@kernel
def _mark_inside(parent: Int64, has_formula: Bool, inside: Bool) -> None:
    """Which calls are part of one with a formula; callers come first."""
    for call in range(len(parent)):
        caller = parent[call]
        inside[call] = caller >= 0 and (has_formula[caller] or inside[caller])
