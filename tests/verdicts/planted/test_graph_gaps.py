"""Pauses of a device that replays graphs: no stream is to blame for what lies in a graph, or between two."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets.analysis.findings import overview
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import US, Program

PAUSE = 200 * US


def steps(body: Callable[[Program], None]) -> Program:
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            body(program)
            program.synchronise()
    return program


def between(program: Program) -> None:
    """Five replays are queued at once; the device pauses before each."""
    for _ in range(5):
        program.replay(10, 50 * US)
        program.free[7] += PAUSE
    program.free[7] -= PAUSE


def inside(program: Program) -> None:
    """The device pauses in the middle of each of five replays."""
    for _ in range(5):
        program.replay(10, 50 * US)
        for event in program.events[-5:]:
            before, _, digits = event["ts"].partition(".")
            event["ts"] = f"{int(before) + PAUSE // US}.{digits}"
        program.free[7] += PAUSE


def on_two_streams(program: Program) -> None:
    """No graphs: the work of a second stream waits for an event of the first."""
    for _ in range(5):
        program.launch(500 * US)
        program.launch(100 * US, stream=20, at=program.free[7] + PAUSE)
        program.free[7] = program.free[20]


def replays_of_two_streams(program: Program) -> None:
    """The same, and graphs without pauses beside it."""
    program.replay(2, 50 * US)
    on_two_streams(program)


def device_wait(program: Program, folder: Path) -> pd.Series:
    trace = program.open(folder)
    frame = overview(trace)
    found = frame[frame["topic"] == "device_wait"]
    assert not list(map(str, faults_of(trace, found)))
    return found.iloc[0]


@pytest.mark.parametrize(
    ("body", "text", "advice"),
    [
        (
            between,
            "% of it lies between replays of graphs",
            "Capture more of the work in one graph",
        ),
        (inside, "% of it lies inside replays of graphs", "wait for other nodes"),
    ],
)
def test_graphs(body: Callable[[Program], None], text: str, advice: str, tmp_path: Path) -> None:
    row = device_wait(steps(body), tmp_path)
    assert text in row["text"]
    assert advice in row["suggestion"] and "stream" not in row["suggestion"]


@pytest.mark.parametrize("body", [on_two_streams, replays_of_two_streams])
def test_streams(body: Callable[[Program], None], tmp_path: Path) -> None:
    row = device_wait(steps(body), tmp_path)
    assert "replays" not in row["text"] and "wait_stream" in row["suggestion"]


def test_without_launches_nothing_is_said_of_graphs(tmp_path: Path) -> None:
    program = steps(between)
    program.events = [event for event in program.events if event["name"] != "cudaGraphLaunch"]
    texts = overview(program.open(tmp_path))["text"]
    assert not texts.str.contains("replays of graphs").any()


def small_kernels(program: Program, ns: int = 4 * US) -> None:
    """Queued in time, and about as short as the way from one to the next."""
    program.launch(200 * US)
    for _ in range(100):
        program.launch(ns, call=US)


def in_a_graph(program: Program) -> None:
    program.launch(200 * US)
    program.replay(100, 4 * US)


def beside_a_graph(program: Program) -> None:
    small_kernels(program)
    program.replay(10, 50 * US)


@pytest.mark.parametrize(
    ("body", "saving"),
    [
        (small_kernels, "Simulated with runs of short kernels as graphs"),
        (in_a_graph, "most of it lies in graphs that are replayed already."),
        (beside_a_graph, "the program replays graphs already"),
    ],
)
def test_graphs_are_no_advice_where_they_are_replayed(
    body: Callable[[Program], None], saving: str, tmp_path: Path
) -> None:
    trace = steps(body).open(tmp_path)
    frame = overview(trace)
    found = frame[frame["topic"] == "tiny_kernels"]
    assert not list(map(str, faults_of(trace, found)))
    (row,) = found.to_dict("records")
    assert saving in row["saving"]
    without = body is small_kernels
    assert ("as graphs" in row["saving"]) is without is bool(row["risk"])
    assert ("inside replays of graphs" in row["text"]) is (body is in_a_graph)
    shown = " ".join(frame[["text", "saving", "suggestion", "risk", "needs"]].to_numpy().ravel())
    assert without or "CUDA graphs" not in shown
