"""Parts of a time as shares of the whole."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd


def with_shares(frame: pd.DataFrame, parts: Iterable[str], whole: str) -> pd.DataFrame:
    """A frame with further columns `<part>_pct`: `<part>_ns` in % of `<whole>_ns`, NaN where that is 0.

    Computed all at once: a column at a time costs more than everything else in a breakdown of a few rows.
    """
    parts = list(parts)
    times = frame[[f"{part}_ns" for part in parts]].to_numpy(np.int64)
    of = frame[f"{whole}_ns"].to_numpy(np.int64)[:, None]
    values = 100.0 * times / np.where(of > 0, of, np.nan)
    shares = pd.DataFrame(values, frame.index, [f"{part}_pct" for part in parts])
    return pd.concat([frame, shares], axis=1)
