"""Calls to a device are recorded, and its events are lost: what the host does is said, and no more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets.analysis.findings import overview
from hta_widgets.analysis.findings.story import story
from hta_widgets.trace.model import Trace
from tests.analysis.kineto_file import event
from tests.claims.checking import faults_of
from tests.first_lines import first_lines
from tests.support import shared_input
from tests.verdicts.planted.host_program import MS, US, Program

Body = Callable[[Program], None]
TOPICS = {"host_self_time", "host_allocations", "host_copies", "host_waits", "host_launches", "host_set_up"}


def lost(body: Body, times: int = 20, steps: bool = False) -> Program:
    """A host that launches work, whose device events are lost, and does something else."""
    program = Program()
    for number in range(times):
        if steps:
            with program.step(number):
                body(program)
        else:
            body(program)
    program.events = [each for each in program.events if each["cat"] not in ("kernel", "gpu_memcpy")]
    return program


def launches(program: Program, kernels: int = 10) -> None:
    for _ in range(kernels):
        with program.inside("cpu_op", "aten::mul"):
            program.silence(5 * US)
            program.launch(20 * US)


def allocates(program: Program) -> None:
    launches(program)
    with program.inside("cpu_op", "aten::empty"):
        program.driver("cudaMalloc", 2 * MS)
    program.driver("cudaFree", MS)


def copies(program: Program) -> None:
    launches(program)
    program.driver("cudaMemcpyAsync", 2 * MS)


def waits(program: Program) -> None:
    launches(program)
    program.driver("cudaStreamSynchronize", 2 * MS)


def computes(program: Program) -> None:
    launches(program)
    with program.inside("cpu_op", "aten::randn"):
        program.silence(5 * US)
        program.operator("aten::normal_", 3 * MS)


def sets_up(program: Program) -> None:
    program.driver("cudaDeviceGetStreamPriorityRange", 50 * MS)
    launches(program, 100)


def judged(trace: Trace) -> pd.DataFrame:
    found = overview(trace)
    assert not list(map(str, faults_of(trace, found)))
    return found


@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize(
    ("body", "topic", "name", "share"),
    [
        (allocates, "host_allocations", "cudaMalloc", 97),
        (copies, "host_copies", "cudaMemcpyAsync", 97),
        (waits, "host_waits", "cudaStreamSynchronize", 97),
        (computes, "host_self_time", "aten::normal_", 99),
    ],
)
def test_what_the_host_does_most_comes_first(
    body: Body, topic: str, name: str, share: float, steps: bool, tmp_path: Path
) -> None:
    trace = lost(body, steps=steps).open(tmp_path)
    found = judged(trace)
    said = story(trace, None, found)
    first = found.iloc[0]
    assert (
        first["topic"] == topic
        and name in first["text"]
        and first["share_pct"] == pytest.approx(share, abs=3)
    )
    assert first["places"] and pd.notna(first["event_id"]) and pd.isna(first["saving_ns"])
    assert said.advice[0].topic == topic and said.advice[0].places and said.whole_ns
    assert sum(part.ns for part in said.parts) == said.whole_ns
    assert " of it is due to " in said.headline and "is unknown" not in first_lines(trace, found)
    unknown = " ".join(found.loc[found["severity"] == "open", "text"])
    assert "launches recorded, but no device events" in unknown
    assert "update the driver" in " ".join(found["suggestion"])
    assert "activities=[" not in " ".join(found["suggestion"])  # the device was recorded


def test_the_data_loader_is_told_beside_the_calls(tmp_path: Path) -> None:
    """The near miss loads in another thread, for which nobody waits."""

    def loads(program: Program) -> None:
        launches(program)
        program.load(2 * MS)

    row = judged(lost(loads, steps=True).open(tmp_path)).iloc[0]
    assert row["topic"] == "host_loading" and row["share_pct"] == pytest.approx(95, abs=4)
    program = lost(waits, steps=True)
    name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    program.events.append(event("user_annotation", name, 100 * US, 5 * MS, tid=9))
    (tmp_path / "thread").mkdir()
    assert "host_loading" not in set(judged(program.open(tmp_path / "thread"))["topic"])


def test_a_call_that_another_of_the_same_times_fills_is_none_of_its_own(tmp_path: Path) -> None:
    """As of clocks that hardly tell: the launch has no time that is its own, and nothing is said of it."""
    program = lost(copies)
    launch = next(each for each in program.events if each["name"] == "cudaLaunchKernel")
    program.events = [each for each in program.events if each["name"] != "cudaLaunchKernel"] + [launch]
    program.events.append({**launch, "name": "cudaStreamIsCapturing"})
    found = judged(program.open(tmp_path))
    assert "host_copies" in found["topic"].tolist() and "host_launches" not in found["topic"].tolist()


def test_set_up_is_told_apart_from_launches(tmp_path: Path) -> None:
    found = judged(lost(sets_up, 1).open(tmp_path)).set_index("topic")
    assert found.index[0] == "host_set_up"
    assert found.loc["host_set_up", "cost_ns"] == 50 * MS


def test_with_device_events_the_device_is_judged(tmp_path: Path) -> None:
    """The near miss: the same program with all its events."""
    program = Program()
    for _ in range(20):
        allocates(program)
    assert not TOPICS & set(overview(program.open(tmp_path))["topic"])


def test_without_any_call_to_a_device_it_abstains(tmp_path: Path) -> None:
    """Operators alone tell nothing of a device that may have been waited for."""
    program = lost(copies)
    program.events = [each for each in program.events if each["cat"] == "cpu_op"]
    assert not TOPICS & set(overview(program.open(tmp_path))["topic"])


def test_under_a_profiler_of_counters_it_abstains(tmp_path: Path) -> None:
    """It replays kernel by kernel, and the calls of the host take as long."""
    program = lost(copies)
    program.events.append(event("cuda_profiler_range", "gemm", 100 * US, MS))
    assert not TOPICS & set(overview(program.open(tmp_path))["topic"])


def test_where_the_host_does_nothing_for_long_it_abstains(tmp_path: Path) -> None:
    program = lost(lambda program: (launches(program, 1), program.silence(20 * MS))[0])
    trace = program.open(tmp_path)
    found = overview(trace)
    assert not TOPICS & set(found["topic"])
    assert "no device events" in first_lines(trace, found)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("alloc_heavy_a40", "59.5 ms in all; 42.7 ms of it is due to allocations by the driver"),
        ("wsl_rows_lost", "4.87 s in all; 3.64 s of it is due to running aten::normal_ on the host"),
        ("trace0_2080ti", "4.71 ms per step; 4.39 ms of it is due to blocking copies"),
    ],
)
def test_recordings(name: str, said: str) -> None:
    trace = Trace.open(shared_input(f"recordings/{name}"), cache=False)
    assert said in first_lines(trace, judged(trace))
