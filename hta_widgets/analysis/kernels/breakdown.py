"""Device time by kernel name and class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.device_time.busy import device_ranks
from hta_widgets.analysis.kernels.moments import MOMENTS, described, merged, moments
from hta_widgets.charts.spec import Bars
from hta_widgets.formatting import counted, duration, percent
from hta_widgets.kernel_names import short_kernel_names
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

By = Literal["rank", "iteration", "job"]
OTHERS = "others"
_KEYS: dict[str, list[str]] = {"rank": ["rank"], "iteration": ["rank", "iteration"], "job": []}
_NAMED = ["event_class", "name"]


class DeviceWork:
    """The device work of a rank (no waits, no annotations), grouped by class and name.

    Attributes:
        rows: the rows of device work, by start, then in file order.
        group: int32 per row of the rank: the group of device work, -1 for everything else.
        event_class: class of each group; ``name``: its code into the rank's ``names``.
        size: number of groups.
    """

    def __init__(self, rank_trace: RankTrace) -> None:
        rows = np.flatnonzero(rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC))
        names = max(len(rank_trace.names), 1)
        code = rank_trace.event_class[rows].astype(np.int64) * names + rank_trace.name[rows]
        space = np.zeros(len(EventClass) * names, np.bool_)
        space[code] = True
        found = np.flatnonzero(space)
        number = np.zeros(len(space), np.int32)
        number[found] = np.arange(len(found))
        self.rows: npt.NDArray[np.intp] = rows[np.argsort(rank_trace.start[rows], kind="stable")]
        self.group = np.full(rank_trace.n, -1, np.int32)
        self.group[rows] = number[code]
        self.event_class, self.name = found // names, found % names
        self.size = len(found)


device_work_of = memoize_per_rank()(DeviceWork)


def device_work(trace: Trace, scope: Scope) -> Iterator[tuple[int, RankTrace, DeviceWork]]:
    """`device_ranks`, each with its device work."""
    for rank, rank_trace in device_ranks(trace, scope):
        yield rank, rank_trace, device_work_of(rank_trace)


@kept(by_rank=True, unless={"by": "job"})
def kernel_breakdown(
    trace: Trace,
    scope: Scope | None = None,
    by: By = "rank",
    top: int | None = None,
    share: float | None = None,
) -> pd.DataFrame:
    """How long did each kernel, collective, copy and fill run, and how often?

    The statistics of `get_gpu_kernel_breakdown` of Holistic Trace Analysis, of single launches and on
    unrounded times. Launches are grouped by class and full name. Those that belong to the scope count with
    their whole duration (device work belongs to the iteration that launched it, and to the window it starts
    in), so neighbouring scopes add up. Times of different streams are summed even if they overlap.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.
        by: one table per rank, per rank and iteration (without what belongs to none), or for the whole job.
        top: maximum number of names per class; the rest become one row ``"others"``.
        share: only the names that make up this share (0 to 1) of the time of their class, longest first.

    Returns:
        One row per name, longest first, ``"others"`` after the named ones. Columns: [rank int64, [iteration
        int64]], event_class (str, our label), name (str), names int64 (1; of ``"others"`` the number of names
        in it), count, sum_ns, min_ns, max_ns (int64, ns), mean_ns, std_ns (float64, ns; sample standard
        deviation, NaN for a single launch), pct (float64, % of the table's sum_ns). ``"others"`` has the true
        statistics of all its launches.

    Raises:
        MissingDataError: no selected rank has device events.
        ValueError: `by`, `top` or `share` is not one of the above.
    """
    if top is not None and top < 0:
        raise ValueError(f"top must not be negative, not {top}")
    if share is not None and not 0 <= share <= 1:
        raise ValueError(f"share must lie between 0 and 1, not {share}")
    frame = kernel_moments(trace, scope, by)
    keys = _KEYS[by]
    if top is not None or share is not None:
        within = frame.groupby([*keys, "event_class"], sort=False)
        collapsed = np.zeros(len(frame), np.bool_)
        if top is not None:
            collapsed |= within.cumcount().to_numpy() >= top
        if share is not None:
            before = (within["sum_ns"].cumsum() - frame["sum_ns"]).to_numpy()
            # A name is left out if the names before it reach the share.
            collapsed |= (before >= share * within["sum_ns"].transform("sum").to_numpy()) & (before > 0)
        frame = with_others(frame, collapsed, [*keys, "event_class"])
    frame = _in_order(frame, keys)
    whole = frame.groupby(keys)["sum_ns"].transform("sum") if keys else frame["sum_ns"].sum()
    frame = described(frame)
    frame["pct"] = (100.0 * frame["sum_ns"] / whole).astype(np.float64)
    return frame


def kernel_moments(trace: Trace, scope: Scope | None = None, by: By = "rank") -> pd.DataFrame:
    """The rows of `kernel_breakdown` before any become "others", with `moments.MOMENTS` as statistics."""
    if by not in _KEYS:
        raise ValueError(f'by must be "rank", "iteration" or "job", not {by!r}')
    scope = scope or Scope()
    frames = [_of_rank(rank_trace, work, scope, by) for _, rank_trace, work in device_work(trace, scope)]
    empty = pd.DataFrame(columns=["rank", "iteration", *_NAMED, *MOMENTS])
    frame = pd.concat([frame for frame in frames if len(frame)] or [empty], ignore_index=True)
    keys = _KEYS[by]
    integers = [*keys, *MOMENTS[:-1]]
    frame = frame.astype(dict.fromkeys(integers, np.int64) | dict.fromkeys(_NAMED, "str"))
    if by == "job":
        frame = merged(frame, _NAMED)
    frame = frame[[*keys, *_NAMED, *MOMENTS]]
    frame.insert(len(keys) + 2, "names", np.int64(1))
    return _in_order(frame, keys)


def with_others(frame: pd.DataFrame, collapsed: npt.NDArray[np.bool_], keys: list[str]) -> pd.DataFrame:
    """The frame with its marked rows merged into one row `OTHERS` per value of `keys`, put last."""
    if not collapsed.any():
        return frame
    rest = merged(frame[collapsed], keys, others=["names"])
    rest["name"] = OTHERS
    return pd.concat([frame[~collapsed], rest[frame.columns]], ignore_index=True)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of a kernel breakdown in words."""
    if frame.empty:
        return "No device work belongs to the selection."
    per_name = frame.groupby(["event_class", "name"], as_index=False)[["sum_ns", "count"]].sum()
    named = per_name[per_name["name"] != OTHERS]
    named = per_name if named.empty else named
    first = named.sort_values(["sum_ns", "name"], ascending=[False, True]).iloc[0]
    whole, count = int(frame["sum_ns"].sum()), int(first["count"])
    launches, labels = counted(count, "launch", "launches"), short_kernel_names(frame["name"])
    return (
        f"Device work takes {duration(whole)}. The largest part is {labels[first['name']]}: "
        f"{percent(100.0 * first['sum_ns'] / max(whole, 1))} in {launches}."
    )


def _of_rank(rank_trace: RankTrace, work: DeviceWork, scope: Scope, by: By) -> pd.DataFrame:
    rows = work.rows[rank_trace.belong(work.rows, scope)]
    group = work.group[rows].astype(np.int64)
    dur, steps = rank_trace.dur[rows], np.zeros(0, np.int64)
    size = work.size
    if by == "iteration":
        inside = rank_trace.iteration[rows] >= 0
        group, dur, number = group[inside], dur[inside], rank_trace.iteration[rows[inside]]
        steps = np.unique(rank_trace.iterations["iteration"].to_numpy(np.int64))
        group += np.searchsorted(steps, number) * work.size
        size = work.size * len(steps)
    frame = moments(group, dur, size)
    number, kind = np.divmod(frame.index.to_numpy(), max(work.size, 1))
    frame["rank"] = rank_trace.rank
    frame["iteration"] = steps[number] if by == "iteration" else -1
    frame["event_class"] = [EventClass(code).label for code in work.event_class[kind].tolist()]
    frame["name"] = [rank_trace.names[code] for code in work.name[kind].tolist()]
    return frame


def _in_order(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """By `keys`, then named rows before gathered ones, then longest first; ties by name and class."""
    order = frame.assign(gathered=(frame["name"] == OTHERS) & (frame["names"] > 1))
    by = [*keys, "gathered", "sum_ns", "name", "event_class"]
    order = order.sort_values(by, ascending=[name != "sum_ns" for name in by], ignore_index=True)
    return order.drop(columns="gathered")


ANALYSIS = Analysis(
    label="Kernels",
    group="Kernels",
    title="Which kernels take most device time",
    function=kernel_breakdown,
    sentence=sentence,
    chart=Bars("sum_ns", ("name",), "event_class", names="name", measure="Device time", cumulative=True),
    requires=("device events",),
)
