"""Devices that another process has for slices of time, and programs that pause by themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hta_widgets.analysis.findings import overview
from tests.analysis.kineto_file import job
from tests.claims.checking import faults_of
from tests.first_lines import first_lines
from tests.verdicts.planted.host_program import GAP, MS, US, Program

PERIOD, SLICE = 5_000 * US, 2_400 * US


def sliced(marked: bool = True, sliced_kernels: bool = False) -> Program:
    """All work is queued early; of each 5 ms another process has 2.4 ms, in which none of ours begins.

    Where kernels are sliced, one that is on the device then ends that much later.
    """
    program, random = Program(), np.random.default_rng(7)
    for number in range(1, 9):
        if marked:
            with program.step(number):
                _work(program, random, sliced_kernels)
        else:
            _work(program, random, sliced_kernels)
    return program


def _work(program: Program, random: np.random.Generator, sliced_kernels: bool) -> None:
    for _ in range(40):
        took = int(random.integers(60, 400)) * US
        free = max(program.free.get(7, 0) + GAP, program.now)
        into = free % PERIOD
        if sliced_kernels and into < PERIOD - SLICE < into + took:
            took += SLICE
        at = free - into + PERIOD if into >= PERIOD - SLICE else 0
        program.launch(took, f"kernel_{int(random.integers(3))}", at=at, grid=[64, 1, 1], block=[256, 1, 1])
    program.synchronise()


def waits_at_one_place() -> Program:
    """In each step the same kernels wait for another stream, for equal times."""
    program = Program()
    for number in range(1, 9):
        with program.step(number):
            for place in range(20):
                at = program.free.get(7, 0) + SLICE if place in (7, 14) else 0
                program.launch(200 * US, at=at)
            program.launch(10 * US, stream=20)
            program.synchronise()
    return program


def waits_of_many_lengths() -> Program:
    """Queued work pauses anywhere, but for times of its own."""
    program, random = Program(), np.random.default_rng(3)
    for number in range(1, 9):
        with program.step(number):
            for _ in range(20):
                pause = int(random.integers(300, 9_000)) * US if random.random() < 0.2 else 0
                program.launch(200 * US, at=program.free.get(7, 0) + pause if pause else 0)
            program.launch(10 * US, stream=20)
            program.synchronise()
    return program


def a_few_holes() -> Program:
    """Too few to tell whether they are of one length."""
    program = Program()
    for number in range(1, 9):
        with program.step(number):
            for place in range(20):
                at = program.free.get(7, 0) + 8 * MS if number < 5 and place == 3 * number else 0
                program.launch(200 * US, at=at)
            program.synchronise()
    return program


def judged(program: Program, folder: Path) -> pd.DataFrame:
    trace = program.open(folder)
    found = overview(trace)
    assert not list(map(str, faults_of(trace, found[found["topic"] == "shared_device"])))
    return found


@pytest.mark.parametrize("marked", [True, False])
def test_slices_of_another_process(marked: bool, tmp_path: Path) -> None:
    found = judged(sliced(marked), tmp_path)
    row = found.set_index("topic").loc["shared_device"]
    assert "holes of about 2.29 ms" in row["text"] and "Likely another process" in row["text"]
    assert "nvidia-smi" in row["suggestion"] and "stream" not in row["suggestion"]
    assert row["share_pct"] == pytest.approx(45, abs=3)
    assert found.set_index("topic").loc["device_wait", "part_of"] == "shared_device"
    assert "another process" in first_lines(sliced(marked).open(tmp_path))


def test_of_two_ranks_the_one_whose_device_is_shared_is_named(tmp_path: Path) -> None:
    alone = Program()
    for number in range(1, 9):
        with alone.step(number):
            for _ in range(40):
                alone.launch(230 * US)
            alone.synchronise()
            alone.silence(8 * MS)
    trace = job(tmp_path, alone.events, sliced().events)
    row = overview(trace).set_index("topic").loc["shared_device"]
    assert row["text"].startswith("The device of rank 1 is idle") and row["rank"] == 1


def test_kernels_that_are_sliced_are_told_beside_it(tmp_path: Path) -> None:
    text = judged(sliced(sliced_kernels=True), tmp_path).set_index("topic")["text"].get("shared_device", "")
    assert not text or "Equal launches of kernel_" in text


@pytest.mark.parametrize("program", [waits_at_one_place, waits_of_many_lengths, a_few_holes])
def test_other_pauses_are_the_programs(program: Callable[[], Program], tmp_path: Path) -> None:
    found = judged(program(), tmp_path)
    assert "shared_device" not in set(found["topic"]) and "device_wait" in set(found["topic"])
