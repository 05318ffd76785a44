"""Comparing by what calls the work: operators, call paths, modules, and the phases of training.

Device work belongs to the call that launched it; a host call's time is its own. The innermost operator (or
module) around gets it as its exclusive time, so that no nanosecond counts twice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.calls.modules import PREFIX
from hta_widgets.analysis.calls.stacks import stacks
from hta_widgets.analysis.calls.tree import CallTree, owners
from hta_widgets.analysis.diff.entries import Entries, Line, Named
from hta_widgets.analysis.diff.paths import Paths, call_paths, module_paths
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.jit import kernel
from hta_widgets.trace.schema import NULL

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace
    from hta_widgets.trace.scope import Scope

__all__ = ["NOWHERE", "module_lines", "operator_lines", "path_lines", "phase_lines"]

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

NOWHERE = {"op": "(no operator)", "call_path": "(no operator)", "module": "(no module)"}
"""The lines of work that no operator, or module, encloses."""

_PHASES = ("forward", "backward", "optimizer", "other")
_OPTIMIZER = re.compile(r"^Optimizer\.")
_BACKWARD = re.compile(r"^autograd::engine::evaluate_function|backward ##$")
_FORWARD = re.compile(rf"^{PREFIX}|^## forward ##$|^\w*(DataParallel|FSDP\w*)\.forward$")


def operator_lines(one: RankTrace, scope: Scope, time: str) -> Entries:
    """By name of operator. Count: its calls."""
    tree = stacks(one)
    chosen = (one.event_class == EventClass.HOST_OP) & (tree.depth >= 0)
    around = np.where(chosen, one.name, -1).astype(np.int32)
    _inherit(tree.order, tree.parent, around)
    lines = [Line("op", name) for name in one.names]
    return _by_call(one, scope, time, chosen, around, lines, "op")


def path_lines(one: RankTrace, scope: Scope, time: str) -> Entries:
    """By path of operators, from the outermost, with the `nn.Module` instances around. Count: their calls."""
    return _by_path(one, scope, time, call_paths(one), "call_path")


def module_lines(one: RankTrace, scope: Scope, time: str) -> Entries:
    """By path of `nn.Module` instances, from the outermost. Count: their calls.

    Raises:
        MissingDataError: no module was recorded.
    """
    paths = module_paths(one)
    if not paths.texts:
        raise MissingDataError("modules", "Record with torch.profiler.profile(with_stack=True).")
    return _by_path(one, scope, time, paths, "module")


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
    work = _work(one, scope)
    if time == "device":
        rows, spent = work, one.dur[work]
    else:
        rows = _calls(one, tree)
        spent = tree.self_ns[rows]
    outermost = np.flatnonzero((owner >= 0) & (owner == np.arange(one.n)))
    lines = [Line("phase", name) for name in _PHASES]
    return Entries(
        lines, phase[rows], one.iteration[rows], np.ones_like(spent), spent, spent,
        _named(one, work, phase[work]), _named(one, outermost, phase[outermost]),
    )  # fmt: skip


def _phase(name: str) -> int:
    for number, form in enumerate((_FORWARD, _BACKWARD, _OPTIMIZER)):
        if form.search(name):
            return number
    return -1


def _by_path(one: RankTrace, scope: Scope, time: str, paths: Paths, by: str) -> Entries:
    lines = [Line(by, text, leaf) for text, leaf in zip(paths.texts, paths.leaves, strict=True)]
    return _by_call(one, scope, time, paths.chosen, paths.around, lines, by, paths.begin)


def _by_call(
    one: RankTrace, scope: Scope, time: str, chosen: Bool, around: Int32, lines: list[Line], by: str,
    begin: Int64 | None = None,
) -> Entries:  # fmt: skip
    """Entries of the chosen calls; `around`: the line of the innermost of them around each row."""
    tree = stacks(one)
    calls, work = np.flatnonzero(chosen), _work(one, scope)
    if time == "device":
        leaves, inclusive = work, tree.kernel_dur_sum_ns[calls]
        spent = one.dur[leaves]
        if scope.streams or scope.names:
            inclusive = _inclusive(tree, leaves, spent)[calls]
    else:
        leaves, inclusive = _calls(one, tree), one.dur[calls]
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
        np.concatenate([one.iteration[calls], one.iteration[leaves]]),
        np.concatenate([one_each, none]),
        np.concatenate([inclusive, np.where(outside, spent, 0)]),
        np.concatenate([np.zeros(len(calls), np.int64), spent]),
        _named(one, work, of_work),
        begin=None if begin is None else np.append(begin, NULL)[occurs],
    )


def _named(one: RankTrace, rows: Int64, line: Int64) -> Named:
    return Named(line, one.iteration[rows], one.name[rows], one.dur[rows], one.names)


def _work(one: RankTrace, scope: Scope) -> Int64:
    rows = np.flatnonzero(one.is_device & (one.event_class != EventClass.SYNC))
    return rows[one.belong(rows, scope)]


def _calls(one: RankTrace, tree: CallTree) -> Int64:
    return np.flatnonzero((tree.depth >= 0) & ~one.is_device & (one.stream == NULL))


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
