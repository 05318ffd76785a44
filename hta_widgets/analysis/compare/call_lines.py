"""Comparison lines by caller: operators, call paths, modules, and the phases of training.

Device work belongs to the call that launched it; a host call's time is its own. It counts as exclusive time
of the innermost operator (or module) around it, so that no nanosecond counts twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hta_widgets.analysis.calls.phases import PHASES, phases
from hta_widgets.analysis.calls.stacks import stacks
from hta_widgets.analysis.calls.tree import CallTree
from hta_widgets.analysis.compare.entries import Entries, Line, Named
from hta_widgets.analysis.compare.paths import Paths, call_paths, module_paths
from hta_widgets.analysis.serving.roles import replayed_roles
from hta_widgets.arrays import Bool, Int32, Int64
from hta_widgets.errors import MissingDataError
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.reader.schema import NULL

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace
    from hta_widgets.trace.scope import Scope

NOWHERE = {"op": "(no operator)", "call_path": "(no operator)", "module": "(no module)"}
"""The lines of work that no operator, or module, encloses."""


def operator_lines(rank_trace: RankTrace, scope: Scope, time: str) -> Entries:
    """By name of operator; what a server's graphs replay by its part of the model. Count: its calls."""
    tree = stacks(rank_trace)
    chosen = (rank_trace.event_class == EventClass.HOST_OP) & (tree.depth >= 0)
    around = np.where(chosen, rank_trace.name, -1).astype(np.int32)
    _inherit(tree.order, tree.parent, around)
    role, labels = replayed_roles(rank_trace)
    if labels:
        around = np.where((around < 0) & (role >= 0), len(rank_trace.names) + role, around)
    lines = [Line("op", name) for name in (*rank_trace.names, *labels)]
    return _by_call(rank_trace, scope, time, chosen, around, lines, "op")


def path_lines(rank_trace: RankTrace, scope: Scope, time: str) -> Entries:
    """By path of operators, from the outermost, with the `nn.Module` instances around. Count: their calls."""
    return _by_path(rank_trace, scope, time, call_paths(rank_trace), "call_path")


def module_lines(rank_trace: RankTrace, scope: Scope, time: str) -> Entries:
    """By path of `nn.Module` instances, from the outermost. Count: their calls.

    Raises:
        MissingDataError: no module was recorded.
    """
    paths = module_paths(rank_trace)
    if not paths.texts:
        raise MissingDataError("modules", "Record with torch.profiler.profile(with_stack=True).")
    return _by_path(rank_trace, scope, time, paths, "module")


def phase_lines(rank_trace: RankTrace, scope: Scope, time: str) -> Entries:
    """By phase of a training step, as `Phases` tells them. Count: pieces of device work, or calls."""
    found, tree = phases(rank_trace), stacks(rank_trace)
    of = found.of.astype(np.int64)
    work = _work(rank_trace, scope)
    if time == "device":
        rows, spent = work, rank_trace.dur[work]
    else:
        rows = _calls(rank_trace, tree)
        spent = tree.self_ns[rows]
    lines = [Line("phase", name) for name in PHASES]
    return Entries(
        lines, of[rows], rank_trace.iteration[rows], np.ones_like(spent), spent, spent,
        _named(rank_trace, work, of[work]),
        _named(rank_trace, found.outermost, of[found.outermost]),
    )  # fmt: skip


def _by_path(rank_trace: RankTrace, scope: Scope, time: str, paths: Paths, by: str) -> Entries:
    lines = [Line(by, text, leaf) for text, leaf in zip(paths.texts, paths.leaves, strict=True)]
    return _by_call(rank_trace, scope, time, paths.chosen, paths.around, lines, by, paths.begin)


def _by_call(
    rank_trace: RankTrace, scope: Scope, time: str, chosen: Bool, around: Int32, lines: list[Line], by: str,
    begin: Int64 | None = None,
) -> Entries:  # fmt: skip
    """Entries of the chosen calls; `around`: the line of the innermost of them around each row."""
    tree = stacks(rank_trace)
    calls, work = np.flatnonzero(chosen), _work(rank_trace, scope)
    if time == "device":
        leaves, inclusive = work, tree.kernel_dur_sum_ns[calls]
        spent = rank_trace.dur[leaves]
        if scope.streams or scope.names:
            inclusive = _inclusive(tree, leaves, spent)[calls]
    else:
        leaves, inclusive = _calls(rank_trace, tree), rank_trace.dur[calls]
        spent = tree.self_ns[leaves]
    nowhere = len(lines)
    code = np.concatenate([around[calls], around[leaves], around[work]]).astype(np.int64)
    outside = code[len(calls) : len(calls) + len(leaves)] < 0
    code[code < 0] = nowhere
    occurs = np.zeros(nowhere + 1, np.bool_)
    occurs[code] = True
    line = (np.cumsum(occurs) - 1)[code]
    of_work = line[len(calls) + len(leaves) :]
    texts = [*lines, Line(by, NOWHERE[by])]
    none, one_each = np.zeros(len(leaves), np.int64), np.ones(len(calls), np.int64)
    return Entries(
        [texts[place] for place in np.flatnonzero(occurs).tolist()],
        line[: len(calls) + len(leaves)],
        np.concatenate([rank_trace.iteration[calls], rank_trace.iteration[leaves]]),
        np.concatenate([one_each, none]),
        np.concatenate([inclusive, np.where(outside, spent, 0)]),
        np.concatenate([np.zeros(len(calls), np.int64), spent]),
        _named(rank_trace, work, of_work),
        begin=None if begin is None else np.append(begin, NULL)[occurs],
    )


def _named(rank_trace: RankTrace, rows: Int64, line: Int64) -> Named:
    return Named(
        line, rank_trace.iteration[rows], rank_trace.name[rows], rank_trace.dur[rows], rank_trace.names
    )


def _work(rank_trace: RankTrace, scope: Scope) -> Int64:
    rows = np.flatnonzero(rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC))
    return rows[rank_trace.belong(rows, scope)]


def _calls(rank_trace: RankTrace, tree: CallTree) -> Int64:
    return np.flatnonzero((tree.depth >= 0) & rank_trace.on_host)


@kernel
def _inherit(order: Int64, parent: Int32, around: Int32) -> None:
    for i in range(len(order)):
        row = order[i]
        if around[row] < 0 and parent[row] >= 0:
            around[row] = around[parent[row]]


def _inclusive(tree: CallTree, leaves: Int64, spent: Int64) -> Int64:
    total = np.zeros(len(tree.parent), np.int64)
    total[leaves] = spent
    _add_up(tree.order, tree.parent, total)
    return total


@kernel
def _add_up(order: Int64, parent: Int32, total: Int64) -> None:
    for i in range(len(order) - 1, -1, -1):
        row = order[i]
        if parent[row] >= 0:
            total[parent[row]] += total[row]
