"""Call trees from times: the callers on each thread, and the kernels launched below each call.

Works on plain columns, both of ranks (`stacks`) and of HTA-shaped frames. Rows refer to their caller by
position; a kernel's caller is the call that launched it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from hta_widgets.arrays import Bool, Int32, Int64
from hta_widgets.jit import kernel
from hta_widgets.trace import links
from hta_widgets.trace.ordering import rows_with, unique
from hta_widgets.trace.reader.schema import NULL

# What PyTorch writes around a training step, and the annotation that training loops put around backward().
_STEP, _BACKWARD = "ProfilerStep", "## backward ##"
_AUTOGRAD = "autograd::"


class CallTree:
    """A forest of calls; all arrays have one entry per row of the columns it was made from.

    What a call launches and takes by itself is found when it is first asked for.

    Attributes:
        parent: int32 caller of the row, for a kernel its launch; -1 at the top and for rows outside.
        depth: int32, 0 at the top, one more per caller; -1 for rows outside the forest.
        height: int32, 0 for a kernel, at least 1 for a call, one more than its highest child; -1 outside.
        root: int32 topmost caller of the row (itself at the top); -1 outside.
        kernels: int64 number of kernels launched by the row and all that it called; 1 for a kernel.
        kernel_dur_sum_ns: int64 sum of their durations.
        first_kernel_start_ns, last_kernel_end_ns: int64, NULL without kernels.
        begun: int64 when a call begins to take time from its caller; its end if it takes none. Calls that
            overlap each other take it once; calls on another thread (adopted ones) run beside their caller.
        self_ns: int64 time of a call in which no call that it made was open; 0 for kernels and outside.
        order: int64 rows of the forest by depth, then start: callers come before what they call.
    """

    def __init__(
        self, start: Int64, end: Int64, lane: Int64, parent: Int32, is_kernel: Bool, by_start: Int64
    ) -> None:
        """Columns as those of `measure`; by_start: all rows by start, then as they stand."""
        self._start, self._end, self._lane, self._is_kernel = start, end, lane, is_kernel
        self.parent = parent
        self.depth: Int32 = np.full(len(start), -1, np.int32)
        inside = (lane >= 0) | (is_kernel & (parent >= 0))
        rows = np.empty(int(np.count_nonzero(inside)), np.int64)
        _by_depth(
            by_start, inside, np.zeros(_depths(parent, inside, self.depth) + 2, np.int64), self.depth, rows
        )
        self.order: Int64 = rows

    @cached_property
    def root(self) -> Int32:
        return owners(self, self.depth == 0)

    @cached_property
    def begun(self) -> Int64:
        begun = self._end.copy()
        _uncovered(self.order, self.parent, self._lane, self._start, self._end, begun)
        return begun

    @cached_property
    def self_ns(self) -> Int64:
        own = np.where((self.depth >= 0) & ~self._is_kernel, self._end - self._start, 0)
        called = self.order[self.parent[self.order] >= 0]
        np.subtract.at(own, self.parent[called], (self._end - self.begun)[called])
        return own

    @property
    def height(self) -> Int32:
        return self._launched[0]

    @property
    def kernels(self) -> Int64:
        return self._launched[1]

    @property
    def kernel_dur_sum_ns(self) -> Int64:
        return self._launched[2]

    @property
    def first_kernel_start_ns(self) -> Int64:
        return self._launched[3]

    @property
    def last_kernel_end_ns(self) -> Int64:
        return self._launched[4]

    @property
    def kernel_span_ns(self) -> Int64:
        """int64 time from the first kernel's start to the last one's end, 0 without kernels."""
        return np.where(self.kernels > 0, self.last_kernel_end_ns - self.first_kernel_start_ns, 0)

    @cached_property
    def _launched(self) -> tuple[Int32, Int64, Int64, Int64, Int64]:
        n = len(self.parent)
        height = np.full(n, -1, np.int32)
        kernels, total = np.zeros(n, np.int64), np.zeros(n, np.int64)
        first, last = np.full(n, NULL, np.int64), np.full(n, NULL, np.int64)
        _from_below(
            self.order, self.parent, self._start, self._end, self._is_kernel,
            height, kernels, total, first, last,
        )  # fmt: skip
        return height, kernels, total, first, last


def adopt_backward(
    parent: Int32, start: Int64, end: Int64, lane: Int64, name: Int32, names: Sequence[str]
) -> Int32:
    """Callers after attaching the backward threads below the step that they belong to.

    Autograd runs on threads of its own, where no step is annotated. The top rows of such a thread (one with
    calls of `autograd::` and without steps) get as caller the innermost `## backward ##` annotation or
    `ProfilerStep` of another thread that contains them in time; those that none contains stay at the top.
    """
    hosts = rows_with(name, _named(names, (_STEP, _BACKWARD), prefix=True))
    hosts = hosts[lane[hosts] >= 0]
    if not len(hosts):
        return parent
    autograd = lane[rows_with(name, _named(names, (_AUTOGRAD,), prefix=False))]
    threads = np.setdiff1d(unique(autograd[autograd >= 0]), lane[hosts])
    if not len(threads):
        return parent
    is_guest = np.zeros(int(threads[-1]) + 1, np.bool_)
    is_guest[threads] = True
    hosts = hosts[np.lexsort((hosts, -end[hosts], start[hosts]))]
    around = links.nesting(
        start[hosts], end[hosts], np.zeros(len(hosts), np.int64), np.arange(len(hosts), dtype=np.int64)
    )[0]
    adopted = parent.copy()
    _adopt(start, end, lane, is_guest, hosts, start[hosts], around, adopted)
    return adopted


@kernel
def _adopt(
    start: Int64, end: Int64, lane: Int64, is_guest: Bool, hosts: Int64, begins: Int64, around: Int32,
    parent: Int32,
) -> None:  # fmt: skip
    """`begins`, `around`: of each host when it starts, ascending, and which of them it lies in."""
    for row in range(len(parent)):
        if parent[row] >= 0 or lane[row] < 0 or lane[row] >= len(is_guest) or not is_guest[lane[row]]:
            continue
        host = np.int64(np.searchsorted(begins, start[row], side="right")) - 1
        while host >= 0 and end[hosts[host]] < end[row]:
            host = np.int64(around[host])
        if host >= 0:
            parent[row] = np.int32(hosts[host])


def _named(names: Sequence[str], words: tuple[str, ...], prefix: bool) -> Bool:
    if prefix:
        return np.array([text.startswith(words) for text in names], np.bool_)
    return np.array([any(word in text for word in words) for text in names], np.bool_)


def measure(start: Int64, end: Int64, lane: Int64, parent: Int32, is_kernel: Bool) -> CallTree:
    """The forest of these calls and kernels.

    Args:
        lane: thread of each call, negative for rows that are no calls.
        parent: caller of each call and launch of each kernel, -1 for none; kernels without a launch and rows
            that are neither call nor kernel lie outside.
        is_kernel: the kernels.
    """
    return CallTree(start, end, lane, parent, is_kernel, np.argsort(start, kind="stable"))


@kernel
def _depths(parent: Int32, inside: Bool, depth: Int32) -> int:
    """Fill in the depths; the answer is the greatest, -1 without rows inside."""
    path = np.empty(len(parent), np.int32)
    deepest = -1
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
        deepest = max(deepest, below)
    return deepest


@kernel
def _by_depth(by_start: Int64, inside: Bool, begins: Int64, depth: Int32, rows: Int64) -> None:
    """Sort by counting; `begins`: zeros, two more than the greatest depth."""
    for i in range(len(by_start)):
        if inside[by_start[i]]:
            begins[depth[by_start[i]] + 1] += 1
    for level in range(1, len(begins)):
        begins[level] += begins[level - 1]
    for i in range(len(by_start)):
        row = by_start[i]
        if inside[row]:
            rows[begins[depth[row]]] = row
            begins[depth[row]] += 1


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
