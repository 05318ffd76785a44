"""Rules about jobs that compute on the host alone: what the thread of their steps does, and waits for.

There is no device whose idle time would tell what is lost; the steps take as long as their thread. Nor is
there a replay: what a change saves is unknown, but no more than its cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.claim import Claim, Said, Text, say, says
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.callers import place_claim
from hta_widgets.analysis.findings.finding import WARNING_PCT, Evidence, Finding, severity_of
from hta_widgets.analysis.findings.host_time import HostTime, hosts_of
from hta_widgets.analysis.findings.idle_rules import MOST, concerned
from hta_widgets.analysis.findings.rule import MAIN_QUESTION, Rule, never
from hta_widgets.analysis.idle.places import short_place
from hta_widgets.analysis.parallelism.process_groups import listed_groups
from hta_widgets.formatting import brief

if TYPE_CHECKING:
    from hta_widgets.analysis.findings.inputs import Inputs

_MOST_NAMES: Final = 3
_LEAST_PCT: Final = 3.0
_SHORT_NS: Final = 5_000
"""An operator that takes less, with the profiler's own time for it, hardly does more than be called."""
_LONG_UPDATE_NS: Final = 50_000
"""Updates that take longer on average compute, however many they are."""
_MANY_UPDATES: Final = 30
_LITTLE: Final = 3
_MENTIONED: Final = 0.1
_FEWER: Final = (
    "fewer and larger operators: torch.compile joins small ones, and a larger batch gives each more"
)
_DOES: Final = {
    "loading": "in the data loader",
    "operators": "in operators",
    "outside": "outside of operators",
}


class _Lost(NamedTuple):
    """A part of the time: the ranks that it is about, its mean and share, the rank with most of it."""

    part: str
    ranks: list[int]
    cost_ns: int
    share_pct: float
    worst: int

    def evidence(self, hosts: dict[int, HostTime], name: str) -> Evidence:
        return Evidence(rank=self.worst if len(self.ranks) < len(hosts) else None, name=name)

    def text(self, inputs: Inputs, hosts: dict[int, HostTime], template: str, /, **parts: Said) -> Text:
        """`template` with {who} does it and {lost} of the time; `measure` and `about` say what that is."""
        who: Said = "On average over the ranks, the thread of the steps"
        if len(hosts) == 1:
            who = "The thread of the steps"
        elif len(self.ranks) < len(hosts):
            rank = Claim("host_stands_out", (self.worst,), "ranks", about={"part": self.part})
            who = say("The thread of the steps of {rank}", rank=rank)
        lost = inputs.time_lost("host_time", self.share_pct, self.cost_ns, self.ranks, part=self.part)
        return say(template, who=who, lost=lost, **parts)


def _lost(hosts: dict[int, HostTime], part: str, by_rank: dict[int, int]) -> _Lost | None:
    """None where it is too little to tell."""
    if not any(by_rank.values()):
        return None
    frame = pd.DataFrame({"rank": list(hosts), "window_ns": [host.window_ns for host in hosts.values()]})
    lost = frame["rank"].map(by_rank)
    about = concerned(frame, lost)
    total, whole = int(lost[about.index].sum()), int(about["window_ns"].sum())
    if not severity_of(100.0 * total / whole):
        return None
    worst = int(about["rank"].iloc[int(lost[about.index].to_numpy().argmax())])
    return _Lost(part, about["rank"].tolist(), total // len(about), 100.0 * total / whole, worst)


def _part(hosts: dict[int, HostTime], part: str) -> _Lost | None:
    return _lost(hosts, part, {rank: host.parts[part] for rank, host in hosts.items()})


def _operators(inputs: Inputs) -> Finding | None:
    """Threads that are in operators most of the time: a verdict, as that is what they are for."""
    hosts = hosts_of(inputs)
    if not hosts:
        return None
    whole = sum(host.window_ns for host in hosts.values())
    share = 100.0 * sum(host.parts["operators"] for host in hosts.values()) / whole
    if share < 100.0 * MOST:
        return None
    sums: dict[str, int] = {}
    for host in hosts.values():
        for name, time in host.operators.items():
            sums[name] = sums.get(name, 0) + time
    longest = sorted(sums.items(), key=lambda each: (-each[1], each[0]))[:_MOST_NAMES]
    ranks = list(hosts)
    listed: list[Said] = [
        say(
            "{name} ({share})",
            name=Claim("longest_operator", name, "name", ranks=tuple(ranks), about={"nth": nth}),
            share=inputs.of_time("operator_time", 100.0 * time / whole, ranks, name=name),
        )
        for nth, (name, time) in enumerate(longest)
        if 100.0 * time >= _LEAST_PCT * whole
    ]
    calls = sum(host.calls for host in hosts.values())
    each = sum(host.parts["operators"] for host in hosts.values()) / max(calls, 1)
    short: Said = ""
    advice = "Look at these operators: their shapes and types, and how many threads they may use."
    if each < _SHORT_NS:
        often = round(calls / len(hosts) / inputs.judged) if inputs.judged else calls
        per_step = {"per_step": bool(inputs.judged)}
        short = say(
            f" They are {{often}}{' a step' * bool(inputs.judged)} and take {{each}} on average, little more "
            "than a call does.",
            often=Claim("operators", often, "count", ranks=tuple(ranks), about=per_step, shown=f"{often:,}"),
            each=Claim("mean_operator", each, "ns", ranks=tuple(ranks)),
        )
        advice = f"Run {_FEWER} to do."
    text = say(
        "No device work is recorded: the thread of the steps is in operators {share}.{longest}{short}",
        share=inputs.share_of_time("host_time", share, ranks, part="operators"),
        longest=say(" Longest, inner ones aside: {names}.", names=says(listed, ", ")) if listed else "",
        short=short,
    )
    name = longest[0][0] if longest else ""
    return Finding(0, share, text, advice, "operators", Evidence(name=name), severity="verdict")


def _loading(inputs: Inputs) -> Finding | None:
    """Threads that are in the data loader."""
    hosts = hosts_of(inputs)
    found = _part(hosts, "loading")
    if found is None:
        return None
    if inputs.loads_in_the_loop:
        advice = "num_workers is 0, so the loop itself makes each batch: give the DataLoader workers."
    else:
        advice = (
            "Raise num_workers or prefetch_factor of the DataLoader if the host has cores to spare, or make "
            "its transforms cheaper."
        )
    return Finding(
        found.cost_ns,
        found.share_pct,
        found.text(inputs, hosts, "{who} is in the data loader {lost}."),
        advice,
        "user_annotations",
        found.evidence(hosts, ""),
    )


class _Late(NamedTuple):
    """The rank that most of the waiting for collectives is for, and rank -> how long it waits for it, ns."""

    rank: int
    waits: dict[int, int]


def _straggler(inputs: Inputs) -> Finding | None:
    """Threads that wait in collectives until one of the ranks joins."""
    hosts = hosts_of(inputs)
    late = _late_rank(inputs)
    found = late and _lost(hosts, "waiting_for_late", late.waits)
    if not late or not found:
        return None
    return Finding(
        found.cost_ns,
        found.share_pct,
        found.text(
            inputs,
            hosts,
            "{who} waits in collectives for {late}, which joins last, {lost}{reason}.",
            late=Claim("joins_last", (late.rank,), "ranks"),
            reason=_reason(inputs, hosts, late.rank, found.cost_ns),
        ),
        f"{inputs.is_it_always()}Look at what rank {late.rank} does before it joins.",
        "user_annotations",
        Evidence(rank=late.rank),
        late=(late.rank,),
    )


def _collectives(inputs: Inputs) -> Finding | None:
    """Threads that do nothing until a collective has ended, which other threads carry out.

    Waiting for a late rank is a finding of its own.
    """
    hosts, late = hosts_of(inputs), _late_rank(inputs)
    of_late = late.waits if late else {}
    by_rank = {rank: host.parts["collectives"] - of_late.get(rank, 0) for rank, host in hosts.items()}
    found = _lost(hosts, "collectives", by_rank)
    if found is None:
        return None
    names = pd.Series([name for rank in found.ranks for name in hosts[rank].collectives])
    name = str(names.value_counts().index[0])
    besides: Said = ""
    if late and _lost(hosts, "waiting_for_late", of_late):
        besides = say(", besides waiting for {late},", late=Claim("joins_last", (late.rank,), "ranks"))
    return Finding(
        found.cost_ns,
        found.share_pct,
        found.text(
            inputs,
            hosts,
            "{who} waits for collectives ({name}){besides} {lost}: it is in no operator, and goes on as one "
            "ends.",
            name=Claim("most_frequent_collective", name, "name", ranks=tuple(found.ranks)),
            besides=besides,
        ),
        "Communicate less often (accumulate gradients in no_sync()), less at a time (fewer bytes per value), "
        "or beside work that does not need the result.",
        "user_annotations",
        found.evidence(hosts, name),
    )


@memoize_per_rank()
def _late_rank(inputs: Inputs) -> _Late | None:
    """The rank that most of the waiting is for: what a collective takes beyond its shortest duration over the
    ranks passes before the last one, where it is shortest, joins.

    Collectives correspond by their order, in one group of all ranks of one run.
    """
    hosts = hosts_of(inputs)
    if len(hosts) < 2 or inputs.trace.clock.method == "start" or not _is_one_group(inputs, list(hosts)):
        return None
    names = {host.collectives for host in hosts.values()}
    if len(names) != 1 or not next(iter(names)):  # other collectives, or some that are not recorded
        return None
    ranks = list(hosts)
    spans = np.stack([hosts[rank].spans for rank in ranks])
    durations = spans[:, :, 1] - spans[:, :, 0]
    last, shortest = durations.argmin(axis=0), durations.min(axis=0)
    before = [np.stack([span[:, 0], span[:, 1] - shortest], 1) for span in spans]
    for_each = np.zeros(len(ranks), np.int64)
    for rank, joined in zip(ranks, before, strict=True):
        np.add.at(for_each, last, hosts[rank].waits.within_each(joined))
    most = int(for_each.argmax())
    waits = {}  # what is waited for it in several collectives at once counts once
    for rank, joined in zip(ranks, before, strict=True):
        mine = joined[last == most]
        waits[rank] = (hosts[rank].waits & Intervals.union(mine[:, 0], mine[:, 1])).length
    if sum(waits.values()) < MOST * sum(host.parts["collectives"] for host in hosts.values()):
        return None
    return _Late(ranks[most], waits)


def _is_one_group(inputs: Inputs, ranks: list[int]) -> bool:
    """Whether the recorded ranks are all of the job, and it has no groups of fewer."""
    size = inputs.trace.summary["world_size"]
    groups = {members for rank in ranks for _, _, members in listed_groups(inputs.trace, rank)}
    return size in (None, len(ranks)) and all(len(members) == len(ranks) for members in groups)


def _reason(inputs: Inputs, hosts: dict[int, HostTime], late: int, waited_ns: int) -> Said:
    """What the late rank does longer than the others, where that explains the waiting."""
    others = [host for rank, host in hosts.items() if rank != late]
    more = {
        part: hosts[late].parts[part] - int(np.median([host.parts[part] for host in others]))
        for part in _DOES
    }
    part = max(more, key=lambda each: more[each])
    if more[part] * _LITTLE < waited_ns:
        return ""
    return say(
        f": {{late}} is {_DOES[part]} longer than the others{{time}}",
        late=Claim("joins_last", (late,), "ranks"),
        time=inputs.time_per_step("host_time_beyond_others", more[part], (late,), part=part),
    )


def _outside(inputs: Inputs) -> Finding | None:
    """Threads that are in no operator: Python between short ones, a function, or nothing that is recorded."""
    hosts = hosts_of(inputs)
    found = _part(hosts, "outside")
    if found is None:
        return None
    host = hosts[found.worst]
    lost = host.parts["outside"]
    worst = (found.worst,)
    places = [(name, time) for name, time in host.places.items() if time >= _MENTIONED * lost][:_MOST_NAMES]
    if sum(time for _, time in places) < MOST * lost:  # the largest of them are no answer
        places = []
    first = places[0][0] if places else ""
    where = "; up to {longest} at a time"
    if 2 * host.long_ns < lost:
        where = (
            ", up to {longest} at a time: between short operators, where Python runs, and the profiler itself"
        )
        advice, places = f"Run {_FEWER} to do.", []
    elif places:
        where = ", of that {places}; up to {longest} at a time"
        advice = f"Look at {brief(short_place(first))}{' first' * (len(places) > 1)}."
    else:
        advice = (
            "Mark what the loop does then with torch.profiler.record_function."
            if inputs.has_stacks
            else "Record what Python does then: with_stack=True, or torch.profiler.record_function around it."
        )
    listed: list[Said] = [
        say(
            "{share} in {place}",
            share=Claim("outside_in_call", 100.0 * time / lost, "%", "host_time", worst, {"call": name}),
            place=place_claim("outside_in", name, found.worst, nth=nth),
        )
        for nth, (name, time) in enumerate(places)
    ]
    return Finding(
        found.cost_ns,
        found.share_pct,
        found.text(
            inputs,
            hosts,
            f"{{who}} is in no operator {{lost}}{where}.",
            longest=Claim("longest_outside", host.longest_ns, "ns", ranks=worst),
            places=says(listed, ", ") if listed else "",
        ),
        advice,
        "call_stacks",
        found.evidence(hosts, first),
    )


def _optimizer(inputs: Inputs) -> Finding | None:
    """An optimizer that updates parameters one by one, in many short operators."""
    hosts = hosts_of(inputs)
    found = _lost(hosts, "optimizer", {rank: host.optimizer_ns for rank, host in hosts.items()})
    if found is None or found.share_pct < WARNING_PCT or not inputs.judged:
        return None
    host = hosts[found.worst]
    often = host.updates // inputs.judged
    if host.fused or often <= _MANY_UPDATES or host.optimizer_ns > _LONG_UPDATE_NS * host.updates:
        return None
    return Finding(
        found.cost_ns,
        found.share_pct,
        found.text(
            inputs,
            hosts,
            "{who} is in the optimizer {lost}, in {often} operators a step.",
            often=Claim("updates", often, "count", ranks=(found.worst,), shown=f"{often:,}"),
        ),
        "fused=True, where the optimizer has it for CPUs, updates each parameter in one operator, or many.",
        "user_annotations",
        found.evidence(hosts, host.optimizer),
    )


RULES = (
    Rule(
        topic="host_operators",
        question=MAIN_QUESTION,
        title="Running operators on the host",
        judge=_operators,
        role="work",
        applies=never,
        headline="what takes longest are the operators themselves",
    ),
    Rule(
        topic="host_loading",
        question=MAIN_QUESTION,
        title="Time in the data loader",
        judge=_loading,
        applies=never,
        no_change="only work of devices is replayed, and none is recorded",
        risk="More workers take memory and cores of the host, and each draws random numbers of its own.",
        needs="Free cores on the host.",
    ),
    Rule(
        topic="host_straggler",
        question=MAIN_QUESTION,
        title="Waiting for a late rank",
        judge=_straggler,
        applies=never,
        no_change="only work of devices is replayed, and none is recorded",
        risk="Moving work between ranks moves memory, too.",
        needs="Data or layers that can be divided another way.",
    ),
    Rule(
        topic="host_collectives",
        question=MAIN_QUESTION,
        title="Waiting for collectives of the hosts",
        judge=_collectives,
        applies=never,
        no_change="only work of devices is replayed, and none is recorded",
    ),
    Rule(
        topic="host_outside",
        question=MAIN_QUESTION,
        title="Time outside of operators",
        judge=_outside,
        applies=never,
        no_change="only work of devices is replayed, and none is recorded",
    ),
    Rule(
        topic="host_optimizer",
        question=MAIN_QUESTION,
        title="Updating parameters one by one",
        judge=_optimizer,
        applies=never,
        no_change="only work of devices is replayed, and none is recorded",
        risk="Sums are rounded in another order.",
        needs="An optimizer with fused=True for CPUs.",
    ),
)
