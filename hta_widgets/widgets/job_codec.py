"""The two large pictures of `JobView` as buffers: rank by iteration, and who waits for whom.

Both are sent in messages, never in synced traits, which would be saved in the notebook, and stay below a
megabyte: of more cells, neighbours are added up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.culprits import NOBODY

MOST_CELLS, MOST_PAIRS = 60_000, 80_000

CELL_PARTS = {
    "compute_ns": ("compute_ns",),
    "waiting_ns": ("waiting_ns",),
    "transferring_ns": ("transferring_ns", "copying_ns"),
    "idle_ns": ("idle_ns",),
}
"""What a cell tells, and the columns of `job_iterations` that it is the sum of: all of the window."""


class Packed(NamedTuple):
    """A layout, and the numbers that it describes."""

    layout: Mapping[str, object]
    data: bytes


def packed_cells(frame: pd.DataFrame) -> Packed:
    """`job_iterations` as float32 ns by part, rank and column; NaN where a rank lacks the iteration.

    Layout: ranks; columns, the iterations of each: several where there are more than `MOST_CELLS` cells;
    parts.
    """
    ranks = frame["rank"].drop_duplicates().to_numpy(np.int64)
    numbers = frame["iteration"].drop_duplicates().sort_values().to_numpy(np.int64)
    per_column = max(1, -(-len(ranks) * len(numbers) // MOST_CELLS))
    row = np.searchsorted(ranks, frame["rank"])
    at = np.searchsorted(numbers, frame["iteration"]) // per_column
    count = -(-len(numbers) // per_column)
    sums = np.full((len(CELL_PARTS), len(ranks), count), np.nan)
    sums[:, row, at] = 0.0
    for number, columns in enumerate(CELL_PARTS.values()):
        np.add.at(sums[number], (row, at), frame[list(columns)].sum(axis=1).to_numpy(np.float64))
    groups = [numbers[first : first + per_column] for first in range(0, len(numbers), per_column)]
    layout = {
        "ranks": ranks.tolist(),
        "columns": [group.tolist() for group in groups],
        "parts": list(CELL_PARTS),
    }
    return Packed(layout, sums.astype("<f4").tobytes())


def packed_pairs(frame: pd.DataFrame, ranks: list[int], steps: int) -> Packed:
    """`rank_waits` as float32 (position of who waits, of whom it waits for, ns); -1 where that is unknown.

    Layout: pairs; steps, that the waits are the sum of; and block: so many neighbours of `ranks`, which
    positions refer to, are added up, where there are more than `MOST_PAIRS` pairs.
    """
    order = np.array(ranks, np.int64)
    waits = np.searchsorted(order, frame["rank"])
    awaited = np.where(frame["awaited"] == NOBODY, NOBODY, np.searchsorted(order, frame["awaited"]))
    block, sums = 1, frame["wait_ns"]
    while True:
        keys = [waits // block, np.where(awaited == NOBODY, NOBODY, awaited // block)]
        sums = frame["wait_ns"].groupby(keys).sum()
        if len(sums) <= MOST_PAIRS:
            break
        block *= 2
    pairs = np.column_stack([*(sums.index.get_level_values(level) for level in (0, 1)), sums])
    return Packed({"pairs": len(sums), "steps": steps, "block": block}, pairs.astype("<f4").tobytes())
