"""What the change against a finding saves, and how that is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from hta_widgets.analysis.core.claim import NOTHING_SAID, Said, say
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.rule import Rule
from hta_widgets.analysis.replay.edits import Edit
from hta_widgets.analysis.replay.what_if import LEAST_PCT

NOT_ESTIMATED: Final = "Saving not estimated"
"""How a sentence begins that says why."""
WITHIN_SPREAD: Final = "simulated, the steps gain less than they differ from each other"
"""Why it is not, of steps that differ so much that a saving may be chance: no reason to name it first."""


@dataclass(frozen=True)
class Saved:
    """What edits save of the judged time of one rank, by replay, ns."""

    clock: str  # what times the iterations
    whole_ns: int  # the judged time
    # what is saved of it: least, estimate, most
    low_ns: int
    ns: int
    high_ns: int
    noise_ns: int  # twice the median deviation over the root of the iterations' number, for all of them
    bound: bool  # the edits can be had only in part

    @property
    def method(self) -> Literal["replay", "bound"]:
        """How it was found."""
        return "bound" if self.bound else "replay"

    def matters(self, ns: int) -> bool:
        """Whether so much of the time is worth reporting."""
        return self.counts(ns) and ns > self.noise_ns

    def counts(self, ns: int) -> bool:
        """Whether so much of the time is more than nothing, even if the steps differ by more."""
        return 100.0 * ns >= LEAST_PCT * self.whole_ns

    def beyond(self, other: Saved) -> Saved:
        """What these edits save that some of them, by the same clock, do not."""
        ns = max(self.ns - other.ns, 0)
        low, high = self.low_ns - other.low_ns, self.high_ns - other.high_ns
        return replace(self, low_ns=min(max(low, 0), ns), ns=ns, high_ns=max(high, ns))

    def up_to(self, ns: int) -> Saved:
        """No more of it than this."""
        low, high = min(self.low_ns, ns), min(self.high_ns, ns)
        return replace(self, low_ns=low, ns=min(self.ns, ns), high_ns=high)


@dataclass(frozen=True)
class Saving:
    """What taking away the cost of a finding saves."""

    text: Said = NOTHING_SAID  # in sentences, or why it is unknown
    # whether it saves something now, or nothing now, or that is unknown
    section: Literal["saves", "not now", "unknown"] = "unknown"
    # how much, in ns of the judged time of one rank: least, estimate, most
    low_ns: int | None = None
    ns: int | None = None
    high_ns: int | None = None
    pct: float | None = None  # the estimate in % of that time
    rank: int | None = None  # that rank; None if all ranks were replayed
    # "replay", "bound" (of it: it can be had only in part), "analytic" (a bound by what is lost, or nothing,
    # without a replay), or "" without a saving
    method: Literal["replay", "bound", "analytic", ""] = ""
    # how well it is known: "high", "medium", "low", or "" without a saving
    confidence: Literal["high", "medium", "low", ""] = ""
    edits: tuple[Edit, ...] = ()  # what was replayed

    @classmethod
    def unknown(cls, reason: Said) -> Saving:
        """None is known, for this reason."""
        return cls(say(f"{NOT_ESTIMATED}: {{reason}}.", reason=reason))


@dataclass(frozen=True)
class Judged:
    """A finding, the rule that it is of, and what its change saves."""

    rule: Rule
    finding: Finding
    saving: Saving = Saving()
    part_of: str = ""  # the topic of the finding that it is a part of; "" if it stands by itself
