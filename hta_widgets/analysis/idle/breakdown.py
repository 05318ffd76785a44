"""Why each device is idle: it waits for the host, for data, for launches, or for other device work."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.entry import ONE_BAR_PER, Analysis
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.shares import with_shares
from hta_widgets.analysis.device_time.busy import busy_ranks, iterations_in
from hta_widgets.analysis.device_time.temporal import everyone, place_of
from hta_widgets.analysis.idle.causes import CAUSES, HOST_CAUSES, IdleCauses, idle_causes
from hta_widgets.charts.spec import Series, Stack
from hta_widgets.formatting import counted, duration, percent
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

CONSECUTIVE_KERNEL_DELAY_NS = 30_000
"""Below this a pause of the device is ordinary scheduling: HTA's default `consecutive_kernel_delay`."""

_WORDS = {
    "host_sync": "the host is blocked in a synchronising call",
    "data_stall": "the host waits for the data loader",
    "host_busy": "the host launches too late",
    "launch_latency": "a launch is on its way",
    "kernel_wait": "the device is between two queued kernels",
    "device_wait": "launched work is blocked",
    "unknown": "no launch was recorded",
    "edge": "no device work is due",
}


@kept(by_rank=True)
def idle_breakdown(
    trace: Trace,
    scope: Scope | None = None,
    by: Literal["rank", "iteration"] = "rank",
    *,
    consecutive_kernel_delay_ns: int = CONSECUTIVE_KERNEL_DELAY_NS,
) -> pd.DataFrame:
    """What does each rank's device wait for while it is idle?

    All streams of a rank count as one device side: `idle_ns` is exactly that of `temporal_breakdown`. A gap
    [a, b) in which nothing runs ends when device work k starts. (Of several that start at b, k is the one
    launched first.) The launch call [c, r) of k splits the gap in time; if the moment at which the call put k
    on its stream is recorded (Ascend), c and r are that. Where they are outside the gap, the nearer end of
    the gap takes their place. Each piece has one cause:

    - before c, the device waits for the host thread that makes the launch:
      - `host_sync`: the thread is inside a call that returns only when the device has caught up
        (cuda*Synchronize, hip*Synchronize, aclrtSynchronize*, copies that are not asynchronous, cudaFree,
        aten::item and aten::_local_scalar_dense);
      - `data_stall`: else, it is inside the data loader's `__next__`;
      - `host_busy`: else. The host does something else, or nothing that was recorded.
      A launching thread without any open call counts as blocked, or as waiting for data, while another
      launching thread is, or one that queues tasks for it: an autograd worker sleeps while the main thread
      waits.
    - `launch_latency`: within [c, r), and from r to b if the call returned inside the gap and b - r is below
      `consecutive_kernel_delay_ns`: the device had nothing queued, and the launch took that long to arrive.
    - `kernel_wait`: from a to b, if the call returned before the gap and b - a is below
      `consecutive_kernel_delay_ns`: k was queued (however long, only its wait within the gap is measured);
      the device needs a moment between kernels.
    - `device_wait`: from r, or from a if r is before a, to b, if that is longer: k was launched but does not
      start: it waits for an event, another stream (if the scope leaves streams out), or a device that is not
      ready.
    - `unknown`: the whole gap, if no launch of k was recorded, or only that it was queued for another thread.
    - `edge`: before the first event of the recording, and after the last device work.

    HTA assigns each gap of each stream to one category; `stream_idle_breakdown` does that. Gaps are clipped
    to the windows of the scope (its iterations, within its time window); with neither, to the span from the
    rank's first device event to its last. If the scope filters streams or names, idle means that none of the
    selected ones run.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.
        by: one row per rank, or one row per rank and iteration that lies in the scope.
        consecutive_kernel_delay_ns: see above.

    Returns:
        One row per rank (and iteration), ascending; ranks without device events are left out. Columns:
        rank int64, [iteration int64], window_ns, busy_ns, idle_ns, host_wait_ns, then host_sync_ns,
        data_stall_ns, host_busy_ns, launch_latency_ns, kernel_wait_ns, device_wait_ns, unknown_ns, edge_ns
        (int64, ns), gaps (int64, number of gaps), idle_pct (float64, % of window_ns), host_sync_pct,
        data_stall_pct, host_busy_pct, launch_latency_pct, kernel_wait_pct, device_wait_pct, unknown_pct,
        edge_pct (float64, % of idle_ns). NaN where the whole is empty.
        The eight causes add up to idle_ns, and the first three of them to host_wait_ns, to the nanosecond.

    Raises:
        MissingDataError: no selected rank has device events.
        ValueError: `by` is neither "rank" nor "iteration".
    """
    if by not in ("rank", "iteration"):
        raise ValueError(f'by must be "rank" or "iteration", not {by!r}')
    scope = scope or Scope()
    rows: list[dict[str, int]] = []
    for rank, rank_trace, work in busy_ranks(trace, scope):
        idle = idle_causes(rank_trace, scope, consecutive_kernel_delay_ns)
        if by == "rank":
            rows.append({"rank": rank, **_measure(idle, work.any, rank_trace.windows(scope))})
            continue
        for iteration in iterations_in(rank_trace, scope):
            measured = _measure(idle, work.any, rank_trace.windows(replace(scope, iterations=(iteration,))))
            if measured["window_ns"]:
                rows.append({"rank": rank, "iteration": iteration, **measured})
    keys = ["rank"] if by == "rank" else ["rank", "iteration"]
    durations = ["window_ns", "busy_ns", "idle_ns", "host_wait_ns", *(f"{cause}_ns" for cause in CAUSES)]
    frame = pd.DataFrame(rows, columns=[*keys, *durations, "gaps"]).astype(np.int64)
    return with_shares(with_shares(frame, ["idle"], "window"), CAUSES, "idle")


def sentence(frame: pd.DataFrame) -> str:
    """The answer of an idle breakdown in words."""
    frame = frame[frame["window_ns"] > 0]
    if frame.empty:
        return "No device time lies in the selection."
    total = int(frame["idle_ns"].sum())
    if not total:
        return "No device is ever idle in the selection."
    by_cause = {cause: int(frame[f"{cause}_ns"].sum()) for cause in CAUSES}
    main = max(CAUSES, key=by_cause.__getitem__)
    share = percent(100.0 * by_cause[main] / total)
    if len(frame) == 1:
        row = frame.iloc[0]
        return (
            f"{place_of(row)} is idle for {percent(row['idle_pct'])} of {duration(row['window_ns'])}. "
            f"In {share} of that time ({counted(int(row['gaps']), 'gap')}), {_WORDS[main]}."
        )
    most = frame.iloc[frame["idle_pct"].to_numpy().argmax()]
    idle = percent(most["idle_pct"])
    who = f"{place_of(most)} is idle most, {idle} of its time"
    if all(percent(each) == idle for each in frame["idle_pct"]):
        who = f"{everyone(frame)} are idle equally, {idle} of the time"
    return f"{who}. In {share} of all idle time, {_WORDS[main]}."


def _measure(idle: IdleCauses, work: Intervals, windows: npt.NDArray[np.int64]) -> dict[str, int]:
    causes = {cause: part.within(windows) for cause, part in idle.causes.items()}
    window = int((windows[:, 1] - windows[:, 0]).sum())
    busy = work.within(windows)
    # Neighbouring windows share the gap between them.
    merged = Intervals.union(windows[:, 0], windows[:, 1])
    first = np.searchsorted(idle.gaps.end, merged.start, side="right")
    after = np.searchsorted(idle.gaps.start, merged.end, side="left")
    return {
        "window_ns": window,
        "busy_ns": busy,
        "idle_ns": window - busy,
        "host_wait_ns": sum(causes[cause] for cause in HOST_CAUSES),
        **{f"{cause}_ns": length for cause, length in causes.items()},
        "gaps": int((after - first).sum()),
    }


IDLE_CAUSES = (
    Series("host_sync_ns", "Host blocked in sync", "sync"),
    Series("data_stall_ns", "Host waits for data", "host", "/"),
    Series("host_busy_ns", "Host busy", "host"),
    Series("launch_latency_ns", "Launch latency", "host", "."),
    Series("kernel_wait_ns", "Between kernels", "idle"),
    Series("device_wait_ns", "Device waits", "idle", "/"),
    Series("unknown_ns", "Launch not recorded", "idle", "x"),
    Series("edge_ns", "No work due", "idle", "."),
)

ANALYSIS = Analysis(
    label="Idle",
    group="Time",
    title="Why each device is idle",
    function=idle_breakdown,
    sentence=sentence,
    chart=Stack(IDLE_CAUSES, "idle_ns"),
    requires=("device events",),
    options=(ONE_BAR_PER,),
)
