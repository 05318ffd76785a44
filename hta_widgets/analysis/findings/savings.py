"""What a change would save that takes away the cost of a finding: the recording replayed without it.

A cost is not a saving: without it, something else may take as long. Where the change can be had only in part,
its saving is the most that there is to gain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.idle.causes import is_data_loading
from hta_widgets.analysis.replay import edits
from hta_widgets.analysis.replay.edits import Edit
from hta_widgets.analysis.replay.quality import first_trusted, quality_of
from hta_widgets.analysis.replay.what_if import what_if
from hta_widgets.formatting import percent
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["with_saving"]

_ONLY_WITH_EFFECT = ("launch_bound", "tiny_kernels")
"""Where graphs bring nothing, that need not be because other work takes the time: there may be no runs."""

LEAST_PCT = 0.5
"""A smaller change of the time is none: the model's own error is of this size."""


@dataclass(frozen=True)
class Saving:
    """What a change saves of the judged time of one rank, by replay.

    Attributes:
        rank: that was replayed.
        change: as it is said.
        edits: the Python expression of the change.
        bound: the change can be had only in part.
        whole_ns: the judged time. low_ns, ns, high_ns: what is saved of it: least, estimate, most.
        noise_ns: twice the standard error of the median, for all the judged iterations.
        has_peers: the rank communicates: who waits for it, or makes it wait, is taken to be as much faster.
    """

    rank: int
    change: str
    edits: str
    bound: bool
    whole_ns: int
    low_ns: int
    ns: int
    high_ns: int
    noise_ns: int
    has_peers: bool

    @property
    def method(self) -> Literal["replay", "bound"]:
        """How it was found."""
        return "bound" if self.bound else "replay"

    @property
    def none(self) -> bool:
        """Whether nothing worth telling is saved."""
        return 100.0 * self.ns < LEAST_PCT * self.whole_ns or self.ns <= self.noise_ns

    def told(self, inputs: Inputs) -> str:
        """The saving in a sentence."""
        on_rank = f" (rank {self.rank})" if len(inputs.trace.ranks_of(inputs.scope)) > 1 else ""
        takes = "the steps take" if inputs.judged > 1 else "the step takes" if inputs.judged else "all takes"
        replayed = f"Replayed{on_rank} {self.change}, {takes}"
        pct, low, high = (100.0 * ns / self.whole_ns for ns in (self.ns, self.low_ns, self.high_ns))
        if self.none:
            return f"{replayed} as long: something else then decides the time."
        if self.bound:
            return f"{replayed} at most {percent(pct)} less."
        span = f" ({percent(low)} to {percent(high)})" if high - low >= LEAST_PCT else ""
        return f"{replayed} {percent(pct)} less{span}{', if its peers gain as much' * self.has_peers}."


@dataclass(frozen=True)
class Unknown:
    """Why what a change saves cannot be told."""

    reason: str

    def told(self) -> str:
        """That in a sentence."""
        return f"What can be saved is unknown: {self.reason}."


def with_saving(inputs: Inputs, finding: Finding) -> Finding:
    """A finding with what taking away its cost saves, as far as a replay can tell."""
    saving = _saving_of(inputs, finding)
    if saving is None:
        return finding
    if isinstance(saving, Unknown):
        return replace(finding, saving=saving.told())
    return replace(
        finding,
        saving=saving.told(inputs),
        saving_low_ns=saving.low_ns,
        saving_ns=saving.ns,
        saving_high_ns=saving.high_ns,
        method=saving.method,
        edits=saving.edits,
    )


def _saving_of(inputs: Inputs, finding: Finding) -> Saving | Unknown | None:
    """What taking away the cost of a finding saves; None where no edit of the replay does that."""
    if finding.topic not in _CHANGES:
        return None
    change, edits_of = _CHANGES[finding.topic]
    rank = _replayed_rank(inputs, finding)
    rank_trace = inputs.trace.rank(rank)
    quality = quality_of(rank_trace)
    if quality is None or not quality.trusted:
        return Unknown(quality.reason) if quality else None
    made = edits_of(rank_trace)
    rows = what_if(inputs.trace, made, Scope(ranks=(rank,), iterations=inputs.scope.iterations))
    marked = rows["iteration"].notna()
    rows = rows[marked] if marked.any() else rows
    if rows.empty:
        return None
    before, low, after, high = (rows[f"{name}_ns"] for name in ("before", "low", "after", "high"))
    saving = Saving(
        rank=rank,
        change=change,
        edits=f"[{', '.join(edit.expression for edit in made)}]",
        bound=any(edit.bound for edit in made),
        whole_ns=int(before.sum()),
        low_ns=int((before - high).sum()),
        ns=int((before - after).sum()),
        high_ns=int((before - low).sum()),
        noise_ns=_noise(before),
        has_peers=bool((rank_trace.event_class == EventClass.COMMUNICATION).any()),
    )
    return None if finding.topic in _ONLY_WITH_EFFECT and saving.none else saving


def _replayed_rank(inputs: Inputs, finding: Finding) -> int:
    """The rank that a finding is about; of several the first that can be replayed."""
    if finding.evidence.rank is not None:
        return finding.evidence.rank
    return first_trusted(inputs.trace, inputs.trace.ranks_of(inputs.scope))


def _noise(before: pd.Series[int]) -> int:
    """Twice the standard error of the median of the iterations' times, for all of them together."""
    spread = float(np.median(np.abs(before - before.median())))
    return int(2 * spread / np.sqrt(len(before)) * len(before))


def _loaders(rank_trace: RankTrace) -> list[Edit]:
    names = sorted({name for name in rank_trace.names if is_data_loading(name)})
    return [edits.without(edits.exactly(name)) for name in names]


_CHANGES: dict[str, tuple[str, Callable[[RankTrace], list[Edit]]]] = {
    "data_stall": ("without the data loader's time", _loaders),
    "sync_calls": ("without waiting in synchronising calls", lambda _: [edits.syncs()]),
    "idle_host": ("with a host that takes no time", lambda _: [edits.host(0)]),
    "launch_bound": ("with runs of short kernels as graphs", lambda _: [edits.graphs()]),
    "tiny_kernels": ("with runs of short kernels as graphs", lambda _: [edits.graphs()]),
    "exposed_communication": ("without the time of communication", lambda _: [edits.communication(0)]),
    "memory_copies": ("without the time of copies", lambda _: [edits.copies(float("inf"))]),
}
"""Topic -> how the change is said, and the edits of a rank."""
