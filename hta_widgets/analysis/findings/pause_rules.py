"""Rules about a host that records nothing while a device waits for it: once, or in each step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hta_widgets.analysis.findings.callers import around_text
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.pauses import STALL_NS, TELLING_STEPS, Paused
from hta_widgets.analysis.findings.rule import GETS_AHEAD, IDLE_QUESTION, Change, Rule
from hta_widgets.analysis.idle.pauses import GARBAGE_COLLECTION
from hta_widgets.analysis.idle.places import Place, host_places, short_place
from hta_widgets.analysis.replay import edits
from hta_widgets.analysis.replay.edits import Edit
from hta_widgets.formatting import brief, counted, duration, percent
from hta_widgets.trace.classify import EventClass

if TYPE_CHECKING:
    from hta_widgets.analysis.core.intervals import Intervals
    from hta_widgets.analysis.findings.inputs import Inputs

__all__ = ["RULES", "without_pauses"]

_MOST = 0.5


def host_stall(inputs: Inputs) -> Finding | None:
    """A host that stops for long where most steps do not, or that collects garbage."""
    found = _worst(inputs, "stalls")
    if found is None:
        return None
    rank, idle, paused = found
    collects = paused.collected.length >= _MOST * idle.length
    share, words = _share(inputs, rank, idle)
    when = (
        f"Python's garbage collector runs ({percent(100.0 * paused.collected.length / idle.length)} of it)"
        if collects
        else f"the host stops: it records no operator and no call for {duration(STALL_NS)} or more, where "
        "most steps have no such pause"
    )
    advice = (
        "gc.collect() where nothing waits for the host, every so many steps, with gc.disable() or "
        "gc.freeze() after the first; memory that only the collector frees is then kept longer."
        if collects
        else "Look at what the program does then (checkpoints, logging, evaluation) and at other processes "
        "on its cores. Garbage collection is recorded with with_stack=True and experimental_config="
        "_ExperimentalConfig(record_python_gc_info=True)."
    )
    return Finding(
        idle.length,
        share,
        f"{words} while {when}{_places(inputs, rank, idle)}; {counted(len(idle), 'time')}, up to "
        f"{duration(_longest(idle))} at once.",
        advice,
        "idle_breakdown",
        _evidence(inputs, rank, idle),
        change=Change("without these pauses", lambda _: _without_stalls(paused), GETS_AHEAD),
    )


def unmarked_host(inputs: Inputs) -> Finding | None:
    """A pause of the host before the same call in most steps: work that nothing names, as of a loader."""
    found = _worst(inputs, "recurring")
    if found is None:
        return None
    rank, idle, paused = found
    share, words = _share(inputs, rank, idle)
    places = _named_places(inputs, rank, idle)
    look = (
        f"Look at {brief(short_place(places[0].name))}. "
        if places
        else "Mark what the loop does then with torch.profiler.record_function, or record with_stack=True. "
    )
    return Finding(
        idle.length,
        share,
        f"{words} while the host records no operator and no call, in most steps before "
        f"{brief(paused.recurring_end)}"
        f"{_in_words(places)}; up to {duration(_longest(idle))} at a time.",
        f"{look}If it makes the batch, a DataLoader with workers (num_workers, pin_memory=True) makes the "
        "next one meanwhile.",
        "idle_breakdown",
        _evidence(inputs, rank, idle),
        change=Change("without these pauses", lambda _: _without_recurring(paused), GETS_AHEAD),
    )


def _worst(inputs: Inputs, kind: str) -> tuple[int, Intervals, Paused] | None:
    """The rank that loses most of its time to pauses of a kind, and that time."""
    if inputs.idle.empty:
        return None
    ranks = inputs.idle["rank"].tolist()
    parts = {rank: getattr(inputs.paused(rank), kind) for rank in ranks}
    rank = max(ranks, key=lambda rank: (parts[rank].length, -rank))
    return (rank, parts[rank], inputs.paused(rank)) if len(parts[rank]) else None


def _share(inputs: Inputs, rank: int, idle: Intervals) -> tuple[float, str]:
    window = int(inputs.idle.set_index("rank")["window_ns"][rank])
    share = 100.0 * idle.length / window
    who = f"The device of rank {rank}" if len(inputs.idle) > 1 else "The device"
    return share, f"{who} is idle {inputs.share(share)}{inputs.per_step(idle.length)}"


def _named_places(inputs: Inputs, rank: int, idle: Intervals) -> list[Place]:
    """The Python function or annotation that holds most of it, if one does."""
    rank_trace = inputs.trace.rank(rank)
    windows = rank_trace.windows(inputs.scope)
    places = host_places(
        rank_trace, inputs.idle_causes(rank), idle, windows, lambda name: name == GARBAGE_COLLECTION
    )
    return places if len(places) == 1 and places[0].idle_ns >= _MOST * idle.length else []


def _places(inputs: Inputs, rank: int, idle: Intervals) -> str:
    return _in_words(_named_places(inputs, rank, idle))


def _in_words(places: list[Place]) -> str:
    return "".join(
        f", in {brief(short_place(place.name))}{around_text(-1, place.name, place.within)}"
        for place in places
    )


def _longest(idle: Intervals) -> int:
    return int((idle.end - idle.start).max())


def _evidence(inputs: Inputs, rank: int, idle: Intervals) -> Evidence:
    """The call that the device waits for behind the longest pause."""
    rank_trace = inputs.trace.rank(rank)
    end = int(idle.end[int((idle.end - idle.start).argmax())])
    calls = np.flatnonzero(
        np.isin(rank_trace.event_class, (EventClass.HOST_OP, EventClass.RUNTIME)) & (rank_trace.start >= end)
    )
    row = int(calls[rank_trace.start[calls].argmin()]) if len(calls) else None
    return Evidence(
        rank=rank if len(inputs.idle) > 1 else None,
        event_rank=None if row is None else rank,
        event_id=None if row is None else int(rank_trace.event_id[row]),
    )


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
    Rule(
        topic="host_stall",
        question=IDLE_QUESTION,
        title="A host that stops for a while",
        judge=host_stall,
        applies=_has_steps_to_compare,
        risk="Without garbage collection in the loop, cycles stay in memory until it runs.",
        needs="Pauses that the program decides about.",
    ),
    Rule(
        topic="unmarked_host",
        question=IDLE_QUESTION,
        title="Waiting for host work that nothing names",
        judge=unmarked_host,
        applies=_has_steps_to_compare,
        needs="Access to the code that the host runs there.",
    ),
)
