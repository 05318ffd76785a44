"""How many requests a step computes: the batch of its graph, which may be larger than that of the step."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.serving.captures import Captured
from hta_widgets.analysis.serving.roles import roles_of
from hta_widgets.analysis.serving.table import steps_of

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

_PRODUCTS = ("qkv", "o_proj", "gate_up", "down", "product")


@memoize_per_rank()
def computed_requests(rank_trace: RankTrace) -> pd.Series[int]:
    """Of each row of `steps_of` that decodes a token per request: the requests computed; NA: unknown.

    As the engine states it; else the rows of the matrices that its graph's products were captured with.
    """
    steps, known = steps_of(rank_trace), roles_of(rank_trace)
    found = steps["padded"].copy()
    plain = steps["phase"].eq("decode") & steps["tokens"].eq(steps["requests"]).fillna(False)
    edges = np.searchsorted(known.step, np.arange(len(steps) + 1)).tolist()
    for step in np.flatnonzero(plain & found.isna()).tolist():
        products = range(edges[step], edges[step + 1])
        rows = Counter(_rows(known.captured[at]) for at in products if known.role[at] in _PRODUCTS)
        most, _ = max(rows.items(), key=lambda each: each[1], default=(0, 0))
        if most >= steps["requests"].iloc[step]:
            found.iloc[step] = most
    return found.where(plain)


def _rows(captured: Captured | None) -> int:
    """The rows of the left matrix of a captured product, 0 where they are not recorded."""
    if captured is None or not captured.dims:
        return 0
    try:
        shapes = json.loads(captured.dims)
    except ValueError:
        return 0
    shape = next((each for each in shapes if isinstance(each, list) and len(each) == 2), [0])
    return shape[0] if type(shape[0]) is int else 0
