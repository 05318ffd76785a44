"""How much of the communication is hidden behind computation."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.device_time.busy import busy_ranks
from hta_widgets.charts.spec import Series, Stack
from hta_widgets.formatting import duration, percent
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_DURATIONS = ("communication_ns", "overlapped_ns", "exposed_ns")


@kept(by_rank=True)
def comm_comp_overlap(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """Of the time that each rank communicates, how much does it also compute?

    This is `get_comm_comp_overlap` of Holistic Trace Analysis, on unrounded times: with C and M the union of
    compute and communication kernels over all streams, |C and M| / |M|. Events are clipped to the windows of
    the scope; without iterations and time window, everything counts.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.

    Returns:
        One row per rank, ascending; ranks without device events are left out. Columns: rank int64,
        communication_ns, overlapped_ns, exposed_ns (int64, ns; the last two add up to the first),
        overlap_pct (float64, % of communication_ns; NaN where there is no communication).

    Raises:
        MissingDataError: no selected rank has device events.
    """
    scope = scope or Scope()
    rows = []
    for rank, rank_trace, work in busy_ranks(trace, scope):
        windows = rank_trace.windows(scope)
        rows.append(
            {
                "rank": rank,
                "communication_ns": work.communication.within(windows),
                "overlapped_ns": work.overlapped.within(windows),
                "exposed_ns": work.exposed_communication.within(windows),
            }
        )
    frame = pd.DataFrame(rows, columns=["rank", *_DURATIONS]).astype(np.int64)
    communication = frame["communication_ns"]
    frame["overlap_pct"] = 100.0 * frame["overlapped_ns"] / communication.where(communication > 0)
    return frame


def sentence(frame: pd.DataFrame) -> str:
    """The answer of an overlap frame in words."""
    frame = frame[frame["communication_ns"] > 0]
    if frame.empty:
        return "No communication runs on the device in the selection."
    if len(frame) == 1:
        row = frame.iloc[0]
        return (
            f"Rank {row['rank']:.0f} hides {percent(row['overlap_pct'])} of its "
            f"{duration(row['communication_ns'])} of communication behind compute. "
            f"The other {duration(row['exposed_ns'])} are exposed."
        )
    total, hidden = frame["communication_ns"].sum(), frame["overlapped_ns"].sum()
    worst = frame.iloc[frame["exposed_ns"].to_numpy().argmax()]
    hides = f"{percent(100.0 * hidden / total)} of all communication hides behind compute."
    if len({duration(each) for each in frame["exposed_ns"]}) == 1:
        return f"{hides} Every rank leaves {duration(worst['exposed_ns'])} exposed."
    return (
        f"{hides} "
        f"Rank {worst['rank']:.0f} leaves most exposed, {duration(worst['exposed_ns'])} of "
        f"{duration(worst['communication_ns'])}."
    )


ANALYSIS = Analysis(
    label="Overlap",
    group="Time",
    title="How much communication hides behind compute",
    function=comm_comp_overlap,
    sentence=sentence,
    chart=Stack(
        (
            Series("overlapped_ns", "Hidden behind compute", "compute"),
            Series("exposed_ns", "Exposed", "communication"),
        ),
        "communication_ns",
    ),
    requires=("device events",),
)
