"""Is a single difference what its row says? Judged by HTA's row or the recorded events, never by our code."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from tests.parity.compare import Difference
from tests.parity.compared_job import ComparedJob, is_nan
from tests.parity.hta_defects import MTIA_ENGINE, MTIA_WAITS, correlation, is_call, is_device

# What HTA's launch statistics know as launches.
COUNTED_CALLS = {
    "cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync",
    "runFunction - job_prep_and_submit_for_execution",
}  # fmt: skip
CLOSE = 1e-6


def hta_failed(difference: Difference, job: ComparedJob) -> bool:
    """HTA raised; we answer, say what is missing, or raise a documented error."""
    return difference.hta is not None and not str(difference.ours).startswith("undocumented")


def same_set(difference: Difference, job: ComparedJob) -> bool:
    """The same columns in another order."""
    return sorted(difference.hta) == sorted(difference.ours)


# -- frames ------------------------------------------------------------------------------------------


def was_absolute(difference: Difference, job: ComparedJob) -> bool:
    """HTA's end is on the axis of the file."""
    start = job.hta["trace_facts"]["answer"]["min_ts"]
    return bool(abs(difference.hta - start - difference.ours) < CLOSE)


def zero_to_minus_one(difference: Difference, job: ComparedJob) -> bool:
    return bool(difference.hta == 0 and difference.ours == -1)


def was_none(difference: Difference, job: ComparedJob) -> bool:
    return difference.hta is None


def nan_on_stream_zero(difference: Difference, job: ComparedJob) -> bool:
    return is_nan(difference.hta) and job.args(difference).get("stream") == 0


def nothing_where_nan(difference: Difference, job: ComparedJob) -> bool:
    """HTA sorts the steps to find the first: with NaN in front it finds none; stream 0 has none."""
    if not job.steps_are_nan:
        return False
    return not job.hta["filter_first_iteration"]["answer"] or job.args(difference).get("stream") == 0


def operator_with_a_stream(difference: Difference, job: ComparedJob) -> bool:
    return (
        job.event(difference)["cat"] == "cpu_op"
        and job.args(difference)["stream"] == difference.hta
        and difference.ours == -1
    )


def older_external_id(difference: Difference, job: ComparedJob) -> bool:
    return bool(difference.hta == -1 and job.args(difference)["external id"] == difference.ours)


def null(difference: Difference, job: ComparedJob) -> bool:
    """The argument is there and null."""
    names = {"python_parent_id": "Python parent id", "python_id": "Python id"}
    args = job.args(difference)
    return is_nan(difference.hta) and difference.ours == -1 and args[names[difference.column]] is None


def older_spelling(difference: Difference, job: ComparedJob) -> bool:
    names = {"input_dims": "Input dims", "input_type": "Input type", "input_strides": "Input strides"}
    return difference.hta == "-1" and difference.ours == str(job.args(difference)[names[difference.column]])


def outside_host_steps(difference: Difference, job: ComparedJob) -> bool:
    """No step of the host was open when the event, or the call that launched it, began."""
    if difference.kind == "cell" and not (difference.hta >= 0 and difference.ours == -1):
        return False
    event = job.event(difference)
    if is_device(event):
        event = next(e for e in job.events if is_call(e) and correlation(e) == correlation(event))
    return not any(step["ts"] <= event["ts"] < step["ts"] + step["dur"] for step in job.host_steps)


def device_annotation(difference: Difference, job: ComparedJob) -> bool:
    """HTA's step is that of the device's copy of a step annotation."""
    return bool(job.event(difference)["cat"] == "gpu_user_annotation")


def the_last_step(difference: Difference, job: ComparedJob) -> bool:
    """HTA keeps the last step itself, as its copy on the device begins later."""
    last = max(job.host_steps, key=lambda step: step["ts"])
    number = int(last["name"].partition("#")[2])
    key = difference.key[-1] if difference.key else None
    at = job.events[key] if isinstance(key, int) and 1000 < key < len(job.events) else {}
    return key in (last["name"], number) or at is last


# -- tables ------------------------------------------------------------------------------------------


def statistics_of_totals(difference: Difference, job: ComparedJob) -> bool:
    """HTA's statistics are of one total per name: all equal, or over the totals that `others` adds up."""
    row = difference.row
    if row["name"] == "others":
        return bool(row["sum (us)"] + CLOSE >= row["max (us)"] >= row["mean (us)"] - CLOSE)
    total = row["sum (us)"]
    return (
        all(abs(row[name] - total) < CLOSE for name in ("max (us)", "min (us)", "mean (us)"))
        and not row["stddev"]
    )


def work_of_mtia(difference: Difference, job: ComparedJob) -> bool:
    """HTA lists waits as computation, and does not list the engines."""
    return difference.key[1] in (MTIA_WAITS if difference.kind == "missing row" else {MTIA_ENGINE})


def rounding_artefact(difference: Difference, job: ComparedJob) -> bool:
    """A class that only events of -1 us make, in a trace that has no communication."""
    return bool(difference.hta["sum"] <= 1 and "COMMUNICATION" in difference.hta["kernel_type"])


def rounded_away(difference: Difference, job: ComparedJob) -> bool:
    """Nothing of it is left in whole us."""
    return bool(0 < difference.ours["sum"] < 1)


def pauses_below_zero(difference: Difference, job: ComparedJob) -> bool:
    """HTA measured a pause from the end of the row before although an earlier one still ran."""
    frame = job.hta["idle"]["answer"][1]
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
    return tuple(difference.key) in below


# -- launches ----------------------------------------------------------------------------------------


def another_call(difference: Difference, job: ComparedJob) -> bool:
    """No call that HTA counts carries this id."""
    return not job.calls.get(difference.key[0], set()) & COUNTED_CALLS


def share_of_starts(difference: Difference, job: ComparedJob) -> bool:
    """HTA divides by the time from the first start to the last start, we by that to the last end."""
    starts = job.column(job.hta, "trace_frame", "ts")
    held = difference.row["duration_at_max_queue_length"]
    return math.isclose(difference.hta * (max(starts) - min(starts)), held, rel_tol=CLOSE)


def another_stream_is_full(difference: Difference, job: ComparedJob) -> bool:
    """HTA keeps one stream per rank, the last."""
    told_of = job.hta[difference.question]["answer"]
    columns = dict(zip(told_of["columns"], told_of["data"], strict=True))
    kept = dict(zip(columns["rank"], columns["stream"], strict=True))
    rank, stream = difference.key[:2]
    return bool(kept[rank] > stream)


def at_one_time(difference: Difference, job: ComparedJob) -> bool:
    """Another point of the series has the same time, so that HTA's unstable sort may take either first."""
    if difference.kind == "order":
        return True
    if difference.question == "bandwidth_series":
        return job.points["bandwidth_series", difference.row["name"], difference.row["ts"]] > 1
    return job.points["queue_series", difference.row["stream"], difference.row["ts"]] > 1


def of_the_series(difference: Difference, job: ComparedJob) -> bool:
    """Each side's statistic is that of the points of its own series, which are compared one by one."""
    (rank, stream), statistic = difference.key[0], difference.column.partition("|")[2]

    def of_points(side: dict[str, Any]) -> float:
        frame = side["queue_series"]["answer"][str(rank)]
        columns = dict(zip(frame["columns"], frame["data"], strict=True))
        points = zip(columns["stream"], columns["queue_length"], strict=True)
        return float(pd.Series([length for owner, length in points if owner == stream]).describe()[statistic])

    return math.isclose(of_points(job.hta), difference.hta) and math.isclose(
        of_points(job.ours), difference.ours
    )


def remainders(difference: Difference, job: ComparedJob) -> bool:
    """HTA's sum of floats leaves almost nothing instead of nothing, and counts it as a sample."""
    if difference.question == "bandwidth_series":
        return bool(abs(difference.hta) < CLOSE and difference.ours == 0)
    series = job.hta["bandwidth_series"]["answer"]
    frames = [frame for frame in series.values() if isinstance(frame, dict)]
    values = [value for frame in frames for value in frame["data"][frame["columns"].index("memory_bw_gbps")]]
    return any(0 < value < CLOSE for value in values)


def no_bandwidth_recorded(difference: Difference, job: ComparedJob) -> bool:
    """Some copies of the trace have none: HTA takes 0 for it."""
    return any(
        is_device(event)
        and event["cat"] in ("gpu_memcpy", "gpu_memset", "mtia_ccp_events")
        and "memory bandwidth (GB/s)" not in event.get("args", {})
        for event in job.events
    )


def zero_bandwidth(difference: Difference, job: ComparedJob) -> bool:
    return difference.hta["value"] == 0
