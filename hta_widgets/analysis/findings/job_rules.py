"""Rules about the job: what communication costs, and steps that take unusually long."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.collectives import recorded
from hta_widgets.analysis.communication.operations import POINT_TO_POINT
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.device_time.busy import busy
from hta_widgets.analysis.device_time.step_times import LEAST_STEPS
from hta_widgets.analysis.findings.critical import off_critical_path, said_of, severity_on_path
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.idle_rules import shares_of
from hta_widgets.analysis.findings.in_passes import in_passes, only_forward
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.pipeline_rules import bubble
from hta_widgets.analysis.findings.unusual_steps import beyond_usual, comes_every, without_waits
from hta_widgets.analysis.parallelism.dimensions import CONTEXT, EXPERT, TENSOR, described
from hta_widgets.analysis.parallelism.process_groups import process_groups
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import duration, percent

__all__ = ["exposed_communication", "slow_steps"]

_EARLIER = (
    "Start communication earlier and in larger pieces: gradient buckets, prefetching of sharded "
    "parameters, or a process group of fewer ranks."
)
_IN_PASSES = (
    "Most of it is in all-reduces of groups that reduce in the forward pass, too, between layers, as tensor "
    "parallelism does: gradient buckets and prefetching do not reach these. Overlap them with parts of the "
    "work around them (async tensor parallelism), or let fewer ranks share a layer."
)
_WITHOUT_GRADIENTS = (
    "Let it run beside compute that does not need its result, or let fewer ranks share the work."
)
"""Where no backward pass is recorded."""
_UNCLEAR = ", to tell transfers from waiting for a late rank, which needs other changes. "
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
_ALL_TO_ALLS: Final = (
    "Neither gradient buckets nor prefetching of parameters reach all-to-alls (tokens, embeddings, parts of "
    "a sequence): start each as soon as what it sends is there, compute on another part of the batch "
    "meanwhile, let ranks send equally much, or send fewer bytes."
)

_INSIDE_LAYERS: Final = {
    TENSOR: "Most of it is in groups of tensor parallelism, inside layers, where gradient buckets and "
    "prefetching do not reach: overlap it with parts of the products around it (async tensor parallelism), "
    "or split layers over fewer ranks.",
    EXPERT: "Most of it brings tokens to experts and back, inside layers: overlap dispatch and combine with "
    "work that does not need them, such as shared experts or another microbatch.",
    CONTEXT: "Most of it passes parts of the sequence between ranks, inside attention: compute on one part "
    "while the next one arrives (ring attention), or split the sequence over fewer ranks.",
}
"""By what the process groups that communicate most of it are for, where they are described as that alone."""

_BY_OPERATION: Final = (
    (POINT_TO_POINT, "sends and receives", _BUBBLES),
    (("dispatch", "combine"), "dispatch and combine", _INSIDE_LAYERS[EXPERT]),
    (("all_to_all",), "all-to-alls", _ALL_TO_ALLS),
)


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
    first = ""
    if 2 * int(inputs.unclear.sum()) > lost:
        beyond, first = ", waiting for other ranks included", _whom_to_ask(inputs)
    who = "The device communicates" if len(frame) == 1 else "The devices communicate"

    def are_most(operations: Collection[str]) -> bool:
        chosen = inputs.collectives["collective"].isin(operations)
        own = _exposed(inputs, inputs.collectives[chosen]) if chosen.any() else 0
        return 2 * (int(exposed.sum()) - own) < lost  # wherever the waiting is

    usual = _WITHOUT_GRADIENTS if only_forward(inputs) else _EARLIER
    for operations, name, advice in _BY_OPERATION:
        if are_most(operations):
            beyond += f", most of it in {name}"
            usual = _BESIDE_PASSES if advice == _BUBBLES and of_stages is not None else advice
    off_path = off_critical_path(inputs, frame.index.tolist(), "exposed_communication")
    return Finding(
        "exposed_communication",
        cost,
        share,
        f"{who} {inputs.share(share)}{inputs.per_step(cost)} without computing{beyond}{said_of(off_path)}; "
        f"{percent(hidden)} of all communication hides behind compute.",
        first + (_INSIDE_LAYERS.get(_purpose_of_most(inputs, lost)) or _of_passes(inputs, lost) or usual),
        "comm_comp_overlap",
        share_of=shares_of(frame.reset_index(), (exposed - waited).clip(lower=0)),
        severity=severity_on_path(share, off_path),
    )


def _whom_to_ask(inputs: Inputs) -> str:
    """Which ranks would tell waiting from transfers; "" where all are there and still do not."""
    trace, selected = inputs.trace, inputs.scope.ranks
    if selected is not None and not set(trace.ranks).issubset(selected):
        return f"Select all ranks first{_UNCLEAR}"
    return f"Record all ranks first{_UNCLEAR}" if len(trace.ranks) == 1 or trace.absent.count else ""


def _exposed(inputs: Inputs, found: pd.DataFrame) -> int:
    """How long these kernels run on all ranks together without compute, waiting included, ns."""
    length = 0
    for rank, rows in found.groupby("rank"):
        rank_trace = inputs.trace.rank(int(str(rank)))
        windows = rank_trace.windows(inputs.scope)
        runs = Intervals.union(*(rows[name].to_numpy(np.int64) for name in ("start_ns", "end_ns")))
        inside = runs & Intervals.union(windows[:, 0], windows[:, 1])
        length += (inside - busy(rank_trace, inputs.scope).compute).length
    return length


def _purpose_of_most(inputs: Inputs, lost: int) -> str:
    """What the groups are for that communicate most of the time lost; "" if no one of `_INSIDE_LAYERS`."""
    said = {
        text: described(text)[0] for text in recorded(inputs.trace)["group_description"].dropna().unique()
    }
    if not any((dimension,) in said.values() for dimension in _INSIDE_LAYERS):
        return ""
    groups = process_groups(inputs.trace, inputs.scope)
    for dimension in _INSIDE_LAYERS:
        own = [group.traffic for group in groups if said.get(group.description) == (dimension,)]
        if own and 2 * _transferring(inputs, pd.concat(own)) > lost:
            return dimension
    return ""


def _of_passes(inputs: Inputs, lost: int) -> str:
    """What to do where most of it is in all-reduces of the forward pass and their groups; "" elsewhere."""
    found = inputs.collectives.loc[in_passes(inputs)]
    return _IN_PASSES if len(found) and 2 * _transferring(inputs, found) > lost else ""


def _transferring(inputs: Inputs, found: pd.DataFrame) -> int:
    """`_exposed` without waiting for other ranks, as far as that can be told, ns."""
    known = inputs.collectives[["rank", "event_id", "dur_ns", "transfer_ns"]]
    own = found[["rank", "event_id"]].merge(known, on=["rank", "event_id"])
    return _exposed(inputs, found) - int((own["dur_ns"] - own["transfer_ns"]).sum())


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
    late = without_waits(inputs, _not_stalled(inputs, steps[steps["outlier"]]))
    if late.empty:
        return None
    ranks = late["rank"].nunique()
    whole = int(steps.loc[steps["rank"].isin(late["rank"]), "dur_ns"].sum())
    lost = int(late["excess_ns"].sum())
    worst = late.iloc[int(late["excess_ns"].to_numpy(np.int64).argmax())]
    slow = sorted(late["iteration"].unique().tolist())
    count, every = len(slow), comes_every(sorted(steps["iteration"].unique().tolist()), slow)
    beyond = beyond_usual(inputs, int(worst["rank"]), int(worst["iteration"]))
    regular = (
        f"They come every {every} steps, as the last pass of accumulated gradients, logging and evaluation "
        "do: what is meant to happen is no loss. "
    )
    return Finding(
        "slow_steps",
        lost // ranks,
        100.0 * lost / whole,
        f"{count} of {steps['iteration'].nunique()} steps {'takes' if count == 1 else 'take'} unusually long "
        f"and {'costs' if count == 1 else 'cost'} {inputs.share(100.0 * lost / whole)}: iteration "
        f"{worst['iteration']} takes {duration(worst['dur_ns'])} on rank {worst['rank']}, "
        f"{duration(worst['usual_ns'])} is usual{beyond.words}.",
        f"{regular * bool(every)}{beyond.advice}",
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
