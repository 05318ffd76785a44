"""Programs of kinds that jobs have, each with what an expert reads from its events, and the first screen."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets.analysis.findings import overview
from hta_widgets.analysis.findings.story import Story, story
from hta_widgets.trace.model import Trace
from tests.analysis.kineto_file import event
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import MS, US, Program
from tests.verdicts.planted.several_hosts import Hosts

TO_HOST, TO_DEVICE = "Memcpy DtoH (Device -> Pinned)", "Memcpy HtoD (Pinned -> Device)"


def accumulated_gradients() -> Hosts:
    """Three of four micro-batches exchange nothing; the exchange of the fourth is exposed: 9 of 106 ms."""
    hosts = Hosts(2)
    for number in range(1, 13):
        with hosts.step(number):
            hosts.compute(40, 200 * US)
            if number % 4 == 0:
                hosts.all_reduce(3 * MS)
                hosts.compute(4, 300 * US, "adam")
    hosts.synchronise()
    return hosts


def validation_in_a_step() -> Hosts:
    """One step of 12 ends in 30 more forward passes, which take 57 ms; each waits for its batch."""
    hosts = Hosts(1)
    for number in range(1, 13):
        with hosts.step(number):
            hosts.compute(45, 200 * US)
            if number == 8:
                with hosts.ranks[0].inside("user_annotation", "validate"):
                    for _ in range(30):
                        hosts.ranks[0].load(400 * US)
                        hosts.compute(10, 150 * US)
                        hosts.synchronise()
            hosts.synchronise()
    return hosts


def two_models() -> Hosts:
    """A generator and a discriminator: the device is busy all along, the host only waits for it."""
    hosts = Hosts(1)
    for number in range(1, 9):
        with hosts.step(number):
            for name in ("Adam.D", "Adam.G"):
                hosts.compute(30, 200 * US)
                with hosts.ranks[0].inside("user_annotation", f"Optimizer.step#{name}"):
                    hosts.compute(20, 20 * US, "adam")
                with hosts.ranks[0].inside("cpu_op", "aten::item"):
                    hosts.ranks[0].copy(2 * US, "Memcpy DtoH (Device -> Pageable)")
                    hosts.ranks[0].synchronise(name="cudaStreamSynchronize")
    return hosts


def offloaded_activations(own_stream: bool = True) -> Hosts:
    """Pinned copies of 400 us on streams of their own hide behind kernels of 200 us only in part."""
    hosts, there, back = Hosts(1), 20 if own_stream else 7, 21 if own_stream else 7
    program = hosts.ranks[0]
    for number in range(1, 9):
        with hosts.step(number):
            for _ in range(12):
                program.launch(200 * US)
                program.copy(400 * US, TO_HOST, stream=there, at=program.free[7])
            program.free[7] = program.free[there]
            for _ in range(12):
                program.copy(400 * US, TO_DEVICE, stream=back)
                program.launch(300 * US, "dgrad", at=program.free[back])
            program.synchronise()
    return hosts


def offloaded_in_turn() -> Hosts:
    """The same on the stream of the kernels."""
    return offloaded_activations(own_stream=False)


def pinned_by_a_thread() -> Hosts:
    """A thread pins memory all the time, which costs nothing; the batch is copied before all else."""
    hosts = Hosts(1)
    program = hosts.ranks[0]
    for number in range(1, 9):
        with hosts.step(number):
            begin = program.now
            program.load(40 * US)
            program.copy(300 * US, TO_DEVICE)
            hosts.compute(40, 200 * US)
            hosts.synchronise()
        program.events.append(event("cpu_op", "aten::pin_memory", begin, program.now - begin, tid=2))
    return hosts


def one_slower_device() -> Hosts:
    """All kernels of rank 3 take 1.4 times as long."""
    hosts = Hosts(4)
    for number in range(1, 9):
        with hosts.step(number):
            for rank, program in enumerate(hosts.ranks):
                for _ in range(30):
                    program.operator("aten::mm", 10 * US)
                    program.launch(280 * US if rank == 3 else 200 * US)
            hosts.all_reduce(300 * US)
            hosts.synchronise()
    return hosts


def recorded_twice() -> Hosts:
    """The profiler looks at three steps, and at three more much later: nothing is lost between."""
    hosts = Hosts(1)
    for number in (10, 11, 12, 30, 31, 32):
        with hosts.step(number):
            hosts.compute(40, 200 * US)
            hosts.synchronise()
        hosts.ranks[0].now += 400 * MS * (number == 12)
    return hosts


def graphs_and_eager() -> Hosts:
    """A graph of 2 ms, and behind it 40 short kernels, which the host has launched long before."""
    hosts = Hosts(1)
    for number in range(1, 9):
        with hosts.step(number):
            hosts.ranks[0].replay(20, 100 * US)
            hosts.compute(40, 5 * US, "mul")
            hosts.synchronise()
    return hosts


def rollouts() -> Hosts:
    """Sixty tokens are generated in short kernels, at the pace of the host; then 9 ms of training."""
    hosts = Hosts(1)
    program = hosts.ranks[0]
    for number in range(1, 6):
        with hosts.step(number):
            with program.inside("user_annotation", "rollout"):
                for _ in range(60):
                    for _ in range(8):
                        program.operator("aten::linear", 30 * US)
                        program.launch(12 * US, "gemv")
                    with program.inside("cpu_op", "aten::item"):
                        program.copy(US, "Memcpy DtoH (Device -> Pageable)")
                        program.synchronise(name="cudaStreamSynchronize")
            hosts.compute(30, 300 * US)
            hosts.synchronise()
    return hosts


def parameters_from_the_host() -> Hosts:
    """Parameters are copied from pageable memory before each layer: 8 of 12.5 ms."""
    hosts = Hosts(2)
    for number in range(1, 9):
        with hosts.step(number):
            for _ in range(8):
                for program in hosts.ranks:
                    program.copy_pageable(MS, 6_000_000)
                hosts.compute(2, 250 * US)
            hosts.all_reduce(300 * US)
            hosts.synchronise()
    return hosts


Read = Callable[[Callable[[], Hosts]], tuple[Trace, pd.DataFrame, Story]]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    """The recording of a program, what is found in it, and its first screen."""

    @cache
    def of(program: Callable[[], Hosts]) -> tuple[Trace, pd.DataFrame, Story]:
        trace = program().open(tmp_path_factory.mktemp("job"))
        frame = overview(trace)
        return trace, frame, story(trace, frame=frame)

    return of


def advice(told: Story, topic: str) -> str:
    return next(each.todo for each in told.advice if each.topic == topic)


@pytest.mark.parametrize(
    ("program", "headline"),
    [
        (accumulated_gradients, r"8\.80 ms per step; .* 93\.\d % of it; .* 8\.2\d ms .* exposed comm.*"),
        (validation_in_a_step, r"13\.\d ms per step; 4\.\d+ ms of it is due to unusually long steps.*"),
        (two_models, r"12\.\d ms per step; nothing to save .* computes 9\d\.\d % of it, .+"),
        (offloaded_activations, r"8\.\d+ ms per step; .* [56]\.\d+ ms at best without exposed copies.*"),
        (pinned_by_a_thread, r"8\.\d+ ms per step; .* 95\.\d % of it; .* 8\.\d+ ms .* exposed copies.*"),
        (one_slower_device, r"8\.75 ms per step; .* 6\.\d+ ms at best without rank 3's slow kernels.*"),
        (recorded_twice, r"8\.\d+ ms per step; nothing to save .* computes 99\.\d % of it, mostly gemm"),
        (graphs_and_eager, r"2\.\d+ ms per step; nothing to save .* computes 9\d\.\d % of it, .+"),
        (rollouts, r"2\d\.\d ms per step; it could be 1\d\.\d ms .*without kernels launched .*"),
        (parameters_from_the_host, r"12\.5 ms per step; .* 4\.\d+ ms at best without exposed copies.*"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)  # fmt: skip
def test_the_first_screen_says_what_an_expert_reads(
    program: Callable[[], Hosts], headline: str, read: Read
) -> None:
    trace, frame, told = read(program)
    assert re.fullmatch(headline, told.headline)
    assert not list(faults_of(trace, frame))


def test_what_steps_take_longer_for_is_told_once(read: Read) -> None:
    frame = read(accumulated_gradients)[1].set_index("topic")
    assert frame.loc["slow_steps", "part_of"] == "exposed_communication"


def test_a_step_that_computes_more_stands_by_itself(read: Read) -> None:
    frame = read(validation_in_a_step)[1].set_index("topic")
    assert frame.loc["slow_steps", "part_of"] == ""
    assert "300 kernels more" in frame.loc["slow_steps", "text"]


@pytest.mark.parametrize("inside", ["evaluate", "everything", "half"])
def test_the_region_that_makes_steps_long_is_named(inside: str, tmp_path: Path) -> None:
    """One that only long steps have, not one that every step has, or that holds less than half of it."""
    program = Program()
    for number in range(1, 9):
        with program.step(number), program.inside("user_annotation", "everything"):
            for _ in range(30):
                program.operator("aten::mm", 5 * US)
                program.launch(100 * US)
            program.synchronise()
            if number == 6:
                with (
                    program.inside("user_annotation", "evaluate") if inside != "everything" else nullcontext()
                ):
                    for _ in range(120 if inside != "half" else 40):
                        program.launch(100 * US)
                    program.synchronise()
                if inside == "half":
                    for _ in range(80):
                        program.launch(100 * US)
                    program.synchronise()
    trace = program.open(tmp_path)
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    row = frame.set_index("topic").loc["slow_steps"]
    assert ("Most of that lies in evaluate." in row["text"]) is (inside == "evaluate")
    assert ("(mostly evaluate)" in story(trace).headline) is (inside == "evaluate")
    assert "everything" not in row["text"]
    assert ("Look at evaluate in these steps." in row["suggestion"]) is (inside == "evaluate")
    if inside == "evaluate":
        false = frame["claims"].str.replace('"evaluate"', '"no_such_region"')
        assert faults_of(trace, frame.assign(claims=false))


def test_copies_that_are_ahead_already_are_not_to_be_copied_ahead(read: Read) -> None:
    for own_stream, program in ((True, offloaded_activations), (False, offloaded_in_turn)):
        told = advice(read(program)[2], "memory_copies")
        assert ("have a stream of their own and" in told) == own_stream


def test_the_bar_takes_a_slow_step_from_what_it_does_longer(read: Read) -> None:
    _, _, told = read(validation_in_a_step)
    at = next(at for at, each in enumerate(told.advice) if each.topic == "slow_steps")
    assert [(part.lost_as, part.ns > 4 * MS) for part in told.parts if part.finding == at] == [
        ("compute", True)
    ]


@pytest.mark.parametrize(
    ("host_us", "loads_ms", "said"),
    [
        (400, 0, "Host-bound: the GPU is idle for "),
        (120, 0, "The GPU is idle for "),
        (5, 12, "The GPU is idle for "),  # for data
    ],
)
def test_a_device_that_mostly_waits_for_the_host_is_host_bound(
    tmp_path: Path, host_us: int, loads_ms: int, said: str
) -> None:
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            program.load(loads_ms * MS)
            for _ in range(40):
                program.operator("aten::mm", host_us * US)
                program.launch(100 * US)
            program.synchronise()
    assert story(program.open(tmp_path)).limits.startswith(said)


def test_changes_that_are_not_named_are_counted(tmp_path: Path) -> None:
    program = Program()
    for number in range(1, 9):
        with program.step(number):
            program.load(5 * MS)
            program.copy_pageable(4 * MS, 6_000_000)
            program.synchronise()
            with program.inside("user_annotation", "Optimizer.step#Adam.step"):
                for _ in range(40):
                    program.operator("aten::add_", 100 * US)
                    program.launch(10 * US, "adam")
            program.synchronise()
            for _ in range(50):
                program.operator("aten::mm", 5 * US)
                program.launch(200 * US)
            program.synchronise()
    trace = program.open(tmp_path)
    said = r".* could be .* at best without the data loader and exposed copies, and 1 more change"
    assert re.fullmatch(said, story(trace).headline)
    assert not list(faults_of(trace, overview(trace)))
