"""What the time of the devices is when little of it is lost, and idle time whose cause was not recorded."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.idle_rules import concerned
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import IDLE_QUESTION, MAIN_QUESTION, Rule, never
from hta_widgets.analysis.findings.turn_rules import devices_of
from hta_widgets.formatting import duration, percent, significant
from hta_widgets.kernel_names import short_kernel_name
from hta_widgets.trace.suspects import suspects

__all__ = ["RULES", "compute_bound", "maybe_communication", "no_work_due", "unrecorded_idle"]

# From this share of the time on, what is not computing cannot be what makes the steps long.
COMPUTE_BOUND_PCT = 80.0
_MOST_KERNELS = 3
_LEAST_PCT = 0.1

_suspects = memoize_per_rank()(suspects)


def compute_bound(inputs: Inputs) -> Finding | None:
    """Devices that compute nearly all of the time: the kernels themselves are what takes it.

    Its share is the time that computes, and it costs nothing: computing is what a device is for.
    """
    frame = inputs.temporal
    if frame.empty:
        return None
    several = [devices for rank in frame["rank"] if (devices := inputs.of(int(rank), devices_of)).number > 1]
    share = 100.0 * int(frame["compute_ns"].sum()) / int(frame["window_ns"].sum())
    each = 100.0 * sum(devices.compute_ns for devices in several) / int(frame["window_ns"].sum())
    if share < COMPUTE_BOUND_PCT or (len(several) == len(frame) and each < COMPUTE_BOUND_PCT):
        return None
    who = "The device computes" if len(frame) == 1 and not several else "The devices compute"
    kernels = _kernel_shares(inputs)
    by_short = kernels.groupby(short_kernel_name, sort=False).sum().nlargest(_MOST_KERNELS)
    longest = ", ".join(f"{name} ({percent(part)})" for name, part in by_short.items())
    # none where the scope's names are those of work that began before it
    most = f" The kernels with most computing time: {longest}." if longest else ""
    return Finding(
        0,
        share,
        f"{who} {inputs.share(share)}{_beside(100.0 - share)}.{most}",
        "Look at the kernels that take most time: their data types, shapes and operators.",
        "kernel_breakdown",
        Evidence(name=str(kernels.index[0]) if len(kernels) else ""),
        severity="verdict",
    )


def _beside(rest_pct: float) -> str:
    """What all else takes, no more precisely than anybody could act on."""
    if rest_pct <= 0:
        return ""
    told = percent(rest_pct) if rest_pct >= _LEAST_PCT else f"less than {percent(_LEAST_PCT)}"
    return f"; all else together takes {told}"


def maybe_communication(inputs: Inputs) -> Finding | None:
    """Device work that counts as compute or copies, but is surrounded by signs of exchange between ranks."""
    longest, window, where = 0, 1, None
    for rank, time in zip(inputs.temporal["rank"], inputs.temporal["window_ns"], strict=True):
        found = inputs.of(rank, _first_suspect)
        if found is not None and int(found["dur_ns"]) > longest:
            longest, window, where = int(found["dur_ns"]), int(time), (int(rank), found)
    if where is None:
        return None
    rank, suspect = where
    share = 100.0 * min(longest, window) / window
    return Finding(
        longest,
        share,
        f"{duration(longest)} on stream {suspect['stream']} of rank {rank} may be communication: "
        f"{short_kernel_name(suspect['name'])}, {suspect['why']}. It does not count as communication here.",
        "If it is, count it as such: in the list of the trace's health, by classify.register, or in a file "
        "hta_widgets.toml beside the traces.",
        "kernel_breakdown",
        Evidence(rank=rank if len(inputs.temporal) > 1 else None, name=str(suspect["name"])),
        severity="note" if severity_of(share) else None,
    )


def _first_suspect(inputs: Inputs, rank: int) -> pd.Series | None:
    """The longest work of a rank that may be communication."""
    found = _suspects(inputs.trace.rank(rank), inputs.trace.job_size)
    return found.iloc[0] if len(found) else None


def unrecorded_idle(inputs: Inputs) -> Finding | None:
    """Idle time before device work whose launch was not recorded: its cause cannot be known."""
    frame = inputs.idle_at_all
    if frame.empty:
        return None
    about = concerned(frame, frame["unknown_ns"])
    lost = int(about["unknown_ns"].sum())
    if not lost:
        return None
    cost, share = lost // len(about), 100.0 * lost / int(about["window_ns"].sum())
    idle = 100.0 * int(about["idle_ns"].sum()) / int(about["window_ns"].sum())
    missing = _share_without_launch(inputs, about["rank"].tolist())
    return Finding(
        cost,
        share,
        f"Of {percent(idle)} idle time {significant(share)} points have no recorded cause"
        f"{inputs.per_step(cost)}: the launches of {percent(missing)} of the device work are missing.",
        "Record with ProfilerActivity.CPU, from before the first step that matters, and drop no events.",
        "idle_breakdown",
        Evidence(rank=int(about["rank"].iloc[0]) if len(about) < len(frame) else None),
    )


def no_work_due(inputs: Inputs) -> Finding | None:
    """Time before the first or after the last device work of the recording, inside the steps."""
    frame = inputs.idle_at_all
    if frame.empty:
        return None
    about = concerned(frame, frame["edge_ns"])
    lost = int(about["edge_ns"].sum())
    if not lost:
        return None
    cost, share = lost // len(about), 100.0 * lost / int(about["window_ns"].sum())
    return Finding(
        cost,
        share,
        f"For {inputs.share(share)}{inputs.per_step(cost)} the device has no work yet, or no more: start-up, "
        "the end of the program, or the edge of the recording.",
        "Record steps after the warm-up: torch.profiler.schedule(wait=1, warmup=3, active=5).",
        "idle_breakdown",
        Evidence(rank=int(about["rank"].iloc[0]) if len(about) < len(frame) else None),
    )


def _kernel_shares(inputs: Inputs) -> pd.Series[float]:
    """Share (%) of the time of all compute kernels that each name takes, over all ranks; longest first."""
    counts, means = inputs.compute_kernels
    total = (counts * means).sum(axis=1)
    return (100.0 * total / total.sum()).sort_values(ascending=False, kind="stable")


def _share_without_launch(inputs: Inputs, ranks: list[int]) -> float:
    """Share (%) of the device work in the scope, by count, that no recorded call launched."""
    missing = total = 0
    for rank in ranks:
        of_rank, all_of_it = inputs.of(rank, _without_launch)
        missing, total = missing + of_rank, total + all_of_it
    return 100.0 * missing / total if total else 0.0


def _without_launch(inputs: Inputs, rank: int) -> tuple[int, int]:
    """How much device work of the judged time no recorded call launched, and how much there is."""
    rank_trace = inputs.trace.rank(rank)
    rows = rank_trace.rows(inputs.scope)
    rows = rows[rank_trace.is_device[rows]]
    return int(np.count_nonzero(rank_trace.launch[rows] < 0)), len(rows)


RULES = (
    Rule(
        topic="compute_bound",
        question=MAIN_QUESTION,
        title="Computing",
        judge=compute_bound,
        role="work",
        applies=never,
        headline="what takes longest are the kernels themselves",
    ),
    Rule(
        topic="maybe_communication",
        question="what communication costs",
        title="Work that may be communication",
        judge=maybe_communication,
        role="doubt",
        applies=never,
        no_change="whether it is communication is not known",
        headline="may be communication that does not count as such",
    ),
    Rule(
        topic="unrecorded_idle",
        question=IDLE_QUESTION,
        title="Idle time without a recorded cause",
        judge=unrecorded_idle,
        no_change="no launch is recorded that could come earlier",
    ),
    Rule(
        topic="no_work_due",
        question=IDLE_QUESTION,
        title="Time without any device work, at an end of the recording,",
        judge=no_work_due,
        no_change="nothing is recorded that could come earlier",
    ),
)
