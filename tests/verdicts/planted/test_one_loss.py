"""What is lost once is one finding: a step that writes a checkpoint, ranks whose hosts are late in turn."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets.analysis.findings import overview
from hta_widgets.analysis.findings.story import story
from hta_widgets.trace.model import Trace
from tests.claims.checking import faults_of
from tests.support import with_its_files
from tests.verdicts.planted.host_program import MS, US, Program
from tests.verdicts.planted.several_hosts import Hosts


def checked(trace: Trace) -> dict[str, pd.Series]:
    """The findings by topic; all that they claim is true."""
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    return {row["topic"]: row for _, row in frame.iterrows()}


def writes_checkpoint(program: Program, ns: int) -> None:
    """Parameters are copied to the host one by one, and written."""
    with program.inside("user_annotation", "save_checkpoint"):
        for _ in range(20):
            program.copy(MS, "Memcpy DtoH (Device -> Pageable)")
            program.synchronise(name="cudaStreamSynchronize")
            program.silence(ns // 20)


def with_checkpoint(at: int, ranks: int = 1) -> Hosts:
    """Ten steps, in one of which rank 0 writes a checkpoint."""
    hosts = Hosts(ranks)
    for number in range(1, 11):
        with hosts.step(number):
            hosts.compute(40, 200 * US)
            if ranks > 1:
                hosts.all_reduce(400 * US)
            if number == at:
                writes_checkpoint(hosts.ranks[0], 60 * MS)
            hosts.synchronise()
    return hosts


def test_a_step_that_writes_a_checkpoint_is_one_finding(tmp_path: Path) -> None:
    for ranks in (1, 3):
        folder = tmp_path / str(ranks)
        folder.mkdir()
        rows = checked(with_checkpoint(10, ranks).open(folder))  # the last: no other rank waits for it
        assert rows["slow_steps"]["part_of"] == ""
        assert {topic for topic, row in rows.items() if row["part_of"] == "slow_steps"} == {
            "idle_host",
            "memory_copies",
        }


def test_of_a_step_that_is_late_for_the_loader_the_loader_is_the_finding(tmp_path: Path) -> None:
    """It is known what is saved without the loader, and not what without the rest of the step."""
    hosts = Hosts(1)
    for number in range(1, 11):
        with hosts.step(number):
            hosts.ranks[0].load(40 * MS if number == 5 else 50 * US)
            hosts.compute(40, 200 * US)
            for _ in range(10 if number == 5 else 0):
                hosts.ranks[0].copy(MS, "Memcpy DtoH (Device -> Pageable)")
                hosts.ranks[0].synchronise(name="cudaStreamSynchronize")
            hosts.synchronise()
    trace = hosts.open(tmp_path)
    rows = checked(trace)
    assert rows["slow_steps"]["part_of"] == "data_stall"
    assert rows["data_stall"]["part_of"] == rows["memory_copies"]["part_of"] == ""
    assert "the data loader" in story(trace).headline


def in_turn(before: int = 0, mark: bool = True) -> Hosts:
    """Another of four ranks does something for 4 ms in each step; all of them do something before."""
    hosts = Hosts(4)
    for number in range(1, 13):
        late = hosts.ranks[(number * 7 + number // 3) % 4]
        for program in hosts.ranks:
            if before:
                program.operator("aten::embedding", before)
        late.operator("aten::tokenize", 4 * MS)
        with hosts.step(number) if mark else nullcontext():
            hosts.compute(20, 300 * US)
            hosts.all_reduce(300 * US)
            hosts.synchronise()
    return hosts


@cache
def late_in_turn(before: int) -> tuple[Trace, pd.DataFrame]:
    """Such a job, and what is found in it, all of which is true."""
    trace = with_its_files(in_turn(before).open)
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    return trace, frame


def test_hosts_that_are_late_in_turn_are_why_ranks_wait_in_turn() -> None:
    rows = late_in_turn(0)[1].set_index("topic").to_dict("index")
    assert rows["mutual_waiting"]["part_of"] == ""
    assert rows["idle_host"]["part_of"] == "mutual_waiting"
    assert rows["mutual_waiting"]["suggestion"].startswith("Look at what delays the hosts in turn")


@pytest.mark.parametrize(("before", "hosts_late"), [(0, True), (3 * MS, False)])
def test_waiting_in_turn_takes_nothing_from_compute(before: int, hosts_late: bool) -> None:
    """No rank computes longer: what is saved beyond waiting is idle time of the late ones, if that is why."""
    trace, frame = late_in_turn(before)
    topics = frame.set_index("topic")["part_of"]
    assert (topics["idle_host"] == "mutual_waiting") is hosts_late
    told = story(trace, frame=frame)
    rest = {part.lost_as: part.ns for part in told.parts if part.form == "rest"}
    assert rest["compute"] == 20 * 300 * US
    assert sum(part.ns for part in told.parts) == told.whole_ns


def test_hosts_that_are_late_together_are_another_finding() -> None:
    rows = late_in_turn(3 * MS)[1].set_index("topic").to_dict("index")
    assert rows["idle_host"]["part_of"] == rows["mutual_waiting"]["part_of"] == ""


def test_without_steps_the_exchanges_tell_who_is_late(tmp_path: Path) -> None:
    rows = checked(in_turn(mark=False).open(tmp_path))
    assert rows["idle_host"]["part_of"] == "mutual_waiting"
