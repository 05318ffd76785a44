"""What the critical path leads through, longest first: a table that fits a screen, with sources."""

from __future__ import annotations

from typing import Final

import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.critical_path.path import critical_path
from hta_widgets.analysis.critical_path.summary import item
from hta_widgets.analysis.inspect.around import callers, python_of
from hta_widgets.analysis.inspect.refs import row_of
from hta_widgets.formatting import brief, counted, percent
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

_COLUMNS: Final = {
    "rank": "int64", "bound_by": "str", "name": "str", "count": "int64", "dur_ns": "int64",
    "share_pct": "float64", "event_id": "int64", "source": "str",
}  # fmt: skip


def critical_path_by_name(trace: Trace, scope: Scope | None = None, *, top: int = 30) -> pd.DataFrame:
    """What takes longest on the critical path, and which line of the program is behind it?

    Args:
        scope: as for `critical_path`.
        top: the most rows.

    Returns:
        One row per rank, kind of limit and name, longest first. Columns: rank (int64), bound_by, name (str,
        as in `critical_path`), count (int64, segments), dur_ns (int64, ns), share_pct (float64, % of the
        rank's path), event_id (int64, of the longest segment; -1 for none), source (str, the Python function
        around it, or around the launch; "" where none was recorded).

    Raises:
        MissingDataError: no selected rank has device work with a recorded launch.
        ValueError: `top` is negative.
    """
    if top < 0:
        raise ValueError(f"top must not be negative, unlike {top}")
    path = critical_path(trace, scope)
    keys = ["rank", "bound_by", "name"]
    longest = path.sort_values(["dur_ns", "start_ns"], ascending=[False, True], kind="stable")
    found = longest.groupby(keys, as_index=False, sort=False, observed=True).agg(
        count=("dur_ns", "size"), dur_ns=("dur_ns", "sum"), event_id=("event_id", "first")
    )
    whole = path.groupby("rank")["dur_ns"].sum()
    found["share_pct"] = 100.0 * found["dur_ns"] / found["rank"].map(whole)
    found = found.sort_values(["dur_ns", *keys], ascending=[False, True, True, True], kind="stable").head(top)
    found["source"] = [
        _source(trace.rank(int(rank)), int(event))
        for rank, event in zip(found["rank"], found["event_id"], strict=True)
    ]
    return found[list(_COLUMNS)].astype(_COLUMNS).reset_index(drop=True)


def sentence(frame: pd.DataFrame) -> str:
    """The answer in words."""
    if frame.empty:
        return "The selection holds no time."
    first = frame.iloc[0]
    of = f" on rank {first['rank']}" if len(set(frame["rank"])) > 1 else ""
    source = f", in {brief(first['source'])}" if first["source"] else ""
    return (
        f"Longest on the path is {item(first['bound_by'], first['name'])}: {percent(first['share_pct'])} of "
        f"it{of}, in {counted(int(first['count']), 'segment')}{source}."
    )


def _source(rank_trace: RankTrace, event: int) -> str:
    if event < 0:
        return ""
    row = row_of(rank_trace, event)
    frames = python_of(rank_trace, [row, *callers(rank_trace, row)])
    return frames[0].text if frames else ""


ANALYSIS = Analysis(
    kind="critical_path_summary",
    label="Critical path by name",
    group="Critical path",
    title="What the critical path leads through",
    function=critical_path_by_name,
    sentence=sentence,
    chart=None,
    requires=("link from device work to its launch",),
)
