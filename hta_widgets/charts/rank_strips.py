"""How the ranks of a large job share out the parts of their time: a strip of counts for each part."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
import pandas as pd

__all__ = ["BINS", "strips"]

BINS = 96


def strips(frame: pd.DataFrame, parts: Iterable[str]) -> list[str]:
    """Of each part that any rank has, how the ranks' times lie between nothing and the most of all parts.

    Args:
        frame: a row per rank; columns parts (ns, none below 0).
        parts: the columns of the parts.

    Returns:
        By part a JSON object: column, counts (of ranks, in 96 equal bins; the last has its upper edge, too),
        least, median, most (ns), and ranks (how many). Without any time, of all parts.
    """
    values = {part: frame[part].to_numpy(np.float64) for part in parts}
    top = max((each.max(initial=0.0) for each in values.values()), default=0.0) or 1.0
    some = {part: each for part, each in values.items() if each.any()} or values
    return [
        json.dumps(
            {
                "column": part,
                "counts": np.bincount(
                    np.clip((each / top * BINS).astype(np.int64), 0, BINS - 1), minlength=BINS
                ).tolist(),
                "least": each.min(initial=top),
                "median": float(np.median(each)),
                "most": each.max(initial=0.0),
                "ranks": len(each),
            }
        )
        for part, each in some.items()
    ]
