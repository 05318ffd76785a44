"""What a change would save that takes away the cost of a finding: the recording replayed without it.

A cost is not a saving: without it, something else may take as long. Where the change can be had only in part,
its saving is the most that there is to gain.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np

from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, Said, Text, say
from hta_widgets.analysis.findings.among_ranks import among_ranks, at_most
from hta_widgets.analysis.findings.finding import Finding, severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import FAULTS, Change, Found
from hta_widgets.analysis.findings.saving import WITHIN_SPREAD, Judged, Saved, Saving
from hta_widgets.analysis.replay import edits
from hta_widgets.analysis.replay.edits import Edit
from hta_widgets.analysis.replay.expressions import written
from hta_widgets.analysis.replay.quality import Quality, first_trusted, quality_of
from hta_widgets.analysis.replay.what_if import LEAST_PCT, replayed
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.reader.schema import NULL

_log = logging.getLogger(__name__)

_ROUNDING_PCT = 0.1
_PART = 0.5
_FAR_LESS = 0.2
_APART = 0.1
"""A rank whose own cost differs from the mean by this part is named with it."""


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


def with_savings(inputs: Inputs, found: list[Found]) -> list[Judged]:
    """The findings with what taking away the cost of each saves, now or after the first ones."""
    late = {rank for each in found for rank in each.finding.late}
    judged = [Judged(each.rule, each.finding, _saving(inputs, each, late)) for each in found]
    judged = [each for each in judged if _worth_reporting(each)]
    first = sorted((each for each in judged if each.saving.section == "saves"), key=_most_first)
    return [replace(each, saving=_beside(inputs, each, first)) for each in judged]


def _saving(inputs: Inputs, found: Found, late: set[int]) -> Saving:
    """`_saving_of`; a change that cannot be replayed costs its own saving, not the finding."""
    try:
        return _saving_of(inputs, found, late)
    except FAULTS as error:
        _log.error("The change of %r could not be replayed", found.rule.topic, exc_info=error)
        return Saving.unknown(
            f"the replay of its change failed ({type(error).__name__}), which is a fault of hta_widgets"
        )


def may_save(found: Found) -> bool:
    """Whether a replay could tell what taking away the cost of a finding saves."""
    rule, finding = found.rule, found.finding
    return bool(rule.among_ranks or finding.change or rule.change) and not finding.nothing_saved


def _saving_of(inputs: Inputs, found: Found, late: set[int]) -> Saving:
    """What taking away the cost of a finding saves now, or why that is unknown."""
    rule, finding = found.rule, found.finding
    if finding.nothing_saved:
        return Saving(finding.nothing_saved, "not now", 0, 0, 0, 0.0, method="analytic", confidence="low")
    if why := finding.not_estimated or finding.change_made:
        return Saving.unknown(why)
    if inputs.withheld("savings") is not None and may_save(found):
        return Saving.unknown("the records do not support it")
    if rule.among_ranks:
        return among_ranks(inputs, rule, finding, late)
    change = finding.change or rule.change
    if change is None and finding.saves_at_most:
        return at_most(inputs, finding, finding.saves_at_most)
    if change is None:
        return Saving.unknown(rule.no_change) if rule.no_change else Saving()
    return _replayed(inputs, finding, change)


def _replayed(inputs: Inputs, finding: Finding, change: Change) -> Saving:
    rank = _replayed_rank(inputs, finding)
    if inputs.settled_ns is not None:
        return Saving.unknown("a replay takes all of the recording, start-up included")
    if inputs.shared and inputs.shared.window_ns:
        return Saving.unknown("a replay takes the whole recording, and the ranks share only a part of it")
    rank_trace = inputs.trace.rank(rank)
    quality = quality_of(rank_trace)
    if quality is None or not quality.trusted:
        return Saving.unknown(_why_untrusted(rank, quality))
    first = change.first(inputs, rank) if change.first else []
    made = (*first, *change.edits_of(rank_trace))
    try:
        saving = saved(inputs, rank, made)
        without = saved(inputs, rank, first, saving.clock) if first and saving else None
    except MissingDataError as missing:  # the rank that is replayed does not have what others have
        who = Claim("replayed_rank", (rank,), "ranks")
        return Saving.unknown(say("{who} has no {field}", who=who, field=missing.field))
    if saving is None:
        return Saving.unknown("of the judged steps none can be replayed")
    label = say("{label}", label=change.label)
    if without is not None:
        saving = saving.beyond(without)
        label += change.first_label
    cost = round(finding.share_on(rank) / 100 * saving.whole_ns)
    if change.limit and saving.matters(saving.ns - cost) and (limit := change.limit(inputs, finding, rank)):
        saving = saving.up_to(cost)
        label += limit
    saves = saving.matters(saving.ns)
    if change.without_effect and not saves:
        return Saving.unknown(change.without_effect)
    if saving.counts(saving.ns) and not saves:
        return Saving.unknown(WITHIN_SPREAD)
    pct = 100.0 * saving.ns / saving.whole_ns
    more = pct - finding.share_on(rank) >= _ROUNDING_PCT and change.beyond_cost
    less = _host_limits(inputs, rank, saving, cost, first, made) if saves else NOTHING_SAID
    return Saving(
        _sentence(inputs, finding, rank, label, saving, saves) + (f" {more}" if more else "") + less,
        "saves" if saves else "not now",
        saving.low_ns,
        saving.ns,
        saving.high_ns,
        pct,
        rank,
        saving.method,
        edits=made,
    )


def _why_untrusted(rank: int, quality: Quality | None) -> Said:
    reason = quality.reason if quality else "no device work is recorded"
    return Claim("untrusted_replay", reason, "name", ranks=(rank,), shown=reason)


def _sentence(inputs: Inputs, finding: Finding, rank: int, label: Said, saving: Saved, saves: bool) -> Text:
    """The saving in a sentence; with the cost on its rank, where that is not about the mean of several."""
    own = finding.share_on(rank)
    apart = abs(own - finding.share_pct) >= _APART * finding.share_pct
    on_rank: Said = ""
    costs = NOTHING_SAID
    if len(inputs.trace.ranks_of(inputs.scope)) > 1:
        costs = say(" There this costs {own}.", own=inputs.of_time("cost", own, (rank,))) if apart else costs
        on_rank = say(" ({rank})", rank=Claim("replayed_rank", (rank,), "ranks"))
    replayed = say("Simulated{on_rank} {label}, {takes}", on_rank=on_rank, label=label, takes=inputs.takes)
    if not saves:
        return replayed + " as long: something else then decides the time." + costs

    def share(ns: int) -> Claim:
        return inputs.of_time("saving", 100.0 * ns / saving.whole_ns, (rank,))

    much = say("{bound}{share} less", bound="at most " * saving.bound, share=share(saving.ns))
    if saving.bound:
        return replayed + say(" {much}.", much=much) + costs
    spread = 100.0 * (saving.high_ns - saving.low_ns) / saving.whole_ns >= LEAST_PCT
    span = (
        say(" The range is {low} to {high}.", low=share(saving.low_ns), high=share(saving.high_ns))
        if spread
        else ""
    )
    peers = (inputs.trace.rank(rank).event_class == EventClass.COMMUNICATION).any()
    return (
        replayed
        + say(
            " {much}{peers}.{span}", much=much, peers=", if its peers gain as much" * bool(peers), span=span
        )
        + costs
    )


def _host_limits(
    inputs: Inputs, rank: int, saving: Saved, cost_ns: int, first: Sequence[Edit], made: Sequence[Edit]
) -> Text:
    """Why a change saves far less than the cost, where a replay with a host that takes no time saves it."""
    lacking = cost_ns - saving.ns
    if lacking < _FAR_LESS * cost_ns or not saving.matters(lacking):
        return NOTHING_SAID
    free = edits.host(0.0)
    both, alone = (saved(inputs, rank, (*each, free), saving.clock) for each in (made, first))
    if both is None or alone is None or 2 * (both.ns - alone.ns - saving.ns) < lacking:
        return NOTHING_SAID
    return say(
        " That is less than the cost: the job is CPU-bound then. With a CPU that takes no time, the change "
        "saves {bound}{share}.",
        bound="at most " * saving.bound,
        share=inputs.of_time(
            "saving_without_cpu",
            100.0 * (both.ns - alone.ns) / saving.whole_ns,
            (rank,),
            edits=written(made),
        ),
    )


def _beside(inputs: Inputs, judged: Judged, first: list[Judged]) -> Saving:
    """The saving, with what it is once the first changes on its rank are made, and how well it is known."""
    saving = judged.saving
    same = [other for other in first if other.saving.rank == saving.rank is not None]
    more = NOTHING_SAID
    if saving.section == "not now" and same:
        more = _later(inputs, saving, same)
    text = say("{text} {more}", text=saving.text, more=more) if more else saving.text
    return replace(saving, text=text, confidence=saving.confidence or _confidence(inputs, judged))


_HIGH: Final = 0.1
_MEDIUM: Final = 0.5


def _confidence(inputs: Inputs, judged: Judged) -> Literal["high", "medium", "low", ""]:
    saving = judged.saving
    if saving.method != "replay":
        return confidence_of(judged.finding, saving)
    ranks = inputs.trace.ranks_of(inputs.scope) if saving.rank is None else [saving.rank]
    known = [quality for rank in ranks if (quality := inputs.recorded(rank, quality_of))]
    error_pct = max((abs(quality.model_error_pct) for quality in known), default=0.0)
    return confidence_of(judged.finding, saving, error_pct)


def confidence_of(
    finding: Finding, saving: Saving, model_error_pct: float = 0.0
) -> Literal["high", "medium", "low", ""]:
    """How well a saving is known.

    By how wide the range of the replay and the error of its model are together: up to a tenth of the saving
    ("high"), up to a half ("medium"), or more ("low"). Of what saves nothing now, they are compared with what
    it costs. Of a bound only the upper end is known: "low".

    Args:
        finding: that is judged.
        saving: of its change.
        model_error_pct: of the replay, in % of the recording (`replay_quality`).
    """
    low, saves, high = saving.low_ns, saving.ns, saving.high_ns
    if not saving.method or low is None or saves is None or high is None:
        return ""
    # a share of none: it was lost before the time that is judged
    if saving.method != "replay" or not finding.cost_ns or not finding.share_pct:
        return "low"
    whole_ns = 100 * finding.cost_ns / finding.share_pct
    unsure_ns = high - low + model_error_pct / 100 * whole_ns
    of_ns = saves if saving.section == "saves" else finding.cost_ns
    if unsure_ns <= _HIGH * of_ns:
        return "high"
    return "medium" if unsure_ns <= _MEDIUM * of_ns else "low"


def _worth_reporting(judged: Judged) -> bool:
    """Whether a finding saves something, or takes much and is known to save nothing now."""
    if judged.saving.section == "saves" or not judged.finding.only_if_saved:
        return True
    return judged.saving.section == "not now" and severity_of(judged.finding.share_pct) is not None


def edits_of(judged: Sequence[Judged]) -> tuple[Edit, ...]:
    """All that was replayed for these findings, made together."""
    return tuple(edit for each in judged for edit in each.saving.edits)


def _most_first(judged: Judged) -> tuple[int, str]:
    return -(judged.saving.ns or 0), judged.rule.topic


def _later(inputs: Inputs, saving: Saving, before: list[Judged]) -> Text:
    """What saves nothing now, with what it saves once the first changes on its rank are made."""
    rank = saving.rank
    assert rank is not None  # it was replayed
    unsure = False
    for count in range(1, len(before) + 1):
        made = edits_of(before[:count])
        both = saved(inputs, rank, (*made, *saving.edits))
        without = saved(inputs, rank, made, both.clock) if both else None
        assert without is not None and both is not None  # each was replayed alone
        more = both.ns - without.ns
        if both.matters(more):
            return say(
                "After {changes}: {bound}{share} less.",
                changes=_changes(before[:count]),
                bound="at most " * both.bound,
                share=inputs.of_time("saving", 100.0 * more / both.whole_ns, (rank,)),
            )
        unsure = unsure or both.counts(more)
    if unsure:
        return say(
            "After {changes} it saves less than the steps differ from each other.", changes=_changes(before)
        )
    return say("Nor does it save anything after {changes}.", changes=_changes(before))


def _changes(judged: list[Judged]) -> Said:
    """`the first change above`, or how many."""
    if len(judged) == 1:
        return "the first change above"
    return say("the first {count} changes above", count=Claim("changes", len(judged), "count"))


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
            waited = inputs.late_by_rank["waited_ns"].add(inputs.unclear, fill_value=0)
        except MissingDataError:
            return first_trusted(inputs.trace, ranks)
        ranks = sorted(ranks, key=lambda rank: (int(waited.get(rank, 0)), rank))
    return first_trusted(inputs.trace, ranks)
