"""What a rule finds, and when it is worth reporting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from hta_widgets.analysis.core.claim import Said
from hta_widgets.analysis.core.intervals import Intervals

if TYPE_CHECKING:
    from hta_widgets.analysis.findings.rule import Change

Severity = Literal["warning", "note", "verdict"]
LostAs = Literal["compute", "communication", "memory", "idle", "host"]

NOTE_PCT: Final = 3.0
"""A smaller share of the time is not reported: the steps of a steady job differ by as much."""

WARNING_PCT: Final = 10.0
"""From this share on, a finding is a warning: fixing it is worth more than most other changes to a job."""

ALONE: Final = 3.0
"""A rank is reported by itself if it loses this many times as much as the others do on average."""


@dataclass(frozen=True)
class Evidence:
    """What to select to see a finding; None and "" choose nothing."""

    # what it is about, if that is one
    rank: int | None = None
    iteration: int | None = None
    name: str = ""  # of the events that it is about
    # an event to look at
    event_rank: int | None = None
    event_id: int | None = None
    span: tuple[int, int] | None = None  # the time in which it shows, on `event_rank`: (start, end) in ns


@dataclass(frozen=True)
class Finding:
    """One thing that costs time."""

    cost_ns: int  # time lost on each rank it is about, on average
    share_pct: float  # that in % of the time looked at on these ranks
    text: Said  # sentences, and the claims in them
    suggestion: str  # what to try
    kind: str  # the analysis that shows it
    evidence: Evidence = field(default_factory=Evidence)  # what to select
    change: Change | None = None  # what to replay, where it is not the rule's own
    # rank -> the same share of each of these ranks, where they are several and it is known
    share_of: Mapping[int, float] = field(default_factory=dict)
    # rank -> when it is lost, where that is known. What lies within the time of another finding is a part of
    # it.
    lost: Mapping[int, Intervals] = field(default_factory=dict)
    late: tuple[int, ...] = ()  # the ranks that others are found to wait for
    # rank -> the time before others wait for it, where ranks are late in turn. What it loses then is why they
    # are.
    delays: Mapping[int, Intervals] = field(default_factory=dict)
    # the rank that loses this alone, or more than the others: why it is late, if it is
    explains: int | None = None
    nothing_saved: str = ""  # why it costs nothing that could be saved, where that is known without a replay
    saves_at_most: str = ""  # why taking it away saves no more than it costs, where no change can be replayed
    not_estimated: str = ""  # why it is unknown what can be saved, whatever a replay would tell
    # why the change of its rule is no advice: the program does it already. Then what can be saved is unknown.
    change_made: str = ""
    # what it costs may cost nothing: it is worth reporting only if its change saves something, or is known to
    # save nothing of a large cost
    only_if_saved: bool = False
    # "warning", "note" or "verdict"; None: not worth reporting. It follows from the share unless a rule says
    # otherwise.
    severity: Severity | None = None
    lost_as: LostAs | Literal[""] = ""  # the class of the time that it costs, where it is not the rule's
    # of this finding, where they say more than the rule's. With the role "aside", what the answer in one
    # sentence begins with, whatever else is found: it is of another time.
    title: str = ""
    headline: str = ""

    def share_on(self, rank: int) -> float:
        """What it costs on this rank, in % of its time."""
        return self.share_of.get(rank, self.share_pct)

    def __post_init__(self) -> None:
        if self.severity is None:
            object.__setattr__(self, "severity", severity_of(self.share_pct))


def severity_of(share_pct: float) -> Literal["note", "warning"] | None:
    """The severity of losing this share of the time; None: not worth reporting."""
    if share_pct >= WARNING_PCT:
        return "warning"
    return "note" if share_pct >= NOTE_PCT else None
