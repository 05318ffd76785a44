"""The simulated machine, against times that are computed by hand. All times are in us."""

from __future__ import annotations

import pytest

from tests.replay.planted import changes
from tests.replay.planted.author import US
from tests.replay.planted.machine import BEGIN_NS, Run, run
from tests.replay.planted.program import (
    DEVICE,
    MAIN,
    Allocate,
    Enter,
    HandOver,
    Kind,
    Launch,
    Leave,
    Operation,
    Program,
    Record,
    Spend,
    Synchronise,
    Wait,
    Work,
)


def work(ns: int, stream: int = 7, name: str = "gemm", kind: Kind = "compute") -> Work:
    return Work(kind, name, ns * US, stream, latency_ns=6 * US, gap_ns=1 * US)


def launch(ns: int, stream: int = 7, name: str = "gemm", kind: Kind = "compute") -> Launch:
    return Launch("cudaLaunchKernel", 4 * US, (work(ns, stream, name, kind),))


def executed(found: Run) -> list[tuple[int, int]]:
    return [((done.begin - BEGIN_NS) // US, (done.end - BEGIN_NS) // US) for done in found.work]


def called(found: Run) -> list[tuple[int, int]]:
    return [((call.begin - BEGIN_NS) // US, (call.end - BEGIN_NS) // US) for call in found.calls]


def program(*operations: Operation, queue: int = 1024) -> Program:
    return Program(operations, queue)


WAITS_ONCE = program(
    Spend(10 * US),
    launch(100),
    Synchronise("cudaStreamSynchronize", 2 * US, 3 * US, stream=7),
    Spend(5 * US),
)
TWO_STREAMS = program(
    launch(100),
    Record(1, stream=7, own_ns=1 * US),
    Wait(1, stream=20, own_ns=1 * US),
    launch(50, 20, "nccl", "communication"),
    launch(30),
    Record(2, stream=20, own_ns=1 * US),
    Wait(2, stream=7, own_ns=1 * US),
    launch(10),
)
BLOCKS = program(
    Launch("cudaMemcpyAsync", 5 * US, (work(20, kind="copy"),), blocking=True, tail_ns=3 * US),
    launch(50),
    Allocate("cudaFree", 10 * US, waits=True),
    HandOver(2, 20 * US),
    Spend(5 * US),
)


def test_a_kernel_starts_after_its_latency_and_a_wait_returns_after_the_kernel() -> None:
    found = run(WAITS_ONCE)
    assert executed(found) == [(16, 116)]
    assert called(found) == [(10, 14), (14, 119)]
    assert found.extent_ns == 124 * US
    assert found.path() == {"host": 15 * US, "launch": 6 * US, "compute": 100 * US, "return": 3 * US}


def test_streams_wait_for_events_and_not_for_what_comes_after_them() -> None:
    found = run(TWO_STREAMS)
    assert executed(found) == [(6, 106), (107, 157), (107, 137), (158, 168)]
    assert called(found)[-1] == (16, 20)  # the host waits for none of it
    assert found.path() == {"launch": 6 * US, "compute": 110 * US, "communication": 50 * US, "gap": 2 * US}


def test_a_launch_waits_for_a_place_in_the_queue() -> None:
    found = run(program(launch(100), launch(100), launch(100), queue=2))
    assert called(found) == [(0, 4), (4, 8), (8, 110)]
    assert executed(found) == [(6, 106), (107, 207), (208, 308)]


def test_a_blocking_copy_waits_for_itself_and_a_free_for_the_device() -> None:
    found = run(BLOCKS)
    assert called(found) == [(0, 29), (29, 33), (33, 95)]
    assert executed(found) == [(6, 26), (35, 85)]
    assert found.extent_ns == 120 * US


def test_a_graph_is_one_launch() -> None:
    found = run(program(Launch("cudaGraphLaunch", 40 * US, (work(5), work(8))), Spend(1 * US)))
    assert executed(found) == [(6, 11), (12, 20)]
    assert called(found) == [(0, 40)]


def test_a_wait_for_an_event_is_not_for_what_was_launched_later() -> None:
    found = run(
        program(
            launch(20),
            Record(1, stream=7, own_ns=1 * US),
            launch(500),
            Synchronise("cudaEventSynchronize", 2 * US, 3 * US, event=1),
        )
    )
    assert called(found)[-1] == (9, 29)
    assert executed(found) == [(6, 26), (27, 527)]


@pytest.mark.parametrize(
    ("change", "before", "extent"),
    [
        (changes.host(0), WAITS_ONCE, 6 + 100 + 3),
        (changes.host(2), WAITS_ONCE, 20 + 6 + 100 + 3 + 10),
        (changes.launches(0), WAITS_ONCE, 124),
        (changes.kernels(2), WAITS_ONCE, 74),
        (changes.kernels(2, "nccl*"), WAITS_ONCE, 124),
        (changes.kernels(float("inf")), WAITS_ONCE, 24),
        (changes.syncs(), WAITS_ONCE, 116),
        (changes.syncs("cudaEvent*"), WAITS_ONCE, 124),
        (changes.communication(0), TWO_STREAMS, 6 + 100 + 1 + 30 + 1 + 10),
        (changes.communication(2), TWO_STREAMS, 107 + 100 + 1 + 10),
        (changes.kernels(2), TWO_STREAMS, 6 + 50 + 1 + 50 + 1 + 5),
        (changes.copies(2), BLOCKS, 110),
        (changes.copies(0.5), BLOCKS, 140),
        # The copy is done at 26, the kernel at 77; the host at 5 + 4 + 10 + 20 + 5.
        (changes.syncs(), BLOCKS, 77),
        # The host is at 33 + 0 + 20 + 5, the device at 85.
        (changes.allocator(), BLOCKS, 85),
        (changes.launches(0), BLOCKS, 29 + 6 + 50 + 10 + 20 + 5),
        (changes.host(0), BLOCKS, 29 + 6 + 50),
        (changes.together(changes.allocator(), changes.kernels(5)), BLOCKS, 29 + 4 + 20 + 5),
    ],
)  # fmt: skip
def test_what_a_change_does(change: changes.Change, before: Program, extent: int) -> None:
    assert run(change(before)).extent_ns == extent * US


def test_time_is_taken_out_of_the_outermost_range_of_a_name() -> None:
    before = program(
        Spend(7 * US),
        Enter("user_annotation", "load"),
        Spend(10 * US),
        Enter("cpu_op", "load"),
        Spend(20 * US),
        Leave(),
        launch(1),
        Leave(),
        Enter("user_annotation", "load"),
        Spend(3 * US),
        Leave(),
        Spend(9 * US),
    )
    host = 7 + 10 + 20 + 4 + 3 + 9
    assert run(before).extent_ns == host * US
    assert run(changes.without("lo*")(before)).extent_ns == (7 + 9) * US
    # 15 of the 34 of the first, all 3 of the second.
    assert run(changes.without("load", 15 * US)(before)).extent_ns == (7 + 15 + 3 + 9) * US
    assert changes.without("other")(before) == before


def test_a_range_takes_time_only_from_its_own_thread() -> None:
    before = program(
        Enter("user_annotation", "backward"),
        Spend(2 * US),
        HandOver(2, 30 * US),
        Spend(100 * US),
        HandOver(MAIN, 30 * US),
        Spend(5 * US),
        Leave(),
    )
    # Handing over lies in the range; what the other thread does, and its handing back, does not.
    assert run(changes.without("backward")(before)).extent_ns == 130 * US


def test_a_later_change_spares_what_was_done_before() -> None:
    before = program(launch(100), launch(100), launch(100), Synchronise("", 0, 3 * US, stream=DEVICE))
    late = changes.later(changes.kernels(2), since=2, under_way={1})
    assert executed(run(late(before))) == [(6, 106), (107, 157), (158, 208)]
