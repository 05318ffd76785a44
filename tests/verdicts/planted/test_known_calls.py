"""Hosts that search for unused parameters or save files: while devices wait, or while they work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.story import story
from hta_widgets.trace.model import Trace
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import MS, US, Program
from tests.verdicts.planted.several_hosts import Hosts

SEARCH = "cpu_op", "torch.distributed.ddp.reducer::search_unused_parameters"
SAVE = "python_function", "torch/serialization.py(943): save"
TOPICS = {"unused_parameters", "checkpoints"}


def told(trace: Trace) -> dict[str, dict[str, Any]]:
    frame = overview(trace)
    assert not list(map(str, faults_of(trace, frame)))
    return {str(row["topic"]): row for row in frame.to_dict("records")}


def steps(call: tuple[str, str], host_ns: int, device_ns: int, every: int = 1, copy_ns: int = 0) -> Program:
    """Ten steps of 10 ms on the device, behind which a call takes the host so long, in every so many."""
    program = Program()
    for number in range(1, 11):
        with program.step(number):
            program.operator("torch.distributed.ddp.reducer::copy_bucket_to_grad", 5 * US)
            program.launch(device_ns)
            if number % every == 0:
                with program.inside(*call):
                    if copy_ns:
                        program.synchronise()
                        program.copy(copy_ns, "Memcpy DtoH (Device -> Pageable)")
                        program.synchronise()
                    program.silence(host_ns)
            program.operator("aten::mm", 5 * US)
            program.launch(device_ns)
            program.synchronise()
    return program


def test_the_search_for_unused_parameters_is_named(tmp_path: Path) -> None:
    trace = steps(SEARCH, 9 * MS, 5 * MS).open(tmp_path)
    rows = told(trace)
    row = rows["unused_parameters"]
    assert row["cost_ns"] == pytest.approx(10 * 4 * MS, rel=0.02)  # 5 of 9 ms pass while the device works
    assert row["saving_ns"] == pytest.approx(10 * 4 * MS, rel=0.05) and row["section"] == "saves"
    assert rows["idle_host"]["part_of"] == "unused_parameters"
    assert story(trace).headline.endswith("it could be 10.0 ms without DDP's search for unused parameters")


def test_files_that_are_saved_are_named(tmp_path: Path) -> None:
    """Time of the device in which it only copies counts, too."""
    trace = steps(SAVE, 60 * MS, 5 * MS, every=4, copy_ns=20 * MS).open(tmp_path)
    rows = told(trace)
    assert rows["checkpoints"]["cost_ns"] == pytest.approx(2 * 80 * MS, rel=0.02)
    assert "async_save" in rows["checkpoints"]["suggestion"]


@pytest.mark.parametrize(
    ("call", "host_ns"),
    [
        (SEARCH, 4 * MS),  # the device works meanwhile
        (SAVE, 4 * MS),
        (("python_function", "my/serialization.py(943): save"), 9 * MS),  # no function of PyTorch
        (("cpu_op", "torch.distributed.ddp.reducer::mul_out"), 9 * MS),
    ],
)
def test_what_costs_nothing_or_is_another_call(tmp_path: Path, call: tuple[str, str], host_ns: int) -> None:
    assert not TOPICS & told(steps(call, host_ns, 5 * MS).open(tmp_path)).keys()


def test_a_rank_that_saves_is_late_for_that(tmp_path: Path) -> None:
    hosts = Hosts(4)
    for number in range(1, 11):
        with hosts.step(number):
            hosts.compute(10, 500 * US)
            if number % 4 == 0:
                hosts.ranks[0].synchronise()
                with hosts.ranks[0].inside(*SAVE):
                    hosts.ranks[0].silence(60 * MS)
                hosts.ranks[0].launch(500 * US)
            hosts.all_reduce(200 * US)
            hosts.synchronise()
    trace = hosts.open(tmp_path)
    rows = told(trace)
    assert rows["straggler"]["rank"] == 0 and rows["checkpoints"]["part_of"] == "straggler"
    screen = story(trace)
    assert screen.headline.endswith("the late rank 0 (saving checkpoints)")
    assert "async_save" in screen.advice[0].todo and screen.advice[0].needs.startswith("Memory of the")
    # twice 60 ms in 10 steps: three ranks wait in the all-reduce, and the late one is idle
    assert screen.parts[0].ns == pytest.approx(12 * MS, rel=0.05)
