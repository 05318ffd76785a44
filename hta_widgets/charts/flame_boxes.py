"""Call trees as boxes: the ranks' trees laid on each other, boxes too narrow to see merged into one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from hta_widgets.arrays import Bool, Float64, Int64
from hta_widgets.charts.spec import Flame

OTHER = "(narrower than 0.1 %)"
_NARROWEST = 0.001
_MOST_BOXES = 3000


def flame_marks(chart: Flame, frame: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """A row per box, callers before what they call, and how many boxes were merged into others.

    Columns: parent (number of a row, -1: none), name, count, and for weight i: width_i (what a box takes on
    screen: with a column of own values their sum over the box and all below it, because threads that run at
    the same time under one caller can take longer than it; else the total) and total_i.
    """
    tree = _merged(chart, frame)
    parent = tree["parent"].to_numpy()
    widths = []
    for number, (_, own, _, _) in enumerate(chart.weights):
        width = tree[f"own_{number}" if own else f"total_{number}"].to_numpy(np.float64, copy=True)
        if own:
            for row in range(len(width) - 1, -1, -1):  # children come after their parents
                if parent[row] >= 0:
                    width[parent[row]] += width[row]
        tree[f"width_{number}"] = width
        widths.append(width)
    wide = _wide(parent, widths)
    return _pruned(tree, wide, len(chart.weights)), int((~wide).sum())


def _merged(chart: Flame, frame: pd.DataFrame) -> pd.DataFrame:
    """One row per path of names over all ranks, level by level, so that parents precede children."""
    total = {f"total_{i}": weight[0] for i, weight in enumerate(chart.weights)}
    own = {f"own_{i}": weight[1] for i, weight in enumerate(chart.weights) if weight[1]}
    rows = pd.DataFrame(
        {"name": frame[chart.label].astype("str"), "count": frame["count"]}
        | {name: frame[column] for name, column in (total | own).items()}
    ).reset_index(drop=True)
    above = _parent_rows(chart, frame)
    path = np.full(len(rows), -1, np.int64)  # the merged row of each row
    level = np.flatnonzero(above < 0)
    levels: list[pd.DataFrame] = []
    size = 0
    while len(level):
        part = rows.iloc[level].assign(parent=np.where(above[level] >= 0, path[above[level]], -1))
        groups = part.groupby(["parent", "name"], sort=False)
        path[level] = size + groups.ngroup().to_numpy()
        levels.append(groups.sum().reset_index())
        size += len(levels[-1])
        level = np.flatnonzero((path < 0) & (above >= 0) & (path[above] >= 0))
    return pd.concat(levels, ignore_index=True)


def _parent_rows(chart: Flame, frame: pd.DataFrame) -> Int64:
    """The row of each row's parent, -1 for none: nodes are numbered within a rank."""
    place = pd.MultiIndex.from_arrays([frame["rank"], frame[chart.node]])
    found: Int64 = place.get_indexer(pd.MultiIndex.from_arrays([frame["rank"], frame[chart.parent]]))
    return found.astype(np.int64)


def _wide(parent: Int64, widths: Sequence[Float64]) -> Bool:
    """Which boxes can be seen by one of the weights; with a box its callers."""
    shares = np.zeros(len(parent))
    for width in widths:
        whole = width[parent < 0].sum()
        shares = np.maximum(shares, width / whole if whole > 0 else 0)
    wide = shares >= _NARROWEST
    if wide.sum() > _MOST_BOXES:
        wide &= shares >= np.partition(shares, -_MOST_BOXES)[-_MOST_BOXES]
    for row in range(len(wide) - 1, -1, -1):
        if wide[row] and parent[row] >= 0:
            wide[parent[row]] = True
    return wide


def _pruned(tree: pd.DataFrame, wide: Bool, weights: int) -> pd.DataFrame:
    """The wide boxes, and below each caller one box for all that are not."""
    parent = tree["parent"].to_numpy()
    numbers = ["count", *(f"{what}_{i}" for i in range(weights) for what in ("width", "total"))]
    new = np.cumsum(wide) - 1
    kept: pd.DataFrame = tree.loc[wide, ["parent", "name", *numbers]].reset_index(drop=True)
    kept["parent"] = np.where(kept["parent"] >= 0, new[kept["parent"]], -1)
    cut = ~wide & ((parent < 0) | wide[parent])  # the topmost of what is merged
    if not cut.any():
        return kept
    rest = tree.loc[cut, ["parent", *numbers]].groupby("parent", sort=True).sum().reset_index()
    rest["parent"] = np.where(rest["parent"] >= 0, new[rest["parent"]], -1)
    rest.insert(1, "name", OTHER)
    return pd.concat([kept, rest], ignore_index=True)
