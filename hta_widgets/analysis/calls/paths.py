"""The distinct paths of a call tree: calls with equal names, under callers with equal names, are one.

What does not depend on a scope is computed once, so that a new scope only sums what it covers.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from hta_widgets.analysis.calls.tree import CallTree
from hta_widgets.arrays import Int32, Int64
from hta_widgets.jit import inline, kernel
from hta_widgets.trace.ordering import distinct
from hta_widgets.trace.rank_trace import RankTrace


class CallPaths:
    """The distinct paths of a rank's call tree, computed once for all scopes.

    Attributes:
        parent, name, depth: of each path; parents have lower numbers than their children.
        start, end: int64 ns of each call, by start; ``path``: its path.
        begun: int64 ns, the call's part of its caller's time is from here to `end`: calls that overlap take
            it once, calls on another thread take none (begun == end). ``above``: the caller's path, 0 at the
            top.
        kernels: rows of the launched device work; ``below``: the path that launched each.
    """

    def __init__(self, rank_trace: RankTrace, tree: CallTree) -> None:
        calls = tree.order[~rank_trace.is_device[tree.order]]
        of = np.full(rank_trace.n, -1, np.int32)
        parents, names, depths = [], [], []
        bounds = np.searchsorted(tree.depth[calls], np.arange(int(tree.depth.max(initial=-1)) + 2))
        # By name, not by its code: the numbers of the paths do not depend on the order of the file.
        by_name = np.argsort(np.array(rank_trace.names, object))
        position = np.empty(len(by_name), np.int64)
        position[by_name] = np.arange(len(by_name))
        made = 0
        for depth, (first, stop) in enumerate(pairwise(bounds)):
            rows = calls[first:stop]
            if not len(rows):
                break
            caller = tree.parent[rows]
            above = np.where(caller >= 0, of[caller], -1).astype(np.int64)
            keys, at = distinct((above + 1) * len(rank_trace.names) + position[rank_trace.name[rows]])
            of[rows] = made + at
            parents.append(keys // len(rank_trace.names) - 1)
            names.append(by_name[keys % len(rank_trace.names)])
            depths.append(np.full(len(keys), depth))
            made += len(keys)
        empty = [np.empty(0, np.int64)]
        self.parent: Int64 = np.concatenate(parents or empty)
        self.name: Int64 = np.concatenate(names or empty)
        self.depth: Int64 = np.concatenate(depths or empty)
        calls = calls[np.argsort(rank_trace.start[calls], kind="stable")]
        self.start, self.end, self.begun = rank_trace.start[calls], rank_trace.end[calls], tree.begun[calls]
        self.path: Int32 = of[calls]
        self.above: Int32 = np.where(tree.parent[calls] >= 0, of[tree.parent[calls]], 0).astype(np.int32)
        self.kernels: Int64 = tree.order[rank_trace.is_device[tree.order]]
        self.below: Int32 = of[tree.parent[self.kernels]]

    def within(self, windows: Int64) -> tuple[Int64, Int64, Int64]:
        """For each path the calls that start in the windows, and their time in them with and without callees.

        Args:
            windows: int64[k, 2] ns, sorted, disjoint, half-open.
        """
        count, host, own = np.zeros((3, len(self.parent)), np.int64)
        if len(windows):
            before = np.cumsum(windows[:, 1] - windows[:, 0]) - (windows[:, 1] - windows[:, 0])
            calls = (self.start, self.end, self.begun, self.path, self.above)
            _within(*calls, windows, before, count, host, own)
        return count, host, own


def add_to_callers(paths: CallPaths, values: Int64) -> None:
    """Add the value of every path to all its callers, in place."""
    _up(paths.parent, values)


@inline
def _on_axis(time: int, at: int, windows: Int64, before: Int64) -> int:
    """A time on the axis on which only the windows take time; `at`: a window that begins no later."""
    last = len(windows) - 1
    if at < last and time >= windows[at + 1, 0]:
        low, high = at + 1, last
        while low < high:
            middle = (low + high + 1) // 2
            if windows[middle, 0] <= time:
                low = middle
            else:
                high = middle - 1
        at = low
    return before[at] + max(0, min(time, windows[at, 1]) - windows[at, 0])


@kernel
def _within(
    start: Int64, end: Int64, begun: Int64, path: Int32, above: Int32,
    windows: Int64, before: Int64, count: Int64, host: Int64, own: Int64,
) -> None:  # fmt: skip
    at = 0  # calls are in order of start: the window in or after which the call starts
    for i in range(len(start)):
        while at < len(windows) and windows[at, 1] <= start[i]:
            at += 1
        if at == len(windows):
            break
        inside = windows[at, 0] <= start[i]
        if inside:
            count[path[i]] += 1
        elif end[i] <= windows[at, 0]:
            continue
        until = _on_axis(end[i], at, windows, before)
        took = until - _on_axis(start[i], at, windows, before)
        host[path[i]] += took
        own[path[i]] += took
        own[above[i]] -= until - _on_axis(begun[i], at, windows, before)


@kernel
def sums(group: Int32, values: Int64, groups: int) -> Int64:
    """Exact sums of int64 values (`np.bincount` adds as float)."""
    sums = np.zeros(groups, np.int64)
    for i in range(len(group)):
        sums[group[i]] += values[i]
    return sums


@kernel
def _up(parent: Int64, values: Int64) -> None:
    for path in range(len(parent) - 1, -1, -1):
        if parent[path] >= 0:
            values[parent[path]] += values[path]
