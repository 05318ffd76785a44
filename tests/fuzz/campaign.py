"""Many inputs: what became of them, in a process of their own that may hang or die."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess, SpawnProcess
from pathlib import Path
from typing import Any

import psutil

from tests.fuzz.targets import OF_A_THOUSAND, TARGETS

HANG_SECONDS = dict.fromkeys(TARGETS, 5.0) | {"answers": 20.0}
"""Of CPU for one input; of `answers` that is some 120 questions, of which 40 draw a figure."""
GIVEN_UP_SECONDS = 120.0
"""Of CPU for one input: a machine that is busy with other work makes nothing hang."""
STANDS_STILL_SECONDS = 1200.0
"""Of the clock: what waits for ever takes no CPU."""
LOOKED_SECONDS = 10.0
BATCH = 500

_ORDER = [name for name, share in OF_A_THOUSAND.items() for _ in range(share)]


def target_of(seed: int) -> str:
    """Which target a seed is for: the shares hold in every thousand seeds, and the targets take turns."""
    return _ORDER[seed * 619 % 1000]


def attempt(name: str, seed: int) -> tuple[str, str | None]:
    """What became of one input, and what is wrong with that."""
    begun = time.monotonic()
    try:
        outcome, failure = TARGETS[name](seed), None
    except AssertionError as error:
        outcome, failure = "wrong", str(error)
    except Exception as error:
        places = [
            f"{Path(frame.filename).name}:{frame.lineno}"
            for frame in traceback.extract_tb(error.__traceback__)
        ]
        notes = "".join(f", {note}" for note in getattr(error, "__notes__", ()))
        outcome, failure = "untyped", f"{type(error).__name__}: {error}{notes} ({', '.join(places[-6:])})"
    limit = HANG_SECONDS[name]
    if time.monotonic() - begun > limit and (seconds := _seconds(TARGETS[name], seed)) > limit:
        outcome, failure = "hangs", f"{seconds:.1f} s"
    return outcome, failure


def _seconds(target: Callable[[int], str], seed: int) -> float:
    """How long an input takes the second time: the first may have compiled, which is no hang."""
    begun = time.process_time()
    with contextlib.suppress(Exception):
        target(seed)
    return time.process_time() - begun


def run(seeds: Iterable[int], only: str | None = None) -> Iterator[tuple[int, str, str | None]]:
    """For each seed, what became of its input: "target: outcome", and what is wrong with that."""
    for seed in seeds:
        name = only or target_of(seed)
        outcome, failure = attempt(name, seed)
        yield seed, f"{name}: {outcome}", failure


def supervised(
    first: int, inputs: int, only: str | None = None, start: str = "spawn"
) -> Iterator[tuple[int, Counter[str], list[str]]]:
    """The same in a second process, which is started again after the input that it died or hung of.

    Yields now and then how many inputs were done, the counts and the failures so far.
    """
    counts: Counter[str] = Counter()
    failures: list[str] = []
    context = multiprocessing.get_context(start)
    next_seed, stop = first, first + inputs
    deadly: list[int] = []
    at = context.Value("q", first, lock=False)
    while next_seed < stop:
        receiver, sender = context.Pipe(duplex=False)
        todo = (next_seed, stop, deadly, only)
        process = context.Process(target=_work, args=(todo, at, sender), daemon=True)
        process.start()
        sender.close()
        for next_seed, more, failed in _messages(receiver, process, at):
            counts.update(more)
            failures += failed
            yield next_seed - first, counts, failures
        process.join()
        if next_seed < stop:
            end = "hangs" if process.exitcode == -signal.SIGKILL else "crashes"
            deadly.append(at.value)
            counts[f"{only or target_of(at.value)}: {end}"] += 1
            failures.append(f"{at.value}: {end}, {process.exitcode}")
    yield inputs, counts, failures


Message = tuple[int, Counter[str], list[str]]
"""The first seed that is not counted yet, what became of those before it, and what is wrong with that."""


def _messages(receiver: Connection, process: SpawnProcess | ForkProcess, at: Any) -> Iterator[Message]:
    """Until the process ends, of its own or because it is at the same seed for too long."""
    began = None
    while True:
        if receiver.poll(min(LOOKED_SECONDS, GIVEN_UP_SECONDS)):
            try:
                yield receiver.recv()
            except EOFError:
                return
        used, now = _cpu_seconds(process), time.monotonic()
        if began is None or at.value != began[0]:
            began = at.value, used, now
        elif used - began[1] > GIVEN_UP_SECONDS or now - began[2] > STANDS_STILL_SECONDS:
            process.kill()


def _cpu_seconds(process: SpawnProcess | ForkProcess) -> float:
    try:
        times = psutil.Process(process.pid).cpu_times()
    except psutil.Error:  # it has ended meanwhile
        return 0.0
    return times.user + times.system


def _work(todo: tuple[int, int, list[int], str | None], at: Any, sender: Connection) -> None:
    first, stop, deadly, only = todo
    counts: Counter[str] = Counter()
    seeds = (seed for seed in range(first, stop) if seed not in deadly)
    for seed, outcome, failure in run(_told(seeds, at), only):
        counts[outcome] += 1
        if failure is not None or counts.total() == BATCH:
            sender.send((seed + 1, counts, [] if failure is None else [f"{outcome} {seed}: {failure}"]))
            counts.clear()
    sender.send((stop, counts, []))


def _told(seeds: Iterable[int], at: Any) -> Iterator[int]:
    """The seeds; the other process can see which one is being tried."""
    for seed in seeds:
        at.value = seed
        yield seed
