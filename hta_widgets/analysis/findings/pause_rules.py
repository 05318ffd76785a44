"""Rules about a host that records nothing while a device waits for it: once, or in each step."""

from __future__ import annotations

from typing import Final

import numpy as np

from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, Said, Text, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.callers import around_text, open_in, place_claim
from hta_widgets.analysis.findings.finding import ALONE, Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.offload_rule import waits_for_update
from hta_widgets.analysis.findings.pauses import STALL_NS, TELLING_STEPS, Paused
from hta_widgets.analysis.findings.rule import GETS_AHEAD, Change, idle_rule
from hta_widgets.analysis.idle.pauses import GARBAGE_COLLECTION, LEAST_NS
from hta_widgets.analysis.idle.places import Place, host_places, short_place
from hta_widgets.analysis.replay import edits
from hta_widgets.analysis.replay.edits import Edit
from hta_widgets.formatting import brief, counted
from hta_widgets.trace.classify import EventClass

_MOST = 0.5
_LOAD: Final = (
    "If it makes the batch, a DataLoader with workers (num_workers, pin_memory=True) makes the next one "
    "meanwhile."
)


def host_stall(inputs: Inputs) -> Finding | None:
    """A host that stops for long where most steps do not, or that collects garbage."""
    found = _worst(inputs, "stalls")
    if found is None:
        return None
    rank, idle, paused = found
    share, lost = _lost(inputs, rank, idle, paused.stall_ends, STALL_NS, bool(paused.collected))
    many, collects = len(idle) > 1, paused.collected.length >= _MOST * idle.length
    pauses = say(
        "{times} with {up_to}{longest} of idle time{each}.{too}",
        times=Claim("pauses", len(idle), "count", ranks=(rank,), shown=counted(len(idle), "pause")),
        up_to="up to " * many,
        longest=_longest(rank, idle),
        each=" each" * many,
        too=_too(inputs, rank, "collected" if collects else "stopped", STALL_NS),
    )
    collected = 100.0 * paused.collected.length / idle.length
    if collects:
        text = say(
            "{lost} while Python's garbage collector runs{places}. Collection is {share} of it. {pauses}",
            lost=lost,
            share=Claim("idle_in_garbage_collection", collected, "%", "paused", (rank,)),
            places=_places_text(rank, _named_places(inputs, rank, idle)),
            pauses=pauses,
        )
        advice = (
            "Call gc.collect() every so many steps, where nothing waits for the host, with gc.disable() or "
            "gc.freeze() after the first. Memory that only the collector frees then stays longer."
        )
    else:
        text = say(
            "{lost} while the host stops{places}. It records no operator and no call for {least} or more; "
            "most steps have no such pause. {pauses}",
            lost=lost,
            places=_places_text(rank, _named_places(inputs, rank, idle)),
            least=Claim("pause_threshold", STALL_NS, "ns"),
            pauses=pauses,
        )
        advice = (
            "Look at what the program does then (checkpoints, logging, evaluation) and at other processes "
            "on its cores. Garbage collection is recorded with with_stack=True and experimental_config="
            "_ExperimentalConfig(record_python_gc_info=True)."
        )
    return Finding(
        idle.length,
        share,
        text,
        advice,
        "idle_breakdown",
        _evidence(inputs, rank, idle),
        change=Change("without these pauses", lambda _: _without_stalls(paused), GETS_AHEAD),
        lost={rank: idle},
        explains=_alone(inputs, rank, "stalls"),
    )


def unmarked_host(inputs: Inputs) -> Finding | None:
    """A pause of the host before the same call in most steps: work that nothing names, as of a loader."""
    found = _worst(inputs, "recurring")
    if found is None:
        return None
    rank, idle, paused = found
    if 2 * (idle & inputs.of(rank, waits_for_update)).length >= idle.length:  # which has a finding of its own
        return None
    share, lost = _lost(inputs, rank, idle, (paused.recurring_end,), LEAST_NS, False)
    places = _named_places(inputs, rank, idle)
    look = (
        f"Look at {brief(short_place(places[0].name))}. "
        if places
        else "Mark what the loop does then with torch.profiler.record_function, or record with_stack=True. "
    )
    return Finding(
        idle.length,
        share,
        say(
            "{lost} while the host records no operator and no call{places}. In most steps {call} ends it. "
            "The longest stretch is {longest}.{too}",
            lost=lost,
            too=_too(inputs, rank, "recurring", LEAST_NS),
            call=place_claim("ends_pauses", paused.recurring_end, rank),
            places=_places_text(rank, places),
            longest=_longest(rank, idle),
        ),
        f"{look}{_LOAD}",
        "idle_breakdown",
        _evidence(inputs, rank, idle),
        change=Change("without these pauses", lambda _: _without_recurring(paused), GETS_AHEAD),
        lost={rank: idle},
        explains=_alone(inputs, rank, "recurring"),
    )


def _worst(inputs: Inputs, kind: str) -> tuple[int, Intervals, Paused] | None:
    """The rank that loses most of its time to pauses of a kind, and that time."""
    if inputs.idle.empty:
        return None
    ranks = inputs.idle["rank"].tolist()
    parts = {rank: getattr(inputs.paused(rank), kind) for rank in ranks}
    rank = max(ranks, key=lambda rank: (parts[rank].length, -rank))
    return (rank, parts[rank], inputs.paused(rank)) if len(parts[rank]) else None


def _alone(inputs: Inputs, rank: int, kind: str) -> int | None:
    """The rank, if it loses far more to pauses of a kind than the others do on average."""
    others = [getattr(inputs.paused(each), kind).length for each in inputs.idle["rank"] if each != rank]
    most = getattr(inputs.paused(rank), kind).length
    return rank if others and most * len(others) >= ALONE * sum(others) else None


def _too(inputs: Inputs, rank: int, kind: str, least_ns: int) -> Text:
    """The other ranks that lose much to pauses of a kind, too."""
    lost = {each: getattr(inputs.paused(each), kind).length for each in inputs.idle["rank"]}
    others = tuple(each for each in lost if each != rank and 2 * lost[each] >= lost[rank] > 0)
    if not others:
        return NOTHING_SAID
    ranks = Claim("paused_too", others, "ranks", about={"most": rank, "kind": kind, "least_ns": least_ns})
    return say(" On {ranks} it is at least half as much.", ranks=ranks)


def _lost(
    inputs: Inputs,
    rank: int,
    idle: Intervals,
    before: tuple[str, ...],
    least: int,
    collected: bool,
) -> tuple[float, Text]:
    """The share of the time, and `The device is idle 4.7 % of step time (1.2 ms per step)`."""
    share = 100.0 * idle.length / inputs.judged_ns[rank]
    who: Said = "The device is"
    if len(inputs.idle) > 1:
        who = say("The device of {rank} is", rank=Claim("most_paused", (rank,), "ranks"))
    about = {"before": before, "least_ns": least, "collected": collected}
    return share, say("{who} idle {lost}", who=who,
                      lost=inputs.time_lost("paused", share, idle.length, (rank,), **about))  # fmt: skip


def _named_places(inputs: Inputs, rank: int, idle: Intervals) -> list[Place]:
    """The Python function or annotation that holds most of it, if one does."""
    rank_trace = inputs.trace.rank(rank)
    windows = rank_trace.windows(inputs.scope)
    places = host_places(
        rank_trace, inputs.idle_causes(rank), idle, windows, lambda name: name == GARBAGE_COLLECTION
    )
    return places if len(places) == 1 and places[0].idle_ns >= _MOST * idle.length else []


def _places_text(rank: int, places: list[Place]) -> Text:
    said = NOTHING_SAID
    for place in places:
        said += say(
            ", in {place}{around}",
            place=place_claim("paused_in", place.name, rank),
            around=around_text(rank, place.name, place.within),
        )
    return said


def _longest(rank: int, idle: Intervals) -> Claim:
    start, end = idle.longest
    return Claim("longest_pause", end - start, "ns", ranks=(rank,))


def _evidence(inputs: Inputs, rank: int, idle: Intervals) -> Evidence:
    """The longest pause, and what is open then, or else the call that the device waits for behind it."""
    rank_trace, span = inputs.trace.rank(rank), idle.longest
    shown = {GARBAGE_COLLECTION, *(place.name for place in _named_places(inputs, rank, idle))}
    row = open_in(rank_trace, span, shown.__contains__)
    if row < 0:
        calls = np.flatnonzero(
            np.isin(rank_trace.event_class, (EventClass.HOST_OP, EventClass.RUNTIME))
            & (rank_trace.start >= span[1])
        )
        row = int(calls[rank_trace.start[calls].argmin()]) if len(calls) else -1
    event = None if row < 0 else int(rank_trace.event_id[row])
    return Evidence(rank if len(inputs.idle) > 1 else None, event_rank=rank, event_id=event, span=span)


def _without_stalls(paused: Paused) -> list[Edit]:
    made = [edits.pauses(before=edits.exactly(name), longer_than_ns=STALL_NS) for name in paused.stall_ends]
    return [*made, edits.without(GARBAGE_COLLECTION)] if len(paused.collected) else made


def _without_recurring(paused: Paused) -> list[Edit]:
    return [edits.pauses(before=edits.exactly(paused.recurring_end))] if len(paused.recurring) else []


def without_pauses(paused: Paused) -> list[Edit]:
    """The changes of both findings about pauses."""
    return [*_without_stalls(paused), *_without_recurring(paused)]


def _has_steps_to_compare(inputs: Inputs) -> bool:
    return inputs.judged >= TELLING_STEPS


RULES = (
    idle_rule(
        topic="host_stall",
        title="A host that stops for a while",
        label="CPU pauses",
        cause="pauses of the CPU",
        judge=host_stall,
        applies=_has_steps_to_compare,
        risk="Without garbage collection in the loop, cycles stay in memory until it runs.",
        needs="Pauses that the program decides about.",
        wrong_if="The pause is meant to be there, such as a checkpoint.",
    ),
    idle_rule(
        topic="unmarked_host",
        title="Waiting for host work that nothing names",
        label="Unnamed CPU work",
        cause="CPU work that nothing names",
        judge=unmarked_host,
        applies=_has_steps_to_compare,
        needs="Access to the code that the host runs there.",
        wrong_if="The work before that call cannot be done ahead of time.",
    ),
)
