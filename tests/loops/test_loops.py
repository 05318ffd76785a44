"""What is said of loops with known times: how long a step takes, where its time goes, and why.

Every program must hold; those in which any two things meet run by default (`HTA_WIDGETS_EVERY_LOOP=1` for all
of them, `HTA_WIDGETS_LOOPS=seed:count` for a sample).
"""

import itertools
import os
import random
from dataclasses import astuple
from pathlib import Path
from typing import get_args

import pandas as pd
import pytest

from hta_widgets import Scope, Trace, analysis
from hta_widgets.analysis.device_time.stretches import stretches
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.idle.causes import CAUSES
from tests.loops.program import Ahead, Between, Loop, Schedule, Truth, Where, simulated, truth, write

EVERY = [
    Loop(*axes)  # type: ignore[arg-type]
    for axes in itertools.product(
        get_args(Where),
        get_args(Between),
        get_args(Ahead),
        (1, 2, 8),
        (1, 3),
        get_args(Schedule),
        (1, 2, 3, 10),
    )
]
BATCH = 25
POINTS = 0.5
PARTS = ("compute_pct", "exposed_communication_pct", "exposed_memory_pct", "idle_pct")
# What the host does before it launches, and the cause of idle time that this is.
BETWEEN = {"loader": "data_stall_ns", "maths": "host_busy_ns", "sleep": "host_busy_ns"}
# Less idle time than this share says little about its cause: launches take as long.
TELLING_PCT = 8.0


def pairs(loop: Loop) -> set[tuple[tuple[int, object], ...]]:
    """Any two values of its axes."""
    return set(itertools.combinations(enumerate(astuple(loop)), 2))


def unlike() -> list[Loop]:
    """Loops in which any two values of two axes meet: each is there for two that have not met."""
    met: set[tuple[tuple[int, object], ...]] = set()
    chosen = []
    for loop in random.Random(36).sample(EVERY, len(EVERY)):
        if pairs(loop) - met:
            met |= pairs(loop)
            chosen.append(loop)
    return chosen


def batches() -> list[list[Loop]]:
    chosen = unlike()
    if os.environ.get("HTA_WIDGETS_EVERY_LOOP"):
        chosen = EVERY
    elif sample := os.environ.get("HTA_WIDGETS_LOOPS"):
        seed, count = map(int, sample.split(":"))
        chosen = random.Random(seed).sample(EVERY, count)
    return [chosen[first : first + BATCH] for first in range(0, len(chosen), BATCH)]


@pytest.mark.parametrize("loops", batches(), ids=lambda loops: f"from {EVERY.index(loops[0])}")
def test_what_is_said_of_a_loop_is_so(loops: list[Loop], tmp_path: Path) -> None:
    wrong, unsteady = [], 0
    for number, loop in enumerate(loops):
        runs = simulated(loop)
        truths = [true for run in runs if (true := truth(run))]
        if len(truths) < len(runs):  # then no recording of few steps can show it
            unsteady += 1
            continue
        trace = Trace.open(write(loop, runs, tmp_path / str(number)), cache=False)
        wrong += [f"{loop}: {each}" for each in faults(loop, truths, trace)]
    assert not wrong, "\n".join(wrong[:10])
    assert unsteady <= len(loops) / 10


def faults(loop: Loop, truths: list[Truth], trace: Trace) -> list[str]:
    """What is wrong in what is said of a program."""
    found = _not_adding_up(trace)
    inputs = Inputs(trace, Scope())
    if not inputs.announced:
        return [*found, "the steps are marked"]
    if len(set(trace.iterations["clock"])) != 1:
        found.append("one clock")
    if inputs.open_ended or inputs.contradicted:
        # of one step whose end nothing shows there is no steady state to read
        return found if loop.steps == 1 else [*found, f"{loop.steps} steps are recorded"]
    split = inputs.temporal.set_index("rank")
    idle = inputs.idle_at_all.set_index("rank")
    for rank, true in enumerate(truths):
        found += _wrong_times(analysis.step_times(trace), inputs, rank, true)
        found += [
            f"rank {rank} {part} {split.loc[rank, part]:.2f}, not {getattr(true, part):.2f}"
            for part in PARTS
            if abs(split.loc[rank, part] - getattr(true, part)) > POINTS
        ]
        found += _wrong_cause(loop, idle.loc[rank], rank, true)
    return found


def _not_adding_up(trace: Trace) -> list[str]:
    frame = stretches(trace)
    return [
        f"the stretches of rank {rank} do not add up"
        for rank in trace.ranks
        if frame.loc[frame["rank"] == rank, "dur_ns"].sum()
        != trace.rank(rank).extent[1] - trace.rank(rank).extent[0]
    ]


def _wrong_times(steps: pd.DataFrame, inputs: Inputs, rank: int, true: Truth) -> list[str]:
    own = steps[(steps["rank"] == rank) & steps["iteration"].isin(inputs.scope.iterations or ())]
    off = own[(own["dur_ns"] - 1_000 * true.period).abs() > POINTS / 100 * 1_000 * true.period]
    said = [
        f"rank {rank} step {row.iteration}: {row.dur_ns} ns, not {true.period} us" for row in off.itertuples()
    ]
    return [*said, *(["a steady step is called slow"] if own["outlier"].any() else [])]


def _wrong_cause(loop: Loop, idle: pd.Series, rank: int, true: Truth) -> list[str]:
    """The host's work between steps is the main cause of idle time, wherever its device waits for it."""
    if loop.between not in BETWEEN or true.idle_pct < TELLING_PCT or idle["idle_ns"] == 0:
        return []
    main = f"{max(CAUSES, key=lambda cause: idle[f'{cause}_ns'])}_ns"
    return (
        [] if main == BETWEEN[loop.between] else [f"rank {rank} idles by {main}, not {BETWEEN[loop.between]}"]
    )
