"""How the ranks of a large job share out the parts of their time: a strip of counts for each part."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
import pandas as pd

BINS = 96


def strips(frame: pd.DataFrame, parts: Iterable[str], whole: str) -> list[str]:
    """Of each part that any rank has, how the ranks' times lie between nothing and the most of all parts.

    Args:
        frame: a row per rank; columns parts and whole (ns, none below 0).
        parts: the columns of the parts.
        whole: the column of what they add up to.

    Returns:
        By part a JSON object: column, counts (of ranks, in 96 equal bins; the last has its upper edge, too),
        least, median, most, longest (ns; the last of the whole), and ranks (how many). Parts that take no
        time on any rank are left out, unless all do.
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
                "longest": float(frame[whole].max()),
                "ranks": len(each),
            }
        )
        for part, each in some.items()
    ]
