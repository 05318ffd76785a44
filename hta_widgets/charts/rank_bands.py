"""The rows of a heat map of many ranks: neighbours in bands, and those unlike the others by themselves."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

_SINGLE = 64  # so many ranks have a row each
_BANDS = 32
_APART = 16


def in_bands(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The cells of a heat map, those of neighbouring ranks as one where ranks are many.

    Up to 16 ranks keep their rows: those whose sum is farthest from the median of all sums, if by more than
    five times the median distance. The others are in at most 32 bands of equally many.

    Args:
        table: columns x, y (the rank), value.

    Returns:
        The cells, where y of a band is its first rank, and value the mean of its ranks that have the cell;
        and the ranks of each band, as lists in JSON.
    """
    sums = table.groupby("y")["value"].sum()
    if len(sums) <= _SINGLE:
        return table, []
    off = (sums - sums.median()).abs()
    apart = off[off > 5 * off.median()].sort_values(ascending=False, kind="stable").head(_APART).index
    others = sums.index.difference(apart).to_numpy()
    bands = [band.tolist() for band in np.array_split(others, min(_BANDS, len(others)))]
    first = {rank: band[0] for band in bands for rank in band}
    row = table["y"].map(first).fillna(table["y"])
    cells = table.assign(y=row).groupby(["y", "x"], dropna=False, as_index=False).agg({"value": "mean"})
    legend = [json.dumps([int(rank) for rank in band]) for band in bands if len(band) > 1]
    return cells[list(table.columns)], legend
