"""Intervals of values as plotly's error bars."""

from __future__ import annotations

import pandas as pd


def error_bars(value: pd.Series, low: pd.Series, high: pd.Series, scale: float) -> dict[str, object]:
    """From `low` to `high`, around the value; absent bounds draw nothing."""
    above, below = (high - value).fillna(0.0) / scale, (value - low).fillna(0.0) / scale
    return {"type": "data", "array": above.clip(lower=0), "arrayminus": below.clip(lower=0), "thickness": 1}
