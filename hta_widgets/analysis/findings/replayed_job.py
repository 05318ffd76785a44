"""What the replay of the job says about late ranks: it decides who they are wherever it has an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hta_widgets.analysis.communication.standing_out import standing_out
from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, Text, say
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.job.slowdown import judged
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import capitalised, ranks_in_words
from hta_widgets.trace.scope import Scope

MOST_WORK: Final = 200_000
"""A job with more device work takes over two seconds to replay (some 10 us each): too long for what every
user waits for first."""


@dataclass(frozen=True)
class ReplayedJob:
    """The verdict of `slowdown`."""

    # as in `Culprit`
    kind: str
    ranks: list[int]
    cost_ns: int  # what a step gains if these ranks are repaired; without any, if all are
    # the least and the most of that, where the recording leaves the order open
    low_ns: int
    high_ns: int
    time_ns: int  # how long a step takes in the replay
    steps: int  # how many were replayed
    # why these ranks are slow, as in `slowdown`; "" without any
    cause: str
    evidence: str

    @property
    def saving_pct(self) -> float:
        """What is gained, in % of the time."""
        return 100.0 * self.cost_ns / self.time_ns

    @property
    def saving_ns(self) -> int:
        """What all steps gain."""
        return self.cost_ns * self.steps

    @property
    def saving_low_ns(self) -> int:
        """What they gain at least."""
        return self.low_ns * self.steps

    @property
    def saving_high_ns(self) -> int:
        """What they gain at most."""
        return self.high_ns * self.steps

    @property
    def who(self) -> Claim | None:
        """These ranks."""
        return Claim("late_by_replay", tuple(self.ranks), "ranks") if self.ranks else None

    def share(self, inputs: Inputs) -> Claim:
        """What is gained, in % of the time."""
        return inputs.of_time("job_saving", self.saving_pct)

    def sentence(self, inputs: Inputs) -> Text:
        """Why the late ranks are slow; nothing where the replay does not name them."""
        if self.kind == "none":
            share = self.share(inputs)
            return say(" Without slow ranks, a step would take hardly less ({share}).", share=share)
        if not self.ranks:
            return NOTHING_SAID
        who = ranks_in_words(self.ranks)
        return say(
            " {who} hold{s} the others up: {evidence}.",
            who=Claim("late_by_replay", tuple(self.ranks), "ranks", shown=capitalised(who)),
            s="s" * (len(self.ranks) == 1),
            evidence=Claim("job_evidence", self.evidence, "name", shown=self.evidence),
        )


@memoize_per_rank()
def replayed_job(inputs: Inputs) -> ReplayedJob | None:
    """The verdict about the judged steps; None where they cannot be replayed, or not all of them is asked.

    Neither is a job of more than `MOST_WORK` device events replayed: `slowdown` does so when it is asked.
    """
    scope = inputs.scope
    if scope != Scope(ranks=scope.ranks, iterations=scope.iterations):
        return None
    ranks = [inputs.trace.rank(rank) for rank in inputs.trace.ranks_of(scope)]
    if sum(rank.device_events for rank in ranks) > MOST_WORK:
        return None
    try:
        found, frame = judged(inputs.trace, scope)
    except MissingDataError:
        return None
    job, named = frame.iloc[0], frame[frame["culprit"]]
    time, part = int(job["time_ns"]), found.won if found.ranks else 1.0
    low, high = (max(round(part * time * (1 - 1 / job[f"slowdown_{end}"])), 0) for end in ("low", "high"))
    cost = max(round(part * job["cost_ns"]), 0)
    return ReplayedJob(
        kind=found.kind,
        ranks=sorted(found.ranks),
        cost_ns=cost,
        low_ns=min(low, cost),
        high_ns=max(high, cost),
        time_ns=time,
        steps=int((frame["scope"] == "iteration").sum()),
        cause=str(named["cause"].iloc[0]) if len(named) else "",
        evidence=str(named["evidence"].iloc[0]) if len(named) else "",
    )


def named_late(inputs: Inputs) -> list[int]:
    """The ranks that are late: by the replay of the job, else those that cause most of the waiting.

    Where many ranks are late in turn, the replay names nobody, whoever causes most of the waiting. It leaves
    open who is late where the job is hardly slower than without slow ranks, or waits for what was not
    recorded, or all transfers are slow.
    """
    replayed = replayed_job(inputs)
    if replayed is None or not (replayed.ranks or replayed.kind == "nobody"):
        return standing_out(inputs.late)
    return replayed.ranks
