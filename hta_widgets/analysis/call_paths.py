"""The distinct paths of a call tree: calls with equal names, under callers with equal names, are one."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.call_tree import CallTree
from hta_widgets.trace.jit import kernel

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["CallPaths", "add_to_callers", "sums"]

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


class CallPaths:
    """The distinct paths of a rank's call tree: scope-independent, made once.

    Attributes:
        of: int32 path of each host row, -1 elsewhere; parents have lower numbers than their children.
        parent, name, depth: of each path.
    """

    def __init__(self, one: RankTrace, tree: CallTree) -> None:
        calls = tree.order[~one.is_device[tree.order]]
        self.of: Int32 = np.full(one.n, -1, np.int32)
        parents, names, depths = [], [], []
        bounds = np.searchsorted(tree.depth[calls], np.arange(int(tree.depth.max(initial=-1)) + 2))
        # By name, not by its code: the numbers of the paths do not depend on the order of the file.
        by_name = np.argsort(np.array(one.names, object))
        position = np.empty(len(by_name), np.int64)
        position[by_name] = np.arange(len(by_name))
        made = 0
        for depth, (first, stop) in enumerate(pairwise(bounds)):
            rows = calls[first:stop]
            if not len(rows):
                break
            caller = tree.parent[rows]
            above = np.where(caller >= 0, self.of[caller], -1).astype(np.int64)
            keys, at = np.unique((above + 1) * len(one.names) + position[one.name[rows]], return_inverse=True)
            self.of[rows] = made + at
            parents.append(keys // len(one.names) - 1)
            names.append(by_name[keys % len(one.names)])
            depths.append(np.full(len(keys), depth))
            made += len(keys)
        empty = [np.empty(0, np.int64)]
        self.parent: Int64 = np.concatenate(parents or empty)
        self.name: Int64 = np.concatenate(names or empty)
        self.depth: Int64 = np.concatenate(depths or empty)


def add_to_callers(paths: CallPaths, values: Int64) -> None:
    """Add the value of every path to all its callers, in place."""
    _up(paths.parent, values)


@kernel
def sums(group: Int64, values: Int64, groups: int) -> Int64:
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
