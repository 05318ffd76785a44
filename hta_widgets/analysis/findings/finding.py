"""What a rule finds, and when it is worth reporting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from hta_widgets.analysis.findings.changes import Change

__all__ = ["NOTE_PCT", "WARNING_PCT", "Evidence", "Finding", "Open", "severity_of"]

Severity = Literal["warning", "note", "verdict"]

NOTE_PCT: Final = 3.0
"""A smaller share of the time is not reported: the steps of a steady job differ by as much."""

WARNING_PCT: Final = 10.0
"""From this share on, a finding is a warning: fixing it is worth more than most other changes to a job."""


@dataclass(frozen=True)
class Evidence:
    """What to select to see a finding; None and "" choose nothing.

    `event_id` is an event of `event_rank` to look at, `name` that of the events that a finding is about.
    """

    rank: int | None = None
    iteration: int | None = None
    name: str = ""
    event_rank: int | None = None
    event_id: int | None = None


@dataclass(frozen=True)
class Finding:
    """One thing that costs time.

    Attributes:
        topic: what it is about, in a word.
        cost_ns: time lost on each rank it is about, on average.
        share_pct: that in % of the time looked at on these ranks.
        share_of: rank -> the same of each of these ranks, where they are several and it is known.
        text: a sentence.
        suggestion: what to try.
        kind: the analysis that shows it.
        evidence: what to select.
        saving: what `savings` says about taking the cost away, "" where nothing is known.
        saving_low_ns, saving_ns, saving_high_ns: how much that saves, in ns of the judged time of one rank.
        saving_pct: the estimate in % of that time. saving_rank: that rank; None if all ranks were replayed.
        method: "replay", "bound" (of it: it can be had only in part), "analytic" (a bound by what is lost,
            or nothing, without a replay), or "" without a saving.
        confidence: how well the saving is known: "high", "medium", "low", or "" without one.
        edits: the Python expression of what was replayed.
        change: what to replay, where that is not known by the topic.
        section: whether it saves something now, or nothing now, or that is unknown; or "memory": it takes
            no time.
        only_if_saved: what it costs may cost nothing: it is worth telling only if its change saves something,
            or is known to save nothing of a large cost.
        severity: "warning", "note" or "verdict"; None: not worth telling. It follows from the share unless
            a rule says otherwise.
    """

    topic: str
    cost_ns: int
    share_pct: float
    text: str
    suggestion: str
    kind: str
    evidence: Evidence = field(default_factory=Evidence)
    saving: str = ""
    saving_low_ns: int | None = None
    saving_ns: int | None = None
    saving_high_ns: int | None = None
    saving_pct: float | None = None
    saving_rank: int | None = None
    method: Literal["replay", "bound", "analytic", ""] = ""
    confidence: Literal["high", "medium", "low", ""] = ""
    edits: str = ""
    change: Change | None = None
    share_of: Mapping[int, float] = field(default_factory=dict)
    section: Literal["saves", "not now", "unknown", "memory"] = "unknown"
    only_if_saved: bool = False
    severity: Severity | None = None

    def share_on(self, rank: int) -> float:
        """What it costs on this rank, in % of its time."""
        return self.share_of.get(rank, self.share_pct)

    def __post_init__(self) -> None:
        if self.severity is None:
            object.__setattr__(self, "severity", severity_of(self.share_pct))


@dataclass(frozen=True)
class Open:
    """A question that the trace cannot answer: which, what is missing for it, and how to record that."""

    question: str
    missing: str
    remedy: str


def severity_of(share_pct: float) -> Literal["note", "warning"] | None:
    """The severity of losing this share of the time; None: not worth reporting."""
    if share_pct >= WARNING_PCT:
        return "warning"
    return "note" if share_pct >= NOTE_PCT else None
