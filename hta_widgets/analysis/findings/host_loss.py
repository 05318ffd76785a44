"""What the threads that run the steps lose, in words, where jobs compute on the host alone.

There is no device whose idle time would tell what is lost; the steps take as long as their thread. Nor is
there a replay: what a change saves is unknown, but no more than its cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import pandas as pd

from hta_widgets.analysis.core.claim import Claim, Said, Text, say, says
from hta_widgets.analysis.findings.finding import Evidence, severity_of
from hta_widgets.analysis.findings.host_time import HostTime
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.loss import Loss, lost_on
from hta_widgets.analysis.findings.rule import Rule, never

host_rule: Final[Callable[..., Rule]] = partial(
    Rule,
    lost_as="host",
    applies=never,
    no_change="only device work can be simulated, and none is recorded",
)
"""A rule about what a host loses: nothing of it can be replayed."""


@dataclass(frozen=True)
class HostLoss(Loss):
    """A part of the time: of all ranks, of one that stands out, or of all but those that others wait for.

    Attributes:
        part: the name of it, as in `HostTime.parts`, or what else is measured.
    """

    part: str

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
