"""Rules about what the thread of the steps does, where jobs compute on the host alone."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from hta_widgets.analysis.core.claim import Claim, Said, say, says
from hta_widgets.analysis.findings.callers import place_claim
from hta_widgets.analysis.findings.compute_verdict import COMPUTE_BOUND_PCT
from hta_widgets.analysis.findings.finding import WARNING_PCT, Evidence, Finding
from hta_widgets.analysis.findings.host_loss import host_rule, lost_by_hosts, lost_in_part, names_with_shares
from hta_widgets.analysis.findings.host_time import hosts_of, longest_first, time_of_thread
from hta_widgets.analysis.findings.idle_time import MOST
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.lost_device_rules import host_windows
from hta_widgets.analysis.findings.rule import HOST_QUESTION, MAIN_QUESTION, Rule, never
from hta_widgets.analysis.idle.causes import named
from hta_widgets.analysis.idle.places import short_place
from hta_widgets.analysis.operators.inputs import parse_shapes, parse_types
from hta_widgets.formatting import brief

_MOST_NAMES: Final = 2
_LEAST_PCT: Final = 3.0
_SHORT_NS: Final = 5_000
"""An operator that takes less, with the profiler's own time for it, hardly does more than be called."""
_LONG_UPDATE_NS: Final = 50_000
"""Updates that take longer on average compute, however many they are."""
_MANY_UPDATES: Final = 30
_MENTIONED: Final = 0.1
_FEWER: Final = (
    "fewer and larger operators: torch.compile joins small ones, and a larger batch gives each more"
)
_CAT: Final = "aten::cat"
_FAR_SMALLER: Final = 10
_SEVERAL: Final = 3


def _operators(inputs: Inputs) -> Finding | None:
    """Threads that are in operators most of the time: a verdict, as that is what they are for."""
    hosts = hosts_of(inputs)
    if not hosts:
        return None
    whole = sum(host.window_ns for host in hosts.values())
    share = 100.0 * sum(host.parts["operators"] for host in hosts.values()) / whole
    if share < 100.0 * MOST:
        return None
    longest = list(longest_first(host.operators for host in hosts.values()).items())[:_MOST_NAMES]
    ranks = list(hosts)
    listed = {name: 100.0 * time / whole for name, time in longest if 100.0 * time >= _LEAST_PCT * whole}
    names = names_with_shares(inputs, listed, ranks, ("longest_operator", "operator_time"))
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
        longest=say(" Longest, inner ones aside: {names}.", names=names) if listed else "",
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
    rows = np.flatnonzero(named(rank_trace, _CAT.__eq__))
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
    """Threads that are in the data loader, also where the events of a device were lost."""
    lost = {} if (hosts := hosts_of(inputs)) else host_windows(inputs)
    hosts |= {rank: host for rank in lost if (host := inputs.of(rank, time_of_thread))}
    found = lost_in_part(hosts, "loading")
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
        found.text(inputs, "{who} is in the data loader {lost}."),
        advice,
        "user_annotations",
        found.evidence(""),
        explains=found.alone,
    )


def _outside(inputs: Inputs) -> Finding | None:
    """Threads that are in no operator: Python between short ones, a function, or nothing that is recorded."""
    hosts = hosts_of(inputs)
    found = lost_in_part(hosts, "outside")
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
    where = ". The longest stretch is {longest}"
    if 2 * host.long_ns < lost:
        where = (
            ". The longest stretch is {longest}, between short operators, where Python and the profiler run"
        )
        advice, places = f"Run {_FEWER} to do.", []
    elif places:
        where = ". {places}. The longest stretch is {longest}"
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
            f"{{who}} is in no operator {{lost}}{where}.",
            longest=Claim("longest_outside", host.longest_ns, "ns", ranks=worst),
            places=says(listed, ", ") if listed else "",
        ),
        advice,
        "call_stacks",
        found.evidence(first),
        explains=found.alone,
        severity="note" if mostly_works else None,
    )


def _optimizer(inputs: Inputs) -> Finding | None:
    """An optimizer that updates parameters one by one, in many short operators."""
    hosts = hosts_of(inputs)
    found = lost_by_hosts(hosts, "optimizer", {rank: host.optimizer_ns for rank, host in hosts.items()})
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
            "{who} is in the optimizer {lost}, in {often} operators a step.",
            often=Claim("updates", often, "count", ranks=(found.worst,), shown=f"{often:,}"),
        ),
        "fused=True, where the optimizer has it for CPUs, updates each parameter in one operator, or many.",
        "user_annotations",
        found.evidence(host.optimizer),
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
    host_rule(
        topic="host_loading",
        question=HOST_QUESTION,
        title="Time in the data loader",
        label="Data loader",
        cause="the data loader",
        judge=_loading,
        risk="More workers take memory and cores of the host, and each draws random numbers of its own.",
        needs="Free cores on the host.",
        wrong_if="The loader waits for something else, such as a lock or a slow disk that other jobs use.",
    ),
    host_rule(
        topic="host_outside",
        question=MAIN_QUESTION,
        title="Time outside of operators",
        label="Outside of operators",
        cause="time outside of operators",
        judge=_outside,
        wrong_if="The profiler's own time is most of it.",
    ),
    host_rule(
        topic="host_optimizer",
        question=MAIN_QUESTION,
        title="Updating parameters one by one",
        label="Optimizer",
        cause="parameters updated one by one",
        judge=_optimizer,
        risk="Sums are rounded in another order.",
        needs="An optimizer with fused=True for CPUs.",
        wrong_if="The operators are large: then their number does not matter.",
    ),
)
