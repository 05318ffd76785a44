"""Where the host is while a device waits, and which device time the host hides, against plain arithmetic."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from hta_widgets.analysis.idle.breakdown import CONSECUTIVE_KERNEL_DELAY_NS
from hta_widgets.analysis.idle.causes import IdleCauses, idle_causes
from hta_widgets.analysis.idle.cold_calls import cold_calls
from hta_widgets.analysis.idle.hidden import hidden_by_host
from hta_widgets.analysis.idle.places import Place, host_places, recorded_by_host, short_place
from hta_widgets.trace import RankTrace, Scope
from tests.analysis.kineto_file import event, job, kernel, launch
from tests.verdicts.planted.host_program import MS, US, Program


def parts_of(program: Program, folder: Path) -> tuple[RankTrace, IdleCauses]:
    rank_trace = program.open(folder).rank(0)
    return rank_trace, idle_causes(rank_trace, Scope(), CONSECUTIVE_KERNEL_DELAY_NS)


def random_program(seed: int, sync: bool = True, shortened: int | None = None) -> Program:
    """Operators, some in others, launches and waits; the kernel of this number takes 20 us less."""
    rng, program, kernels = random.Random(seed), Program(), 0
    for number in range(rng.randint(2, 4)):
        with program.step(number):
            for _ in range(rng.randint(4, 10)):
                with program.inside("cpu_op", f"outer{rng.randint(0, 2)}"):
                    program.operator(f"inner{rng.randint(0, 4)}", rng.randint(1, 90) * US)
                    if rng.random() < 0.3:
                        program.silence(rng.randint(1, 30) * US)
                ns = rng.randint(30, 120) * US
                program.launch(ns - 20 * US * (kernels == shortened), "k")
                kernels += 1
                if sync and rng.random() < 0.2:
                    program.synchronise()
    return program


@pytest.mark.parametrize("seed", range(12))
def test_times_in_calls_are_those_of_a_count_of_microseconds(seed: int, tmp_path: Path) -> None:
    program = random_program(seed)
    rank_trace, idle = parts_of(program, tmp_path)
    part, windows = idle.causes["host_busy"], rank_trace.windows(Scope())
    low, high = windows[0].tolist()
    ticks = np.arange(low, high, US // 2)
    waits = np.zeros(len(ticks), np.bool_)
    for begin, end in zip(part.start.tolist(), part.end.tolist(), strict=True):
        waits |= (ticks >= begin) & (ticks < end)
    origin = min(float(item["ts"]) for item in program.events) * 1_000
    shares = {}
    for name in {item["name"] for item in program.events if item["cat"] in ("cpu_op", "cuda_runtime")}:
        open_then = np.zeros(len(ticks), np.bool_)
        for item in program.events:
            if item["name"] == name and item["cat"] in ("cpu_op", "cuda_runtime"):
                begin = float(item["ts"]) * 1_000 - origin
                open_then |= (ticks >= begin) & (ticks < begin + item["dur"])
        shares[name] = int((waits & open_then).sum()) * (US // 2)
    places = host_places(rank_trace, idle, part, windows)
    asked = int(waits.sum()) * (US // 2)
    assert abs(asked - part.within(windows)) <= US * len(part)
    for place in places:
        assert place.idle_ns == pytest.approx(shares[place.name], abs=US * (1 + len(part)))
        assert place.idle_ns >= 0.09 * asked
    if len(places) == 1 and places[0].idle_ns >= asked / 2:
        as_wide = [name for name, share in shares.items() if share >= 0.51 * asked]
        assert {place.name for place in places} <= {*as_wide, places[0].name}
    else:
        assert all(place.idle_ns < asked / 2 for place in places)
    recorded = recorded_by_host(rank_trace, idle, part, windows)
    assert max(shares.values(), default=0) <= recorded + US * len(part) <= asked + 2 * US * len(part)


@pytest.mark.parametrize("seed", range(20))
def test_hidden_work_may_be_shorter_without_a_gain(seed: int, tmp_path: Path) -> None:
    """The kernels that the host hides are cut by 20 us each in turn: nothing ends earlier."""
    program = random_program(seed)
    rank_trace, idle = parts_of(program, tmp_path)
    hidden = hidden_by_host(rank_trace, idle)
    kernels = np.flatnonzero(rank_trace.is_device)
    kernels = kernels[np.argsort(rank_trace.start[kernels])]
    inside = hidden.within_each(np.stack([rank_trace.start[kernels], rank_trace.end[kernels]], 1))
    wholly = np.flatnonzero(inside == rank_trace.dur[kernels]).tolist()
    for number in wholly[:6]:
        again = random_program(seed, shortened=number)
        assert (again.now, max(again.free.values())) == (program.now, max(program.free.values()))


def test_some_work_is_hidden_and_some_is_not(tmp_path: Path) -> None:
    program = Program()
    for synchronised in (False, True):
        program.launch(100 * US)
        if synchronised:
            program.synchronise()
        program.operator("late", 400 * US)
        program.launch(50 * US)
        program.synchronise()
    rank_trace, idle = parts_of(program, tmp_path)
    hidden = hidden_by_host(rank_trace, idle)
    lengths = (hidden.end - hidden.start).tolist()
    assert lengths == [100 * US], "the second kernel was waited for, as were those that end the loop"


def test_what_ran_before_a_wait_returned_is_not_hidden(tmp_path: Path) -> None:
    """The host waits for one stream while another works on: only what that does later is hidden."""
    events = [
        launch(0, 1),
        kernel("short", 10 * US, 100 * US, correlation=1),
        launch(3 * US, 2),
        kernel("long", 10 * US, 300 * US, stream=8, correlation=2),
        event("cuda_runtime", "cudaStreamSynchronize", 5 * US, 110 * US, correlation=3),
        launch(600 * US, 4),
        kernel("next", 605 * US, 50 * US, correlation=4),
    ]
    rank_trace = job(tmp_path, events).rank(0)
    hidden = hidden_by_host(rank_trace, idle_causes(rank_trace, Scope(), CONSECUTIVE_KERNEL_DELAY_NS))
    assert (hidden.start.tolist(), hidden.end.tolist()) == ([115 * US], [310 * US])


@pytest.mark.parametrize("waits", [False, True])
def test_what_another_thread_waits_for_is_not_hidden(tmp_path: Path, waits: bool) -> None:
    events = [
        launch(0, 1),
        kernel("long", 10 * US, 100 * US, correlation=1),
        launch(5 * US, 2, tid=2),
        kernel("short", 20 * US, 40 * US, stream=8, correlation=2),
        event("cpu_op", "late", 20 * US, 380 * US),
        launch(400 * US, 4),
        kernel("next", 405 * US, 50 * US, correlation=4),
    ]
    if waits:
        call = event("cuda_runtime", "cudaDeviceSynchronize", 8 * US, 190 * US, tid=2, correlation=3)
        events.append(call)
    rank_trace = job(tmp_path, events).rank(0)
    hidden = hidden_by_host(rank_trace, idle_causes(rank_trace, Scope(), CONSECUTIVE_KERNEL_DELAY_NS))
    assert hidden.length == (0 if waits else 100 * US)


@pytest.mark.parametrize(
    ("returns", "hidden_ns"),
    [(410 * US, 0), (409 * US, 0), (330 * US, 0), (200 * US, 300 * US), (20 * US, 300 * US)],
    ids=["after the copy", "as it ends", "before its last piece", "before most of it", "at once"],
)
def test_a_copy_that_its_call_waits_for_is_not_hidden(tmp_path: Path, returns: int, hidden_ns: int) -> None:
    events = [
        event("cuda_runtime", "cudaMemcpyAsync", 10 * US, returns - 10 * US, correlation=1),
        kernel("Memcpy HtoD (Pageable -> Device)", 110 * US, 300 * US, cat="gpu_memcpy", correlation=1),
        event("cpu_op", "late", 420 * US, 100 * US),
        launch(600 * US, 2),
        kernel("next", 605 * US, 50 * US, correlation=2),
    ]
    rank_trace = job(tmp_path, events).rank(0)
    hidden = hidden_by_host(rank_trace, idle_causes(rank_trace, Scope(), CONSECUTIVE_KERNEL_DELAY_NS))
    assert hidden.length == hidden_ns


@pytest.mark.parametrize(("returns", "waits"), [(409 * US, True), (409 * US - 1, False)])
def test_a_call_may_return_a_microsecond_before_the_copy_ends(
    tmp_path: Path, returns: int, waits: bool
) -> None:
    """Also one that was long under way before the copy began."""
    events = [
        event("cuda_runtime", "cudaMemcpyAsync", 10 * US, returns - 10 * US, correlation=1),
        kernel("Memcpy HtoD (Pageable -> Device)", 350 * US, 60 * US, cat="gpu_memcpy", correlation=1),
        event("cpu_op", "late", 420 * US, 100 * US),
        launch(600 * US, 2),
        kernel("next", 605 * US, 50 * US, correlation=2),
    ]
    rank_trace = job(tmp_path, events).rank(0)
    hidden = hidden_by_host(rank_trace, idle_causes(rank_trace, Scope(), CONSECUTIVE_KERNEL_DELAY_NS))
    assert hidden.length == (0 if waits else 60 * US)


def waiting_in(folder: Path, *calls: tuple[str, int, int]) -> list[Place]:
    """Where the host is while the device is idle from 100 to 500 us; calls: name, start and end in us."""
    events = [
        launch(0, 1),
        kernel("before", 10 * US, 90 * US, correlation=1),
        *(event("cpu_op", name, start * US, (end - start) * US) for name, start, end in calls),
        launch(500 * US, 2),
        kernel("after", 502 * US, 500 * US, correlation=2),
    ]
    rank_trace = job(folder, events).rank(0)
    idle = idle_causes(rank_trace, Scope(), CONSECUTIVE_KERNEL_DELAY_NS)
    return host_places(rank_trace, idle, idle.causes["host_busy"], rank_trace.windows(Scope()))


def test_the_narrowest_of_the_calls_that_hold_most_of_the_time_is_the_place(tmp_path: Path) -> None:
    (place,) = waiting_in(tmp_path, ("outer", 100, 510), ("inner", 150, 480))
    assert (place.name, place.idle_ns, place.within) == ("inner", 330 * US, ("outer",))


def test_places_that_lie_in_others_are_not_named_beside_them(tmp_path: Path) -> None:
    places = waiting_in(tmp_path, ("outer", 100, 260), ("inner", 110, 250), ("other", 270, 380))
    assert [(place.name, place.idle_ns) for place in places] == [("outer", 160 * US), ("other", 110 * US)]


def test_what_holds_far_more_of_the_time_and_nothing_else_is_the_place(tmp_path: Path) -> None:
    """A region around most of it, and the next launches, is narrower in sum than what it holds twice."""
    (place,) = waiting_in(tmp_path, ("warm-up", 95, 325), ("clear", 100, 320), ("clear", 330, 500))
    assert (place.name, place.idle_ns) == ("clear", 390 * US)


def mostly_idle(folder: Path, name: str, start: int, end: int) -> list[Place]:
    """Where the host is while the device is idle from 10 to 1000 us, of 1010 us."""
    events = [
        launch(0, 1),
        kernel("before", 3 * US, 7 * US, correlation=1),
        event("cpu_op", name, start * US, (end - start) * US),
        launch(1000 * US, 2),
        kernel("after", 1002 * US, 8 * US, correlation=2),
    ]
    rank_trace = job(folder, events).rank(0)
    idle = idle_causes(rank_trace, Scope(), CONSECUTIVE_KERNEL_DELAY_NS)
    return host_places(rank_trace, idle, idle.causes["host_busy"], rank_trace.windows(Scope()))


@pytest.mark.parametrize(("start", "everywhere"), [(20, False), (0, True)])
def test_what_is_open_nearly_all_of_the_time_is_a_place_if_the_device_is_idle_in_it(
    tmp_path: Path, start: int, everywhere: bool
) -> None:
    (place,) = mostly_idle(tmp_path, "clear_cache", start, 1010 if everywhere else 990)
    assert (place.name, place.everywhere) == ("clear_cache", everywhere)


@pytest.mark.parametrize("own_call", [False, True])
def test_calls_of_another_thread_count_while_the_one_that_launches_next_has_none(
    tmp_path: Path, own_call: bool
) -> None:
    """The main thread is in `aten::empty` before the thread of the backward pass launches."""
    own = [event("cpu_op", "own", 120 * US, 360 * US, tid=2)] if own_call else []
    events = [
        launch(0, 1),
        kernel("before", 10 * US, 90 * US, correlation=1),
        event("cpu_op", "aten::empty", 110 * US, 380 * US),
        *own,
        launch(500 * US, 2, tid=2),
        kernel("after", 502 * US, 500 * US, correlation=2),
    ]
    rank_trace = job(tmp_path, events).rank(0)
    idle = idle_causes(rank_trace, Scope(), CONSECUTIVE_KERNEL_DELAY_NS)
    part, windows = idle.causes["host_busy"], rank_trace.windows(Scope())
    (place,) = host_places(rank_trace, idle, part, windows)
    assert (place.name, place.idle_ns) == (("own", 360 * US) if own_call else ("aten::empty", 380 * US))
    assert recorded_by_host(rank_trace, idle, part, windows) == 380 * US


def test_a_long_call_of_the_driver_counts_only_while_the_device_is_idle(tmp_path: Path) -> None:
    program = Program()
    program.launch(5 * MS)
    program.driver("cudaMalloc", 4 * MS)  # beside work
    program.synchronise()
    program.driver("cudaMalloc", 2 * MS)
    program.driver("cudaMalloc", 999 * US)
    program.driver("customAllocate", 2 * MS)
    program.launch(100 * US)
    rank_trace, idle = parts_of(program, tmp_path)
    assert [(int(rank_trace.dur[row]), kind) for row, kind, _ in cold_calls(rank_trace, idle)] == [
        (2 * MS, "driver")
    ]


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("/a/b/model.py(12): forward", "model.py(12): forward"),
        ("model.py(12): forward", "model.py(12): forward"),
        (
            "<built-in method cumsum of type object at 0x7f1abc7fc9c0>",
            "<built-in method cumsum of type object>",
        ),
        ("nn.Module: Linear_3", "nn.Module: Linear_3"),
        ("aten::mm", "aten::mm"),
        ("autograd::engine::evaluate_function: MmBackward0", "MmBackward0"),
        ("a/b: c", "a/b: c"),
    ],
)
def test_short_places(name: str, short: str) -> None:
    assert short_place(name) == short
