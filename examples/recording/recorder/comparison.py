"""What hta_widgets foresees of a change, from the recording before it, beside what the change did.

Needs hta_widgets and no PyTorch.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hta_widgets import Trace, analysis, edits, examples
from hta_widgets.analysis.findings.bar import saved_in
from hta_widgets.analysis.findings.story import story
from hta_widgets.analysis.replay.edit import Edit
from recorder import manifest
from recorder.bundled import BUNDLED

H100 = Path(__file__).parents[1] / "h100"
RUNS = ("run_1", "run_2", "run_3")
FIRST_SCREEN = "first screen"
NEAR, NEAR_BOUND = 5.0, 2.0
"""Points of the step by which an estimate, or a bound, may miss the measured range and still be right."""
WIDE = 15.0
"""A measured range of so many points decides nothing that lies in it."""


@dataclass(frozen=True)
class Change:
    """A change that was made, and what of the product stands for it.

    Attributes:
        first, second: names of the recordings before and after it.
        words: what was changed.
        topic: of the finding whose saving foresees it, or `FIRST_SCREEN`: all savings of the overview.
        edit: the what-if that foresees it where no finding is about it.
    """

    first: str
    second: str
    words: str
    topic: str = ""
    edit: Edit | None = None


CHANGES = (
    Change("data_stall", "data_stall_workers", "loader in 4 processes", "data_stall"),
    Change("images_augmented", "images_augmented_workers", "loader in 8 processes", "data_stall"),
    Change("small_batch", "small_batch_cuda_graphs", "one CUDA graph", FIRST_SCREEN),
    Change("small_batch", "small_batch_cuda_graphs", "one CUDA graph", edit=edits.graphs()),
    Change("serving", "serving_cuda_graphs", "tokens by CUDA graph", edit=edits.graphs()),
    Change("fp32", "tf32", "TF32 instead of fp32", "fp32_units"),
    Change("fp32", "baseline", "bf16 instead of fp32", "fp32_units"),
    Change("tf32", "baseline", "bf16 instead of TF32", "tf32_units"),
    Change("unpadded", "baseline", "padded vocabulary", "unaligned_shapes"),
    Change("medium_unfused_attention", "medium", "fused attention", "attention_not_fused"),
    Change("medium_for_loop", "medium", "fused optimizer", "optimizer_not_fused"),
    Change("medium_foreach", "medium", "fused optimizer", "optimizer_not_fused"),
    Change("medium_kept_gradients", "medium", "gradients set to None", "zero_grad_fills"),
    Change("images_not_channels_last", "images", "channels_last", "layout_transposes"),
    Change("images_pageable", "images", "pinned memory", "pageable_copies"),
    Change("accumulated_item", "accumulated", "no `.item()`", "values_read_back"),
    Change("serving_growing_cache", "serving", "cache of fixed size", "tensor_copies"),
    Change("baseline", "compiled", "`torch.compile`", edit=edits.fused_pointwise()),
)


@dataclass(frozen=True)
class Foreseen:
    """A prediction, in % of the recorded step.

    Attributes:
        by: what predicts: a finding or a what-if.
        kind: "estimate"; "at most" (a bound); "nothing" where no finding is about it; "unknown".
        low, pct, high: how much shorter the step becomes.
    """

    by: str
    kind: str
    low: float = 0.0
    pct: float = 0.0
    high: float = 0.0


@dataclass(frozen=True)
class Measured:
    """What a change did, in all pairs of runs before and after it.

    Attributes:
        before_ms, after_ms: a step, median of the runs.
        least, pct, most: how much shorter it became, % of the step before; `pct` is the median of the pairs.
    """

    before_ms: float
    after_ms: float
    least: float
    pct: float
    most: float


@dataclass(frozen=True)
class Compared:
    """A prediction, and what was measured under the profiler and without it."""

    change: Change
    foreseen: Foreseen
    profiled: Measured
    unprofiled: Measured

    def off(self, measured: Measured) -> float:
        """Points between the prediction and the median; 0 below a bound."""
        above = self.foreseen.pct - measured.pct
        return min(above, 0.0) if self.foreseen.kind == "at most" else above

    @property
    def verdict(self) -> str:
        """ "right" or "missed", or "undecided" where runs without the profiler differ too much to say."""
        profiled, unprofiled = self._verdict(self.profiled), self._verdict(self.unprofiled)
        return "missed" if "missed" in (profiled, unprofiled) else unprofiled

    def _verdict(self, measured: Measured) -> str:
        bound = self.foreseen.kind == "at most"
        near = NEAR_BOUND if bound else NEAR
        if bound and self.foreseen.pct >= measured.most - near:
            return "right"
        if not measured.least - near <= self.foreseen.pct <= measured.most + near:
            return "missed"
        return "undecided" if measured.most - measured.least > WIDE else "right"


def folder_of(name: str) -> Path:
    """Where the first recording of a setup lies."""
    return examples.path(BUNDLED[name]) if name in BUNDLED else H100 / RUNS[0] / name


def manifests(folder: Path = H100) -> list[dict[str, Any]]:
    """The recordings of each run."""
    return [manifest.load(folder / run)["recordings"] for run in RUNS]


def step_ms(recording: dict[str, Any], when: str) -> float:
    """A step of training, or of serving a prompt with all of its tokens."""
    times = recording["step_time"]
    least = min(spreads["profiled"]["samples"] for spreads in times.values())
    parts = (
        spreads[when]["median_ns"] * spreads["profiled"]["samples"] / least for spreads in times.values()
    )
    return sum(parts) / 1e6


def foresee(trace: Trace, change: Change) -> Foreseen:
    """What a recording says of a change."""
    if change.edit:
        frame = analysis.what_if(trace, change.edit)
        before, low, after, high = frame[["before_ns", "low_ns", "after_ns", "high_ns"]].sum()
        kind = "at most" if change.edit.bound else "estimate"
        by = change.edit.expression.partition("(")[0]
        return Foreseen(f"`{by}()`", kind, *(shorter(before, time) for time in (high, after, low)))
    found = analysis.overview(trace)
    if change.topic == FIRST_SCREEN:
        screen = story(trace, frame=found)
        pct = 100 * saved_in(screen.parts) / screen.whole_ns
        bound = any(part.form == "bound" for part in screen.parts)
        return Foreseen(FIRST_SCREEN, "at most" if bound else "estimate", pct, pct, pct)
    found = found[found["topic"] == change.topic]
    by = f"`{change.topic}`"
    if found.empty:
        return Foreseen(by, "nothing")
    row = found.iloc[0]
    if row["method"] == "":
        return Foreseen(by, "unknown")
    kind = "at most" if row["method"] == "bound" else "estimate"
    percent = row["saving_ns"] / row["saving_pct"] if row["saving_pct"] else 1.0
    low, high = (float(row[f"saving_{end}_ns"] / percent) for end in ("low", "high"))
    return Foreseen(by, kind, low, float(row["saving_pct"]), high)


def compare(changes: Iterable[Change] = CHANGES) -> Iterator[Compared]:
    """Each change: foreseen and measured."""
    runs = manifests()
    for change in changes:
        foreseen = foresee(Trace.open(folder_of(change.first)), change)
        yield Compared(change, foreseen, *(measure(change, runs, when) for when in ("profiled", "before")))


def measure(change: Change, runs: Sequence[dict[str, Any]], when: str) -> Measured:
    """What a change did to the steps of all runs."""
    before, after = (
        [step_ms(run[name], when) for run in runs if name in run] for name in (change.first, change.second)
    )
    saved = [shorter(*steps) for steps in itertools.product(before, after)]
    middle = statistics.median
    return Measured(middle(before), middle(after), min(saved), middle(saved), max(saved))


def shorter(before: float, after: float) -> float:
    """By how much a time became shorter, %."""
    return float(100 * (1 - after / before))
