"""A copy of a trace file in which the events of kernel sequences are marked, and the others shortened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from hta_widgets.arrays import Bool, Int32, Int64
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.raw import RawTrace

_SHORTEST_ARGS = len('{"a":1}')


def write_overlay(
    rank_trace: RankTrace, target: Path, events: Int32, pattern: Int64, counts: dict[str, int], compress: bool
) -> None:
    """Write a copy of a rank's file with ``args["Patterns"]`` in some events.

    Args:
        events, pattern: event ids, and which of `counts` each belongs to.
        counts: how often each pattern occurs.
        compress: all other complete events lose their args, and their names become numbers; the profiler's
            own event (or, without it, an appended one) explains these.
    """
    raw = RawTrace.read(rank_trace.path)
    args, args_end = raw.values("args")
    marks = [{text: count} for text, count in counts.items()]
    # Most args are objects that are not empty: the mark goes before the closing brace.
    long = args_end[events] - args[events] >= _SHORTEST_ARGS
    long &= raw.begins_with("{", args[events])
    place = args_end[events[long]] - 1
    pieces = [(place, place, [f', "Patterns": {json.dumps(mark)}'.encode() for mark in marks], pattern[long])]
    edits = {
        event: _with_args(raw, event, {"Patterns": marks[number]})
        for event, number in zip(events[~long].tolist(), pattern[~long].tolist(), strict=True)
    }
    append: list[dict[str, Any]] = []
    if compress:
        others, own = _others(rank_trace, events)
        legend = {str(number): name for number, name in enumerate(rank_trace.names) if name}
        edits |= {event: raw.event(event) | {"args": legend} for event in own.tolist()}
        edits |= {event: raw.event(event) | {"args": {}} for event in others[args[others] < 0].tolist()}
        others = others[args[others] >= 0]
        pieces.append((args[others], args_end[others], [b"{}"], np.zeros(len(others), np.int64)))
        name, name_end = raw.values("name")
        named = others[(name[others] >= 0) & raw.begins_with('"', name[others])]
        code = rank_trace.table.codes("name")[named].astype(np.int64)
        named, code = named[code >= 0], code[code >= 0]
        texts = [f'"{number if text else ""}"'.encode() for number, text in enumerate(rank_trace.names)]
        pieces.append((name[named], name_end[named], texts, code))
        if not len(own):
            # Without an event of the profiler itself the names would be lost.
            append = [{"ph": "M", "name": "PyTorch Profiler", "pid": "Spans", "ts": 0, "args": legend}]
    raw.replaced(pieces).write(target, edits=edits, append=append)


def _with_args(raw: RawTrace, event: int, more: dict[str, Any]) -> dict[str, Any]:
    found = raw.event(event)
    args = found.get("args")
    return found | {"args": {**(args if isinstance(args, dict) else {}), **more}}


def _others(rank_trace: RankTrace, marked: Int32) -> tuple[Int64, Int64]:
    """The complete events that are not marked, and which of them are the profiler's own."""
    complete = _coded(rank_trace, "phase", "X")
    complete[marked] = False
    names = np.array(
        ["PyTorch Profiler" in text for text in rank_trace.table.dictionary("name")] + [False], np.bool_
    )
    own = complete & names[rank_trace.table.codes("name")] & _coded(rank_trace, "pid", "Spans")
    return np.flatnonzero(complete & ~own), np.flatnonzero(own)


def _coded(rank_trace: RankTrace, column: str, text: str) -> Bool:
    """Which events have this text in a column."""
    texts = rank_trace.table.dictionary(column)
    return rank_trace.table.codes(column) == (texts.index(text) if text in texts else -2)
