"""What the critical path consists of, by kind of limit or event name."""

from __future__ import annotations

from typing import Literal

import pandas as pd

from hta_widgets.formatting import duration, percent
from hta_widgets.kernel_names import short_kernel_name

WORDS = {
    "cpu_bound": "the host",
    "data_loading": "data loading",
    "gpu_compute_bound": "compute kernels",
    "gpu_communication_bound": "communication kernels",
    "gpu_memory_bound": "memory copies",
    "kernel_launch_overhead": "launch delays",
    "kernel_kernel_overhead": "gaps between kernels",
    "sync": "synchronisation",
}
_DELAYS = {"kernel_launch_overhead": "the launch delay of ", "kernel_kernel_overhead": "the gap before "}


def critical_path_summary(
    frame: pd.DataFrame, by: Literal["bound_by", "name", "kind", "event_class"] = "bound_by"
) -> pd.DataFrame:
    """How much of each rank's critical path each kind of limit, or each event name, accounts for.

    Args:
        frame: the answer of `critical_path`.
        by: the column to sum by.

    Returns:
        One row per rank and value of `by`, the largest share of each rank first. Columns: rank int64, `by`
        str, count int64 (segments), dur_ns int64 (ns), share_pct float64 (% of the rank's path; they sum to
        100).

    Raises:
        ValueError: the frame has no such column to sum by.
    """
    if by not in ("bound_by", "name", "kind", "event_class"):
        raise ValueError(f"by must be bound_by, name, kind or event_class, not {by!r}")
    summed = frame.groupby(["rank", by], as_index=False, observed=True).agg(
        count=("dur_ns", "size"), dur_ns=("dur_ns", "sum")
    )
    summed[by] = summed[by].astype("str")
    whole = summed.groupby("rank")["dur_ns"].transform("sum")
    summed["share_pct"] = 100.0 * summed["dur_ns"] / whole
    order = ["rank", "dur_ns", by]
    return summed.sort_values(order, ascending=[True, False, True], kind="stable", ignore_index=True)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of a critical path in words."""
    if frame.empty:
        return "The selection holds no time."
    summary = critical_path_summary(frame)
    total = int(frame["dur_ns"].sum())
    main = str(summary.groupby("bound_by", sort=False)["dur_ns"].sum().idxmax())
    of_main = summary[summary["bound_by"] == main]
    items = frame.groupby(["bound_by", "name"], as_index=False, observed=True)["dur_ns"].sum()
    top = items.iloc[int(items["dur_ns"].to_numpy().argmax())]
    most = of_main.iloc[int(of_main["share_pct"].to_numpy().argmax())]
    unlike = len({percent(each) for each in of_main["share_pct"]}) > 1
    spread = f" On rank {most['rank']} it is most, {percent(most['share_pct'])}." if unlike else ""
    share = percent(100.0 * of_main["dur_ns"].sum() / total)
    longest = f"{item(top['bound_by'], top['name'])} ({percent(100.0 * top['dur_ns'] / total)})"
    return (
        f"The path leads through {WORDS[main]} for {share} of {duration(total)}.{spread} "
        f"The longest item on it is {longest}."
    )


def item(bound_by: str, name: str) -> str:
    """What takes time on a path, in words: an event, or what delays it."""
    return f"{_DELAYS.get(bound_by, '')}{short_kernel_name(name)}"
