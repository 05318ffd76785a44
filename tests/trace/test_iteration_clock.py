"""Which clock times the iterations, and when they run by it."""

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hta_widgets import Scope, Trace, analysis, examples
from hta_widgets.trace.iteration_clock import BEHIND_SHARE, MISSED_SHARE
from tests.support import GPU_TRACES, shared_trace, tried
from tests.trace.helpers import kernel, rank_of, slice_, write
from tests.verdicts.planted.host_program import US, Program

Event = dict[str, Any]


def step(number: int, start: float, dur: float) -> Event:
    return slice_(f"ProfilerStep#{number}", "user_annotation", start, dur)


def launched(correlation: int, called: float, start: float, dur: float, stream: int = 7) -> list[Event]:
    """A kernel and the call that launches it."""
    call = slice_("cudaLaunchKernel", "cuda_runtime", called, 1, correlation=correlation)
    return [call, kernel(f"kernel_{correlation}", start, dur, correlation, stream)]


def windows(frame: Any, *names: str) -> list[tuple[int, ...]]:
    return list(frame[list(names)].itertuples(index=False, name=None))


def test_a_device_that_runs_behind_times_the_iterations(tmp_path: Path) -> None:
    rank = rank_of(
        tmp_path,
        [
            *(step(number, 10 * number, 10) for number in range(3)),
            *(
                event
                for number in range(3)
                for event in launched(1 + number, 10 * number, 5 + 100 * number, 90)
            ),
        ],
    )
    frame = rank.iterations
    assert rank.iteration_clock == "device" and set(frame["clock"]) == {"device"}
    assert windows(frame, "host_start_ns", "host_end_ns") == [(0, 10_000), (10_000, 20_000), (20_000, 30_000)]
    assert windows(frame, "start_ns", "end_ns") == [
        (5_000, 105_000),
        (105_000, 205_000),
        (205_000, 295_000),
    ]
    own = [(5_000, 95_000), (105_000, 195_000), (205_000, 295_000)]
    assert windows(frame, "device_start_ns", "device_end_ns") == own
    assert frame["open"].tolist() == [False, False, True], "nothing shows when the last one was over"


@pytest.mark.parametrize(
    ("late", "after", "clock"), [(27, 0, "host"), (28, 0, "device"), (0, 12, "host"), (0, 13, "device")]
)
def test_the_host_times_a_device_that_keeps_up(tmp_path: Path, late: int, after: int, clock: str) -> None:
    """The device takes over at a quarter of the work outside its host's window, or 1.25 % outside all."""
    assert BEHIND_SHARE == 0.25 and MISSED_SHARE == 0.0125
    steps = [step(number, 200 * number, 200) for number in range(10)]
    work = [
        event
        for number in range(9)
        for event in launched(1 + number, 200 * number + 1, 200 * (number + 1) - (100 - late), 100)
    ]
    work += launched(10, 1801, 1900 + after, 100)
    rank = rank_of(tmp_path, [*steps, *work])
    assert rank.iteration_clock == clock
    assert list(rank.contradicted_iterations) == [], "most of the work lies in the iterations by either clock"


def test_an_iteration_whose_device_work_is_missing_leaves_the_host_its_clock(tmp_path: Path) -> None:
    events = [*(step(number, 10 * number, 10) for number in range(4))]
    events.append(slice_("cudaLaunchKernel", "cuda_runtime", 10, 1, correlation=91))
    events += [*launched(1, 1, 50, 90), *launched(3, 21, 250, 90), *launched(4, 31, 350, 90)]
    rank = rank_of(tmp_path, events)
    assert rank.iteration_clock == "host"
    assert rank.iterations["device_start_ns"].isna().tolist() == [False, True, False, False]
    forced = Trace.open(write(tmp_path / "again.json", events), cache=False, clock="device")
    frame = forced.rank(forced.ranks[0]).iterations
    # the second has no work to begin with: it takes what is left between its neighbours
    assert windows(frame, "start_ns", "end_ns")[:3] == [
        (50_000, 140_000),
        (140_000, 250_000),
        (250_000, 350_000),
    ]
    assert frame["open"].tolist() == [True, True, False, True]


def test_a_copy_that_runs_ahead_does_not_cut_the_iteration_before(tmp_path: Path) -> None:
    rank = rank_of(
        tmp_path,
        [
            step(0, 0, 10),
            step(1, 10, 10),
            *launched(1, 1, 100, 100),
            *launched(2, 11, 102, 5, stream=20),
            *launched(3, 12, 210, 100),
        ],
    )
    assert windows(rank.iterations, "start_ns", "end_ns") == [(100_000, 210_000), (210_000, 310_000)]


def test_neighbours_on_the_device_do_not_overlap(tmp_path: Path) -> None:
    rank = rank_of(
        tmp_path,
        [
            step(0, 0, 10),
            step(1, 10, 10),
            *launched(1, 1, 100, 100),
            *launched(2, 2, 150, 120, stream=20),
            *launched(3, 12, 210, 100),
        ],
    )
    assert windows(rank.iterations, "start_ns", "end_ns") == [(100_000, 210_000), (210_000, 310_000)]


def test_host_rows_of_an_iteration_are_its_hosts(tmp_path: Path) -> None:
    rank = rank_of(
        tmp_path,
        [
            step(0, 0, 10),
            step(1, 10, 10),
            slice_("first", "cpu_op", 1, 3),
            slice_("second", "cpu_op", 12, 3),
            *launched(1, 2, 12, 50),
            *launched(2, 13, 70, 50),
        ],
    )
    assert rank.iteration_clock == "device"
    names = {rank.names[code] for code in rank.name[rank.rows(Scope(iterations=(1,)))]}
    assert names == {"ProfilerStep#1", "second", "cudaLaunchKernel", "kernel_2"}


def test_the_clock_can_be_chosen(tmp_path: Path) -> None:
    path = examples.path("gpt2_ddp")
    by_host, by_device = (Trace.open(path, clock=clock) for clock in ("host", "device"))
    assert set(by_host.iterations["clock"]) == {"host"} and set(by_device.iterations["clock"]) == {"device"}
    assert (by_device.iterations["start_ns"] == by_device.iterations["device_start_ns"]).all()
    assert by_host.timed_by("device").iterations.equals(by_device.iterations)
    assert by_device.timed_by("auto").iterations.equals(Trace.open(path).iterations)
    with pytest.raises(ValueError, match="not 'gpu'"):
        Trace.open(path, clock="gpu")  # type: ignore[arg-type]


# -- recordings, read a second time -----------------------------------------------------------------

# ms of the first iterations, as read off the recordings by hand
DEVICE_TIMED = {
    "hta/ns_resolution_trace": [97.66, 95.74, 95.57, 95.66, 95.39],
    "hta/trace_diff/test": [118.13, 117.13, 116.31],
    "tracelens/inference/vllm_decode_full": [10.74],
    "tracelens/inference/sglang_decode": [10.45],
    "tracelens/mi300/resnet_act_checkpoint.json.gz": [18.98, 18.98, 18.54],
}


def to_ns(text: Any) -> int:
    return int(Decimal(text) * 1000)


def by_hand(path: Path) -> list[tuple[int, int]]:
    """First start, ns, of the device work of each step to that of the next: plain JSON, event by event.

    The last one is until the end of its work.
    """
    (file,) = [path] if path.is_file() else sorted(path.glob("*.json*"))
    with gzip.open(file, "rt") as text:
        events = json.load(text, parse_float=Decimal)["traceEvents"]
    whole = [event for event in events if event.get("ph") == "X"]
    marks = [
        (to_ns(event["ts"]), to_ns(event["ts"]) + to_ns(event["dur"]))
        for event in whole
        if event["cat"] == "user_annotation"
        and event["name"].startswith(("ProfilerStep#", "execute_", "step["))
    ]
    calls = {}
    for event in whole:
        if event.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in event.get("args", {}):
            calls.setdefault(event["args"]["correlation"], to_ns(event["ts"]))
    work: dict[int, list[tuple[int, int, tuple[Any, ...]]]] = {}
    queues: dict[tuple[Any, ...], int] = {}
    for event in whole:
        if event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        called = calls.get(event["args"].get("correlation"))
        at = [number for number, (a, b) in enumerate(sorted(marks)) if called is not None and a <= called < b]
        if at:
            queue = (event["args"]["device"], event["args"]["stream"], "DtoH" in event["name"])
            start, dur = to_ns(event["ts"]), to_ns(event["dur"])
            work.setdefault(at[0], []).append((start, start + dur, queue))
            queues[queue] = queues.get(queue, 0) + dur
    busiest = max(queues, key=lambda queue: queues[queue])
    begins = [min(start for start, _, queue in work[number] if queue == busiest) for number in sorted(work)]
    ends = [max(end for _, end, _ in work[number]) for number in sorted(work)]
    return list(zip(begins, [*begins[1:], ends[-1]], strict=True))


@pytest.mark.parametrize("name", DEVICE_TIMED)
def test_recordings_whose_device_runs_behind(name: str) -> None:
    path = shared_trace(name)
    trace = Trace.open(path)
    rank = trace.rank(trace.ranks[0])
    assert rank.iteration_clock == "device"
    frame = rank.iterations
    took = (frame["end_ns"] - frame["start_ns"]).tolist()
    expected = DEVICE_TIMED[name]
    assert [round(ns / 1e6, 2) for ns in took[: len(expected)]] == expected
    hand = by_hand(path)
    assert took == [end - start for start, end in hand]
    assert np.diff(frame["start_ns"]).tolist() == np.diff([start for start, _ in hand]).tolist()


def test_a_server_whose_device_is_busy_is_not_called_idle() -> None:
    """The host's window of the step is 2.4 ms, in which the device still does what was before."""
    trace = Trace.open(shared_trace("tracelens/inference/vllm_decode_full"))
    (row,) = analysis.temporal_breakdown(trace, by="iteration").to_dict("records")
    assert row["window_ns"] == pytest.approx(10_740_000, abs=5_000)
    assert row["idle_pct"] == pytest.approx(0.24, abs=0.005)


@pytest.mark.parametrize("name", GPU_TRACES)
def test_what_the_device_does_in_an_iteration_is_what_it_launched(name: str) -> None:
    """No iteration with kernels is called idle: what runs beside no neighbour lies in its window."""
    trace = Trace.open(shared_trace(name))
    for rank in trace.ranks:
        found = trace.rank(rank)
        if found.iteration_clock == "host":
            continue
        frame = analysis.temporal_breakdown(trace, Scope(ranks=(rank,)), by="iteration")
        busy = frame.set_index("iteration")
        for number in found.iterations["iteration"].tolist():
            own = found.is_device & (found.iteration == number)
            row = busy.loc[number]
            assert row["window_ns"] - row["idle_ns"] >= 0.85 * own_busy(found.start[own], found.end[own])


def own_busy(start: np.ndarray, end: np.ndarray) -> int:
    """Time covered by at least one of the spans."""
    covered, until = 0, -(2**62)
    for a, b in sorted(zip(start.tolist(), end.tolist(), strict=True)):
        covered += max(0, b - max(a, until))
        until = max(until, b)
    return covered


@settings(deadline=None, max_examples=tried(25))
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 400), st.integers(0, 80), st.integers(7, 9)), max_size=25
    )
)
def test_windows_are_sorted_and_disjoint_whatever_the_work(
    tmp_path_factory: pytest.TempPathFactory, work: list[tuple[int, int, int, int]]
) -> None:
    events = [step(number, 10 * number, 10) for number in range(4)]
    for place, (number, start, dur, stream) in enumerate(work):
        events += launched(place + 1, 10 * number + 1, 10 * number + 1 + start, dur, stream)
    path = write(tmp_path_factory.mktemp("clock") / "trace.json", events)
    for clock in ("auto", "host", "device"):
        trace = Trace.open(path, cache=False, clock=clock)
        rank = trace.rank(trace.ranks[0])
        frame = rank.iterations
        assert frame["iteration"].tolist() == [0, 1, 2, 3]
        assert (frame["start_ns"] <= frame["end_ns"]).all()
        assert (frame["end_ns"].to_numpy()[:-1] == frame["start_ns"].to_numpy()[1:]).all(), "they tile"
        assert (frame["host_end_ns"] - frame["host_start_ns"] == 10_000).all()
        # the selection is never empty of rows because of the clock
        rows = np.concatenate([rank.rows(Scope(iterations=(number,))) for number in range(4)])
        assert len(rows) >= 4


@pytest.mark.parametrize(
    ("recorded", "waits", "contradicted"),
    [(("work",), False, [1, 2, 3, 4]), (("work",), True, []), (("call", "work"), False, [])],
)
def test_steps_of_a_host_far_ahead_need_launches(tmp_path, recorded, waits, contradicted):
    """Without them, their time is not that of their work, which mostly runs after the last."""
    program = Program()
    for number in range(1, 5):
        with program.step(number):
            for _ in range(20):
                program.launch(200 * US, recorded=recorded)
            if waits:
                program.synchronise()
    program.synchronise()
    if "call" not in recorded:
        program.events = [each for each in program.events if each["cat"] != "cuda_runtime"]
    assert program.open(tmp_path).rank(0).contradicted_iterations == contradicted
