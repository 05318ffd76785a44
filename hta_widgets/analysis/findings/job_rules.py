"""Rules about the job: time that ranks lose to each other, and steps that take unusually long."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.device_time.step_times import LEAST_STEPS
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import duration, percent

__all__ = ["exposed_communication", "slow_steps", "straggler"]


def straggler(inputs: Inputs) -> Finding | None:
    """A rank that arrives last at collectives while the others wait for it.

    What the others wait is counted as far as no compute hides it: at most their exposed communication.
    """
    caused = inputs.late.groupby("rank")["caused_wait_ns"].sum()
    if caused.empty or not caused.max():
        return None
    rank = int(caused.index.to_numpy()[caused.to_numpy().argmax()])
    others = inputs.temporal[inputs.temporal["rank"] != rank]
    if others.empty:
        return None
    lost = min(int(caused.max()), int(others["exposed_communication_ns"].sum()))
    cost, share = lost // len(others), 100.0 * lost / int(others["window_ns"].sum())
    own = inputs.late[inputs.late["rank"] == rank]
    part = percent(100.0 * int(caused.max()) / int(caused.sum()))
    return Finding(
        "straggler",
        cost,
        share,
        f"The other ranks wait for rank {rank} {inputs.share(share)}{inputs.per_step(cost)}: it arrives last "
        f"at {own['last'].sum()} of {own['counted'].sum()} uneven collectives and causes {part} of all "
        "waiting.",
        f"Compare rank {rank} with the others: its kernels, its idle time, and the size of its batches.",
        "stragglers",
        Evidence(rank=rank),
    )


def exposed_communication(inputs: Inputs) -> Finding | None:
    """Communication that no compute hides, without what is waiting for a late rank."""
    frame = inputs.temporal
    if frame.empty or not frame["communication_ns"].sum():
        return None
    try:
        late = straggler(inputs)
    except MissingDataError:  # waiting and sending cannot be distinguished: all of it counts
        late = None
    waiting = late.cost_ns * (len(frame) - 1) if late else 0
    lost = max(0, int(frame["exposed_communication_ns"].sum()) - waiting)
    cost, share = lost // len(frame), 100.0 * lost / int(frame["window_ns"].sum())
    hidden = 100.0 - 100.0 * frame["exposed_communication_ns"].sum() / frame["communication_ns"].sum()
    beyond = ", the waiting for late ranks aside" if waiting else ""
    who = "The device communicates" if len(frame) == 1 else "The devices communicate"
    return Finding(
        "exposed_communication",
        cost,
        share,
        f"{who} {inputs.share(share)}{inputs.per_step(cost)} without computing{beyond}; {percent(hidden)} of "
        "all communication hides behind compute.",
        "Start communication earlier and in larger pieces: gradient buckets, prefetching of sharded "
        "parameters, or a process group of fewer ranks.",
        "comm_comp_overlap",
    )


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
    steps = inputs.steps[~inputs.steps["partial"]]
    where = zip(steps["rank"].tolist(), steps["iteration"].tolist(), strict=True)
    steps = steps[[step not in inputs.left_out for step in where]]
    late = steps[steps["outlier"]]
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
        f"and cost {inputs.share(100.0 * lost / whole)}: iteration {worst['iteration']} takes "
        f"{duration(worst['dur_ns'])} on rank {worst['rank']}, {duration(worst['usual_ns'])} is usual.",
        "Look at what only happens in these steps: logging, checkpoints, evaluation, garbage collection, new "
        "shapes.",
        "temporal_breakdown",
        Evidence(rank=int(worst["rank"]) if ranks == 1 else None, iteration=int(worst["iteration"])),
    )
