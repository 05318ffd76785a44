"""Rules about the job: what communication costs, and steps that take unusually long."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.device_time.busy import busy
from hta_widgets.analysis.device_time.step_times import LEAST_STEPS
from hta_widgets.analysis.findings.critical import off_critical_path, said_of, severity_on_path
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.pipeline_rules import bubble
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import duration, percent

__all__ = ["exposed_communication", "slow_steps"]

_PAIRS = ("send", "recv", "sendrecv")
_EARLIER = (
    "Start communication earlier and in larger pieces: gradient buckets, prefetching of sharded "
    "parameters, or a process group of fewer ranks."
)
_BUBBLES = (
    "Stages of a pipeline wait for each other so: more microbatches per step, interleaved stages or other "
    "boundaries between them make the bubbles smaller. Other sends can be posted before compute that does "
    "not need them."
)

_BESIDE_PASSES = (
    "Send and receive beside passes that do not need it: post receives ahead, and let no pass wait for its "
    "own send."
)
"""Where the bubbles of the pipeline are a finding of their own."""


def exposed_communication(inputs: Inputs) -> Finding | None:
    """Communication that no compute hides, without what is waiting for another rank."""
    frame = inputs.temporal.set_index("rank")
    if frame.empty or not frame["communication_ns"].sum():
        return None
    exposed = frame["exposed_communication_ns"]
    of_stages = bubble(inputs)
    try:
        waited = inputs.late.groupby("rank")["waited_ns"].sum().reindex(frame.index, fill_value=0)
    except MissingDataError:  # waiting and sending cannot be distinguished: all of it counts
        waited = pd.Series(0, frame.index) if of_stages is None else of_stages.claimed
    lost = int((exposed - waited).clip(lower=0).sum())
    cost, share = lost // len(frame), 100.0 * lost / int(frame["window_ns"].sum())
    hidden = 100.0 - 100.0 * exposed.sum() / frame["communication_ns"].sum()
    beyond = ", the waiting for other ranks aside" if waited.any() else ""
    if 2 * int(inputs.unclear.sum()) > lost:
        beyond = ", waiting for other ranks included"
    who = "The device communicates" if len(frame) == 1 else "The devices communicate"
    pairs = 2 * (int(exposed.sum()) - _in_pairs(inputs)) < lost  # wherever the waiting is
    if pairs:
        beyond += ", most of it in sends and receives"
    off_path = off_critical_path(inputs, frame.index.tolist(), "exposed_communication")
    return Finding(
        "exposed_communication",
        cost,
        share,
        f"{who} {inputs.share(share)}{inputs.per_step(cost)} without computing{beyond}{said_of(off_path)}; "
        f"{percent(hidden)} of all communication hides behind compute.",
        (_BUBBLES if of_stages is None else _BESIDE_PASSES) if pairs else _EARLIER,
        "comm_comp_overlap",
        severity=severity_on_path(share, off_path),
    )


def _in_pairs(inputs: Inputs) -> int:
    """How long all ranks together send and receive without computing, waiting included, ns."""
    found = inputs.collectives
    found, length = found[found["collective"].isin(_PAIRS)], 0
    for rank, rows in found.groupby("rank"):
        rank_trace = inputs.trace.rank(int(str(rank)))
        windows = rank_trace.windows(inputs.scope)
        sent = Intervals.union(*(rows[name].to_numpy(np.int64) for name in ("start_ns", "end_ns")))
        inside = sent & Intervals.union(windows[:, 0], windows[:, 1])
        length += (inside - busy(rank_trace, inputs.scope).compute).length
    return length


def slow_steps(inputs: Inputs) -> Finding | None:
    """Steps that take unusually long, as `step_times` defines it. The cost is what they take beyond usual.

    Steps that hold start-up are not unusual: they are left out.
    """
    if not len(inputs.steps):
        return None
    if inputs.steps["confidence"].eq("low").any():
        raise MissingDataError(
            "announced steps",
            "Call prof.step() after each step, with a profiler schedule.",
            "they are guessed from what repeats",
        )
    if inputs.steps["usual_ns"].isna().all():
        raise MissingDataError(
            "fourth complete step of a kind",
            "Record more steps: torch.profiler.schedule(..., active=10).",
            f"what is usual takes {LEAST_STEPS} steps to tell",
        )
    steps = inputs.steps[~inputs.steps["partial"] & ~inputs.steps["start_up"]]
    late = _not_stalled(inputs, steps[steps["outlier"]])
    if late.empty:
        return None
    ranks = late["rank"].nunique()
    whole = int(steps.loc[steps["rank"].isin(late["rank"]), "dur_ns"].sum())
    lost = int(late["excess_ns"].sum())
    worst = late.iloc[int(late["excess_ns"].to_numpy(np.int64).argmax())]
    count = late["iteration"].nunique()
    return Finding(
        "slow_steps",
        lost // ranks,
        100.0 * lost / whole,
        f"{count} of {steps['iteration'].nunique()} steps {'takes' if count == 1 else 'take'} unusually long "
        f"and {'costs' if count == 1 else 'cost'} {inputs.share(100.0 * lost / whole)}: iteration "
        f"{worst['iteration']} takes {duration(worst['dur_ns'])} on rank {worst['rank']}, "
        f"{duration(worst['usual_ns'])} is usual.",
        "Look at what only happens in these steps: logging, checkpoints, evaluation, garbage collection, new "
        "shapes.",
        "temporal_breakdown",
        Evidence(rank=int(worst["rank"]) if ranks == 1 else None, iteration=int(worst["iteration"])),
    )


def _not_stalled(inputs: Inputs, late: pd.DataFrame) -> pd.DataFrame:
    """Unusual steps without those of which a stall of the host, a finding of its own, is most of the excess.

    Of the others it is no part of the excess.
    """
    if late.empty:
        return late
    spans = zip(late["rank"], late["start_ns"], late["end_ns"], strict=True)
    stalled = np.array([inputs.paused(rank).stalls.clip(start, end).length for rank, start, end in spans])
    excess = late["excess_ns"].to_numpy(np.int64)
    return late.assign(excess_ns=excess - stalled)[2 * stalled < excess]
