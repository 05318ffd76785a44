"""The rows of a line-by-line comparison for display: before beside after, searched and sorted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

COLUMNS = (
    "run", "change", "kind", "line", "before_ns", "after_ns", "change_ns", "low_ns", "high_ns",
    "change_pct", "verdict", "before_count", "after_count", "change_count", "mean_ns", "total_ns",
    "steps", "before_kernels", "kernels", "moved_from",
)  # fmt: skip
"""Of the table, in its order: how a line changed, what it is, the first run's time and this one's."""

# The table shows the times before and after; the answer's columns say which of a line's times those are.
_RENAMED = {"exclusive_ns": "after_ns", "count": "after_count"}
_TEXTS = ("before_kernels", "kernels", "moved_from")
_SEARCHED = ("line", "kind", *_TEXTS)


def changed_lines(
    frame: pd.DataFrame,
    search: str = "",
    sort: Sequence[object] = (),
    only_significant: bool = False,
) -> pd.DataFrame:
    """The rows of a `diff` frame to show: those of all runs but the first, whose values stand beside theirs.

    Args:
        frame: of `analysis.diff`.
        search: text that the line, its kind, its kernels in this run or the first, or the line it was moved
            from must contain, ignoring case.
        sort: (column, descending), or nothing: the line that changed most comes first. Equal values stay in
            that order; absent ones come last.
        only_significant: leave out changes that are not significant.

    Returns:
        The rows with `COLUMNS` of lines that this run or the first has: those of the frame
        (after_ns is its exclusive_ns, after_count its count), and before_kernels (str), the kernels in the
        first run. Without run where there are two only, without columns of empty texts.
    """
    if frame.empty:
        return frame
    runs = frame["run"].unique()
    # with several runs, a line may be missing in both this one and the first
    there = (frame[["before_count", "count", "before_ns", "exclusive_ns"]] != 0).any(axis=1)
    kept = ((frame["run"] != runs[0]) & there).to_numpy(np.bool_)
    if only_significant:
        kept = kept & frame["significant"].to_numpy(np.bool_)
    frame = _with_kernels_before(frame)[kept]
    if wanted := search.strip().lower():
        found = [frame[name].str.lower().str.contains(wanted, regex=False) for name in _SEARCHED]
        frame = frame[np.logical_or.reduce(found)]
    hidden = {name for name in _TEXTS if not frame[name].any()} | ({"run"} if len(runs) == 2 else set())
    rows = frame.rename(columns=_RENAMED)[[name for name in COLUMNS if name not in hidden]]
    if sort and sort[0] in rows:
        rows = rows.sort_values(str(sort[0]), ascending=not sort[1], kind="stable", na_position="last")
    return rows.reset_index(drop=True)


def _with_kernels_before(frame: pd.DataFrame) -> pd.DataFrame:
    """With each line's kernels in the first run; for a moved line, those of the line it was moved from."""
    of_first = frame[frame["run"] == frame["run"].iloc[0]]
    kernels = dict(
        zip(zip(of_first["kind"], of_first["line"], strict=True), of_first["kernels"], strict=True)
    )
    was_at = frame["moved_from"].where(frame["moved_from"] != "", frame["line"])
    before = [kernels.get(place, "") for place in zip(frame["kind"], was_at, strict=True)]
    return frame.assign(before_kernels=pd.Series(before, index=frame.index, dtype="str"))
