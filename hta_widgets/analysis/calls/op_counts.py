"""Counts and total time of operations by name, to compare two recordings."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd

from hta_widgets.analysis.calls.stacks import stacks
from hta_widgets.analysis.core.entry import Analysis, Option
from hta_widgets.analysis.core.sums import exact_sums
from hta_widgets.arrays import Bool, Int64
from hta_widgets.charts.spec import Bars
from hta_widgets.formatting import brief, counted, percent
from hta_widgets.kernel_names import short_kernel_names
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

Device = Literal["all", "cpu", "gpu"]

COLUMNS = {
    "name": "str",
    "category": "str",
    "on_device": "bool",
    "count": "int64",
    "total_duration_ns": "int64",
    "exclusive_duration_ns": "int64",
}
_KEYS = ["name", "category", "on_device"]


def op_counts(
    trace: Trace, scope: Scope | None = None, device: Device = "all", launched: bool = False
) -> pd.DataFrame:
    """How often did each operation run, and for how long?

    Args:
        trace: the job.
        scope: events that belong to it (`RankTrace.members`: device work to the iteration that launched it),
            with their full duration; neighbouring scopes add up.
        device: "cpu": operators, annotations, Python functions and runtime calls; "gpu": work of the
            accelerator; "all": both. The device's own waits, its side of annotations and a profiler's sums of
            other events are neither.
        launched: leave out device work whose launch was not recorded. In the first step, this is work of the
            step before, which a comparison of steps must not count.

    Returns:
        One row per name and category, by name, then category: name, category (str), on_device (bool; whether
        it is work of the accelerator), count (int64), total_duration_ns (int64; operators include what they
        call, annotations what they hold), exclusive_duration_ns (int64; without the time in calls and
        annotations within: that of device work is all of it, and on the host each moment of a thread counts
        once, unless rows overlap in part).

    Raises:
        ValueError: `device` is none of the three.

    Counts and inclusive durations are those of HTA's `TraceDiff`, which counts the device's own waits, too.
    """
    if device not in ("all", "cpu", "gpu"):
        raise ValueError(f"device is 'all', 'cpu' or 'gpu', not {device!r}")
    parts = [_of_rank(trace.rank(rank), scope, device, launched) for rank in trace.ranks_of(scope)]
    if not parts:
        return pd.DataFrame({name: [] for name in COLUMNS}).astype(COLUMNS)
    summed = pd.concat(parts, ignore_index=True).groupby(_KEYS, as_index=False, sort=True).sum()
    return summed.astype(COLUMNS)[list(COLUMNS)]


def counts_by_name(
    trace: Trace,
    scope: Scope | None = None,
    device: Device = "all",
    launched: bool = False,
    waiting: bool = False,
) -> dict[str, tuple[int, int]]:
    """name -> (count, total_duration_ns): `op_counts` over all categories, faster for not making a table.

    waiting: and the device's own waits, as HTA counts them.
    """
    found: dict[str, tuple[int, int]] = {}
    for rank in trace.ranks_of(scope):
        rank_trace = trace.rank(rank)
        rows = _counted(rank_trace, scope, device, launched, waiting)
        code = rank_trace.name[rows]
        count = np.bincount(code, minlength=len(rank_trace.names))
        total = exact_sums(code, rank_trace.dur[rows], len(rank_trace.names))
        for at in np.flatnonzero(count).tolist():
            known = found.get(rank_trace.names[at], (0, 0))
            found[rank_trace.names[at]] = (known[0] + int(count[at]), known[1] + int(total[at]))
    return found


def is_counted(
    rank_trace: RankTrace, rows: Int64, device: Device, launched: bool = False, waiting: bool = False
) -> Bool:
    """Which of these rows `op_counts` counts; with waits of the device, see `counts_by_name`."""
    waits = rank_trace.event_class[rows] == EventClass.SYNC
    work = rank_trace.is_device[rows] & (~waits | waiting)
    # The profiler's own span (category `Trace`) is not work.
    apart = np.array([text.startswith("gpu_") or text == "Trace" for text in rank_trace.categories], np.bool_)
    on_host = ~(work | waits | apart[rank_trace.category[rows]])
    if launched:
        work &= rank_trace.launch[rows] >= 0
    return {"cpu": on_host, "gpu": work, "all": on_host | work}[device]


def exclusive(rank_trace: RankTrace) -> Int64:
    """ns of each row outside what it directly contains on its thread; of device rows all of it."""
    return np.where(rank_trace.is_device, rank_trace.dur, stacks(rank_trace).self_ns)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `op_counts` in words: the operations with most time of their own, by host and device."""
    if frame.empty:
        return "Nothing ran."
    names, count = frame["name"].nunique(), int(frame["count"].sum())
    sentences = [f"{counted(names, 'operation')} ran {counted(count, 'time')}."]
    ordered = frame.sort_values(["exclusive_duration_ns", "name"], ascending=[False, True], kind="stable")
    for of, on_device in (("host", False), ("device", True)):
        rows = ordered[ordered["on_device"] == on_device]
        whole = int(rows["exclusive_duration_ns"].sum())
        if whole:
            top = rows.iloc[0]
            share = percent(100.0 * int(top["exclusive_duration_ns"]) / whole)
            runs = counted(int(top["count"]), "run")
            name = f"{brief(top['name'])} itself"
            if on_device:
                name = short_kernel_names(rows["name"])[top["name"]]
            sentences.append(f"The most {of} time goes to {name}: {share} of it, in {runs}.")
    return " ".join(sentences)


def _of_rank(rank_trace: RankTrace, scope: Scope | None, device: Device, launched: bool) -> pd.DataFrame:
    rows = _counted(rank_trace, scope, device, launched)
    is_call = stacks(rank_trace).depth[rows] >= 0
    rows = rows[rank_trace.is_device[rows] | is_call]  # the rest are a profiler's sums
    kinds = 2 * len(rank_trace.categories)
    kind = 2 * rank_trace.category[rows] + rank_trace.is_device[rows]
    place, code = pd.factorize(rank_trace.name[rows].astype(np.int64) * kinds + kind, sort=True)
    size = len(code)
    columns: dict[str, Any] = {
        "name": pd.array(rank_trace.names, dtype="str").take(code // kinds),
        "category": pd.array(rank_trace.categories, dtype="str").take(code % kinds // 2),
        "on_device": code % 2 == 1,
        "count": np.bincount(place, minlength=size),
        "total_duration_ns": exact_sums(place, rank_trace.dur[rows], size),
        "exclusive_duration_ns": exact_sums(place, exclusive(rank_trace)[rows], size),
    }
    return pd.DataFrame(columns)


def _counted(
    rank_trace: RankTrace, scope: Scope | None, device: Device, launched: bool, waiting: bool = False
) -> Int64:
    """The rows of a rank that belong to a scope and count."""
    rows = np.flatnonzero(rank_trace.belong(slice(None), scope or Scope()))
    return rows[is_counted(rank_trace, rows, device, launched, waiting)]


ANALYSIS = Analysis(
    label="Operations",
    group="Host",
    title="What ran how often",
    function=op_counts,
    sentence=sentence,
    chart=Bars("exclusive_duration_ns", ("name",), "category", names="name", measure="Time of its own"),
    requires=(),
    options=(Option("device", "Device", ("all", "cpu", "gpu"), "all"),),
)
