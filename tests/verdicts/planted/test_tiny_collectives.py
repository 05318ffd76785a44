"""Programs with many small collectives: those that take latency and time are told, and no others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hta_widgets.analysis.findings import CHECKED, overview
from hta_widgets.trace.model import Trace
from tests.analysis.kineto_file import job
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import US, Program

LATENCY, GB_PER_S = 30 * US, 100
KERNELS = {
    "allreduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "_allgather_base": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
}
LARGE = tuple(size << 20 for size in (1, 2, 4, 8, 16))
STEPS = 6


class Rank(Program):
    """A program that sends."""

    sent = 0

    def send(self, size: int, operation: str = "allreduce", at: int = 0, slower: int = 1) -> None:
        """A message of this many bytes takes the latency and its time on the link."""
        self.sent += 1
        self.launch(
            slower * (LATENCY + size // GB_PER_S), KERNELS[operation], 20, at=at,
            **{
                "Collective name": operation, "Process Group Name": "0", "Group size": 2, "Seq": self.sent,
                "dtype": "BFloat16", "In msg nelems": size // 2, "Out msg nelems": size // 2,
            },
        )  # fmt: skip

    def alone(self) -> None:
        """What follows starts when all that was launched is done."""
        self.now = max([self.now, *self.free.values()])


def loop(body: Callable[[Rank], None]) -> Rank:
    program = Rank()
    for number in range(1, STEPS + 1):
        with program.step(number):
            program.launch(6_000 * US, "gemm")
            body(program)
            program.synchronise()
    return program


def beside(program: Rank, sizes: tuple[int, ...] = LARGE, operation: str = "allreduce") -> None:
    """Large messages that compute hides, of enough sizes to tell the latency."""
    for size in sizes:
        program.send(size, operation)


def many_small(program: Rank) -> None:
    beside(program)
    program.alone()
    for _ in range(20):
        program.send(4_096)


def many_gathers(program: Rank) -> None:
    beside(program, operation="_allgather_base")
    program.alone()
    for _ in range(20):
        program.send(4_096, "_allgather_base")


def few_small(program: Rank) -> None:
    beside(program)
    program.alone()
    for _ in range(9):
        program.send(4_096)


def small_but_hidden(program: Rank) -> None:
    beside(program)
    for _ in range(20):
        program.send(4_096)


def many_large(program: Rank) -> None:
    """As long as its latency on the link: joined they take half."""
    beside(program)
    program.alone()
    for _ in range(20):
        program.send(LATENCY * GB_PER_S)


def one_size(program: Rank) -> None:
    """Nothing tells latency from transfer."""
    for _ in range(20):
        program.send(4_096)
    program.alone()
    for _ in range(20):
        program.send(4_096)


def no_line(program: Rank) -> None:
    """Times that do not grow with the size."""
    for number, size in enumerate(LARGE):
        program.send(size, slower=(9, 1, 7, 2, 1)[number])
    program.alone()
    for _ in range(20):
        program.send(4_096)


def opened(program: Rank, folder: Path) -> Trace:
    return job(folder, program.events, program.events)


@pytest.mark.parametrize(
    ("body", "operation", "advice"),
    [
        (many_small, "allreduce", "Flatten them into one tensor"),
        (many_gathers, "allgather", "Gather one flattened tensor"),
    ],
)
def test_many_small_ones(body: Callable[[Rank], None], operation: str, advice: str, tmp_path: Path):
    frame = overview(opened(loop(body), tmp_path))
    (row,) = frame[frame["topic"] == "tiny_collectives"].to_dict("records")
    each = LATENCY + 4_096 // GB_PER_S
    assert row["cost_ns"] == STEPS * 20 * each
    assert f"20 {operation}s a step among 2 ranks send at most 4.00 KiB each" in row["text"]
    assert "of their transfer is latency (30.0 µs each)" in row["text"]
    assert advice in row["suggestion"]
    assert "bucket" not in row["suggestion"] and "FSDP" not in row["suggestion"]  # nothing wraps the model
    assert not row["method"]
    start, end = row["start_ns"], row["end_ns"]
    assert end - start == each  # one of them, whole


@pytest.mark.parametrize(("slower", "first"), [(1, "Start communication earlier, or"), (100, "Messages are")])
def test_large_messages_reach_some_bandwidth(slower: int, first: str, tmp_path: Path):
    """Where they take longer than all compute, nothing can hide them."""

    def body(program: Rank) -> None:
        program.alone()
        for _ in range(4):
            program.send(64 << 20, slower=slower)

    trace = opened(loop(body), tmp_path)
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    row = frame.set_index("topic").loc["exposed_communication"]
    reached = {1: "95.7 GB/s", 100: "957 MB/s"}[slower]
    assert f"(allreduce of 64.0 MiB or more) reach {reached} of bus bandwidth" in row["text"]
    assert row["suggestion"].startswith(first)
    assert "larger pieces" not in row["suggestion"] and "bf16" not in row["suggestion"]


def test_no_bandwidth_of_small_messages_or_a_lone_rank(tmp_path: Path):
    def body(program: Rank) -> None:
        program.alone()
        for _ in range(4):
            program.send(8 << 20)

    for name, events in (("small", [loop(body).events] * 2), ("lone", [loop(many_large).events])):
        (tmp_path / name).mkdir()
        frame = overview(job(tmp_path / name, *events))
        assert "exposed_communication" in set(frame["topic"])
        assert not frame["text"].str.contains("bus bandwidth").any()


@pytest.mark.parametrize("body", [few_small, small_but_hidden, many_large, one_size, no_line])
def test_near_misses(body: Callable[[Rank], None], tmp_path: Path):
    frame = overview(opened(loop(body), tmp_path))
    assert "tiny_collectives" not in set(frame["topic"])
    checked = frame.loc[frame["severity"] == CHECKED, "checked"].str.contains("tiny_collectives").any()
    assert checked == (body not in (one_size, no_line))


def test_a_lone_rank_does_not_tell(tmp_path: Path):
    """What its peer was not recorded for may be waiting."""
    frame = overview(job(tmp_path, loop(many_small).events))
    assert "tiny_collectives" not in set(frame["topic"])


@pytest.mark.parametrize(
    ("size", "count", "is_told"), [(8_192, 40, True), (4 << 20, 40, False), (8_192, 6, False)]
)
def test_small_messages_whose_latency_no_fit_tells(
    tmp_path: Path, size: int, count: int, is_told: bool
) -> None:
    """All are of one size, as where a program averages its gradients one by one."""

    def body(program: Rank) -> None:
        program.alone()
        for _ in range(count):
            program.send(size)

    trace = job(tmp_path, loop(body).events, loop(body).events)
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    rows = frame.set_index("topic")
    assert "tiny_collectives" not in rows.index
    if is_told or "exposed_communication" in rows.index:
        row = rows.loc["exposed_communication"]
        assert (f"{count} allreduces a step send at most 8.00 KiB each." in row["text"]) is is_told
        assert row["suggestion"].startswith("Flatten them into one tensor") is is_told


def test_small_messages_of_a_server_cannot_be_joined(tmp_path: Path) -> None:
    """Those of tensor parallelism lie between layers, also where graphs hide what launches them."""
    program = Rank()
    for _ in range(STEPS):
        with program.inside("user_annotation", "step[DECODE bs=1]"):
            for _ in range(20):
                program.launch(50 * US, "gemm")
                program.alone()
                program.send(4_096)
                program.alone()
            program.synchronise()
    trace = job(tmp_path, program.events, program.events)
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    row = frame.set_index("topic").loc["exposed_communication"]
    assert "20 allreduces a step send at most 4.00 KiB each" in row["text"]
    assert "all-reduces made for small messages" in row["suggestion"]
    assert "Flatten" not in row["suggestion"]
