"""Rules about the host of a server: time in its steps and between them in which the device waits for it."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, NamedTuple

import numpy as np

from hta_widgets.analysis.core.claim import Claim, Said, Text, say, says
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.libraries import LIBRARY
from hta_widgets.analysis.findings.callers import open_in, place_claim
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.loss import lost_on_ranks
from hta_widgets.analysis.findings.rule import IDLE_QUESTION, Change, Rule, idle_rule, never
from hta_widgets.analysis.findings.serving_advice import option
from hta_widgets.analysis.findings.serving_ranks import DECODING, is_serving, of_ranks
from hta_widgets.analysis.idle.pauses import collecting
from hta_widgets.analysis.idle.places import Place, host_places, short_place
from hta_widgets.analysis.replay import edits
from hta_widgets.analysis.serving.bubbles import (
    absent_between,
    bubbles_of,
    idle_between,
    pauses_in_steps,
)
from hta_widgets.analysis.serving.steps import in_scope
from hta_widgets.analysis.serving.table import forward_passes, launched_by_step, steps_of
from hta_widgets.formatting import brief, duration, percent
from hta_widgets.trace.rank_trace import RankTrace

_MOST: Final = 0.5
_FEW, _SHOWN = 3, 2  # calls that scheduling ahead would hide, and those that a sentence names
# Of the loss of all ranks: then it is that rank's.
_NEARLY_ALL: Final = 0.75
# Of what lies between and within steps: less of one of them is not worth a word.
_SOME: Final = 0.1
# A step of fewer kernels is no forward pass of a model.
_LEAST_KERNELS: Final = 50
# A worker that waits for its engine, which a change of the worker does not shorten.
_MESSAGE: Final = re.compile(r"broadcast|recv|shm_|zmq|rpc|pickle|\bget\b|dequeue|acquire")
# What a part of an engine's loop is advised, by a word in its name; {} stands for an option about it.
_REMEDIES: Final = (
    (r"kv_(?:transfer|connector)|nixl|mooncake|lmcache|/disaggregation/", "",
     "Keys and values move then. Load and save them asynchronously, layer by layer, while the device "
     "computes other requests; check the links and the number of transfers."),
    (r"lora", "loaded adapters",
     "Adapters are loaded then: keep on the device, or in pinned memory, those that requests use{}."),
    (r"subprocess|\bselect\b|urllib|requests/|httpx|aiohttp|\bsocket\b|tools?\b", "",
     "The device waits for tools, or for an answer from outside. Let other requests decode meanwhile, and "
     "call tools from tasks of their own."),
    (r"grammar|bitmask|structured", "",
     "Fill masks of structured output while the forward pass runs, in other threads, or take a simpler "
     "grammar."),
    (r"diffusers/|scheduling_", "",
     "Compute the schedule of denoising on the device, or for all steps before the first."),
    (r"compile_fx|convert_frame|autotun|triton/compiler", "",
     "Compile before requests come: warm up with the shapes that they have."),
    (r"prepare|init_new|update_states|metadata", "ahead",
     "Prepare the next step's inputs while the device works on this one{}."),
    (r"schedul|get_next_batch|allocate_slots|process_batch_result", "ahead",
     "Schedule the next step while the device works on this one{}."),
    (r"detok|output_proc|process_outputs|stream_output|make_stats|update_(?:requests|from_output)", "tokens",
     "Move the handling of tokens out of the engine's loop: detokenise in another process, stream every few "
     "tokens{}."),
    (r"sampl|logits_proc|penal", "",
     "Sample on the device, without penalties and logits processors of Python if they can be spared."),
    (r"\bitem\b|_local_scalar_dense|\bcpu\b|tolist|[sS]ynchronize|numpy", "ahead",
     "Read tokens back later or not at all: copy them asynchronously, and launch the next step first{}."),
    (_MESSAGE.pattern, "ahead",
     "The workers wait for the engine's message: shorten what it sends and computes before it, or send the "
     "next step ahead{}."),
)  # fmt: skip
_FEWER: Final = (
    "Launch fewer, larger kernels in steps that decode: compile the model (torch.compile), use the engine's "
    "fused kernels, or replay graphs where this device has them."
)
_OTHER_REMEDY: Final = "Shorten what the host does then, or do it while the device works, one step ahead{}."
_UNKNOWN_REMEDY: Final = (
    "Record what the engine does then: Python stacks (with_stack=True) of the process that schedules, and of "
    "all its threads. Scheduling the next step ahead{} hides such time."
)


def bubble_between_steps(inputs: Inputs) -> Finding | None:
    """Time between the steps of a server, or within them, in which the device waits for its host."""
    idle = of_ranks(inputs, waiting)
    lost = {rank: time for rank, time in idle.items() if time.length}
    if not lost:
        return None
    ranks, share, cost, _ = lost_on_ranks(inputs, idle)
    judged = {rank: inputs.judged_ns[rank] for rank in ranks}
    worst = max(lost, key=lambda rank: (lost[rank].length / judged[rank], -rank))
    places = inputs.of(worst, places_of)
    names = [place.name for place in places[:_FEW]]
    shown: list[Said] = [
        place_claim("between_steps_in", name, worst, nth=nth) for nth, name in enumerate(names)
    ]
    row = open_in(inputs.trace.rank(worst), lost[worst].longest, names.__contains__)
    alone = worst if lost[worst].length >= _NEARLY_ALL * cost * len(ranks) else None
    return Finding(
        cost,
        share,
        say(
            "{where} the device idles {lost}. {doing}",
            where=where_of(inputs, ranks).capitalize(),
            lost=inputs.time_lost("between_steps", share, cost, ranks),
            doing=_doing(inputs, worst, places),
        ),
        _remedy(inputs, places),
        "serving_steps",
        Evidence(rank=alone if len(idle) > 1 else None, event_rank=worst, span=lost[worst].longest,
                 event_id=None if row < 0 else int(inputs.trace.rank(worst).event_id[row])),
        change=Change(
            say("without {places} then", places=says(shown)),
            lambda _: [edits.without(edits.exactly(name)) for name in names],
        ) if any(not _MESSAGE.search(name) for name in names) else None,
        saves_at_most="scheduled ahead, each step begins when the one before it ends",
        lost=lost,
        explains=alone,
        share_of={rank: 100.0 * idle[rank].length / judged[rank] for rank in ranks} if len(ranks) > 1 else {},
    )  # fmt: skip


def eager_steps(inputs: Inputs) -> Finding | None:
    """Steps that decode launch their kernels one by one, and the device waits for the launches."""
    found = {rank: each for rank, each in of_ranks(inputs, _eager).items() if each}
    if not found:
        return None
    ranks, share, cost, worst = lost_on_ranks(inputs, {rank: each.idle for rank, each in found.items()})
    if not severity_of(share):
        return None
    eager = found[worst]
    text = say(
        "Steps that decode launch their kernels one by one, and the device waits for them {lost}. There are "
        "{steps} such steps, of {kernels} kernels each.",
        steps=Claim("eager_steps", eager.steps, "count", ranks=(worst,)),
        kernels=Claim("eager_kernels", eager.kernels, "count", ranks=(worst,)),
        lost=inputs.time_lost("eager_idle", share, cost, ranks),
    )
    advice = _FEWER
    if inputs.has_graphs:
        advice = f"Replay CUDA graphs in steps that decode{option(inputs, 'graphs')}."
    if eager.replayed:
        text += say(
            " Steps of up to {largest} requests replay graphs; these have {least} or more.",
            largest=Claim("largest_replayed", eager.replayed, "count", ranks=(worst,)),
            least=Claim("least_eager", eager.requests, "count", ranks=(worst,)),
        )
        larger = option(inputs, "larger graphs")
        advice = f"Capture graphs of as many requests{larger}, or limit the batch to fewer."
    return Finding(
        cost,
        share,
        text,
        advice,
        "serving_steps",
        Evidence(event_rank=worst, span=eager.idle.longest),
        change=Change("with their kernels in graphs", lambda _: [edits.graphs()]),
        saves_at_most="replayed as graphs, their kernels follow at once",
        lost=inputs.when(ranks, lambda rank: found[rank].idle),
    )


def absent_requests(inputs: Inputs) -> Finding | None:
    """Time in which a server has nothing to compute."""
    found = {rank: time for rank, time in of_ranks(inputs, absent).items() if time.length}
    if not found:
        return None
    ranks, share, cost, longest = lost_on_ranks(inputs, found)
    if not severity_of(share):
        return None
    return Finding(
        cost,
        share,
        say(
            "For {lost} the server has no requests. The engine loses nothing by that.",
            lost=inputs.time_lost("absent_requests", share, cost, ranks),
        ),
        "For a benchmark, send more requests at once. Else fewer devices, or another model beside this one, "
        "carry this load.",
        "serving_steps",
        Evidence(event_rank=longest, span=found[longest].longest),
        severity="note",
        headline=f"The server has no requests for {percent(share)} of the time",
        lost=inputs.when(ranks, lambda rank: found[rank]),
    )


def compiles_while_serving(inputs: Inputs) -> Finding | None:
    """Steps after others in which the host compiles or loads code: requests wait for it."""
    found = {rank: each for rank, each in of_ranks(inputs, _compiling).items() if each.steps}
    if not found:
        return None
    rank = max(found, key=lambda rank: (found[rank].idle.length, -rank))
    most = found[rank]
    lost = most.idle.length
    return Finding(
        lost,
        100.0 * lost / (inputs.judged_ns[rank] + lost),
        say(
            "Requests wait while the server compiles or loads code. That takes {time} in all, in {steps} of "
            "its later steps. What else is said here leaves them out.",
            time=Claim("compiling_while_serving", lost, "ns", ranks=(rank,)),
            steps=Claim("later_steps_that_compile", most.steps, "count", ranks=(rank,)),
        ),
        "Warm up with the shapes that requests have before they come, mark sizes that change as dynamic, and "
        "keep compiled code in a cache on disk.",
        "serving_steps",
        Evidence(event_rank=rank, span=most.idle.longest),
        severity="warning",
        headline=f"Requests wait {duration(lost)} for compiling",
    )


class _Compiling(NamedTuple):
    """How many later steps compile, and when the device waits for that."""

    steps: int
    idle: Intervals


class _Eager(NamedTuple):
    """Steps without a graph, the fewest requests of one, its kernels; requests of the largest that replays.

    idle: while their kernels are launched. replayed: 0 where no step replays, or larger ones do.
    """

    steps: int
    requests: int
    kernels: int
    replayed: int
    idle: Intervals


def waiting(inputs: Inputs, rank: int) -> Intervals:
    """When the device of a rank waits for the host between steps, or for a while within them."""
    rank_trace = inputs.trace.rank(rank)
    within = pauses_in_steps(rank_trace) & inputs.idle_causes(rank).late_host
    return ((idle_between(rank_trace) | within) & inputs.judged_time(rank)) - collecting(rank_trace)


def where_of(inputs: Inputs, ranks: list[int]) -> str:
    """Where the waiting is: `between steps`, `within steps`, or both."""
    whole = sum(inputs.of(rank, waiting).length for rank in ranks)
    between = sum((inputs.of(rank, waiting) & idle_between(inputs.trace.rank(rank))).length for rank in ranks)
    if between >= (1 - _SOME) * whole:
        return "between steps"
    return "within steps" if between < _SOME * whole else "between and within steps"


def places_of(inputs: Inputs, rank: int) -> list[Place]:
    """The calls that the host is in while the device waits, but for those in which forward passes are."""
    rank_trace = inputs.trace.rank(rank)
    windows = rank_trace.windows(inputs.scope)
    around = inputs.recorded(rank, _around_forward)
    idle, waits = inputs.idle_causes(rank), inputs.of(rank, waiting)
    places = host_places(rank_trace, idle, waits, windows, around.__contains__)
    return [place for place in places if not (place.everywhere and LIBRARY.search(place.name))]


def _around_forward(rank_trace: RankTrace) -> set[str]:
    """The names of calls in which forward passes are launched: the loop, and the steps themselves."""
    passes = forward_passes(rank_trace)
    around = np.searchsorted(passes, rank_trace.start) < np.searchsorted(passes, rank_trace.end)
    codes = np.unique(rank_trace.name[around & ~rank_trace.is_device])
    return {rank_trace.names[code] for code in codes.tolist()}


def absent(inputs: Inputs, rank: int) -> Intervals:
    """When the server has no requests."""
    return absent_between(inputs.trace.rank(rank)) & inputs.judged_time(rank)


def _compiling(inputs: Inputs, rank: int) -> _Compiling:
    rank_trace = inputs.trace.rank(rank)
    steps = in_scope(steps_of(rank_trace), inputs.asked)
    left_out = steps["iteration"].isin([step for each, step in inputs.left_out if each == rank])
    started = inputs.start_up[rank].calls if rank in inputs.start_up else ()
    own = rank_trace.iteration[[call.row for call in started if call.kind != "profiler"]]
    later = left_out & (~left_out).cummax() & steps["iteration"].isin(own)
    if not later.any():
        return _Compiling(0, Intervals.union([], []))
    begin = steps["host_start_ns"][later].to_numpy(np.int64)
    when = Intervals.union(begin, begin + steps["host_ns"][later].to_numpy(np.int64))
    return _Compiling(int(later.sum()), inputs.start_up[rank].idle & when)


def _eager(inputs: Inputs, rank: int) -> _Eager | None:
    rank_trace = inputs.trace.rank(rank)
    steps = steps_of(rank_trace)
    kernels, replays = launched_by_step(rank_trace)
    decodes = steps["phase"].isin(DECODING).to_numpy(np.bool_)
    eager = decodes & (replays == 0) & (kernels >= _LEAST_KERNELS)
    eager &= steps["iteration"].isin(in_scope(steps, inputs.scope)["iteration"]).to_numpy(np.bool_)
    if not eager.any():
        return None
    end = steps["start_ns"] + steps["device_ns"]
    own = Intervals.union(*(time[eager].to_numpy(np.int64, na_value=0) for time in (steps["start_ns"], end)))
    requests = steps["requests"].to_numpy(np.int64, na_value=0)
    least, replayed = int(requests[eager].min()), int(requests[decodes & (replays > 0)].max(initial=0))
    replayed = replayed if replayed < least else 0
    late = inputs.idle_causes(rank).late_host
    idle = (late & own & inputs.judged_time(rank)) - pauses_in_steps(rank_trace)
    return _Eager(int(eager.sum()), least, int(np.median(kernels[eager])), replayed, idle)


def _doing(inputs: Inputs, rank: int, places: list[Place]) -> Text:
    if most := _mostly(inputs, rank, places):
        return say(
            "The host runs {place} then.", place=place_claim("between_steps_in", most.name, rank, nth=0)
        )
    if places:
        waits = inputs.of(rank, waiting).length
        parts: list[Said] = [
            say(
                "{place} for {share}",
                place=place_claim("between_steps_in", place.name, rank, nth=nth),
                share=Claim("between_steps_part", 100.0 * place.idle_ns / waits, "%", "that time", (rank,),
                            {"call": place.name}),
            )
            for nth, place in enumerate(places[:_SHOWN])
        ]  # fmt: skip
        return say("Then the host runs {parts} of that time.", parts=says(parts))
    if after := inputs.of(rank, _after):
        called = place_claim("unrecorded_after", after, rank)
        return say("What the host does then, after {after}, is not recorded.", after=called)
    return say("What the host does then differs, or is not recorded.")


def _mostly(inputs: Inputs, rank: int, places: list[Place]) -> Place | None:
    """The only place, if the host is in it for most of the time that the device waits."""
    alone = len(places) == 1 and places[0].idle_ns >= _MOST * inputs.of(rank, waiting).length
    return places[0] if alone else None


def _after(inputs: Inputs, rank: int) -> str:
    """The call after which nothing is recorded, for most of the time between judged steps; "" for none."""
    rank_trace = inputs.trace.rank(rank)
    steps = steps_of(rank_trace)
    judged = set(in_scope(steps, inputs.scope)["iteration"])
    idle: Counter[int] = Counter()
    for iteration, bubble in zip(steps["iteration"].tolist(), bubbles_of(rank_trace), strict=True):
        if bubble is not None and iteration in judged:
            silent = not bubble.is_recorded and bubble.before >= 0
            idle[int(rank_trace.name[bubble.before]) if silent else -1] += bubble.idle_ns
    code, time = max(idle.items(), key=lambda each: (each[1], -each[0]), default=(-1, 0))
    return rank_trace.names[code] if code >= 0 and time > _MOST * idle.total() else ""


def named(inputs: Inputs, rank: int) -> Text:
    """` in schedule`, the function without its file, where the host is in it most of the time."""
    most = _mostly(inputs, rank, inputs.of(rank, places_of))
    if most is None:
        return say("")
    function = brief(short_place(most.name).rpartition(": ")[2])
    place = Claim("between_steps_in", most.name, "name", "", (rank,), {"nth": 0, "mostly": True}, function)
    return say(" in {place}", place=place)


def _remedy(inputs: Inputs, places: list[Place]) -> str:
    if not places:
        return _UNKNOWN_REMEDY.format(option(inputs, "ahead"))
    for word, topic, text in _REMEDIES:
        if re.search(word, places[0].name):
            return text.format(option(inputs, topic) if topic else "")
    return _OTHER_REMEDY.format(option(inputs, "ahead"))


RULES = (
    Rule(
        topic="absent_requests",
        question=IDLE_QUESTION,
        title="No requests",
        judge=absent_requests,
        role="aside",
        applies=is_serving,
        wrong_if="A scheduler holds requests back, or they wait in another process.",
    ),
    Rule(
        topic="compiles_while_serving",
        question="whether requests wait for compiling",
        title="Compiling while requests wait",
        judge=compiles_while_serving,
        role="aside",
        applies=never,
        wrong_if="These are requests of a warm-up.",
    ),
    idle_rule(
        topic="bubble_between_steps",
        title="Waiting between steps",
        label="Gaps between steps",
        cause="waiting between steps",
        judge=bubble_between_steps,
        applies=is_serving,
        risk="Scheduled ahead, a step does not know yet which requests the one before it ends.",
        wrong_if="There are no requests to work on then.",
    ),
    idle_rule(
        topic="eager_steps",
        title="Decoding without graphs",
        label="Decoding without graphs",
        cause="decoding without graphs",
        judge=eager_steps,
        applies=is_serving,
        risk="Captured graphs take memory, and time at the start.",
        wrong_if="The profiler makes each launch slower than it is without.",
    ),
)
