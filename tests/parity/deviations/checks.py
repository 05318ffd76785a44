"""Is a single difference what its row says? Judged by HTA's row or the recorded events, never by our code."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from tests.parity.compare import Difference
from tests.parity.faults import MTIA_ENGINE, MTIA_WAITS, correlation, is_call, is_device
from tests.parity.told import Told, is_nan

# What HTA's launch statistics know as launches.
COUNTED_CALLS = {
    "cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync",
    "runFunction - job_prep_and_submit_for_execution",
}  # fmt: skip
CLOSE = 1e-6


def hta_failed(one: Difference, told: Told) -> bool:
    """HTA raised; we answer, say what is missing, or raise a documented error."""
    return one.hta is not None and not str(one.ours).startswith("undocumented")


def same_set(one: Difference, told: Told) -> bool:
    """The same columns in another order."""
    return sorted(one.hta) == sorted(one.ours)


# -- frames ------------------------------------------------------------------------------------------


def was_absolute(one: Difference, told: Told) -> bool:
    """HTA's end is on the axis of the file."""
    start = told.hta["trace_facts"]["answer"]["min_ts"]
    return bool(abs(one.hta - start - one.ours) < CLOSE)


def zero_to_minus_one(one: Difference, told: Told) -> bool:
    return bool(one.hta == 0 and one.ours == -1)


def was_none(one: Difference, told: Told) -> bool:
    return one.hta is None


def nan_on_stream_zero(one: Difference, told: Told) -> bool:
    return is_nan(one.hta) and told.args(one).get("stream") == 0


def nothing_where_nan(one: Difference, told: Told) -> bool:
    """HTA sorts the steps to find the first: with NaN in front it finds none; stream 0 has none."""
    if not told.steps_are_nan:
        return False
    return not told.hta["filter_first_iteration"]["answer"] or told.args(one).get("stream") == 0


def operator_with_a_stream(one: Difference, told: Told) -> bool:
    return told.event(one)["cat"] == "cpu_op" and told.args(one)["stream"] == one.hta and one.ours == -1


def older_external_id(one: Difference, told: Told) -> bool:
    return bool(one.hta == -1 and told.args(one)["external id"] == one.ours)


def null(one: Difference, told: Told) -> bool:
    """The argument is there and null."""
    names = {"python_parent_id": "Python parent id", "python_id": "Python id"}
    args = told.args(one)
    return is_nan(one.hta) and one.ours == -1 and args[names[one.column]] is None


def older_spelling(one: Difference, told: Told) -> bool:
    names = {"input_dims": "Input dims", "input_type": "Input type", "input_strides": "Input strides"}
    return one.hta == "-1" and one.ours == str(told.args(one)[names[one.column]])


def outside_host_steps(one: Difference, told: Told) -> bool:
    """No step of the host was open when the event, or the call that launched it, began."""
    if one.kind == "cell" and not (one.hta >= 0 and one.ours == -1):
        return False
    event = told.event(one)
    if is_device(event):
        event = next(e for e in told.events if is_call(e) and correlation(e) == correlation(event))
    return not any(step["ts"] <= event["ts"] < step["ts"] + step["dur"] for step in told.host_steps)


def device_annotation(one: Difference, told: Told) -> bool:
    """HTA's step is that of the device's copy of a step annotation."""
    return bool(told.event(one)["cat"] == "gpu_user_annotation")


def the_last_step(one: Difference, told: Told) -> bool:
    """HTA keeps the last step itself, as its copy on the device begins later."""
    last = max(told.host_steps, key=lambda step: step["ts"])
    number = int(last["name"].partition("#")[2])
    key = one.key[-1] if one.key else None
    at = told.events[key] if isinstance(key, int) and 1000 < key < len(told.events) else {}
    return key in (last["name"], number) or at is last


# -- tables ------------------------------------------------------------------------------------------


def statistics_of_totals(one: Difference, told: Told) -> bool:
    """HTA's statistics are of one total per name: all equal, or over the totals that `others` adds up."""
    row = one.row
    if row["name"] == "others":
        return bool(row["sum (us)"] + CLOSE >= row["max (us)"] >= row["mean (us)"] - CLOSE)
    total = row["sum (us)"]
    return (
        all(abs(row[name] - total) < CLOSE for name in ("max (us)", "min (us)", "mean (us)"))
        and not row["stddev"]
    )


def work_of_mtia(one: Difference, told: Told) -> bool:
    """HTA lists waits as computation, and does not list the engines."""
    return one.key[1] in (MTIA_WAITS if one.kind == "missing row" else {MTIA_ENGINE})


def rounding_artefact(one: Difference, told: Told) -> bool:
    """A class that only events of -1 us make, in a trace that has no communication."""
    return bool(one.hta["sum"] <= 1 and "COMMUNICATION" in one.hta["kernel_type"])


def rounded_away(one: Difference, told: Told) -> bool:
    """Nothing of it is left in whole us."""
    return bool(0 < one.ours["sum"] < 1)


def pauses_below_zero(one: Difference, told: Told) -> bool:
    """HTA measured a pause from the end of the row before although an earlier one still ran."""
    frame = told.hta["idle"]["answer"][1]
    columns = dict(zip(frame["columns"], frame["data"], strict=True))
    below = {
        (rank, stream, category)
        for rank, stream, category, least in zip(
            columns["rank"],
            columns["stream"],
            columns.get("idle_category", frame["index"]),
            columns["min"],
            strict=True,
        )
        if least is not None and least < 0
    }
    return tuple(one.key) in below


# -- launches ----------------------------------------------------------------------------------------


def another_call(one: Difference, told: Told) -> bool:
    """No call that HTA counts carries this id."""
    return not told.calls.get(one.key[0], set()) & COUNTED_CALLS


def share_of_starts(one: Difference, told: Told) -> bool:
    """HTA divides by the time from the first start to the last start, we by that to the last end."""
    starts = told.column(told.hta, "trace_frame", "ts")
    held = one.row["duration_at_max_queue_length"]
    return math.isclose(one.hta * (max(starts) - min(starts)), held, rel_tol=CLOSE)


def another_stream_is_full(one: Difference, told: Told) -> bool:
    """HTA keeps one stream per rank, the last."""
    told_of = told.hta[one.question]["answer"]
    columns = dict(zip(told_of["columns"], told_of["data"], strict=True))
    kept = dict(zip(columns["rank"], columns["stream"], strict=True))
    rank, stream = one.key[:2]
    return bool(kept[rank] > stream)


def at_one_time(one: Difference, told: Told) -> bool:
    """Another point of the series has the same time, so that HTA's unstable sort may take either first."""
    if one.kind == "order":
        return True
    if one.question == "bandwidth_series":
        return told.points["bandwidth_series", one.row["name"], one.row["ts"]] > 1
    return told.points["queue_series", one.row["stream"], one.row["ts"]] > 1


def of_the_series(one: Difference, told: Told) -> bool:
    """Each side's statistic is that of the points of its own series, which are compared one by one."""
    (rank, stream), statistic = one.key[0], one.column.partition("|")[2]

    def of_points(side: dict[str, Any]) -> float:
        frame = side["queue_series"]["answer"][str(rank)]
        columns = dict(zip(frame["columns"], frame["data"], strict=True))
        points = zip(columns["stream"], columns["queue_length"], strict=True)
        return float(pd.Series([length for owner, length in points if owner == stream]).describe()[statistic])

    return math.isclose(of_points(told.hta), one.hta) and math.isclose(of_points(told.ours), one.ours)


def remainders(one: Difference, told: Told) -> bool:
    """HTA's sum of floats leaves almost nothing instead of nothing, and counts it as a sample."""
    if one.question == "bandwidth_series":
        return bool(abs(one.hta) < CLOSE and one.ours == 0)
    series = told.hta["bandwidth_series"]["answer"]
    frames = [frame for frame in series.values() if isinstance(frame, dict)]
    values = [value for frame in frames for value in frame["data"][frame["columns"].index("memory_bw_gbps")]]
    return any(0 < value < CLOSE for value in values)


def no_bandwidth_recorded(one: Difference, told: Told) -> bool:
    """Some copies of the trace have none: HTA takes 0 for it."""
    return any(
        is_device(event)
        and event["cat"] in ("gpu_memcpy", "gpu_memset", "mtia_ccp_events")
        and "memory bandwidth (GB/s)" not in event.get("args", {})
        for event in told.events
    )


def zero_bandwidth(one: Difference, told: Told) -> bool:
    return one.hta["value"] == 0
