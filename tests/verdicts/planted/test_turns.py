"""Processes with two devices, which work in turn or at the same time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.story import story
from hta_widgets.trace.model import Trace
from tests.analysis.kineto_file import write
from tests.verdicts.planted.devices import H100, opened
from tests.verdicts.planted.host_program import US, Program

STREAMS = (7, 8)  # one for each device


def steps(in_turn: bool, kernels: tuple[int, int] = (10, 10)) -> Program:
    """On each device so many kernels of 500 us in a step: those of the second behind the first's, or not."""
    program = Program()
    for number in range(1, 6):
        with program.step(number):
            for stream, often in zip(STREAMS, kernels, strict=True):
                behind = max(program.free.values(), default=0) if in_turn else 0
                for _ in range(often):
                    program.launch(500 * US, stream=stream, at=behind)
            program.synchronise()
    for event in program.events:
        if event["args"].get("stream") == STREAMS[1]:
            event["args"]["device"] = event["pid"] = 1
    return program


def test_devices_that_work_in_turn_do_not_compute_all_the_time(tmp_path: Path) -> None:
    rows = overview(opened(tmp_path, steps(True), H100)).set_index("topic")
    assert "compute_bound" not in rows.index
    found = rows.loc["devices_in_turn"]
    assert found["share_pct"] == pytest.approx(50, abs=0.5) and found["cost_ns"] == 5 * 5_000 * US
    assert "computes on 2 devices" in found["text"] and found["section"] == "unknown"


def test_what_devices_lose_in_turn_is_time_in_which_another_computes(tmp_path: Path) -> None:
    found = story(opened(tmp_path, steps(True), H100))
    assert "is due to" in found.headline and "nothing to save" not in found.headline
    part = found.parts[0]
    assert part.lost_as == "compute" and part.ns == pytest.approx(found.whole_ns / 2, rel=0.01)
    assert "left of" not in found.advice[0].label


@pytest.mark.parametrize("devices", [2, 1])
def test_devices_of_a_process_exchange_with_each_other(devices: int, tmp_path: Path) -> None:
    """DataParallel broadcasts parameters and reduces gradients: there is no other rank to record."""
    program = Program()
    for number in range(1, 6):
        with program.step(number):
            for stream in STREAMS[:devices]:
                program.launch(1_000 * US, "ncclDevKernel_Broadcast_RING_LL(int)", stream=stream + 20)
                behind = program.free[stream + 20]
                for _ in range(5):
                    program.launch(500 * US, stream=stream, at=behind)
            program.synchronise()
    for event in program.events:
        if event["args"].get("stream") in (STREAMS[1], STREAMS[1] + 20):
            event["args"]["device"] = event["pid"] = 1
    path = write(tmp_path / "trace.json", program.events)
    content = json.loads(path.read_text())
    path.write_text(json.dumps({"traceEvents": content["traceEvents"]}))  # of one process, no job
    rows = overview(Trace.open(path, cache=False)).set_index("topic")
    found = rows.loc["exposed_communication"]
    alone = devices == 1
    assert found["suggestion"].startswith("Record all ranks first") is alone
    assert ("DistributedDataParallel" in found["suggestion"]) is not alone
    assert ("waiting for other ranks included" in found["text"]) is alone
    assert rows["text"].str.contains("no record of the partners").any() == alone


@pytest.mark.parametrize("in_turn", [False, True], ids=["at the same time", "hardly on the second device"])
def test_devices_that_work_together_compute(tmp_path: Path, in_turn: bool) -> None:
    program = steps(in_turn, (40, 1) if in_turn else (10, 10))
    rows = overview(opened(tmp_path, program, H100)).set_index("topic")
    assert "devices_in_turn" not in rows.index
    assert rows.loc["compute_bound", "share_pct"] > 99
