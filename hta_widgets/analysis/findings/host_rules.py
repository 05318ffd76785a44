"""Rules about jobs that compute on the host alone: what the thread of their steps does, and waits for.

There is no device whose idle time would tell what is lost; the steps take as long as their thread. Nor is
there a replay: what a change saves is unknown, but no more than its cost.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.claim import Claim, Said, Text, say, says
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.callers import place_claim
from hta_widgets.analysis.findings.compute_verdict import COMPUTE_BOUND_PCT
from hta_widgets.analysis.findings.exposed_communication import whom_to_record
from hta_widgets.analysis.findings.finding import WARNING_PCT, Evidence, Finding, severity_of
from hta_widgets.analysis.findings.host_time import HostTime, hosts_of
from hta_widgets.analysis.findings.host_waits import HostWaits, waits_of
from hta_widgets.analysis.findings.idle_rules import MOST, concerned
from hta_widgets.analysis.findings.rule import MAIN_QUESTION, WAITS_FOR_LATE, Rule, never
from hta_widgets.analysis.findings.straggler import at_start
from hta_widgets.analysis.idle.places import short_place
from hta_widgets.analysis.operators.inputs import parse_shapes, parse_types
from hta_widgets.formatting import brief, ranks_in_words

if TYPE_CHECKING:
    from hta_widgets.analysis.findings.inputs import Inputs

_MOST_NAMES: Final = 2
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
_CAT: Final = "aten::cat"
_FAR_SMALLER: Final = 10
_SEVERAL: Final = 3
_BETWEEN_TWO: Final = ("send", "recv")
_DOES: Final = {
    "loading": "in the data loader",
    "operators": "in operators",
    "outside": "outside of operators",
}


class _Lost(NamedTuple):
    """A part of the time: the ranks that it is about, its mean and share, the rank with most of it.

    The ranks are all, one that stands out, or all but those that the others wait for.
    """

    part: str
    ranks: list[int]
    cost_ns: int
    share_pct: float
    worst: int

    def alone(self, hosts: dict[int, HostTime]) -> int | None:
        """The rank that stands out, if one does."""
        return self.worst if len(self.ranks) < len(hosts) else None

    def evidence(self, hosts: dict[int, HostTime], name: str) -> Evidence:
        return Evidence(rank=self.alone(hosts), name=name)

    def text(self, inputs: Inputs, hosts: dict[int, HostTime], template: str, /, **parts: Said) -> Text:
        """`template` with {who} does it and {lost} of the time; `measure` and `about` say what that is."""
        who: Said = "On average over the ranks, the main thread"
        if len(hosts) == 1:
            who = "The main thread"
        elif len(self.ranks) > 1 and len(self.ranks) < len(hosts):
            who = "On average over the other ranks, the main thread"
        elif len(self.ranks) < len(hosts):
            rank = Claim("host_stands_out", (self.worst,), "ranks", about={"part": self.part})
            who = say("The main thread of {rank}", rank=rank)
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
    if longest and longest[0][0] == _CAT and any(inputs.of(rank, _grows_by_cat) for rank in ranks):
        short = say(
            " {name} copies a tensor that grows from call to call, to add little to it.",
            name=Claim("grows_by", _CAT, "name", ranks=tuple(ranks)),
        )
        advice = (
            "If that is a cache of keys and values, allocate it once at its full size and write into it. "
            'Transformers has such a static cache: cache_implementation="static".'
        )
    text = say(
        "No device work is recorded: the main thread is in operators {share}.{longest}{short}",
        share=inputs.share_of_time("host_time", share, ranks, part="operators"),
        longest=say(" Longest, inner ones aside: {names}.", names=says(listed, ", ")) if listed else "",
        short=short,
    )
    name = longest[0][0] if longest else ""
    most = longest and 2 * longest[0][1] > whole
    headline = f"most of it is {brief(name)}" if most else f"{brief(name)} takes longest" if name else ""
    return Finding(
        0, share, text, advice, "operators", Evidence(name=name), severity="verdict", headline=headline
    )


def _grows_by_cat(inputs: Inputs, rank: int) -> bool:
    """Whether a tensor grows from call to call by joining it to one that is far smaller."""
    rank_trace = inputs.trace.rank(rank)
    codes = [code for code, name in enumerate(rank_trace.names) if name == _CAT]
    rows = np.flatnonzero(np.isin(rank_trace.name, codes))
    if not len(rows) or not rank_trace.has_argument("input_dims"):
        return False
    rows = rows[np.argsort(rank_trace.start[rows], kind="stable")]
    texts, kinds = rank_trace.table.dictionary("input_dims"), rank_trace.table.dictionary("input_type")
    sizes = []
    for dims, types in zip(
        rank_trace.argument_codes("input_dims")[rows].tolist(),
        rank_trace.argument_codes("input_type")[rows].tolist(),
        strict=True,
    ):
        shapes = (
            parse_shapes(texts[dims], parse_types(kinds[types]) if types >= 0 else ()) if dims >= 0 else ()
        )
        joined = shapes[0] if shapes and isinstance(shapes[0], list) else []
        first, *rest = [math.prod(shape) for shape in joined if isinstance(shape, tuple)] or [0]
        if rest and sum(rest) * _FAR_SMALLER <= first:
            sizes.append(first)
    return len(set(sizes)) >= _SEVERAL and 2 * len(sizes) > len(rows) and sizes == sorted(sizes)


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
        explains=found.alone(hosts),
    )


def _straggler(inputs: Inputs) -> Finding | None:
    """Threads that wait in collectives until one of the ranks, or a few of them, join."""
    hosts, waits = hosts_of(inputs), waits_of(inputs)
    found = _waiting(hosts, waits)
    if waits is None or not waits.late or found is None:
        return None
    one = waits.late[0] if len(waits.late) == 1 else None
    return Finding(
        found.cost_ns,
        found.share_pct,
        found.text(
            inputs,
            hosts,
            f"{{who}} waits in collectives {{lost}}. It waits for {{late}}, "
            f"which join{'s' * (one is not None)} last."
            "{reason}",
            late=_joins_last(waits),
            reason="" if one is None else _reason(inputs, hosts, one, found.cost_ns),
        ),
        f"{inputs.is_it_always()}Look at what {ranks_in_words(waits.late)} "
        f"{'do' if one is None else 'does'} before the collectives.",
        "user_annotations",
        Evidence(rank=one),
        lost={rank: waits.for_late[rank] for rank in found.ranks},
        late=tuple(waits.late),
        title=f"Waiting for {ranks_in_words(waits.late)}",
    )


def _in_turn(inputs: Inputs) -> Finding | None:
    """Threads that wait in collectives until the last rank joins, which is one rank now and another then."""
    hosts, waits = hosts_of(inputs), waits_of(inputs)
    found = _waiting(hosts, waits)
    if waits is None or waits.late or found is None:
        return None
    most = max(sorted(waits.caused_ns), key=lambda rank: waits.caused_ns[rank])
    share = 100.0 * waits.caused_ns[most] / sum(waits.caused_ns.values())
    return Finding(
        found.cost_ns,
        found.share_pct,
        found.text(
            inputs,
            hosts,
            "{who} waits in collectives for the last rank to join, {lost}. No rank stands out: {most} causes "
            "the largest part of it, {share}.",
            most=Claim("host_causes_most_waiting", (most,), "ranks"),
            share=Claim("host_caused_waiting", share, "%", "waiting", (most,)),
        ),
        "Give the ranks equal work in each step: batches bucketed by length, or as many samples for each. "
        "If their work is equal, look at what delays the hosts in turn: the data loader, logging, other "
        "processes on the same cores.",
        "user_annotations",
        Evidence(),
        lost={rank: waits.time[rank] for rank in found.ranks},
    )


def _waiting(hosts: dict[int, HostTime], waits: HostWaits | None) -> _Lost | None:
    """What the other ranks wait for the late ones, or all for the last one where they are late in turn."""
    if waits is None:
        return None
    part, time = ("waiting_for_late", waits.for_late) if waits.late else ("waiting_for_last", waits.time)
    others = {rank: host for rank, host in hosts.items() if rank not in waits.late}
    return _lost(others, part, {rank: time[rank].length for rank in others})


def _joins_last(waits: HostWaits) -> Claim:
    return Claim("joins_last", tuple(waits.late), "ranks")


def _collectives(inputs: Inputs) -> Finding | None:
    """Threads that communicate: in calls of it, copies for it included, or in none until one has ended that
    another thread carries out.

    Waiting for ranks that join later is a finding of its own, where it is worth one.
    """
    hosts, waits = hosts_of(inputs), waits_of(inputs)
    apart: dict[int, Intervals] = {}
    besides = first = ""
    if waits and _waiting(hosts, waits):
        apart, besides = waits.time, " Waiting for the last rank to join is not part of it."
    elif waits is None and any(host.waits.length for host in hosts.values()):
        besides, first = " That includes waiting for other ranks.", whom_to_record(inputs)
    lost = {
        rank: host.communicates - apart[rank] if apart else host.communicates for rank, host in hosts.items()
    }
    found = _lost(hosts, "collectives", {rank: time.length for rank, time in lost.items()})
    if found is None:
        return None
    name = _longest_collective(inputs, hosts, found.ranks, apart)
    more, advice = _why_so_much(inputs, hosts, name)
    return Finding(
        found.cost_ns,
        found.share_pct,
        found.text(
            inputs,
            hosts,
            "{who} communicates or waits for it {lost}{name}.{besides}{more}",
            name=say(
                ", longest in {name}",
                name=Claim("longest_collective", name, "name", ranks=tuple(found.ranks)),
            )
            if name
            else "",
            besides=besides,
            more=more,
        ),
        advice if _is_between_two(name) else first + advice,
        "user_annotations",
        found.evidence(hosts, name),
        lost={rank: lost[rank] for rank in found.ranks},
    )


def _longest_collective(
    inputs: Inputs, hosts: dict[int, HostTime], ranks: list[int], apart: dict[int, Intervals]
) -> str:
    """The name of the collectives, sends or receives that take longest; "" where none are recorded.

    What is inside of another one, and waiting that is told apart, is not the time of that one.
    """
    times: dict[str, int] = {}
    for rank in ranks:
        time = inputs.judged_time(rank)
        for name, ns in hosts[rank].in_collectives(time - apart[rank] if apart else time).items():
            times[name] = times.get(name, 0) + ns
    return max(sorted(name for name in times if times[name]), key=lambda name: times[name], default="")


def _why_so_much(inputs: Inputs, hosts: dict[int, HostTime], name: str) -> tuple[Said, str]:
    """What makes it so much, as far as it shows, and what to do about it."""
    if (twice := _reduced_too_often(inputs, hosts)) is not None:
        return twice
    if any(host.sharded for host in hosts.values()):
        return "", (
            "FSDP moves as many bytes for a small batch as for a large one: raise the batch. If memory "
            "allows, keep gathered parameters for the backward pass (reshard_after_forward=False)."
        )
    if _is_between_two(name):
        return _of_stages(inputs, hosts)
    return "", (
        "Communicate less often (fewer, larger pieces), less at a time (fewer bytes per value), or beside "
        "work that does not need the result."
    )


def _is_between_two(name: str) -> bool:
    return name.rpartition(":")[2].startswith(_BETWEEN_TWO)


def _reduced_too_often(inputs: Inputs, hosts: dict[int, HostTime]) -> tuple[Said, str] | None:
    """Gradients that are reduced after each of several forward passes of a step."""
    steps, host = inputs.judged, next(iter(hosts.values()))
    passes, calls = (count // max(steps, 1) for count in (host.forwards, host.reductions))
    if passes < 2 or any(each.reduced < each.forwards for each in hosts.values()):
        return None
    rank = (next(iter(hosts)),)
    once = max(calls // passes, 1)
    said = say(
        " Gradients are reduced after each of the {passes} forward passes of a step. That makes {calls} "
        "calls, where {once} would do.",
        passes=Claim("forward_passes", passes, "count", ranks=rank),
        calls=Claim("reductions", calls, "count", ranks=rank),
        once=Claim("reductions_once", once, "count", ranks=rank),
    )
    return said, (
        "Run all but the last forward and backward pass of a step in model.no_sync(): gradients add up "
        "locally, and are reduced once."
    )


def _of_stages(inputs: Inputs, hosts: dict[int, HostTime]) -> tuple[Said, str]:
    """Ranks that send to each other, as the stages of a pipeline do: which has most to compute."""
    if len(hosts) == 1:
        return "", (
            "Ranks pass data on here, as the stages of a pipeline do: record all of them to see for which "
            "one the others wait. More and smaller microbatches shorten the wait."
        )
    most = max(hosts, key=lambda rank: hosts[rank].parts["operators"])
    said = say(
        " Of the ranks, which pass data on as the stages of a pipeline do, {most} is longest in operators "
        "({share} of its time).",
        most=Claim("longest_in_operators", (most,), "ranks"),
        share=inputs.of_time(
            "host_time",
            100.0 * hosts[most].parts["operators"] / hosts[most].window_ns,
            (most,),
            part="operators",
        ),
    )
    return said, (
        f"Give rank {most} fewer layers, so that all stages take equally long, and cut the batch into more "
        "and smaller microbatches."
    )


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
        f" {{late}} is {_DOES[part]} longer than the others{{time}}{{most}}.",
        late=Claim("joins_last", (late,), "ranks", shown=at_start([late])),
        time=inputs.time_per_step("host_time_beyond_others", more[part], (late,), part=part),
        most=_operator_beyond(inputs, hosts[late], others, late, more[part]) if part == "operators" else "",
    )


def _operator_beyond(inputs: Inputs, host: HostTime, others: list[HostTime], late: int, more_ns: int) -> Said:
    """The operator that a rank is in longer than the others, where that is most of what it takes longer."""
    beyond = {
        name: time - int(np.median([other.operators.get(name, 0) for other in others]))
        for name, time in host.operators.items()
    }
    name = max(beyond, key=lambda each: beyond[each], default="")
    if not name or beyond[name] < MOST * more_ns:
        return ""
    return say(
        ", mostly in {name}{time}",
        name=Claim("operator_beyond_others", name, "name", ranks=(late,)),
        time=inputs.time_per_step("operator_time_beyond_others", beyond[name], (late,), name=name),
    )


def _outside(inputs: Inputs) -> Finding | None:
    """Threads that are in no operator: Python between short ones, a function, or nothing that is recorded."""
    hosts = hosts_of(inputs)
    found = _part(hosts, "outside")
    if found is None:
        return None
    in_operators = sum(host.parts["operators"] for host in hosts.values())
    mostly_works = 100.0 * in_operators >= COMPUTE_BOUND_PCT * sum(host.window_ns for host in hosts.values())
    host = hosts[found.worst]
    lost = host.parts["outside"]
    worst = (found.worst,)
    places = [(name, time) for name, time in host.places.items() if time >= _MENTIONED * lost][:_MOST_NAMES]
    if sum(time for _, time in places) < MOST * lost:  # the largest of them are no answer
        places = []
    first = places[0][0] if places else ""
    where = ". It lasts up to {longest} at a time"
    if 2 * host.long_ns < lost:
        where = (
            ". It lasts up to {longest} at a time, between short operators, where Python and the profiler run"
        )
        advice, places = f"Run {_FEWER} to do.", []
    elif places:
        where = ". {places}. It lasts up to {longest} at a time"
        advice = f"Look at {brief(short_place(first))}{' first' * (len(places) > 1)}."
    else:
        advice = (
            "Mark what the loop does then with torch.profiler.record_function."
            if inputs.has_stacks
            else "Record what Python does then: with_stack=True, or torch.profiler.record_function around it."
        )
    listed: list[Said] = [
        say(
            "{share}{of_it} in {place}",
            of_it=" of it lies" * (not nth),
            share=Claim("outside_in_call", 100.0 * time / lost, "%", "host_time", worst, {"call": name}),
            place=place_claim("outside_in", name, found.worst, nth=nth),
        )
        for nth, (name, time) in enumerate(places[:2])
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
        explains=found.alone(hosts),
        severity="note" if mostly_works else None,
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
        label="CPU operators",
        cause="operators on the CPU",
        lost_as="host",
        judge=_operators,
        role="work",
        applies=never,
        headline="what takes longest are the operators themselves",
    ),
    Rule(
        topic="host_loading",
        question=MAIN_QUESTION,
        title="Time in the data loader",
        label="Data loader",
        cause="the data loader",
        lost_as="host",
        judge=_loading,
        applies=never,
        no_change="only device work can be simulated, and none is recorded",
        risk="More workers take memory and cores of the host, and each draws random numbers of its own.",
        needs="Free cores on the host.",
        wrong_if="The loader waits for something else, such as a lock or a slow disk that other jobs use.",
    ),
    Rule(
        topic="host_straggler",
        question=MAIN_QUESTION,
        title="Waiting for a late rank",
        label="Rank {rank} is late",
        cause=WAITS_FOR_LATE,
        lost_as="host",
        judge=_straggler,
        applies=never,
        no_change="only device work can be simulated, and none is recorded",
        risk="Moving work between ranks moves memory, too.",
        needs="Data or layers that can be divided another way.",
        wrong_if="The clocks of the hosts are apart, or another rank than is recorded is late.",
    ),
    Rule(
        topic="host_in_turn",
        question=MAIN_QUESTION,
        title="Waiting of the ranks for each other in turn",
        label="Ranks in turn",
        cause="ranks that wait in turn",
        lost_as="host",
        judge=_in_turn,
        applies=never,
        no_change="only device work can be simulated, and none is recorded",
        risk="Moving work between ranks moves memory, too.",
        needs="Data or layers that can be divided another way.",
        wrong_if="The clocks of the hosts are apart.",
    ),
    Rule(
        topic="host_collectives",
        question=MAIN_QUESTION,
        title="Communication on the CPU",
        label="CPU collectives",
        cause="collectives on the CPU",
        lost_as="host",
        judge=_collectives,
        applies=never,
        no_change="only device work can be simulated, and none is recorded",
        wrong_if="The thread waits for something else that ends with the collective.",
    ),
    Rule(
        topic="host_outside",
        question=MAIN_QUESTION,
        title="Time outside of operators",
        label="Outside of operators",
        cause="time outside of operators",
        lost_as="host",
        judge=_outside,
        applies=never,
        no_change="only device work can be simulated, and none is recorded",
        wrong_if="The profiler's own time is most of it.",
    ),
    Rule(
        topic="host_optimizer",
        question=MAIN_QUESTION,
        title="Updating parameters one by one",
        label="Optimizer",
        cause="parameters updated one by one",
        lost_as="host",
        judge=_optimizer,
        applies=never,
        no_change="only device work can be simulated, and none is recorded",
        risk="Sums are rounded in another order.",
        needs="An optimizer with fused=True for CPUs.",
        wrong_if="The operators are large: then their number does not matter.",
    ),
)
