"""What a change would save that takes away the cost of a finding: the recording replayed without it.

A cost is not a saving: without it, something else may take as long. Where the change can be had only in part,
its saving is the most that there is to gain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from hta_widgets.analysis.findings.between_ranks import between_ranks
from hta_widgets.analysis.findings.caveats import confidence_of
from hta_widgets.analysis.findings.changes import BETWEEN_RANKS, CHANGES, NO_CHANGE, Change
from hta_widgets.analysis.findings.finding import Finding, severity_of
from hta_widgets.analysis.findings.pause_rules import without_pauses
from hta_widgets.analysis.replay.expressions import parse_all, written
from hta_widgets.analysis.replay.quality import Quality, first_trusted, quality_of
from hta_widgets.analysis.replay.what_if import LEAST_PCT, replayed
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import percent
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.reader.schema import NULL

if TYPE_CHECKING:
    from hta_widgets.analysis.findings.inputs import Inputs
    from hta_widgets.analysis.replay.edits import Edit

__all__ = ["OWN_COST", "Saved", "edits_of", "saved", "with_savings"]

_ONLY_WITH_EFFECT = ("launch_bound", "tiny_kernels")
"""Where graphs bring nothing, that need not be because other work takes the time: there may be no runs."""


_HOST_GETS_AHEAD = ("data_stall", "host_stall", "unmarked_host")
"""Their changes take host time that the device hides, too."""
_ROUNDING_PCT = 0.1
OWN_COST: Final = ", where this costs "
"""Before what a finding costs on the rank that is replayed, if that is not about what it costs on average."""
_PART = 0.5
_APART = 0.1
"""A rank whose own cost differs from the mean by this part is told with it."""


@dataclass(frozen=True)
class Saved:
    """What edits save of the judged time of one rank, by replay, ns.

    Attributes:
        clock: what times the iterations. whole_ns: the judged time.
        low_ns, ns, high_ns: what is saved of it: least, estimate, most.
        noise_ns: twice the median deviation over the root of the iterations' number, for all of them.
        bound: the edits can be had only in part.
    """

    clock: str
    whole_ns: int
    low_ns: int
    ns: int
    high_ns: int
    noise_ns: int
    bound: bool

    @property
    def method(self) -> Literal["replay", "bound"]:
        """How it was found."""
        return "bound" if self.bound else "replay"

    def matters(self, ns: int) -> bool:
        """Whether so much of the time is worth telling."""
        return 100.0 * ns >= LEAST_PCT * self.whole_ns and ns > self.noise_ns

    def beyond(self, other: Saved) -> Saved:
        """What these edits save that some of them, by the same clock, do not."""
        ns = max(self.ns - other.ns, 0)
        low, high = self.low_ns - other.low_ns, self.high_ns - other.high_ns
        return replace(self, low_ns=min(max(low, 0), ns), ns=ns, high_ns=max(high, ns))

    def up_to(self, ns: int) -> Saved:
        """No more of it than this."""
        low, high = min(self.low_ns, ns), min(self.high_ns, ns)
        return replace(self, low_ns=low, ns=min(self.ns, ns), high_ns=high)

    def said(self, ns: int) -> str:
        """`5.2 %`, or `at most 5.2 %`."""
        return f"{'at most ' * self.bound}{percent(100.0 * ns / self.whole_ns)}"


def saved(inputs: Inputs, rank: int, edits: Sequence[Edit], clock: str = "") -> Saved | None:
    """What edits save on a rank whose replay is trusted; None if nothing that is judged can be replayed.

    The time is by `clock`, where that is given.
    """
    rows = replayed(inputs.trace.rank(rank), tuple(edits), clock)
    iteration = rows["iteration"].to_numpy(np.int64, na_value=NULL)
    steps = np.flatnonzero(iteration != NULL)
    chosen = np.flatnonzero(iteration == NULL)  # the whole, unless steps are judged
    if inputs.scope.iterations is not None:
        chosen = steps = steps[np.isin(iteration[steps], inputs.scope.iterations)]
    if not len(chosen):
        return None
    taken = rows["before_ns"].to_numpy(np.int64)
    before, low, after, high = (
        rows[f"{name}_ns"].to_numpy(np.int64)[chosen] for name in ("before", "low", "after", "high")
    )
    spread = float(np.median(np.abs(taken[steps] - np.median(taken[steps])))) if len(steps) else 0.0
    return Saved(
        clock=str(rows["clock"].iloc[-1]),
        whole_ns=int(before.sum()),
        low_ns=int((before - high).sum()),
        ns=int((before - after).sum()),
        high_ns=int((before - low).sum()),
        noise_ns=int(2 * spread * np.sqrt(len(steps))),
        bound=any(edit.bound for edit in edits),
    )


def with_savings(inputs: Inputs, findings: list[Finding]) -> list[Finding]:
    """The findings with what taking away the cost of each saves, now or after the first ones."""
    late = {finding.evidence.rank for finding in findings if finding.topic == "straggler"}
    told = [
        between_ranks(inputs, finding, late)
        if finding.topic in BETWEEN_RANKS
        else _with_saving(inputs, finding)
        for finding in findings
    ]
    told = [finding for finding in told if _worth_telling(finding)]
    first = sorted((finding for finding in told if finding.section == "saves"), key=_most_first)
    return [
        _sure(
            inputs,
            _later(inputs, finding, first)
            if finding.section == "not now"
            else _together(inputs, finding, first),
        )
        for finding in told
    ]


def _sure(inputs: Inputs, finding: Finding) -> Finding:
    """A finding with how well its saving is known."""
    if finding.method != "replay":
        return replace(finding, confidence=confidence_of(finding))
    ranks = inputs.trace.ranks_of(inputs.scope) if finding.saving_rank is None else [finding.saving_rank]
    known = [quality for rank in ranks if (quality := inputs.of(rank, _quality))]
    error_pct = max((abs(quality.model_error_pct) for quality in known), default=0.0)
    return replace(finding, confidence=confidence_of(finding, error_pct))


def _quality(inputs: Inputs, rank: int) -> Quality | None:
    return quality_of(inputs.trace.rank(rank))


def _worth_telling(finding: Finding) -> bool:
    """Whether a finding saves something, or takes much and is known to save nothing now."""
    if finding.section == "saves" or not finding.only_if_saved:
        return True
    return finding.section == "not now" and severity_of(finding.share_pct) is not None


def edits_of(findings: Sequence[Finding]) -> tuple[Edit, ...]:
    """All that was replayed for these findings, made together."""
    return tuple(edit for finding in findings for edit in parse_all(finding.edits))


def _most_first(finding: Finding) -> tuple[int, str]:
    return -(finding.saving_ns or 0), finding.topic


def _with_saving(inputs: Inputs, finding: Finding) -> Finding:
    """A finding with what taking away its cost saves now, or why that is unknown."""
    change = finding.change or CHANGES.get(finding.topic)
    if change is None:
        reason = NO_CHANGE.get(finding.topic)
        return _unknown(finding, reason) if reason else finding
    rank = _replayed_rank(inputs, finding)
    rank_trace = inputs.trace.rank(rank)
    quality = quality_of(rank_trace)
    if quality is None or not quality.trusted:
        return _unknown(finding, quality.reason if quality else "no device work is recorded")
    # pauses of the host are findings of their own, and no part of this cost
    apart = without_pauses(inputs.paused(rank)) if finding.topic == "idle_host" else []
    made = [*apart, *change.edits_of(rank_trace)]
    try:
        saving = saved(inputs, rank, made)
        without = saved(inputs, rank, apart, saving.clock) if apart and saving else None
    except MissingDataError as missing:  # the rank that is replayed does not have what others have
        return _unknown(finding, f"rank {rank} has no {missing.field}")
    if saving is None:
        return _unknown(finding, "of the judged steps none can be replayed")
    if without is not None:
        saving = saving.beyond(without)
        change = change._replace(words=f"{change.words}, its pauses aside")
    if finding.topic == "exposed_communication" and _waits(inputs, rank):
        # without communication this rank would not wait in it either, but that is no part of the cost
        cost = round(finding.share_on(rank) / 100 * saving.whole_ns)
        if saving.matters(saving.ns - cost):
            saving = saving.up_to(cost)
            unclear = 2 * int(inputs.unclear.sum()) > finding.cost_ns * len(inputs.temporal)
            what = "what is known to be waiting" if unclear else "the waiting"
            change = change._replace(words=f"{change.words}, {what} for other ranks aside")
    saves = saving.matters(saving.ns)
    if finding.topic in _ONLY_WITH_EFFECT and not saves:
        return _unknown(finding, "as CUDA graphs, its runs of short kernels save nothing, or there are none")
    return replace(
        finding,
        section="saves" if saves else "not now",
        saving=_told(inputs, finding, rank, change, saving, saves) + _beyond_cost(finding, rank, saving),
        saving_low_ns=saving.low_ns,
        saving_ns=saving.ns,
        saving_high_ns=saving.high_ns,
        saving_pct=100.0 * saving.ns / saving.whole_ns,
        saving_rank=rank,
        method=saving.method,
        edits=written(made),
    )


def _unknown(finding: Finding, reason: str) -> Finding:
    return replace(finding, saving=f"What can be saved is unknown: {reason}.")


def _told(inputs: Inputs, finding: Finding, rank: int, change: Change, saving: Saved, saves: bool) -> str:
    """The saving in a sentence; with the cost on its rank, where that is not about the mean of several."""
    own = finding.share_on(rank)
    apart = abs(own - finding.share_pct) >= _APART * finding.share_pct
    costs = f"{OWN_COST}{percent(own)}" if apart else ""
    on_rank = f" (rank {rank}{costs})" if len(inputs.trace.ranks_of(inputs.scope)) > 1 else ""
    takes = "the steps take" if inputs.judged > 1 else "the step takes" if inputs.judged else "all takes"
    replayed = f"Replayed{on_rank} {change.words}, {takes}"
    if not saves:
        return f"{replayed} as long: something else then decides the time."
    if saving.bound:
        return f"{replayed} {saving.said(saving.ns)} less."
    low, high = (100.0 * ns / saving.whole_ns for ns in (saving.low_ns, saving.high_ns))
    span = f" ({percent(low)} to {percent(high)})" if high - low >= LEAST_PCT else ""
    peers = (inputs.trace.rank(rank).event_class == EventClass.COMMUNICATION).any()
    return f"{replayed} {saving.said(saving.ns)} less{span}{', if its peers gain as much' * bool(peers)}."


def _beyond_cost(finding: Finding, rank: int, saving: Saved) -> str:
    """Why a change of the host saves more than the time in which the device waits for it."""
    more = 100.0 * saving.ns / saving.whole_ns - finding.share_on(rank)
    if more < _ROUNDING_PCT:
        return ""
    if finding.topic in _ONLY_WITH_EFFECT:
        return " That is more than the cost: graphs take the host's time between launches away, too."
    if finding.topic not in _HOST_GETS_AHEAD:
        return ""
    return " That is more than the cost: further ahead of the device, the host is late less often later on."


def _later(inputs: Inputs, finding: Finding, first: list[Finding]) -> Finding:
    """What saves nothing now, with what it saves once the first changes on its rank are made."""
    rank = finding.saving_rank
    before = [other for other in first if other.saving_rank == rank]
    if rank is None or not before:
        return finding
    for count in range(1, len(before) + 1):
        made = edits_of(before[:count])
        both = saved(inputs, rank, (*made, *edits_of([finding])))
        without = saved(inputs, rank, made, both.clock) if both else None
        assert without is not None and both is not None  # each was replayed alone
        more = both.ns - without.ns
        if both.matters(more):
            then = f"{'at most ' * both.bound}{percent(100.0 * more / both.whole_ns)} less"
            after = _changes_in_words(before[:count])
            return replace(finding, saving=f"{finding.saving} After {after}: {then}.")
    after = _changes_in_words(before)
    return replace(finding, saving=f"{finding.saving} Nor does it save anything after {after}.")


def _together(inputs: Inputs, finding: Finding, first: list[Finding]) -> Finding:
    """The last of the findings that save something on a rank, with what they save together."""
    rank = finding.saving_rank
    made = [other for other in first if other.saving_rank == rank]
    if rank is None or len(made) < 2 or finding is not made[-1]:
        return finding
    both = saved(inputs, rank, edits_of(made))
    # where another clock times the steps under all changes, the figures cannot be compared
    if both is None or both.ns < max(other.saving_ns or 0 for other in made):
        return finding
    return replace(
        finding, saving=f"{finding.saving} The {len(made)} changes together: {both.said(both.ns)} less."
    )


def _changes_in_words(findings: list[Finding]) -> str:
    """`the change above`, or how many."""
    return "the first change above" if len(findings) == 1 else f"the first {len(findings)} changes above"


def _waits(inputs: Inputs, rank: int) -> bool:
    """Whether a rank is known to wait for others in its communication: the cost is without that."""
    try:
        late = inputs.late
    except MissingDataError:
        return False
    return bool(late.loc[late["rank"] == rank, "waited_ns"].any())


def _replayed_rank(inputs: Inputs, finding: Finding) -> int:
    """The rank that a finding is about; of several the one that waits, or may wait, least, if it is trusted.

    What a collective takes on that rank is transfer: on others it also is waiting, which has another cause.
    A rank that has little of the cost itself tells nothing about it.
    """
    if finding.evidence.rank is not None:
        return finding.evidence.rank
    ranks = inputs.trace.ranks_of(inputs.scope)
    ranks = [rank for rank in ranks if finding.share_on(rank) >= _PART * finding.share_pct] or ranks
    if len(ranks) > 1:
        try:
            waited = inputs.late.groupby("rank")["waited_ns"].sum().add(inputs.unclear, fill_value=0)
        except MissingDataError:
            return first_trusted(inputs.trace, ranks)
        ranks = sorted(ranks, key=lambda rank: (int(waited.get(rank, 0)), rank))
    return first_trusted(inputs.trace, ranks)
