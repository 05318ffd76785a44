"""What the host does where no device work is recorded: that of a device, which is missing, or too little."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from hta_widgets.analysis.core.claim import Claim, Said, Text, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.host_loss import names_with_shares
from hta_widgets.analysis.findings.host_time import (
    HostTime,
    Sign,
    longest_first,
    sign_of_device,
    time_of_thread,
)
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import HOST_QUESTION, Found, Rule
from hta_widgets.formatting import brief, counted
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.reader.schema import COUNTER_ARGS

NO_DEVICE: Final = Rule(
    topic="no_device",
    question=HOST_QUESTION,
    title="Device work is not recorded",
    judge=lambda inputs: None,
    role="recording",
    beside=True,
)
_MOST_NAMES: Final = 2
_LEAST: Final = 0.03
_MOST: Final = 0.5
_NO_WORK: Final = [EventClass.OVERHEAD, EventClass.OTHER]
_WHOLE_STEPS: Final = "Record whole steps: torch.profiler.schedule(wait=1, warmup=3, active=5)"


class _Host(NamedTuple):
    """What is known of a rank without its columns."""

    sign: Sign | None
    operators: int
    few: bool
    empty: bool
    time: HostTime | None


def _host(inputs: Inputs, rank: int) -> _Host:
    rank_trace = inputs.trace.rank(rank)
    operators = int((rank_trace.event_class == EventClass.HOST_OP).sum())
    few = rank_trace.recording.kind == "unknown"
    other = any(rank_trace.table.has(name) for name in ("alloc_bytes", COUNTER_ARGS.name))
    empty = not other and bool(np.isin(rank_trace.event_class, _NO_WORK).all())
    return _Host(sign_of_device(rank_trace), operators, few, empty, time_of_thread(inputs, rank))


class _Spent(NamedTuple):
    """Names and how long the threads of the steps are in them, the longest first, in % of their time."""

    what: str
    pct: dict[str, float]


def no_device(inputs: Inputs) -> Found | None:
    """What the host's time goes to, and why that is not where the time of the program goes.

    None where work of a device is recorded, and of jobs of the CPU, which are judged.
    """
    hosts = {rank: inputs.of(rank, _host) for rank in inputs.trace.ranks_of(inputs.scope)}
    times = {rank: host.time for rank, host in hosts.items() if host.time}
    if any(inputs.trace.rank(rank).device_events for rank in hosts):
        return None
    if not times:
        return _nothing(tuple(hosts)) if all(host.empty for host in hosts.values()) else None
    signs = [(rank, host.sign) for rank, host in hosts.items() if host.sign]
    if not signs and not all(host.few for host in hosts.values()):
        return None
    spent = _spent(times)
    longest = _longest(inputs, spent, list(times))
    communicating, name = _communicating(inputs, times)
    record = inputs.trace.rank(next(iter(hosts))).accelerator.record
    if signs:
        text = say(
            "No device work is recorded, though {sign}. How long operators take here is how long the host "
            "takes to queue that work, not how long it runs.{longest}{communicating}",
            sign=_sign(*signs[0]),
            longest=longest,
            communicating=communicating,
        )
        advice = f"Record what the device does: {record}."
        lacking = "no device events"
    else:
        operators = sum(host.operators for host in hosts.values())
        number = counted(operators, "operator") if operators else "no operator"
        text = say(
            "No device work is recorded, and {only}{number}: too little to know where the time of a program "
            "goes.{longest}{communicating}",
            only="only " if operators else "",
            number=Claim("recorded_operators", operators, "count", ranks=tuple(hosts), shown=number),
            longest=longest,
            communicating=communicating,
        )
        advice = (
            f"{_WHOLE_STEPS}; if a device computes, its work, too: {record}. On Apple's MPS, which "
            "torch.profiler does not record, torch.mps.profiler does."
        )
        lacking = f"{number} and no device events"
    headline = f"Where time goes is unknown: the trace has {lacking}"
    if most := next(iter(spent.pct), name):
        headline += f"; the host is longest in {brief(most)}"
    finding = Finding(0, 0.0, text, advice, "", severity="verdict", headline=f"{headline}.")
    return Found(NO_DEVICE, finding)


def _nothing(ranks: tuple[int, ...]) -> Found:
    """The profiler ran, and nothing did in the threads that it records."""
    text = say(
        "Nothing of the program is recorded: {number}, no call and no work of a device.",
        number=Claim("recorded_operators", 0, "count", ranks=ranks, shown="no operator"),
    )
    advice = (
        "torch.profiler records the thread that starts it: start it where the model runs, or record all with "
        "experimental_config=torch._C._profiler._ExperimentalConfig(profile_all_threads=True), and see that "
        "the work is done before it stops."
    )
    headline = "Where time goes is unknown: nothing of the program is recorded."
    return Found(NO_DEVICE, Finding(0, 0.0, text, advice, "", severity="verdict", headline=headline))


def _spent(times: dict[int, HostTime]) -> _Spent:
    """The regions that the program marks, if they hold most of the time; else its operators."""
    whole = sum(time.window_ns for time in times.values())
    found = _Spent("operators", {})
    for what in ("regions", "operators"):
        sums = longest_first(getattr(time, what) for time in times.values())
        longest = list(sums.items())[:_MOST_NAMES]
        found = _Spent(what, {name: 100.0 * ns / whole for name, ns in longest if ns >= _LEAST * whole})
        if sum(sums.values()) >= _MOST * whole:
            break
    return found


def _longest(inputs: Inputs, spent: _Spent, ranks: list[int]) -> Said:
    if not spent.pct:
        return ""
    one, measure = ("region", "region_time") if spent.what == "regions" else ("operator", "operator_time")
    names = names_with_shares(inputs, spent.pct, ranks, (f"longest_{one}", measure))
    aside = ", inner ones aside" if one == "operator" else ""
    return say(f" Longest are the {spent.what}{aside}: {{names}}.", names=names)


def _communicating(inputs: Inputs, times: dict[int, HostTime]) -> tuple[Said, str]:
    """How long collectives of the host are open, on whatever thread; the longest of them."""
    whole = open_ns = 0
    for rank, time in times.items():
        whole += time.window_ns
        spans = Intervals.union(time.spans[:, 0], time.spans[:, 1])
        open_ns += (inputs.judged_time(rank) & spans).length
    share = 100.0 * open_ns / whole
    if share < 100.0 * _LEAST:
        return "", ""
    by_name = longest_first(time.in_collectives(inputs.judged_time(rank)) for rank, time in times.items())
    name, ranks = next(iter(by_name)), tuple(times)
    said = say(
        " Collectives of the CPU are open {share}, longest {name}: whether the program waits for them is not "
        "recorded.",
        share=inputs.share_of_time("collectives_open", share, ranks),
        name=Claim("longest_collective", name, "name", ranks=ranks),
    )
    return said, name


def _sign(rank: int, sign: Sign) -> Text:
    name = Claim(f"device_shown_by_{sign.kind}", sign.name, "name", ranks=(rank,))
    if sign.kind == "name":
        return say("{name} shows that a device takes part", name=name)
    if sign.kind == "device":
        return say("the file names the {name}", name=name)
    if sign.kind == "reads":
        return say("{name} waits as for values of a device", name=name)
    if sign.kind == "backward":
        return say("the backward pass has a thread of its own, as it has for a device")
    return say("calls to a device are")
