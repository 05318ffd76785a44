"""What is fuzzed. Each target takes a seed and says what became of the input."""

from __future__ import annotations

import io
import random
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import traitlets

from hta_widgets import examples
from hta_widgets.errors import HtaWidgetsError
from hta_widgets.trace import Trace
from hta_widgets.trace.reader import cache as table_cache
from hta_widgets.trace.reader import scanner
from hta_widgets.widgets import EventsTable, TimelineScrubber
from tests.fuzz.mutators import document, event, mutate, packed, text_of, value
from tests.fuzz.oracle import differences, events_of, looks_like_a_trace

BLOCKS = (256, 300, 1000, 4096, 1 << 16)
TOLD = {"malformed_event", "truncated", "compression"}  # what explains events that are not there


def reading(seed: int) -> str:
    """A trace, whole or damaged, through the scanner, compared with `json.loads`."""
    dice = random.Random(seed)
    text = text_of(document(dice), dice)
    damaged = dice.random() < 0.6
    if damaged:
        text = mutate(text, dice)
    source = packed(text, dice) if dice.random() < 0.2 else text
    try:
        table = scanner.scan(io.BytesIO(source), block_bytes=dice.choice(BLOCKS))
    except HtaWidgetsError:
        assert damaged or source is not text or not looks_like_a_trace(events_of(text)), "JSON was refused"
        return "refused"
    events = events_of(text)
    problems = {problem.check for problem in table.problems}
    if events is None:
        return "accepted, no JSON"
    if problems & TOLD:
        assert source is not text, f"JSON is called {problems & TOLD}"
        return "accepted in part"
    assert "not_json" not in problems, "JSON is called none"
    found = differences(table, events)
    assert not found, found[:3]
    return "accepted and equal"


def opening(seed: int) -> str:
    """Two files as a job: all of it answers, and a bad file does not sink the other."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        good = {"distributedInfo": {"rank": 0}, "traceEvents": [
            {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}  # fmt: skip
        (Path(folder) / "rank0.json").write_bytes(text_of(good, dice))
        (Path(folder) / "rank1.json").write_bytes(text_of(document(dice), dice))
        trace = Trace.open(folder, cache=False)
        assert 0 in trace.ranks
        _ = trace.health, trace.events(), trace.iterations, trace.summary
    return "answered"


def caching(seed: int) -> str:
    """A cache file with changed bytes gives the same table, or is told and read again."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        path, folder = Path(name) / "rank0.json", Path(name) / "cache"
        path.write_bytes(text_of({"traceEvents": [event(dice) for _ in range(20)]}, dice))
        try:
            first = table_cache.load(path, cache=folder)
        except HtaWidgetsError:
            return "refused"
        (entry,) = folder.iterdir()
        before = entry.read_bytes()
        entry.write_bytes(mutate(before, dice))
        again = table_cache.load(path, cache=folder)
        told = [problem for problem in again.problems if problem.check == "cache"]
        assert told or entry.read_bytes() == before, "a changed cache file was believed"
        for column in first.columns:
            assert again.sparse(column)[1].tobytes() == first.sparse(column)[1].tobytes()
    return "told" if told else "unchanged"


@cache
def _parts() -> list[Any]:
    trace = examples.load("gpt2_baseline")
    return [TimelineScrubber(trace), EventsTable(trace)]


def messages(seed: int) -> str:
    """What a browser may send: traits and calls of any shape."""
    dice = random.Random(seed)
    part = dice.choice(_parts())
    if dice.random() < 0.5:
        names = [*part.keys, "nothing"]
        state = {dice.choice(names): value(dice) for _ in range(dice.randrange(1, 4))}
        try:
            part.set_state(state)
        except traitlets.TraitError:
            return "refused"
        return "set"
    method = dice.choice([*part._rpc_methods, "nothing"])
    names = ["chunk", "t0", "t1", "px", "lanes", "first", "count", "columns", "id"]
    params = {dice.choice(names): value(dice)
              for _ in range(dice.randrange(4))}  # fmt: skip
    if method == "file":  # writes a whole file each time
        return "left out"
    try:
        part.ask(method, params)
    except (HtaWidgetsError, LookupError, TypeError, ValueError, OverflowError):  # answered as an error
        return "refused"
    return "answered"


TARGETS: dict[str, Callable[[int], str]] = {
    "reading": reading,
    "opening": opening,
    "caching": caching,
    "messages": messages,
}
SHARES = {"reading": 0.90, "opening": 0.02, "caching": 0.04, "messages": 0.04}
