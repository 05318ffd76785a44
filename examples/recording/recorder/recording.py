"""Running a program without and with the profiler. Needs PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from recorder.machine import Place
from recorder.serving import Serving
from recorder.setup import Setup
from recorder.spread import spread
from recorder.training import Training

# Steps that the profiler runs through before it records: its own buffers are made meanwhile.
PROFILER_WARMUP = 2
# Not an option of torch.profiler.profile, but of the allocator.
SNAPSHOT = "memory_snapshot"


@dataclass(frozen=True)
class Length:
    """How much is run: steps that warm up, `repeats` timed runs of `steps`, `active` steps in the trace.

    Serving counts batches of requests, each a prompt and its decode steps.
    """

    warmup: int = 5
    repeats: int = 7
    steps: int = 10
    active: int = 3


def record(setup: Setup, here: Place, length: Length, folder: Path) -> dict[str, dict[str, Any]]:
    """Run a setup: timed without the profiler, recorded into `folder`, timed again in the same process.

    Every rank writes `rank-<n>.pt.trace.json.gz`.

    Returns:
        For each phase of the program the spreads ``before``, ``after`` and ``profiled``; the same on all
        ranks.
    """
    program = Serving(setup, here) if setup.workload == "serving" else Training(setup, here)
    for _ in range(length.warmup):
        program.step()
    before = here.slowest(program.samples(length.repeats, length.steps))
    here.meet()
    path = folder / f"rank-{here.rank}.pt.trace.json.gz"
    profiled = here.slowest(_profiled(program, here, length.active, setup.profiler_flags, path))
    here.meet()
    if SNAPSHOT in setup.profiler_flags and here.device.type == "cuda":
        _snapshot(program, folder / f"rank-{here.rank}.snapshot.pickle")
    after = here.slowest(program.samples(length.repeats, length.steps))
    return {
        phase: {
            "before": spread(before[phase]),
            "after": spread(after[phase]),
            "profiled": spread(profiled[phase]),
        }
        for phase in before
    }


def _snapshot(program: Training | Serving, path: Path) -> None:
    """Two steps of the allocator's history, as torch.cuda.memory writes it."""
    torch.cuda.memory._record_memory_history(max_entries=100_000)
    for _ in range(2):
        program.step()
    torch.cuda.memory._dump_snapshot(str(path))
    torch.cuda.memory._record_memory_history(enabled=None)


def _profiled(
    program: Training | Serving, here: Place, active: int, flags: tuple[str, ...], path: Path
) -> dict[str, list[int]]:
    activities = [ProfilerActivity.CPU]
    if here.device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    options: dict[str, Any] = {
        "activities": activities,
        **{flag: True for flag in flags if flag != SNAPSHOT},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(program, Serving):
        # Without a schedule: a serving engine announces its own steps, there is no ProfilerStep.
        profiler = profile(**options)
        profiler.prepare_trace()
        for _ in range(PROFILER_WARMUP):
            program.step()
        profiler.start_trace()
        times = program.samples(1, active)
        profiler.stop_trace()
        profiler.export_chrome_trace(str(path))
        return times
    plan = schedule(wait=0, warmup=PROFILER_WARMUP, active=active, repeat=1)
    with profile(**options, schedule=plan) as profiler:
        for _ in range(PROFILER_WARMUP):
            program.step()
            # Waiting, also for other ranks, would be recorded: it is done before the last warm-up step ends.
            here.meet()
            profiler.step()
        first = here.mark()
        for index in range(active):
            program.step()
            if index == active - 1:
                last = here.mark()
            profiler.step()
    profiler.export_chrome_trace(str(path))
    return {"step": [here.between(first, last) // active]}
