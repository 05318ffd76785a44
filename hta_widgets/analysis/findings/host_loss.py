"""What the threads that run the steps lose, in words, where jobs compute on the host alone.

There is no device whose idle time would tell what is lost; the steps take as long as their thread. Nor is
there a replay: what a change saves is unknown, but no more than its cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.claim import Claim, Said, Text, say, says
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.longest import longest_name
from hta_widgets.analysis.findings.call_time import open_time
from hta_widgets.analysis.findings.finding import Evidence, Finding, Severity, severity_of
from hta_widgets.analysis.findings.host_time import HostTime, hosts_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.loss import Loss, lost_on
from hta_widgets.analysis.findings.rule import MAIN_QUESTION, Rule, never
from hta_widgets.arrays import Int64
from hta_widgets.trace.rank_trace import RankTrace

_FEW: Final = 0.25
_MOSTLY: Final = 0.8
"""Of a loss: if so much lies in a quarter of the steps or fewer, it is not one of each step."""

host_rule: Final[Callable[..., Rule]] = partial(
    Rule,
    question=MAIN_QUESTION,
    lost_as="host",
    applies=never,
    no_change="only device work can be simulated, and none is recorded",
)
"""A rule about what a host loses: nothing of it can be replayed."""


@dataclass(frozen=True)
class HostLoss(Loss):
    """A part of the time: of all ranks, of one that stands out, or of all but those that others wait for."""

    part: str  # the name of it, as in `HostTime.parts`, or what else is measured

    def evidence(self, name: str) -> Evidence:
        return Evidence(rank=self.alone, name=name)

    def text(self, inputs: Inputs, template: str, /, **parts: Said) -> Text:
        """`template` with {who} does it and {lost} of the time; `measure` and `about` say what that is."""
        who: Said = "On average over the ranks, the main thread"
        if self.among == 1:
            who = "The main thread"
        elif 1 < len(self.ranks) < self.among:
            who = "On average over the other ranks, the main thread"
        elif self.alone is not None:
            rank = Claim("host_stands_out", (self.alone,), "ranks", about={"part": self.part})
            who = say("The main thread of {rank}", rank=rank)
        lost = inputs.time_lost("host_time", self.share_pct, self.cost_ns, self.ranks, part=self.part)
        return say(template, who=who, lost=lost, **parts)


def names_with_shares(
    inputs: Inputs, pct: Mapping[str, float], ranks: list[int], measures: tuple[str, str]
) -> Text:
    """`aten::mm (40 %), aten::add_ (12 %)`; the measures: which takes longest, and how long each takes."""
    names, times = measures
    listed: list[Said] = [
        say(
            "{name} ({share})",
            name=Claim(names, name, "name", ranks=tuple(ranks), about={"nth": nth}),
            share=inputs.of_time(times, share, ranks, name=name),
        )
        for nth, (name, share) in enumerate(pct.items())
    ]
    return says(listed, ", ")


def few_steps(inputs: Inputs, found: HostLoss, lost: Intervals) -> dict[int, int]:
    """The steps in which most of what one rank loses lies, if they are few; with how much each holds."""
    if len(found.ranks) > 1:
        return {}
    rank = found.worst
    steps = inputs.judged_rows
    steps = steps[steps["rank"] == rank]
    held = lost.within_each(steps[["start_ns", "end_ns"]].to_numpy(np.int64))
    order = np.argsort(-held, kind="stable")[: int(_FEW * len(steps))]
    count = int((np.cumsum(held[order]) < _MOSTLY * lost.length).sum()) + 1
    if not inputs.judged or count > len(order):
        return {}
    chosen = np.sort(order[:count])
    return dict(zip(steps["iteration"].iloc[chosen].tolist(), held[chosen].tolist(), strict=True))


def in_few_steps(few: Mapping[int, int], rank: int, lost: Intervals, part: str) -> Said:
    """` 84.7 % of it lies in iterations 3, 7.`; "" where it is no matter of few steps."""
    if not few:
        return ""
    share, about = 100.0 * sum(few.values()) / lost.length, {"part": part, "steps": list(few)}
    return say(
        " {share} of it lies in iteration{s} {steps}.",
        share=Claim("lost_in_steps", share, "%", "host_time", (rank,), about),
        s="s" * (len(few) > 1),
        steps=Claim("steps_with_most_lost", tuple(few), "steps", ranks=(rank,), about={"part": part}),
    )


def lost_by_hosts(hosts: dict[int, HostTime], part: str, by_rank: dict[int, int]) -> HostLoss | None:
    """What of these ranks is lost; None where it is too little to tell."""
    judged = {rank: hosts[rank].window_ns for rank in by_rank}
    frame = pd.DataFrame({"rank": list(judged), "window_ns": list(judged.values())})
    loss = lost_on(frame, by_rank)
    if loss is None or not severity_of(loss.share_pct):
        return None
    return HostLoss(loss.rows, loss.ns, len(hosts), part)


def lost_in_part(hosts: dict[int, HostTime], part: str) -> HostLoss | None:
    """The same of a part of the time of all threads."""
    return lost_by_hosts(hosts, part, {rank: host.parts[part] for rank, host in hosts.items()})


def calls_rule(
    part: str,
    rows_of: Callable[[RankTrace, int], Int64],
    text: str,
    advice: str,
    severity: Severity | None = None,
    loses: float = 1.0,
    **known: Any,
) -> Rule:
    """A rule about operators that the threads of the steps call.

    Args:
        part: what is measured.
        rows_of: the calls of a rank's thread.
        text: with {who}, {lost} and {name}, that of the calls which take longest.
        advice: what to do.
        severity: how severe it is, where its share does not tell.
        loses: how much of the time in these calls is lost.
        known: of the rule.
    """

    def judge(inputs: Inputs) -> Finding | None:
        hosts = hosts_of(inputs)
        rows = {rank: rows_of(inputs.trace.rank(rank), host.thread) for rank, host in hosts.items()}
        lost = {
            rank: host.spent["operators"] & open_time(inputs.trace.rank(rank), rows[rank])
            for rank, host in hosts.items()
        }
        found = lost_by_hosts(hosts, part, {rank: round(loses * time.length) for rank, time in lost.items()})
        if found is None:
            return None
        name = longest_name(inputs.trace.rank(found.worst), rows[found.worst])
        called = Claim("called_most", name, "name", ranks=(found.worst,), about={"part": part})
        return found.finding(
            found.text(inputs, text, name=called),
            advice,
            "operators",
            found.evidence(name),
            lost=inputs.when(found.ranks, lost.__getitem__),
            severity=severity,
        )

    return host_rule(judge=judge, **known)
