"""The answer of a replay in one sentence."""

from __future__ import annotations

import pandas as pd

from hta_widgets.formatting import duration, percent, signed


def sentence(frame: pd.DataFrame) -> str:
    """What `what_if` found: the step at the median, then the whole recording."""
    whole = frame["iteration"].isna()
    steps, recording = _change(frame[~whole]), _change(frame[whole])
    if not steps:
        return f"The recording {recording}." if recording else "No iteration to replay."
    return f"Step {steps}{f'; the recording {recording}' if recording else ''}."


def _change(rows: pd.DataFrame) -> str:
    """`151 ms -> 118 ms (-21.8 %; 117 ms to 120 ms)`, at the median of these rows; empty without any."""
    if not len(rows):
        return ""
    before, after, low, high = (
        float(rows[column].median()) for column in ("before_ns", "after_ns", "low_ns", "high_ns")
    )
    change = 100.0 * (after - before) / max(before, 1.0)
    between = f"; {duration(low)} to {duration(high)}" if duration(low) != duration(high) else ""
    median = " at the median" if len(rows) > 1 else ""
    return f"{duration(before)} -> {duration(after)}{median} ({signed(change, percent(change))}{between})"
