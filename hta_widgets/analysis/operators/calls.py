"""The calls of some kind on a rank, nested, with their time and the device work launched directly in them."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.calls.stacks import PREFIX, stacks
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.arrays import Bool, Int32, Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace


class Calls:
    """Some of a rank's host calls, callers before what they call, and the rank's device work.

    Attributes:
        rows: int64 row of each call.
        parent: int64 the chosen call around each one on its thread, -1 for none.
        around: int32[rows of the rank] the innermost chosen call around each row, itself included; that of
            its launch for device work; -1 for none.
        self_ns: int64 time of each call in which no chosen call inside it was open.
        runtime_ns: int64 time of the runtime calls (launches, copies, waits) made by each call itself.
        work: int64 rows of the device work; ``owner``: the call that launched each, -1 for none.
        device_ns: int64 device work launched by each call and those inside it.
    """

    def __init__(self, rank_trace: RankTrace, chosen: Bool, owner: Int64 | None = None) -> None:
        tree = stacks(rank_trace)
        chosen = chosen & (tree.depth >= 0) & ~rank_trace.is_device
        order = tree.order
        self.rows: Int64 = order[np.flatnonzero(chosen[order])]
        number = np.full(rank_trace.n, -1, np.int32)
        number[self.rows] = np.arange(len(self.rows), dtype=np.int32)
        self.around = np.full(rank_trace.n, -1, np.int32)
        above = np.full(len(self.rows), -1, np.int64)
        self.runtime_ns = np.zeros(len(self.rows), np.int64)
        is_call = rank_trace.event_class == EventClass.RUNTIME
        caused = rank_trace.is_device
        if rank_trace.table.has("queued_by"):
            caused = caused | (rank_trace.queued_by >= 0)
        _enclose(
            order, tree.parent, rank_trace.thread, caused, is_call, rank_trace.dur,
            number, self.around, above, self.runtime_ns,
        )  # fmt: skip
        self.parent = above
        self.self_ns: Int64 = rank_trace.dur[self.rows]
        _leave_inner(
            rank_trace.by_start, number, rank_trace.start, rank_trace.end, above,
            rank_trace.start[self.rows], self.self_ns,
        )  # fmt: skip
        self.work: Int64 = np.flatnonzero(rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC))
        self.owner: Int64 = self.around[self.work].astype(np.int64) if owner is None else owner
        self.device_ns = np.zeros(len(self.rows), np.int64)
        _add_up(self.parent, self.owner, rank_trace.dur[self.work], self.device_ns)


@memoize_per_rank()
def operator_calls(rank_trace: RankTrace) -> Calls:
    """The operators of a rank.

    An operator that is all that a caller of its name does is part of that: one overload called another.
    `key_averages` leaves it out as well.
    """
    tree = stacks(rank_trace)
    chosen = rank_trace.event_class == EventClass.HOST_OP
    again = np.zeros(rank_trace.n, np.bool_)
    is_call = rank_trace.event_class == EventClass.RUNTIME
    _find_overloads(
        tree.order, tree.parent, rank_trace.thread, rank_trace.name, chosen, is_call,
        np.full(rank_trace.n, -1, np.int32), np.zeros(rank_trace.n, np.int32), again,
    )  # fmt: skip
    return Calls(rank_trace, chosen & ~again)


def launched_inputs(rank_trace: RankTrace, work: Int64) -> Int64:
    """For rows of device work the code of the input shapes of the operator that launched it, -1 for none."""
    if not rank_trace.has_argument("input_dims"):
        return np.full(len(work), -1, np.int64)
    calls = operator_calls(rank_trace)
    shapes = np.append(rank_trace.argument_codes("input_dims")[calls.rows], -1)
    of_row = np.full(rank_trace.n, -1, np.int64)
    of_row[calls.work] = shapes[calls.owner]
    return of_row[work]


@memoize_per_rank()
def module_calls(rank_trace: RankTrace) -> tuple[Calls, Int64]:
    """The calls of `nn.Module`s, and the one that each operator (of `operator_calls`) works for.

    An operator works for the innermost module open around it. Backward passes run outside modules: what
    autograd runs works for the module of the forward operator that it differentiates (the same sequence
    number), and so does what that calls. -1: for none.
    """
    calls = Calls(rank_trace, is_module(rank_trace))
    operators = operator_calls(rank_trace)
    of = calls.around[operators.rows].astype(np.int64)
    forward = rank_trace.forward[operators.rows]
    through = np.where(forward >= 0, calls.around[forward], -1)
    of = np.where(of >= 0, of, through)
    _inherit(operators.parent, of)
    owner = np.where(operators.owner >= 0, of[operators.owner] if len(of) else -1, calls.owner)
    return Calls(rank_trace, is_module(rank_trace), owner), of


@memoize_per_rank()
def module_texts(rank_trace: RankTrace) -> list[str]:
    """Each call of a module (of `module_calls`) with those around it: "Qwen3Model_0.Qwen3DecoderLayer_3"."""
    calls = module_calls(rank_trace)[0]
    found: list[str] = []
    for row, parent in zip(calls.rows.tolist(), calls.parent.tolist(), strict=True):  # callers come first
        name = rank_trace.names[rank_trace.name[row]].removeprefix(PREFIX)
        found.append(f"{found[parent]}.{name}" if parent >= 0 else name)
    return found


def is_module(rank_trace: RankTrace) -> Bool:
    """The rows that are frames of an `nn.Module`'s call."""
    named = np.array([name.startswith(PREFIX) for name in rank_trace.names], np.bool_)
    return named[rank_trace.name] & (rank_trace.event_class == EventClass.PYTHON)


@kernel
def _find_overloads(
    order: Int64, parent: Int32, thread: Int64, name: Int32, chosen: Bool, is_call: Bool,
    around: Int32, inside: Int32, again: Bool,
) -> None:  # fmt: skip
    """Mark what has a caller of its own name in which no other operator and no call of the runtime ran.

    `around` and `inside`, -1 and 0 for each row, are for the kernel's own use.
    """
    for i in range(len(order)):
        row = order[i]
        caller = parent[row]
        if caller >= 0 and thread[caller] == thread[row]:
            around[row] = caller if chosen[caller] else around[caller]
        if around[row] >= 0 and (chosen[row] or is_call[row]):
            inside[around[row]] += 1
    for i in range(len(order)):
        row = order[i]
        outer = around[row]
        again[row] = chosen[row] and outer >= 0 and name[outer] == name[row] and inside[outer] == 1


@kernel
def _enclose(
    order: Int64, parent: Int32, thread: Int64, caused: Bool, is_call: Bool, dur: Int64,
    number: Int32, around: Int32, above: Int64, runtime: Int64,
) -> None:  # fmt: skip
    in_call = np.zeros(len(parent), np.bool_)
    for i in range(len(order)):
        row = order[i]
        caller = parent[row]
        outer = np.int32(-1)
        if caller >= 0 and (caused[row] or thread[caller] == thread[row]):
            outer = around[caller]
            in_call[row] = is_call[caller] or (in_call[caller] and number[caller] < 0)
        around[row] = outer
        if number[row] >= 0:
            above[number[row]] = outer
            around[row] = number[row]
        elif is_call[row] and not in_call[row] and outer >= 0:
            runtime[outer] += dur[row]


@kernel
def _leave_inner(
    by_start: Int64, number: Int32, start: Int64, end: Int64, parent: Int64, covered: Int64, own: Int64
) -> None:
    """Subtract the time of direct callees, what overlaps once.

    `number`: of each row's call, -1 for none. `covered`: when each call starts.
    """
    for i in range(len(by_start)):
        row = by_start[i]
        if number[row] < 0:
            continue
        caller = parent[number[row]]
        if caller >= 0 and end[row] > covered[caller]:
            own[caller] -= end[row] - max(start[row], covered[caller])
            covered[caller] = end[row]


@kernel
def _add_up(parent: Int64, owner: Int64, dur: Int64, total: Int64) -> None:
    for i in range(len(owner)):
        if owner[i] >= 0:
            total[owner[i]] += dur[i]
    for call in range(len(parent) - 1, -1, -1):
        if parent[call] >= 0:
            total[parent[call]] += total[call]


@kernel
def _inherit(parent: Int64, of: Int64) -> None:
    for call in range(len(parent)):
        if of[call] < 0 and parent[call] >= 0:
            of[call] = of[parent[call]]
