"""Rules about memory: it leaks, is nearly full, or is reserved in vain. None of that takes time."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.rule import Rule
from hta_widgets.analysis.memory.advice import LIKELY, memory_levels
from hta_widgets.analysis.memory.owners import memory_owners
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import byte_size, percent
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.analysis.findings.inputs import Inputs

__all__ = ["RULES"]

NEARLY_FULL: Final = 0.9
"""Of a device's memory: a few blocks more, or a longer input, and an allocation fails."""

MUCH_SLACK: Final = 0.1
"""Of what is reserved: usually what is freed in a step is used again in the next."""

_SOON: Final = 10_000
"""A leak that fills the device in as many steps ends most trainings."""

_GROWN: Final = 0.01
"""Without the device's memory: a leak that has grown by this share of the peak is worth telling."""


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
    when = "" if np.isnan(steps) else f"; about {round(steps):,} steps more fill the device"
    return _finding(
        f"Each step leaves about {byte_size(int(row['leak_bytes_per_step']))} allocated on {_place(row)}: "
        f"the lowest level of its {row['steps']} steps rises{when}.",
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
    return _finding(
        f"Tensors take up to {percent(100.0 * float(share.iloc[fullest]))} of the memory of {_place(row)}, "
        f"{byte_size(int(row['allocated_bytes']))}; {percent(most['share_pct'])} of it: {most['name']}.",
        "Less is needed with smaller micro-batches and gradient accumulation, activation checkpoints, or "
        "sharded states (FSDP, ZeRO). A longer input than these may not fit.",
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
    return _finding(
        f"On {_place(row)}, {byte_size(int(row['slack_bytes']))} of the "
        f"{byte_size(int(row['reserved_bytes']))} reserved are not allocated when most memory is, though the "
        "device is nearly full: free blocks do not fit what is asked for.",
        "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; fewer distinct sizes (padding to a few "
        "lengths) help, too.",
        "memory_timeline",
        row,
    )


def _place(row: pd.Series) -> str:
    return f"{row['device']} of rank {row['rank']}"


def _finding(text: str, suggestion: str, kind: str, row: pd.Series) -> Finding:
    return Finding(
        0,
        0.0,
        text,
        suggestion,
        kind,
        Evidence(rank=int(row["rank"])),
        severity="warning",
    )


RULES = (
    Rule(
        topic="memory_leak",
        question="whether memory leaks",
        title="Memory leaks",
        judge=_leak,
        role="memory",
        headline="memory leaks",
    ),
    Rule(
        topic="memory_full",
        question="whether memory is nearly full",
        title="Memory is nearly full",
        judge=_full,
        role="memory",
        headline="memory is nearly full",
    ),
    Rule(
        topic="memory_fragmentation",
        question="whether memory is reserved in vain",
        title="Memory is reserved in vain",
        judge=_fragmentation,
        role="memory",
        headline="memory is reserved in vain",
    ),
)
