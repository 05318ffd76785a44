"""Comparing by what calls the work: operators, modules, and the phases of training.

Device work belongs to the call that launched it; a host call's time is its own. The innermost operator (or
module) around gets it as its exclusive time, so that no nanosecond counts twice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.call_tree import CallTree, owners
from hta_widgets.analysis.diff.entries import Entries, Line
from hta_widgets.analysis.stacks import stacks
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.jit import kernel
from hta_widgets.trace.schema import NULL

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace
    from hta_widgets.trace.scope import Scope

__all__ = ["NOWHERE", "module_lines", "operator_lines", "phase_lines"]

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

NOWHERE = {"op": "(no operator)", "module": "(no module)"}
"""The lines of work that no operator, or module, encloses."""

_MODULE = "nn.Module: "
_PHASES = ("forward", "backward", "optimizer", "other")
_OPTIMIZER = re.compile(r"^Optimizer\.")
_BACKWARD = re.compile(r"^autograd::engine::evaluate_function|backward ##$")
_FORWARD = re.compile(rf"^{_MODULE}|^## forward ##$|^\w*(DataParallel|FSDP\w*)\.forward$")


def operator_lines(one: RankTrace, scope: Scope, time: str) -> Entries:
    """By name of operator. Count: its calls."""
    chosen = one.event_class == EventClass.HOST_OP
    return _by_call(one, scope, time, chosen, one.name.astype(np.int64), list(one.names), "op")


def module_lines(one: RankTrace, scope: Scope, time: str) -> Entries:
    """By path of `nn.Module` instances, from the outermost. Count: their calls.

    Raises:
        MissingDataError: no module was recorded.
    """
    is_module = np.array([name.startswith(_MODULE) for name in one.names], np.bool_)
    chosen = is_module[one.name] & (one.event_class == EventClass.PYTHON)
    if not chosen.any():
        raise MissingDataError("modules", "Record with torch.profiler.profile(with_stack=True).")
    above = _nearest(stacks(one), chosen)
    number, paths = _paths(one, np.flatnonzero(chosen), above)
    return _by_call(one, scope, time, chosen, number, paths, "module")


def phase_lines(one: RankTrace, scope: Scope, time: str) -> Entries:
    """By phase of a training step. Count: pieces of device work, or calls.

    The outermost of these calls decides: `Optimizer.*`; `autograd::engine::evaluate_function*` or an
    annotation that ends in `backward ##`; an `nn.Module`'s or data-parallel wrapper's forward, or an operator
    that a backward operator belongs to (by sequence number). Work in none of them is "other".
    """
    tree = stacks(one)
    phase_of = np.array([_phase(name) for name in one.names] or [-1], np.int64)[one.name]
    phase_of[(phase_of < 0) & np.isin(np.arange(one.n), one.forward[one.forward >= 0])] = 0
    owner = owners(tree, (phase_of >= 0) & (tree.depth >= 0) & ~one.is_device)
    phase = np.where(owner >= 0, phase_of[owner], len(_PHASES) - 1)
    if time == "device":
        rows = _work(one, scope)
        spent = one.dur[rows]
    else:
        rows = _calls(one, tree)
        spent = tree.self_ns[rows]
    lines = [Line("phase", name) for name in _PHASES]
    return Entries(lines, phase[rows], one.iteration[rows], np.ones_like(spent), spent, spent)


def _phase(name: str) -> int:
    for number, form in enumerate((_FORWARD, _BACKWARD, _OPTIMIZER)):
        if form.search(name):
            return number
    return -1


def _by_call(
    one: RankTrace, scope: Scope, time: str, chosen: Bool, number: Int64, names: list[str], by: str
) -> Entries:
    """Entries of the chosen calls, `number` saying for each of them which of the names it has."""
    tree = stacks(one)
    calls = np.flatnonzero(chosen & (tree.depth >= 0))
    if time == "device":
        leaves, inclusive = _work(one, scope), tree.kernel_dur_sum_ns[calls]
        spent = one.dur[leaves]
        if scope.streams or scope.names:
            inclusive = _inclusive(tree, leaves, spent)[calls]
    else:
        leaves, inclusive = _calls(one, tree), one.dur[calls]
        spent = tree.self_ns[leaves]
    around = np.where(chosen, np.arange(one.n), _nearest(tree, chosen))[leaves]
    nowhere = len(names)
    code = np.concatenate([number[calls], np.where(around >= 0, number[around], nowhere)])
    occurs = np.zeros(nowhere + 1, np.bool_)
    occurs[code] = True
    line = (np.cumsum(occurs) - 1)[code]
    texts = [*names, NOWHERE[by]]
    none, one_each = np.zeros(len(leaves), np.int64), np.ones(len(calls), np.int64)
    return Entries(
        [Line(by, texts[place]) for place in np.flatnonzero(occurs).tolist()],
        line,
        np.concatenate([one.iteration[calls], one.iteration[leaves]]),
        np.concatenate([one_each, none]),
        np.concatenate([inclusive, np.where(around < 0, spent, 0)]),
        np.concatenate([np.zeros(len(calls), np.int64), spent]),
    )


def _work(one: RankTrace, scope: Scope) -> Int64:
    rows = np.flatnonzero(one.is_device & (one.event_class != EventClass.SYNC))
    return rows[one.belong(rows, scope)]


def _calls(one: RankTrace, tree: CallTree) -> Int64:
    return np.flatnonzero((tree.depth >= 0) & ~one.is_device & (one.stream == NULL))


def _nearest(tree: CallTree, chosen: Bool) -> Int32:
    """int32 innermost chosen call above each row, -1 for none."""
    found = np.full(len(chosen), -1, np.int32)
    _inherit(tree.order, tree.parent, chosen, found)
    return found


@kernel
def _inherit(order: Int64, parent: Int32, chosen: Bool, found: Int32) -> None:
    for i in range(len(order)):
        row = order[i]
        caller = parent[row]
        if caller >= 0:
            found[row] = caller if chosen[caller] else found[caller]


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


def _paths(one: RankTrace, rows: Int64, above: Int32) -> tuple[Int64, list[str]]:
    """int64 path of each module call (0 elsewhere), and the paths as texts, level by level from the top."""
    number, paths = np.zeros(one.n, np.int64), list[str]()
    left, known = rows, np.full(one.n, -1, np.int64)
    while len(left):
        outer = above[left]
        ready = (outer < 0) | (known[outer] >= 0)
        level, outer = left[ready], np.where(outer[ready] >= 0, known[outer[ready]], -1)
        pair = (outer + 1) * len(one.names) + one.name[level]
        distinct, place = np.unique(pair, return_inverse=True)
        first = len(paths)
        for code in distinct.tolist():
            caller, own = divmod(code, len(one.names))
            name = one.names[own].removeprefix(_MODULE)
            paths.append(f"{paths[caller - 1]} / {name}" if caller else name)
        known[level] = first + place
        left = left[~ready]
    number[rows] = known[rows]
    return number, paths
