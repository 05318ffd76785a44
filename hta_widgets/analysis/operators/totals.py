"""Calls summed over groups, of those that belong to a scope."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.calls.phases import PHASES, phases
from hta_widgets.analysis.operators.calls import Calls
from hta_widgets.analysis.operators.costs import SUMS, Costs, Known, figures_of
from hta_widgets.arrays import Bool, Float64, Int8, Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

_DENSE = 2_000_000  # cells of a table that is faster than sorting


class Totals:
    """One entry per group of calls, and one more, the last, for device work outside all calls.

    A call that another one of its group encloses adds nothing to totals, which hold its time already.

    Attributes:
        calls, host_self_ns, host_runtime_ns, host_total_ns: int64, of the calls that belong to the scope.
        kernels, device_self_ns, device_total_ns: int64, of the device work that belongs to the scope.
        phase_ns: int64[groups, phases] the device_self_ns by phase.
        costs: float64[groups, len(Costs.SUMS)] the sums of `Costs` over outermost calls.
        parent: int64 the group that calls each one most often, -1 where that is none.
        longest: int64 the device row's name that takes most of the device_self_ns, -1 for none.
    """

    def __init__(
        self, rank_trace: RankTrace, calls: Calls, costs: Costs, group: Int64, groups: int, scope: Scope
    ) -> None:
        # Streams and names choose among the device work; host calls have no stream.
        timed = Scope(ranks=scope.ranks, iterations=scope.iterations, window_ns=scope.window_ns)
        member = rank_trace.belong(calls.rows, timed)
        inside = np.flatnonzero(rank_trace.belong(calls.work, scope))
        work, owner = calls.work[inside], calls.owner[inside]
        size = groups + 1
        self.calls = np.bincount(group[member], minlength=size)
        self.host_self_ns, self.host_runtime_ns, self.host_total_ns = np.zeros((3, size), np.int64)
        self.costs = np.zeros((size, len(SUMS)))
        _sum_calls(
            calls.parent, group, member, rank_trace.dur[calls.rows], calls.self_ns, calls.runtime_ns,
            costs.known, self.host_self_ns, self.host_runtime_ns, self.host_total_ns, self.costs,
        )  # fmt: skip
        self.kernels, self.device_self_ns, self.device_total_ns = np.zeros((3, size), np.int64)
        self.phase_ns = np.zeros((size, len(PHASES)), np.int64)
        _sum_work(
            calls.parent, group, owner, rank_trace.dur[work], phases(rank_trace).of[work], groups,
            self.kernels, self.device_self_ns, self.device_total_ns, self.phase_ns,
        )  # fmt: skip
        own = np.where(owner >= 0, np.append(group, groups)[owner], groups)
        # by names in alphabetical order: of equals it is not the file's order that decides
        names = np.argsort(np.array(rank_trace.names, object))
        place = np.argsort(names)[rank_trace.name[work]]
        longest = heaviest(own, place, rank_trace.dur[work], size, len(names))
        self.longest = np.append(names, -1)[longest]
        caller = calls.parent[member]
        above = np.where(caller >= 0, np.append(group, -1)[caller], -1)
        self.parent = heaviest(group[member], above + 1, np.ones(len(above), np.int64), size, size + 1) - 1
        self.parent[self.calls == 0] = -1


def heaviest(group: Int64, value: Int64, weight: Int64, groups: int, values: int) -> Int64:
    """For each group the value with most weight, the least of equals; -1 for a group without weight."""
    if groups * values <= _DENSE:
        table = np.zeros(groups * values, np.int64)
        _add(table, group * values + value, weight)
        rows = table.reshape(groups, values)
        best = rows.argmax(axis=1)
        return np.where(rows[np.arange(groups), best] > 0, best, -1)
    found = np.full(groups, -1, np.int64)
    pairs, place = np.unique(group * values + value, return_inverse=True)
    total = np.zeros(len(pairs), np.int64)
    np.add.at(total, place, weight)
    order = np.lexsort((-pairs, total))
    order = order[total[order] > 0]
    found[pairs[order] // values] = pairs[order] % values
    return found


@kernel
def _add(table: Int64, at: Int64, weight: Int64) -> None:
    for i in range(len(at)):
        table[at[i]] += weight[i]


@kernel
def _sum_calls(
    parent: Int64, group: Int64, member: Bool, dur: Int64, own: Int64, runtime: Int64, costs: Known,
    host_self: Int64, host_runtime: Int64, host_total: Int64, sums: Float64,
) -> None:  # fmt: skip
    each = np.empty(sums.shape[1], np.float64)
    for call in range(len(parent)):
        if not member[call]:
            continue
        of = group[call]
        host_self[of] += own[call]
        host_runtime[of] += runtime[call]
        around = parent[call]
        while around >= 0 and not (group[around] == of and member[around]):
            around = parent[around]
        if around < 0:
            host_total[of] += dur[call]
            if figures_of(costs, call, each):
                for column in range(len(each)):
                    sums[of, column] += each[column]


@kernel
def _sum_work(
    parent: Int64, group: Int64, owner: Int64, dur: Int64, phase: Int8, outside: int,
    kernels: Int64, device_self: Int64, device_total: Int64, by_phase: Int64,
) -> None:  # fmt: skip
    seen = np.full(outside + 1, -1, np.int64)
    for i in range(len(owner)):
        call = owner[i]
        of = group[call] if call >= 0 else outside
        kernels[of] += 1
        device_self[of] += dur[i]
        by_phase[of, phase[i]] += dur[i]
        if call < 0:
            device_total[of] += dur[i]
        while call >= 0:
            of = group[call]
            if seen[of] != i:
                seen[of] = i
                device_total[of] += dur[i]
            call = parent[call]
