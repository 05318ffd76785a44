"""Recordings, mutated, and every public answer about them: a frame, or an error of ours."""

from __future__ import annotations

import copy
import gzip
import json
import random
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hta_widgets.analysis import inspect_event, inspect_gap, registry
from hta_widgets.analysis.evidence.document import evidence
from hta_widgets.errors import HtaWidgetsError
from hta_widgets.trace import Scope, Trace
from tests.analysis.every_analysis import EVERY_ANALYSIS
from tests.fuzz.corpus import BUNDLED
from tests.support import SHARED_TRACES

GZIP = b"\x1f\x8b"
LARGEST = 100_000  # bytes of a recording, as it lies on the disk
LONGEST = 1500  # events
TIMES: list[Any] = [0, -1, 0.001, 1e12, 9.2e15, 1e300, None, "5", "x", 2**63]
IDS: list[Any] = [0, -1, 1, 2**31, 2**63 - 1, None, "7", "", [], 0.5]
TEXTS: list[Any] = ["", "ProfilerStep#5", "nccl:all_reduce", "cudaLaunchKernel", "\ud800", None, 5, "a\x00b"]
CATEGORIES: list[Any] = [
    "kernel", "cpu_op", "user_annotation", "gpu_memcpy", "cuda_runtime", "cuda_sync", "python_function",
    "overhead", "none", "", None,
]  # fmt: skip


@cache
def recordings() -> list[dict[str, Any]]:
    """Recordings: the shared ones that are small, and a bundled one."""
    places = [SHARED_TRACES, SHARED_TRACES.parent / "recordings"]
    files = [path for place in places if place.is_dir() for path in sorted(place.rglob("*.json*"))]
    files = [path for path in files if path.stat().st_size < LARGEST]
    files += sorted((BUNDLED / "gpt2_baseline").glob("*.json*"))
    found = []
    for path in files:
        raw = path.read_bytes()
        document = json.loads(gzip.decompress(raw) if raw[:2] == GZIP else raw)
        if isinstance(document, list):
            document = {"traceEvents": document}
        if isinstance(document.get("traceEvents"), list):
            found.append(document)
    return found


def mutated(document: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """A part of a recording, some of whose events are lost, doubled, moved or say something else."""
    events = document["traceEvents"]
    at = dice.randrange(max(1, len(events) - LONGEST))
    about = [event for event in events[:50] if isinstance(event, dict) and event.get("ph") == "M"]
    events = copy.deepcopy([*about, *events[at : at + dice.choice((20, 300, LONGEST))]])
    for _ in range(dice.choice((1, 3, 10, 60))):
        if events:
            _change(events, dice)
    head = {key: value for key, value in document.items() if key != "traceEvents"}
    if dice.random() < 0.2 and head:
        head[dice.choice(sorted(head))] = dice.choice([*IDS, *TEXTS, {}, {"rank": -1, "world_size": 0}])
    return {**head, "traceEvents": events}


def _change(events: list[Any], dice: random.Random) -> None:
    at = dice.randrange(len(events))
    event = events[at]
    kind = dice.randrange(10)
    if kind == 0:
        del events[at : at + dice.choice((1, 5, 100))]
    elif kind == 1:
        events[at:at] = copy.deepcopy(events[at : at + dice.choice((1, 20))])
    elif kind == 2:
        events.append(events.pop(at))
    elif not isinstance(event, dict):
        return
    elif kind == 3:
        event[dice.choice(("ts", "dur"))] = dice.choice(TIMES)
    elif kind == 4:
        event["cat"] = dice.choice(CATEGORIES)
    elif kind == 5:
        event["name"] = dice.choice(TEXTS)
    elif kind == 6:
        event[dice.choice(("pid", "tid", "id", "ph"))] = dice.choice([*IDS, "X", "B", "s", "f", "C"])
    elif kind == 7 and isinstance(event.get("ts"), int | float):
        event["ts"] = event["ts"] + dice.choice((-1e9, -50, -0.5, 0.5, 50, 1e6, 1e10))
    elif isinstance(arguments := event.get("args"), dict) and arguments:
        key = dice.choice(sorted(arguments))
        if kind == 8:
            del arguments[key]
        else:
            arguments[key] = dice.choice([*IDS, *TEXTS, *TIMES])


def answers(seed: int) -> str:
    """Every public answer about a mutated recording."""
    dice = random.Random(seed)
    document = mutated(dice.choice(recordings()), dice)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank0.json"
        path.write_text(json.dumps(document), encoding="utf-8", errors="surrogatepass")
        try:
            trace = Trace.open(folder, cache=False)
        except HtaWidgetsError:
            return "refused"
        answered = sum(asked(name, ask) for name, ask in questions(trace, dice))
    return "answered" if answered else "nothing to answer"


def asked(name: str, ask: Callable[[], Any]) -> bool:
    """Whether there is an answer; any other error than one of ours is passed on, and names the question."""
    try:
        answer = ask()
    except HtaWidgetsError:
        return False
    except Exception as error:
        error.add_note(name)
        raise
    if isinstance(answer, pd.DataFrame):
        _makes_sense(name, answer)
    return True


def _makes_sense(name: str, frame: pd.DataFrame) -> None:
    """Numbers are finite or not known, and counts of things and times are not negative where they cannot."""
    for column in frame.columns:
        values = frame[column]
        if values.dtype.kind == "f":
            assert not np.isinf(values.to_numpy(float)).any(), f"{name}: {column} is infinite"
        if column in ("count", "dur_ns", "total_ns", "busy_ns", "idle_ns") and values.dtype.kind == "i":
            assert (values >= 0).all(), f"{name}: {column} is negative"


def questions(trace: Trace, dice: random.Random) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "health", lambda: trace.health
    yield "trust", lambda: trace.trust
    yield "summary", lambda: json.dumps(trace.summary)
    yield "iterations", lambda: trace.iterations
    yield "records", lambda: trace.records
    yield "events", trace.events
    yield "vetoes", trace.vetoes
    yield "evidence", lambda: json.dumps(evidence(trace))
    for name, question in EVERY_ANALYSIS.items():
        yield name, lambda question=question: question(trace, Scope())
    for name, analysis in registry.ANALYSES.items():
        options = {option.name: dice.choice(option.choices or ("", "128")) for option in analysis.options}
        yield f"{name} with {options}", lambda a=analysis, o=options: _drawn(a, trace, o)
    for rank in trace.ranks:
        events = trace.rank(rank)
        for row in {dice.randrange(events.n) for _ in range(3)} if events.n else ():
            number = int(events.event_id[row])
            yield f"event {number}", lambda rank=rank, number=number: _event(trace, rank, number)
            if events.is_device[row]:
                place = rank, int(events.stream[row]), int(events.end[row])
                yield f"gap at {place}", lambda place=place: inspect_gap(trace, *place)


def _drawn(analysis: Any, trace: Trace, options: dict[str, Any]) -> None:
    frame = analysis.function(trace, **{name: value for name, value in options.items() if value})
    analysis.figure(frame)
    analysis.sentence(frame)


def _event(trace: Trace, rank: int, number: int) -> str:
    return json.dumps(inspect_event(trace, rank, number, replay=False).to_dict())
