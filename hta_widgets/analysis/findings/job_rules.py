"""Rules about the job: time that ranks lose to each other, and steps that take unusually long."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.standing_out import ranks_in_words, standing_out
from hta_widgets.analysis.device_time.step_times import LEAST_STEPS
from hta_widgets.analysis.findings.critical import off_critical_path, said_of, severity_on_path
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import duration, percent

__all__ = [
    "culprits",
    "exposed_communication",
    "slow_steps",
    "straggler",
    "waiting_share",
]

# Ranks that wait for a tenth of what another waits are not worth naming.
_FAR_LESS = 10
# What a culprit does longer than others explains a wait if it makes up a third of it.
_LITTLE = 3
# Above it, nobody is named: the unknown part may change who causes most.
_MOSTLY_UNKNOWN_PCT = 50.0
_ACTIVITIES = {
    "computing": ("computes", "compute"),
    "transferring": ("transfers data", "transfer data"),
    "copying": ("copies memory", "copy memory"),
    "idle": ("is idle", "are idle"),
}
_SUGGESTIONS = {
    "computing": "Compare the kernels of {ranks} with those of the others: how many, how large, how fast.",
    "transferring": "Look at what {ranks} transfer beside the others, and over which links.",
    "copying": "Look at what {ranks} copy beside the others, and whether it must be then.",
    "idle": "Look at what the host of {ranks} does then: the data loader, synchronising calls, Python.",
}


def straggler(inputs: Inputs) -> Finding | None:
    """The ranks that cause most of what the others wait, as `waits` and `standing_out` define it.

    What a rank waits counts as far as no compute hides it: at most its exposed communication. That is no
    promise: without the wait, the rank may wait for something else.
    """
    waited, unknown = int(inputs.late["waited_ns"].sum()), _unknown_pct(inputs)
    if waited and inputs.trace.clock.method == "start":
        raise MissingDataError(
            "common clock of the ranks",
            "Open the files of one run together; torch.profiler states the zero of its times "
            "(baseTimeNanoseconds) from PyTorch 2.4 on.",
            "so the recordings may be of different runs",
        )
    if unknown > _MOSTLY_UNKNOWN_PCT:
        if not severity_of(waiting_share(inputs)[1]):
            return None
        raise MissingDataError(
            f"record of what {percent(unknown)} of the waiting is for",
            "Record every rank, in the same run, with a PyTorch that writes the ranks of sends and receives "
            "(Src Rank, Dst Rank).",
            "the ranks wait for others whose own waits are not recorded",
        )
    ranks = standing_out(inputs.late)
    if not ranks:
        return None
    parts = inputs.waits[inputs.waits["culprit"].isin(ranks)]
    frame = inputs.temporal[~inputs.temporal["rank"].isin(ranks)].set_index("rank")
    exposed = frame["exposed_communication_ns"]
    waits = parts.groupby("rank")["wait_ns"].sum().reindex(frame.index, fill_value=0).clip(upper=exposed)
    waits = waits[waits * _FAR_LESS > waits.max()]
    if waits.empty:
        return None
    cost, share = int(waits.sum()) // len(waits), 100.0 * waits.sum() / frame["window_ns"][waits.index].sum()
    named, who = ranks_in_words(ranks), _waiting(waits.index.tolist(), len(frame))
    caused = percent(100.0 * int(parts["wait_ns"].sum()) / waited)
    longer = _longer(inputs, ranks, cost)
    if longer.empty:  # no rank has more to do: the waiting is due to their order, as in a pipeline
        return None
    return Finding(
        "straggler",
        cost,
        share,
        f"{who} for {named} {inputs.share(share)}{inputs.per_step(cost)}, {caused} of all waiting"
        f"{_recorded(inputs)}.{_through(parts, ranks)}{_told(inputs, ranks, longer)}",
        _SUGGESTIONS[str(longer.index[0])].format(ranks=named),
        "stragglers",
        Evidence(rank=ranks[0] if len(ranks) == 1 else None),
    )


def _waiting(ranks: list[int], others: int) -> str:
    if len(ranks) == others > 1:
        return "The other ranks wait"
    text = ranks_in_words(sorted(ranks))
    return f"{text[0].upper()}{text[1:]} wait{'s' * (len(ranks) == 1)}"


def _recorded(inputs: Inputs) -> str:
    """What the share of the waiting is of, where ranks of the job were not recorded."""
    world, found = inputs.trace.summary["world_size"], len(inputs.trace.ranks)
    if isinstance(world, int) and world > found:
        return f" among the {found} of {world} ranks that were recorded"
    return ""


def _through(parts: pd.DataFrame, culprits: list[int]) -> str:
    """Who arrives last instead of the culprits, since it waits for them itself; "" if hardly anybody."""
    passed = parts[~parts["last"].isin(culprits)]
    if int(passed["wait_ns"].sum()) * _FAR_LESS < int(parts["wait_ns"].sum()):
        return ""
    sums = [passed.groupby(column)["wait_ns"].sum() for column in ("rank", "last")]
    waiting, through = (sorted(of[of * _FAR_LESS > of.max()].index.tolist()) for of in sums)
    themselves = "itself waits" if len(through) == 1 else "themselves wait"
    one, many = ranks_in_words(waiting), ranks_in_words(through)
    return (
        f" {one[0].upper()}{one[1:]} wait{'s' * (len(waiting) == 1)} through {many}, which {themselves} for "
        f"{ranks_in_words(culprits)}."
    )


def _unknown_pct(inputs: Inputs) -> float:
    """Share (%) of the waiting whose cause is unknown; kernels whose partners are unknown may all wait."""
    found = inputs.collectives
    alone = int(found.loc[found["match"].isna(), "dur_ns"].sum())
    waited, unfollowed = (int(inputs.late[column].sum()) for column in ("waited_ns", "unfollowed_ns"))
    return 100.0 * (unfollowed + alone) / max(waited + alone, 1)


def waiting_share(inputs: Inputs) -> tuple[int, float]:
    """What ranks wait for others with nothing else running, at most and on average: in ns, in % of the time.

    Kernels whose partners are unknown may wait all the time.
    """
    frame, found = inputs.temporal.set_index("rank"), inputs.collectives
    alone = found["dur_ns"].where(found["match"].isna(), 0).groupby(found["rank"]).sum()
    waited = inputs.late.groupby("rank")["waited_ns"].sum().add(alone, fill_value=0)
    waited = waited.reindex(frame.index, fill_value=0)
    lost = int(waited.clip(upper=frame["exposed_communication_ns"]).sum())
    return lost // max(len(frame), 1), 100.0 * lost / max(int(frame["window_ns"].sum()), 1)


def culprits(inputs: Inputs) -> list[int]:
    """The ranks that `straggler` names, if it is worth telling."""
    try:
        late = straggler(inputs)
    except MissingDataError:
        return []
    return standing_out(inputs.late) if late and severity_of(late.share_pct) else []


def _longer(inputs: Inputs, ranks: list[int], cost: int) -> pd.Series[float]:
    """What the culprits do longer than the others: time by activity, longest first, if it explains a lot."""
    frame = inputs.temporal.set_index("rank")
    waited = inputs.late.groupby("rank")["waited_ns"].sum().reindex(frame.index, fill_value=0)
    times = pd.DataFrame(
        {
            "computing": frame["compute_ns"],
            "transferring": (frame["exposed_communication_ns"] - waited).clip(lower=0),
            "copying": frame["exposed_memory_ns"],
            "idle": frame["idle_ns"],
        }
    )
    more = times.loc[ranks].mean() - times.drop(index=ranks).median()
    telling: pd.Series[float] = more[more * _LITTLE >= max(cost, more.max())]
    return telling.sort_values(ascending=False, kind="stable")


def _told(inputs: Inputs, ranks: list[int], longer: pd.Series[float]) -> str:
    verbs = [
        f"{_ACTIVITIES[str(activity)][len(ranks) > 1]} longer{inputs.per_step(time)}"
        for activity, time in longer.items()
    ]
    named = ranks_in_words(ranks)
    return f" {named[0].upper()}{named[1:]} {' and '.join(verbs)} than the others."


def exposed_communication(inputs: Inputs) -> Finding | None:
    """Communication that no compute hides, without what is waiting for another rank."""
    frame = inputs.temporal.set_index("rank")
    if frame.empty or not frame["communication_ns"].sum():
        return None
    exposed = frame["exposed_communication_ns"]
    try:
        waited = inputs.late.groupby("rank")["waited_ns"].sum().reindex(frame.index, fill_value=0)
    except MissingDataError:  # waiting and sending cannot be distinguished: all of it counts
        waited = pd.Series(0, frame.index)
    lost = int((exposed - waited).clip(lower=0).sum())
    cost, share = lost // len(frame), 100.0 * lost / int(frame["window_ns"].sum())
    hidden = 100.0 - 100.0 * exposed.sum() / frame["communication_ns"].sum()
    beyond = ", the waiting for other ranks aside" if waited.any() else ""
    unmatched = inputs.collectives["match"].isna()
    if 2 * inputs.collectives["dur_ns"][unmatched].sum() > inputs.collectives["dur_ns"].sum():
        beyond = ", waiting for other ranks included"
    who = "The device communicates" if len(frame) == 1 else "The devices communicate"
    off_path = off_critical_path(inputs, frame.index.tolist(), "exposed_communication")
    return Finding(
        "exposed_communication",
        cost,
        share,
        f"{who} {inputs.share(share)}{inputs.per_step(cost)} without computing{beyond}{said_of(off_path)}; "
        f"{percent(hidden)} of all communication hides behind compute.",
        "Start communication earlier and in larger pieces: gradient buckets, prefetching of sharded "
        "parameters, or a process group of fewer ranks.",
        "comm_comp_overlap",
        severity=severity_on_path(share, off_path),
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
