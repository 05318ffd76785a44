"""Call trees from times: the callers on each thread, and the kernels launched below each call.

Works on plain columns, both of ranks (`stacks`) and of HTA-shaped frames. Rows refer to their caller by
position; a kernel's caller is the call that launched it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hta_widgets.jit import kernel
from hta_widgets.trace import links
from hta_widgets.trace.ordering import grouped
from hta_widgets.trace.reader.schema import NULL

__all__ = ["CallTree", "adopt_backward", "measure", "owners", "uncovered"]

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

# What PyTorch writes around a training step, and the annotation that training loops put around backward().
_STEP, _BACKWARD = "ProfilerStep", "## backward ##"
_AUTOGRAD = "autograd::"


@dataclass(frozen=True, eq=False)
class CallTree:
    """A forest of calls; all arrays have one entry per row of the columns it was made from.

    Attributes:
        parent: int32 caller of the row, for a kernel its launch; -1 at the top and for rows outside.
        depth: int32, 0 at the top, one more per caller; -1 for rows outside the forest.
        height: int32, 0 for a kernel, at least 1 for a call, one more than its highest child; -1 outside.
        root: int32 topmost caller of the row (itself at the top); -1 outside.
        kernels: int64 number of kernels launched by the row and all that it called; 1 for a kernel.
        kernel_dur_sum_ns: int64 sum of their durations.
        first_kernel_start_ns, last_kernel_end_ns: int64, NULL without kernels.
        self_ns: int64 time of a call in which no call that it made was open; 0 for kernels and outside.
        order: int64 rows of the forest by depth, then start: callers come before what they call.
    """

    parent: Int32
    depth: Int32
    height: Int32
    root: Int32
    kernels: Int64
    kernel_dur_sum_ns: Int64
    first_kernel_start_ns: Int64
    last_kernel_end_ns: Int64
    self_ns: Int64
    order: Int64

    @cached_property
    def kernel_span_ns(self) -> Int64:
        """int64 time from the first kernel's start to the last one's end, 0 without kernels."""
        return np.where(self.kernels > 0, self.last_kernel_end_ns - self.first_kernel_start_ns, 0)


def adopt_backward(
    parent: Int32, start: Int64, end: Int64, lane: Int64, name: Int32, names: Sequence[str]
) -> Int32:
    """Callers after attaching the backward threads below the step that they belong to.

    Autograd runs on threads of its own, where no step is annotated. The top rows of such a thread (one with
    calls of `autograd::` and without steps) get as caller the innermost `## backward ##` annotation or
    `ProfilerStep` of another thread that contains them in time; those that none contains stay at the top.
    """
    hosts = np.flatnonzero(_named(names, (_STEP, _BACKWARD), prefix=True)[name] & (lane >= 0))
    if not len(hosts):
        return parent
    autograd = _named(names, (_AUTOGRAD,), prefix=False)[name] & (lane >= 0)
    threads = np.setdiff1d(lane[autograd], lane[hosts])
    guests = np.flatnonzero((parent < 0) & np.isin(lane, threads))
    if not len(guests):
        return parent
    hosts = hosts[np.lexsort((hosts, -end[hosts], start[hosts]))]
    around = links.nesting(
        start[hosts], end[hosts], np.zeros(len(hosts), np.int64), np.arange(len(hosts), dtype=np.int64)
    )[0]
    at = np.searchsorted(start[hosts], start[guests], side="right") - 1
    while (outside := (at >= 0) & (end[hosts[at]] < end[guests])).any():
        at[outside] = around[at[outside]]
    adopted = parent.copy()
    adopted[guests[at >= 0]] = hosts[at[at >= 0]]
    return adopted


def _named(names: Sequence[str], words: tuple[str, ...], prefix: bool) -> Bool:
    if prefix:
        return np.array([text.startswith(words) for text in names], np.bool_)
    return np.array([any(word in text for word in words) for text in names], np.bool_)


def measure(start: Int64, end: Int64, lane: Int64, parent: Int32, is_kernel: Bool) -> CallTree:
    """Depth, height and kernels of every row of a forest.

    Args:
        start, end: ns.
        lane: thread of each call, negative for rows that are no calls.
        parent: caller of each call and launch of each kernel, -1 for none; kernels without a launch and rows
            that are neither call nor kernel lie outside.
        is_kernel: the kernels.
    """
    n = len(start)
    inside = (lane >= 0) | (is_kernel & (parent >= 0))
    depth = np.full(n, -1, np.int32)
    _depths(parent, inside, depth)
    by_start = np.argsort(start, kind="stable")
    by_start = by_start[inside[by_start]]
    order = by_start[grouped(depth[by_start])]
    height, root = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    kernels, total = np.zeros(n, np.int64), np.zeros(n, np.int64)
    first, last = np.full(n, NULL, np.int64), np.full(n, NULL, np.int64)
    _roots(order, parent, root)
    _from_below(order, parent, start, end, is_kernel, height, kernels, total, first, last)
    own = np.where(inside & ~is_kernel, end - start, 0)
    begun = uncovered(order, parent, np.where(is_kernel, -1, lane), start, end)
    called = order[parent[order] >= 0]
    np.subtract.at(own, parent[called], (end - begun)[called])
    return CallTree(parent, depth, height, root, kernels, total, first, last, own, order)


def uncovered(order: Int64, parent: Int32, lane: Int64, start: Int64, end: Int64) -> Int64:
    """When each call begins to take time from its caller: its end if it takes none.

    Calls that overlap each other take it once; calls on another thread (adopted ones) run beside their
    caller. So a call's own time is its length without the time from here to the end of each call it made.

    Args:
        order: rows by depth, then start; parent, lane: as in `measure`.
    """
    begun = end.copy()
    _uncovered(order, parent, lane, start, end, begun)
    return begun


@kernel
def _depths(parent: Int32, inside: Bool, depth: Int32) -> None:
    path = np.empty(len(parent), np.int64)
    for row in range(len(parent)):
        if not inside[row]:
            continue
        steps, at = 0, row
        while at >= 0 and depth[at] < 0:
            path[steps] = at
            steps += 1
            at = parent[at]
        below = depth[at] if at >= 0 else -1
        while steps:
            steps -= 1
            below += 1
            depth[path[steps]] = below


@kernel
def _roots(order: Int64, parent: Int32, root: Int32) -> None:
    for i in range(len(order)):
        row = order[i]
        root[row] = row if parent[row] < 0 else root[parent[row]]


@kernel
def _uncovered(order: Int64, parent: Int32, lane: Int64, start: Int64, end: Int64, begun: Int64) -> None:
    covered = start.copy()  # up to when a call's children so far cover it
    for i in range(len(order)):
        row = order[i]
        caller = parent[row]
        if lane[row] >= 0 and caller >= 0 and lane[caller] == lane[row] and end[row] > covered[caller]:
            begun[row] = max(start[row], covered[caller])
            covered[caller] = end[row]


@kernel
def _from_below(
    order: Int64, parent: Int32, start: Int64, end: Int64, is_kernel: Bool,
    height: Int32, kernels: Int64, total: Int64, first: Int64, last: Int64,
) -> None:  # fmt: skip
    for i in range(len(order) - 1, -1, -1):
        row = order[i]
        if is_kernel[row]:
            height[row] = 0
            kernels[row] = 1
            total[row] = end[row] - start[row]
            first[row] = start[row]
            last[row] = end[row]
        else:
            height[row] = max(height[row], 1)
        caller = parent[row]
        if caller < 0:
            continue
        height[caller] = max(height[caller], height[row] + 1)
        if kernels[row]:
            if kernels[caller]:
                first[caller] = min(first[caller], first[row])
                last[caller] = max(last[caller], last[row])
            else:
                first[caller] = first[row]
                last[caller] = last[row]
            kernels[caller] += kernels[row]
            total[caller] += total[row]


def owners(tree: CallTree, chosen: Bool) -> Int32:
    """int32 topmost chosen row on the path from the root to each row (itself included), -1 for none."""
    owner = np.full(len(chosen), -1, np.int32)
    _own(tree.order, tree.parent, chosen, owner)
    return owner


@kernel
def _own(order: Int64, parent: Int32, chosen: Bool, owner: Int32) -> None:
    for i in range(len(order)):
        row = order[i]
        caller = parent[row]
        if caller >= 0 and owner[caller] >= 0:
            owner[row] = owner[caller]
        elif chosen[row]:
            owner[row] = row
