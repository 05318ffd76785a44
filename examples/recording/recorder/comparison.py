"""What hta_widgets foresees of a change, from the recording before it, beside what the change did.

Needs hta_widgets and no PyTorch.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hta_widgets import Trace, analysis, edits, examples
from hta_widgets.analysis.findings.bar import saved_in
from hta_widgets.analysis.findings.judged_time import judged_scope
from hta_widgets.analysis.findings.story import story
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.analysis.replay.expressions import parse_all
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
        less: less is done than what is foreseen, which bounds it then.
    """

    first: str
    second: str
    words: str
    topic: str = ""
    edit: Edit | None = None
    less: bool = False


CHANGES = (
    Change("data_stall", "data_stall_workers", "loader in 4 processes", "data_stall"),
    Change("images_augmented", "images_augmented_workers", "loader in 8 processes", "data_stall"),
    Change("small_batch", "small_batch_cuda_graphs", "one CUDA graph", FIRST_SCREEN),
    Change("small_batch", "small_batch_cuda_graphs", "one CUDA graph", edit=edits.graphs()),
    Change("serving", "serving_cuda_graphs", "tokens by CUDA graph", edit=edits.graphs()),
    Change("fp32", "tf32", "TF32 instead of fp32", "fp32_units", less=True),
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
    Change("baseline", "compiled", "`torch.compile`", "pointwise_chains"),
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
    """A prediction from the recording as it is, and one without the profiler, each with what was measured."""

    change: Change
    foreseen: Foreseen
    profiled: Measured
    foreseen_unprofiled: Foreseen
    unprofiled: Measured

    @property
    def verdicts(self) -> tuple[str, str]:
        """Of both: "right", "missed", or "undecided" where runs differ too much to say."""
        return verdict(self.foreseen, self.profiled), verdict(self.foreseen_unprofiled, self.unprofiled)


def verdict(foreseen: Foreseen, measured: Measured) -> str:
    """Whether a prediction came true."""
    bound = foreseen.kind == "at most"
    near = NEAR_BOUND if bound else NEAR
    if bound and foreseen.pct >= measured.most - near:
        return "right"
    if not measured.least - near <= foreseen.pct <= measured.most + near:
        return "missed"
    return "undecided" if measured.most - measured.least > WIDE else "right"


def off(foreseen: Foreseen, measured: Measured) -> float:
    """Points between the prediction and the median; 0 below a bound."""
    above = foreseen.pct - measured.pct
    return min(above, 0.0) if foreseen.kind == "at most" else above


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


def iteration_ns(recording: dict[str, Any]) -> int:
    """A mean iteration without the profiler: of a server a prompt or a token."""
    spreads = recording["step_time"].values()
    taken = sum(each["before"]["median_ns"] * each["profiled"]["samples"] for each in spreads)
    return int(taken / sum(each["profiled"]["samples"] for each in spreads))


def foresee(trace: Trace, change: Change) -> tuple[Foreseen, tuple[Edit, ...]]:
    """What a recording says of a change, and the edits that say it."""
    if change.edit:
        by = change.edit.expression.partition("(")[0]
        return replayed(f"`{by}()`", trace, (), (change.edit,)), (change.edit,)
    found = analysis.overview(trace)
    if change.topic == FIRST_SCREEN:
        screen = story(trace, frame=found)
        pct = 100 * saved_in(screen.parts) / screen.whole_ns
        bound = any(part.form == "bound" for part in screen.parts)
        saves = found[found["section"] == "saves"]
        return Foreseen(FIRST_SCREEN, _kind(bound), pct, pct, pct), _edits(saves["edits"])
    found = found[found["topic"] == change.topic]
    by = f"`{change.topic}`"
    if found.empty:
        return Foreseen(by, "nothing"), ()
    row = found.iloc[0]
    if row["method"] == "":
        return Foreseen(by, "unknown"), ()
    percent = row["saving_ns"] / row["saving_pct"] if row["saving_pct"] else 1.0
    low, high = (float(row[f"saving_{end}_ns"] / percent) for end in ("low", "high"))
    kind = _kind(change.less or row["method"] == "bound")
    return Foreseen(by, kind, low, float(row["saving_pct"]), high), _edits(found["edits"])


def without_profiler(
    trace: Trace, change: Change, foreseen: Foreseen, made: Sequence[Edit], step_ns: int
) -> Foreseen:
    """The same of the job without the profiler, by the time of its step."""
    if not made:
        return foreseen
    found = replayed(foreseen.by, trace, (edits.unprofiled(step_ns),), made)
    return replace(found, kind=_kind(change.less or found.kind == "at most"))


def replayed(by: str, trace: Trace, first: Sequence[Edit], made: Sequence[Edit]) -> Foreseen:
    """What edits save in the judged steps, after the first ones."""
    scope = judged_scope(trace)
    before, after = (analysis.what_if(trace, each, scope) for each in (first, [*first, *made]))
    if before["iteration"].notna().any():
        before, after = (frame[frame["iteration"].notna()] for frame in (before, after))
    whole = before["after_ns"].sum()
    saved = (shorter(whole, after[f"{time}_ns"].sum()) for time in ("high", "after", "low"))
    return Foreseen(by, _kind(any(edit.bound for edit in made)), *saved)


def _kind(bound: bool) -> str:
    return "at most" if bound else "estimate"


def _edits(expressions: Iterable[str]) -> tuple[Edit, ...]:
    made = (edit for text in expressions if text for edit in parse_all(text))
    return tuple(dict.fromkeys(made))


def compare(changes: Iterable[Change] = CHANGES) -> Iterator[Compared]:
    """Each change: foreseen and measured."""
    runs = manifests()
    for change in changes:
        trace = Trace.open(folder_of(change.first))
        foreseen, made = foresee(trace, change)
        own = next(run[change.first] for run in runs if change.first in run)  # of the same process
        unprofiled = without_profiler(trace, change, foreseen, made, iteration_ns(own))
        yield Compared(
            change, foreseen, measure(change, runs, "profiled"), unprofiled, measure(change, runs, "before")
        )


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
