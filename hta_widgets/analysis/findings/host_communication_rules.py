"""Rules about ranks that communicate and wait for each other, where jobs compute on the host alone."""

from __future__ import annotations

from typing import Final

import numpy as np

from hta_widgets.analysis.core.claim import Claim, Said, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.accumulation import ADVICE, in_words
from hta_widgets.analysis.findings.exposed_communication import whom_to_record
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.host_loss import HostLoss, host_rule, lost_by_hosts
from hta_widgets.analysis.findings.host_time import HostTime, hosts_of, longest_first
from hta_widgets.analysis.findings.host_waits import HostWaits, waits_of
from hta_widgets.analysis.findings.idle_time import MOST
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import WAITS_FOR_LATE
from hta_widgets.analysis.findings.straggler import at_start
from hta_widgets.formatting import ranks_in_words

_LITTLE: Final = 3
_HARDLY: Final = 4
"""Communication that takes so many times as long leaves hardly any compute."""
_BETWEEN_TWO: Final = ("send", "recv")
_DOES: Final = {
    "loading": "in the data loader",
    "operators": "in operators",
    "outside": "outside of operators",
}


def _straggler(inputs: Inputs) -> Finding | None:
    """Threads that wait in collectives until one of the ranks, or a few of them, join."""
    hosts, waits = hosts_of(inputs), waits_of(inputs)
    found = _waiting(hosts, waits)
    if waits is None or not waits.late or found is None:
        return None
    one = waits.late[0] if len(waits.late) == 1 else None
    return found.finding(
        found.text(
            inputs,
            f"{{who}} waits in collectives {{lost}}. It waits for {{late}}, "
            f"which join{'s' * (one is not None)} last."
            "{reason}",
            late=Claim("joins_last", tuple(waits.late), "ranks"),
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
    return found.finding(
        found.text(
            inputs,
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


def _waiting(hosts: dict[int, HostTime], waits: HostWaits | None) -> HostLoss | None:
    """What the other ranks wait for the late ones, or all for the last one where they are late in turn."""
    if waits is None:
        return None
    part, time = ("waiting_for_late", waits.for_late) if waits.late else ("waiting_for_last", waits.time)
    others = {rank: host for rank, host in hosts.items() if rank not in waits.late}
    return lost_by_hosts(hosts, part, {rank: time[rank].length for rank in others})


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
    time = {rank: host.spent["collectives"] for rank, host in hosts.items()}
    lost = {rank: own - apart[rank] for rank, own in time.items()} if apart else time
    found = lost_by_hosts(hosts, "collectives", {rank: time.length for rank, time in lost.items()})
    if found is None:
        return None
    name = _longest_collective(inputs, hosts, found.ranks, apart)
    more, advice = _why_so_much(inputs, hosts, name, sum(each.length for each in lost.values()))
    return found.finding(
        found.text(
            inputs,
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
        found.evidence(name),
        lost={rank: lost[rank] for rank in found.ranks},
    )


def _longest_collective(
    inputs: Inputs, hosts: dict[int, HostTime], ranks: list[int], apart: dict[int, Intervals]
) -> str:
    """The name of the collectives, sends or receives that take longest; "" where none are recorded.

    What is inside of another one, and waiting that is told apart, is not the time of that one.
    """
    judged = {rank: inputs.judged_time(rank) for rank in ranks}
    times = longest_first(
        hosts[rank].in_collectives(time - apart[rank] if apart else time) for rank, time in judged.items()
    )
    return next((name for name, ns in times.items() if ns), "")


def _why_so_much(inputs: Inputs, hosts: dict[int, HostTime], name: str, lost_ns: int) -> tuple[Said, str]:
    """What makes it so much, as far as it shows, and what to do about it."""
    if (twice := _reduced_too_often(inputs, hosts)) is not None:
        return twice
    larger = "As many bytes are moved for a small batch as for a large one: raise the batch. "
    little = _computes_little(inputs, hosts, lost_ns)
    if any(host.sharded for host in hosts.values()):
        return little, larger + (
            "If memory allows, keep gathered parameters for the backward pass (reshard_after_forward=False)."
        )
    if _is_between_two(name):
        return _of_stages(inputs, hosts)
    of_gradients = bool(little) and any(host.reduced for host in hosts.values())
    return little if of_gradients else "", larger * of_gradients + (
        "Communicate less often (fewer, larger pieces), less at a time (fewer bytes per value), or beside "
        "work that does not need the result."
    )


def _computes_little(inputs: Inputs, hosts: dict[int, HostTime], lost_ns: int) -> Said:
    """That the threads hardly compute beside what collectives take."""
    computing = sum(host.parts["operators"] for host in hosts.values())
    if computing * _HARDLY > lost_ns:
        return ""
    share = 100.0 * computing / sum(host.window_ns for host in hosts.values())
    computes = inputs.of_time("computes_between_collectives", share, tuple(hosts), part="operators")
    return say(" Operators that compute take only {share}.", share=computes)


def _is_between_two(name: str) -> bool:
    return name.rpartition(":")[2].startswith(_BETWEEN_TWO)


def _reduced_too_often(inputs: Inputs, hosts: dict[int, HostTime]) -> tuple[Said, str] | None:
    """Gradients that are reduced after each of several forward passes of a step."""
    steps, host = inputs.judged, next(iter(hosts.values()))
    passes, calls = (count // max(steps, 1) for count in (host.forwards, host.reductions))
    if passes < 2 or any(each.reduced < each.forwards for each in hosts.values()):
        return None
    return in_words(next(iter(hosts)), passes, calls), ADVICE


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
        most=_region_beyond(inputs, hosts[late], late, more[part])
        or (part == "operators" and _operator_beyond(inputs, hosts[late], others, late, more[part]))
        or "",
    )


def _region_beyond(inputs: Inputs, host: HostTime, late: int, more_ns: int) -> Said:
    """The region that only this rank runs, where that is most of what it takes longer."""
    name, ns = next(iter(host.regions.items()), ("", 0))
    others = (inputs.trace.rank(rank) for rank in inputs.trace.ranks_of(inputs.scope) if rank != late)
    if not name or ns < MOST * more_ns or any(name in other.names for other in others):
        return ""
    return say(
        ", mostly in {name}, which no other rank runs",
        name=Claim("region_of_one_rank", name, "name", ranks=(late,)),
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


RULES = (
    host_rule(
        topic="host_straggler",
        title="Waiting for a late rank",
        label="Rank {rank} is late",
        cause=WAITS_FOR_LATE,
        judge=_straggler,
        risk="Moving work between ranks moves memory, too.",
        needs="Data or layers that can be divided another way.",
        wrong_if="The clocks of the hosts are apart, or another rank than is recorded is late.",
    ),
    host_rule(
        topic="host_in_turn",
        title="Waiting of the ranks for each other in turn",
        label="Ranks in turn",
        cause="ranks that wait in turn",
        judge=_in_turn,
        risk="Moving work between ranks moves memory, too.",
        needs="Data or layers that can be divided another way.",
        wrong_if="The clocks of the hosts are apart.",
    ),
    host_rule(
        topic="host_collectives",
        title="Communication on the CPU",
        label="CPU collectives",
        cause="collectives on the CPU",
        judge=_collectives,
        wrong_if="The thread waits for something else that ends with the collective.",
    ),
)
