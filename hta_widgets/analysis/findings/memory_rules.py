"""Rules about memory: it leaks, is nearly full, or is reserved in vain. None of that takes time."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.claim import Claim, Text, Unit, say
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.in_passes import only_forward
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Rule
from hta_widgets.analysis.memory.advice import LIKELY, memory_levels
from hta_widgets.analysis.memory.owners import memory_owners
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.scope import Scope

NEARLY_FULL: Final = 0.9
"""Of a device's memory: a few blocks more, or a longer input, and an allocation fails."""

MUCH_SLACK: Final = 0.1
"""Of what is reserved: usually what is freed in a step is used again in the next."""

_SOON: Final = 10_000
"""A leak that fills the device in as many steps ends most trainings."""

_GROWN: Final = 0.01
"""Without the device's memory: a leak that has grown by this share of the peak is worth a word."""


@memoize_per_rank()
def _devices(inputs: Inputs) -> pd.DataFrame | None:
    """The levels of the accelerators' memory; None where it was not recorded."""
    frames = []
    for rank in inputs.trace.ranks_of(inputs.asked):
        with contextlib.suppress(MissingDataError):
            frames.append(inputs.of(rank, _levels))
    if not frames:
        return None
    frame = pd.concat(frames, ignore_index=True)
    return frame[frame["device"] != "cpu"]


def _levels(inputs: Inputs, rank: int) -> pd.DataFrame:
    return memory_levels(inputs.trace, replace(inputs.asked, ranks=(rank,)))


def _leak(inputs: Inputs) -> Finding | None:
    """The lowest level of the steps rises: the device that is full first."""
    frame = _devices(inputs)
    if frame is None:
        return None
    frame = frame[(frame["leak_p"] < LIKELY) & (frame["leak_bytes_per_step"].fillna(0) > 0)]
    if frame.empty:
        return None
    free = (frame["device_bytes"] - frame["allocated_bytes"]).astype("float64").clip(lower=0)
    rate = frame["leak_bytes_per_step"].astype("float64")
    left = free / rate
    grown = rate * frame["steps"] / frame["allocated_bytes"]
    telling = (left <= _SOON) | (left.isna() & (grown >= _GROWN))
    if not telling.any():
        return None
    first = min(np.flatnonzero(telling), key=lambda at: (left.fillna(np.inf).iloc[at], -rate.iloc[at]))
    row, steps = frame.iloc[first], left.iloc[first]
    when = (
        ""
        if np.isnan(steps)
        else say("; about {left} steps more fill the device", left=_of(row, "steps_left", round(steps)))
    )
    return _finding(
        say(
            "Each step leaves about {rate} allocated on {place}: the lowest level of its {steps} steps rises"
            "{when}.",
            rate=_of(row, "leak_per_step", int(row["leak_bytes_per_step"]), "B"),
            place=_place(row),
            steps=_of(row, "steps_of_memory", int(row["steps"])),
            when=when,
        ),
        "Keep numbers, not tensors, of past steps (loss.item(), .detach()); look for lists, caches and hooks "
        "that hold tensors.",
        "memory_timeline",
        row,
    )


def _full(inputs: Inputs) -> Finding | None:
    """Allocated memory comes close to what the device has."""
    frame = _devices(inputs)
    if frame is None:
        return None
    share = (frame["allocated_bytes"] / frame["device_bytes"]).astype("float64")
    if not (share >= NEARLY_FULL).any():
        return None
    fullest = int(share.fillna(0).to_numpy().argmax())
    row = frame.iloc[fullest]
    owners = memory_owners(
        inputs.trace,
        Scope((int(row["rank"]),), inputs.asked.iterations, inputs.asked.window_ns),
        "lifetime",
    )
    most = owners[owners["device"] == row["device"]].iloc[0]
    less = "smaller micro-batches and gradient accumulation, or activation checkpoints"
    if only_forward(inputs):
        less = "smaller batches"
    elif len(inputs.trace.ranks) > 1 and not inputs.has_fsdp:
        less += ", or sharded states (FSDP, ZeRO)"
    return _finding(
        say(
            "Tensors take up to {share} of the memory of {place}, {size}. Largest part: {owner} ({part}).",
            share=_of(row, "memory_full", 100.0 * float(share.iloc[fullest]), "%"),
            place=_place(row),
            size=_of(row, "most_allocated", int(row["allocated_bytes"]), "B"),
            part=_of(row, "memory_of_owner", float(most["share_pct"]), "%", owner=str(most["name"])),
            owner=_of(row, "largest_owner", str(most["name"]), "name"),
        ),
        f"Less is needed with {less}. A longer input than these may not fit.",
        "memory_owners",
        row,
    )


def _fragmentation(inputs: Inputs) -> Finding | None:
    """The allocator has nearly all of the device, and cannot use much of it when most is allocated."""
    frame = _devices(inputs)
    if frame is None:
        return None
    reserved = frame["reserved_bytes"].astype("float64")
    slack = frame["slack_bytes"].astype("float64")
    chosen = (reserved >= NEARLY_FULL * frame["device_bytes"].astype("float64")) & (
        slack >= MUCH_SLACK * reserved
    )
    if not chosen.any():
        return None
    row = frame.iloc[int(slack.where(chosen, -1).to_numpy().argmax())]
    setting = "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; fewer"
    return _finding(
        say(
            "On {place}, {slack} of the {reserved} reserved are not allocated when most memory is. The "
            "device is nearly full: free blocks do not fit what is requested.",
            place=_place(row),
            slack=_of(row, "slack_at_peak", int(row["slack_bytes"]), "B"),
            reserved=_of(row, "reserved_at_peak", int(row["reserved_bytes"]), "B"),
        ),
        f"{setting if str(row['device']).startswith('cuda') else 'Fewer'} distinct sizes (padding to a few "
        "lengths) help.",
        "memory_timeline",
        row,
    )


def _of(row: pd.Series, measure: str, value: float | str, unit: Unit = "count", **about: Any) -> Claim:
    """A claim about a device's memory."""
    of = "memory" if unit == "%" else ""
    return Claim(measure, value, unit, of, (int(row["rank"]),), {"device": str(row["device"]), **about})


def _place(row: pd.Series) -> Text:
    rank = (int(row["rank"]),)
    return say(
        "{device} of {rank}",
        device=Claim("device_with_memory", str(row["device"]), "name", "", rank),
        rank=Claim("rank_with_memory", rank, "ranks"),
    )


def _finding(text: Text, suggestion: str, kind: str, row: pd.Series) -> Finding:
    rank = int(row["rank"])
    return Finding(0, 0.0, text, suggestion, kind, Evidence(rank=rank), severity="warning")


RULES = (
    Rule(
        topic="memory_leak",
        question="whether memory leaks",
        title="Memory leaks",
        judge=_leak,
        role="memory",
        headline="memory leaks",
        wrong_if="The program fills a cache of fixed size, or later steps free what these leave.",
    ),
    Rule(
        topic="memory_full",
        question="whether memory is nearly full",
        title="Memory is nearly full",
        judge=_full,
        role="memory",
        headline="memory is nearly full",
        wrong_if="Later steps need no more than these.",
    ),
    Rule(
        topic="memory_fragmentation",
        question="whether memory is reserved in vain",
        title="Memory is reserved in vain",
        judge=_fragmentation,
        role="memory",
        headline="memory is reserved in vain",
        wrong_if="Other streams or processes use what is reserved.",
    ),
)
