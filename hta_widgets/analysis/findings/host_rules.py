"""Rules about what the thread of the steps does, where jobs compute on the host alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import numpy as np

from hta_widgets.analysis.core.claim import Claim, Said, say, says
from hta_widgets.analysis.core.libraries import LIBRARY
from hta_widgets.analysis.findings.call_time import narrowest_open, open_time, spans_of
from hta_widgets.analysis.findings.callers import at_place, line_claim, place_claim
from hta_widgets.analysis.findings.compiled import REGION
from hta_widgets.analysis.findings.compute_verdict import COMPUTE_BOUND_PCT
from hta_widgets.analysis.findings.finding import WARNING_PCT, Evidence, Finding
from hta_widgets.analysis.findings.host_loss import (
    few_steps,
    host_rule,
    in_few_steps,
    lost_by_hosts,
    lost_in_part,
    names_with_shares,
)
from hta_widgets.analysis.findings.host_time import (
    SHORT_NS,
    HostTime,
    hosts_of,
    longest_first,
    places_of_thread,
    time_of_thread,
)
from hta_widgets.analysis.findings.idle_time import MOST
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.lost_device_rules import host_windows
from hta_widgets.analysis.findings.rule import HOST_QUESTION, MAIN_QUESTION, Rule, never
from hta_widgets.analysis.idle.causes import named, rows_named
from hta_widgets.analysis.idle.places import short_place
from hta_widgets.formatting import brief, decapitalised, percent
from hta_widgets.trace.rank_trace import RankTrace

_MOST_NAMES: Final = 2
_LEAST_PCT: Final = 3.0
_BETWEEN_NS: Final = 10_000
"""Python hardly takes more from one operator to the next than to call it."""
_LONG_UPDATE_NS: Final = 50_000
"""Updates that take longer on average compute, however many they are."""
_MANY_UPDATES: Final = 30
_IN_PASSES: Final = re.compile(r"^Optimizer\.step#(?:Adam|AdamW|Adagrad)\.")
"""Each of their operators reads and writes whole parameters; fused, one does it all: of 8 million parameters,
341 ms a step became 60 on two cores (PyTorch 2.13)."""
_PASSES: Final = 5
"""With fewer operators in a step, not each parameter is updated in several."""
_MENTIONED: Final = 0.1
_ALL: Final = 0.75
"""What is open for so much of the time is the loop itself: it tells nothing of where in it time is lost."""

_ADVICE: Final = {
    r"_slow_conv|thnn_conv": "This is a fallback: convolutions of float32 and bfloat16 are faster where "
    "PyTorch is built with oneDNN (torch.backends.mkldnn.is_available()).",
    r"convolution": "Try channels_last for the model and its input, and torch.compile. bfloat16 is faster "
    "where the CPU has AMX or AVX-512 BF16.",
    r"^aten::bmm$": "If that is attention, with aten::_softmax between products, "
    "torch.nn.functional.scaled_dot_product_attention does it in one operator.",
    r"^aten::(?:mm|addmm|baddbmm)$": 'torch.autocast("cpu", torch.bfloat16) is faster where the CPU has AMX '
    "or AVX-512 BF16. Fewer and larger products use more of the cores.",
    r"^aten::copy_$": "Look for what copies: .to(), .contiguous() and .reshape() after a permute. "
    "channels_last, or a layer that takes the order of dimensions that there is, needs none.",
    r"^aten::(?:uniform|normal|bernoulli|random)_$": "Draw random numbers once for several steps, or fewer.",
}
"""What to do about the longest operators, by their names."""
_PRODUCT: Final = re.compile(r"^aten::(?:mm|addmm|bmm|baddbmm)$")
_IN_BF16: Final = (
    "Their inputs are bfloat16 already. Without AMX or AVX-512 BF16 (lscpu) the CPU has no units for it, "
    "and float32 is faster."
)
_ADVICE_OUTSIDE: Final = {
    r"<built-in function collect>": "Collect garbage less often: gc.collect() now and then, and gc.freeze() "
    "once all that stays is made.",
    r"_pickle\.(?:Unp|P)ickler": "Pickle fewer and smaller objects: tensors in collectives (all_gather in "
    "place of all_gather_object) need none.",
    r"<built-in function sleep>": "Wait for what the program sleeps for.",
    r"<built-in method tensor of type": "torch.tensor reads a Python list number by number: keep numbers in "
    "arrays, and take these with torch.from_numpy.",
    r"<built-in method acquire of _thread": "It waits for another thread: for a request, a queue or a lock. "
    "torch._C._profiler._ExperimentalConfig(profile_all_threads=True) records what that one does.",
}
"""The same outside of operators, by the names of functions."""


def _known(name: str, advice: Mapping[str, str]) -> str:
    """The advice for a name; "" if there is none."""
    return next((said for pattern, said in advice.items() if re.search(pattern, name)), "")


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
    longest_pct = {name: 100.0 * time / whole for name, time in longest if 100.0 * time >= _LEAST_PCT * whole}
    names = names_with_shares(inputs, longest_pct, ranks, ("longest_operator", "operator_time"))
    calls, taken = (sum(getattr(host, of) for host in hosts.values()) for of in ("short", "short_ns"))
    short: Said = ""
    advice = "Look at these operators: their shapes and types, and how many threads they may use."
    known = ((name, said) for name in longest_pct if (said := _known(name, _ADVICE)))
    if found := next(known, None):
        name, said = found
        if _PRODUCT.search(name) and _mostly_bf16(inputs, name):
            said = _IN_BF16
        advice = said if name == longest[0][0] else f"For {brief(name)}: {decapitalised(said)}"
    if 2 * taken > sum(host.parts["operators"] for host in hosts.values()):
        often = round(calls / len(hosts) / inputs.judged) if inputs.judged else calls
        per_step = {"per_step": bool(inputs.judged)}
        short = say(
            f" {{often}}{' a step' * bool(inputs.judged)} take less than {{limit}} each, little more than a "
            "call does, and {share} in all.",
            often=Claim(
                "short_operators", often, "count", ranks=tuple(ranks), about=per_step, shown=f"{often:,}"
            ),
            limit=Claim("short_operator", SHORT_NS, "ns"),
            share=inputs.share_of_time("in_short_operators", 100.0 * taken / whole, ranks),
        )
        advice = _run_fewer(inputs)
    region, open_ns = next(iter(longest_first(host.regions for host in hosts.values()).items()), ("", 0))
    where: Said = ""
    if 2 * open_ns >= whole:
        pct = {region: 100.0 * open_ns / whole}
        named = names_with_shares(inputs, pct, ranks, ("longest_region", "region_time"))
        where = say(" Most of the time lies in {region}.", region=named)
    text = say(
        "No device work is recorded: the main thread is in operators {share}.{longest}{short}{where}",
        share=inputs.share_of_time("host_time", share, ranks, part="operators"),
        longest=say(" Longest, inner ones aside: {names}.", names=names) if longest_pct else "",
        short=short,
        where=where,
    )
    name = longest[0][0] if longest else ""
    most = longest and 2 * longest[0][1] > whole
    headline = f"{'mostly' if most else 'above all'} {brief(name)}" if name else ""
    headline += f" ({percent(longest_pct[name])})" if name in longest_pct else ""
    updating = sum((host.optimizing & host.spent["operators"]).length for host in hosts.values())
    if not most and 200.0 * updating > share * whole:
        headline = (
            f"mostly in {brief(max(hosts.values(), key=lambda host: host.optimizing.length).optimizer)}"
        )
    return Finding(
        0, share, text, advice, "operators", Evidence(name=name), severity="verdict", headline=headline
    )


def _mostly_bf16(inputs: Inputs, name: str) -> bool:
    """Whether an operator is passed bfloat16 most of its time on all ranks, as far as that is recorded."""
    times = [inputs.of(rank, _in_bf16, name) for rank in hosts_of(inputs)]
    return 2 * sum(of_bf16 for of_bf16, _ in times) > sum(whole for _, whole in times)


def _in_bf16(inputs: Inputs, rank: int, name: str) -> tuple[int, int]:
    """How long the calls of an operator take that are passed bfloat16, and all of its calls."""
    rank_trace, judged = inputs.trace.rank(rank), inputs.judged_time(rank)
    rows = rows_named(rank_trace, name.__eq__)
    time = judged.within_each(spans_of(rank_trace, rows))
    if not rank_trace.has_argument("input_type"):
        return 0, int(time.sum())
    texts = [*rank_trace.table.dictionary("input_type"), ""]  # the last for none
    of_bf16 = np.array(["BFloat16" in text for text in texts])[
        rank_trace.argument_codes_of("input_type", rows)
    ]
    return int(time[of_bf16].sum()), int(time.sum())


def _run_fewer(inputs: Inputs) -> str:
    """What to do about operators that are short and many."""
    how = "torch.compile joins small ones"
    if inputs.any_name(REGION):  # it does already
        how = "torch.compile joins more of them without graph breaks (TORCH_LOGS=graph_breaks)"
    return f"Run fewer and larger operators: {how}, and a larger batch gives each more to do."


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
    loading = hosts[found.worst].spent["loading"]
    few = few_steps(inputs, found, loading)
    return found.finding(
        found.text(
            inputs,
            "{who} is in the data loader {lost}.{few}",
            few=in_few_steps(few, found.worst, loading, "loading"),
        ),
        advice,
        "user_annotations",
        found.evidence(""),
        lost=inputs.when(found.ranks, lambda rank: hosts[rank].spent["loading"]),
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
    places = [
        (name, time)
        for name, time in host.places.items()
        if time >= _MENTIONED * lost and host.regions.get(name, 0) < _ALL * host.window_ns
    ][:_MOST_NAMES]
    if not places or 2 * places[0][1] < lost:  # what most of it is called by says more
        if around := _around_most(inputs.trace.rank(found.worst), host):
            places = [around]
        elif sum(time for _, time in places) < MOST * lost:  # the largest of them are no answer
            places = []
    lines = [_line(inputs.trace.rank(found.worst), host, name) for name, _ in places]
    first = next((str(line.value) or name for line, (name, _) in zip(lines, places, strict=True)), "")
    mostly_there = bool(places) and 2 * places[0][1] >= lost and len(found.ranks) == 1
    where, title = ". The longest stretch is {longest}", ""
    short = host.parts["operators"] < SHORT_NS * host.calls and lost < _BETWEEN_NS * host.calls
    if short or (2 * host.long_ns < lost and not mostly_there):
        where = (
            ". The longest stretch is {longest}, between short operators, where Python and the profiler run"
        )
        advice, places, mostly_there = _run_fewer(inputs), [], False
        title = "Time in Python between short operators"
    elif places:
        where = ". {places}. The longest stretch is {longest}"
        look = f"Look at {brief(short_place(first))}{' first' * (len(places) > 1)}."
        advice = _known(places[0][0], _ADVICE_OUTSIDE) or look
    else:
        advice = (
            "Mark what the loop does then with torch.profiler.record_function."
            if inputs.has_stacks
            else "Record what Python does then: with_stack=True, or torch.profiler.record_function around it."
        )
    silent = host.spent["outside"]
    few = few_steps(inputs, found, silent)
    if mostly_works and found.share_pct < WARNING_PCT and not (places or few):
        return None  # Python takes so much around operators, and the profiler, too
    if mostly_there:
        title = f"Time outside of operators (mostly {brief(short_place(first))})"
    elif few:
        title = f"Time outside of operators in {len(few):,} of {inputs.judged:,} steps"
    listed: list[Said] = [
        say(
            "{share}{of_it} in {place}{line}",
            of_it=" of it lies" * (not nth),
            line=at_place("at", line),
            share=Claim("outside_in_call", 100.0 * time / lost, "%", "host_time", worst, {"call": name}),
            place=place_claim("outside_in", name, found.worst, nth=nth),
        )
        for nth, ((name, time), line) in enumerate(zip(places[:2], lines, strict=False))
    ]
    return found.finding(
        found.text(
            inputs,
            f"{{who}} is in no operator {{lost}}{where}.{{few}}",
            longest=Claim("longest_outside", host.longest_ns, "ns", ranks=worst),
            places=says(listed, ", ") if listed else "",
            few=in_few_steps(few, found.worst, silent, "outside"),
        ),
        advice,
        "call_stacks",
        found.evidence(first),
        lost=inputs.when(found.ranks, lambda rank: hosts[rank].spent["outside"]),
        explains=found.alone,
        severity="note" if mostly_works else None,
        title=title,
    )


def _line(rank_trace: RankTrace, host: HostTime, name: str) -> Claim:
    """Which function of the program calls one of a library; "" where it is no such function."""
    calls = rows_named(rank_trace, lambda each: each == name and LIBRARY.search(each))
    calls = calls[rank_trace.thread[calls] == host.thread]
    return line_claim(rank_trace, calls, through=True, call=name)


def _around_most(rank_trace: RankTrace, host: HostTime) -> tuple[str, int] | None:
    """The narrowest call around most of what is outside, and how much; None if many operators lie there, too,
    as in the loop itself."""
    outside, operators = host.spent["outside"], host.spent["operators"]
    rows = places_of_thread(rank_trace, host.thread)
    name, there_ns = narrowest_open(rank_trace, rows, outside, MOST * outside.length)
    calls = rows[named(rank_trace, name.__eq__)[rows]]
    around = (open_time(rank_trace, calls) & operators).length
    return (name, there_ns) if name and around <= (1 - _ALL) * operators.length else None


def _optimizer(inputs: Inputs) -> Finding | None:
    """An optimizer that updates parameters one by one, in many short operators or many passes."""
    hosts = hosts_of(inputs)
    found = lost_by_hosts(hosts, "optimizer", {rank: host.optimizing.length for rank, host in hosts.items()})
    if found is None or found.share_pct < WARNING_PCT or not inputs.judged:
        return None
    host = hosts[found.worst]
    often = host.updates // inputs.judged
    long = host.optimizing.length > _LONG_UPDATE_NS * host.updates
    passes = _IN_PASSES.match(host.optimizer) and often >= _PASSES
    if host.fused or not (passes if long else often > _MANY_UPDATES):
        return None
    return found.finding(
        found.text(
            inputs,
            "{who} is in the optimizer {lost}, in {often} operators a step.",
            often=Claim("updates", often, "count", ranks=(found.worst,), shown=f"{often:,}"),
        ),
        "fused=True, where the optimizer has it for CPUs, updates many parameters in one operator.",
        "user_annotations",
        found.evidence(host.optimizer),
        lost=inputs.when(found.ranks, lambda rank: hosts[rank].optimizing),
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
    ),
    host_rule(
        topic="host_loading",
        question=HOST_QUESTION,
        title="Time in the data loader",
        label="Data loader",
        cause="the data loader",
        judge=_loading,
        general=True,
        risk="More workers take memory and cores of the host, and each draws random numbers of its own.",
        needs="Free cores on the host.",
        wrong_if="The loader waits for something else, such as a lock or a slow disk that other jobs use.",
    ),
    host_rule(
        topic="host_outside",
        title="Time outside of operators",
        label="Outside of operators",
        cause="time outside of operators",
        judge=_outside,
        general=True,
        no_reason=True,
        wrong_if="The profiler's own time is most of it.",
    ),
    host_rule(
        topic="host_optimizer",
        title="Updating parameters one by one",
        label="Optimizer",
        cause="parameters updated one by one",
        judge=_optimizer,
        risk="Sums are rounded in another order.",
        needs="An optimizer with fused=True for CPUs.",
        wrong_if="The step of the optimizer runs a closure, which computes the loss again.",
    ),
)
