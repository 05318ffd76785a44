"""What a file records, and whether files belong together, told by their events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hta_widgets.trace import Trace
from hta_widgets.trace.one_job import why_several_jobs
from tests.support import shared_trace
from tests.trace.helpers import kernel, rank_of, slice_, write

LAUNCH, BEGIN, END = "cudaLaunchKernel", "cudaStreamBeginCapture_v10000", "cudaStreamEndCapture_v10000"


def call(name: str, start: float, correlation: int) -> dict[str, Any]:
    return slice_(name, "cuda_runtime", start, 1, correlation=correlation)


def operators(numbers: list[int], name: str = "aten::mm") -> list[dict[str, Any]]:
    return [
        slice_(name, "cpu_op", 10 * at, 5, **{"External id": number}) for at, number in enumerate(numbers)
    ]


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([slice_("autograd::engine::evaluate_function: MmBackward0", "cpu_op", 0, 5)], "training"),
        ([slice_("AddmmBackward0", "cpu_op", 0, 5)], "training"),
        ([slice_("Optimizer.step#SGD.step", "user_annotation", 0, 5)], "training"),
        ([slice_("Optimizer.steps", "user_annotation", 0, 5), *operators(list(range(12)))], "forward"),
        ([kernel(f"k{at}_backward", 10 * at, 5) for at in range(12)], "training"),
        (
            [*operators(list(range(12))), kernel("layer_norm_backward", 0, 5)],
            "forward",  # operators tell, and none of them is of a backward pass
        ),
        ([kernel("gemm", 10 * at, 5) for at in range(10)], "forward"),
        ([kernel("gemm", 10 * at, 5) for at in range(9)], "unknown"),
        (operators([1, 2, 3]), "unknown"),
        ([slice_("step[DECODE bs=32]", "user_annotation", 0, 50), *operators(list(range(12)))], "serving"),
    ],
)
def test_kinds(events: list[dict[str, Any]], kind: str, tmp_path: Path) -> None:
    assert rank_of(tmp_path, events).recording.kind == kind


@pytest.mark.parametrize(
    ("begin", "end", "captured"),
    [
        (0, 100, True),
        (None, 100, True),
        (0, None, True),
        (0, 35, False),
        (70, 100, False),
        (None, None, False),
    ],
)
def test_a_capture_holds_most_launches(
    begin: float | None, end: float | None, captured: bool, tmp_path: Path
) -> None:
    """Seven launches, none of which runs; the capture may reach beyond the recording at either end."""
    events = [call(LAUNCH, 10 * at + 5, at + 1) for at in range(7)]
    events += [call(BEGIN, begin, 100)] if begin is not None else []
    events += [call(END, end, 101)] if end is not None else []
    rank = rank_of(tmp_path, events)
    recording = rank.recording
    assert (recording.kind == "graph capture") == captured
    # what was captured was not lost
    lost = {"no_device_events", "lost_launches"} & {veto.kind for veto in rank.vetoes}
    assert bool(lost) == (not captured)
    assert (recording.launches, recording.unanswered, recording.lacks_device_work) == (7, 7, True)


def test_launches_that_run_are_not_captured(tmp_path: Path) -> None:
    events = [call(BEGIN, 0, 100), call(END, 99, 101)]
    for at in range(4):
        events += [call(LAUNCH, 10 * at + 5, at + 1), kernel("k", 200 + 10 * at, 5, at + 1)]
    recording = rank_of(tmp_path, events).recording
    assert (recording.kind, recording.unanswered, recording.lacks_device_work) == ("unknown", 0, False)


@pytest.mark.parametrize(("launches", "lost"), [(1, 0), (2, 2)])
def test_work_without_a_launch_may_be_that_of_a_launch_without_work(
    launches: int, lost: int, tmp_path: Path
) -> None:
    events = [call(LAUNCH, 10 * at, at + 1) for at in range(launches)]
    assert len(rank_of(tmp_path, [*events, kernel("k", 50, 5)]).losses.lost) == lost


@pytest.mark.parametrize(
    ("numbers", "filtered", "kept"),
    [
        (list(range(1, 21)), False, 100.0),
        ([1, 2, 3, 4, 500, 501, 502], False, 100 * 7 / 502),  # a pause of the profiler, not a filter
        ([1, 3, 5, 7, 9], True, 100 * 5 / 9),
        ([1, 2, 4, 5, 7, 8, 10], False, 70.0),  # every other difference is one
        ([1, 2, 4, 6, 8, 10], True, 60.0),
        ([1, 10, 100, 1_000], False, 100.0),  # too few to tell
    ],
)
def test_a_filtered_file_lacks_operators_in_between(
    numbers: list[int], filtered: bool, kept: float, tmp_path: Path
) -> None:
    recording = rank_of(tmp_path, operators(numbers)).recording
    assert recording.filtered == filtered
    assert recording.kept_pct == pytest.approx(kept)


def test_what_a_filter_left_shows_no_forward_pass(tmp_path: Path) -> None:
    assert rank_of(tmp_path, operators(list(range(0, 100, 5)))).recording.kind == "unknown"


def job(folder: Path, *ranks: tuple[int | None, list[str]]) -> Trace:
    """Files that state a world size, or none, with kernels of these names."""
    files = {}
    for rank, (size, names) in enumerate(ranks):
        events = [kernel(name, 10 * at, 5) for at, name in enumerate(names)]
        metadata = {} if size is None else {"distributedInfo": {"rank": rank, "world_size": size}}
        files[rank] = write(folder / f"{rank}.json", events, **metadata)
    return Trace.open(files, cache=False)


MODEL, OTHER = list("abcdefgh"), list("stuvwxyz")


@pytest.mark.parametrize(
    ("ranks", "why"),
    [
        ([(None, MODEL)], ""),
        ([(2, MODEL), (2, MODEL)], ""),
        ([(2, MODEL), (2, OTHER)], ""),  # the files agree: a trainer and a sampler, for instance
        ([(2, MODEL), (4, MODEL)], "state jobs of 2 and 4 ranks"),
        ([(None, MODEL), (None, MODEL)], ""),
        ([(None, MODEL), (None, OTHER)], "ranks 0 and 1 hardly share a kernel"),
        ([(None, MODEL), (None, [*MODEL[:4], *OTHER[:4]])], ""),  # a third is shared
        ([(None, MODEL), (None, [*MODEL[:3], *OTHER])], "hardly share"),
        ([(8, MODEL), (None, OTHER)], "hardly share"),
        ([(8, MODEL), (None, MODEL)], ""),
        ([(1, MODEL), (1, OTHER)], "hardly share"),  # two jobs of one rank
        ([(1, MODEL), (1, MODEL)], ""),  # two runs of one program may be compared
        ([(None, MODEL), (None, [])], ""),
        ([(None, MODEL), (None, MODEL), (None, OTHER)], "ranks 0 and 2"),
    ],
)
def test_files_of_several_jobs(ranks: list[tuple[int | None, list[str]]], why: str, tmp_path: Path) -> None:
    trace = job(tmp_path, *ranks)
    assert (why in trace.several_jobs) if why else trace.several_jobs == ""
    assert ("several_jobs" in set(trace.health["check"])) == bool(why)


@pytest.mark.parametrize(("name", "several"), [("tracelens/mi300", True), ("hta/trace_filter", False)])
def test_recorded_folders(name: str, several: bool) -> None:
    trace = Trace.open(dict(enumerate(sorted(shared_trace(name).iterdir()))))
    assert bool(why_several_jobs([trace.rank(rank) for rank in trace.ranks])) == several


def test_a_step_that_waits_for_earlier_work_is_timed_on_the_device() -> None:
    """Brute force on a recording: the host sits in a synchronising call until the earlier work has ended."""
    name = "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
    trace = Trace.open(shared_trace(name))
    rank = trace.rank(trace.ranks[0])
    unlaunched = [row for row in range(rank.n) if rank.is_device[row] and rank.launch[row] < 0]
    own = [row for row in range(rank.n) if rank.is_device[row] and rank.launch[row] >= 0]
    end = max(int(rank.end[row]) for row in unlaunched)
    assert min(int(rank.start[rank.launch[row]]) for row in own) >= end == rank.drained
    (step,) = rank.iterations.to_dict("records")
    assert step["host_start_ns"] < end < step["host_end_ns"]
    assert step["clock"] == "device"
    assert step["start_ns"] == min(int(rank.start[row]) for row in own)
    assert step["end_ns"] == max(int(rank.end[row]) for row in own)
    by_host = Trace.open(shared_trace(name), clock="host")
    assert by_host.iterations["start_ns"].tolist() == [step["host_start_ns"]]


def test_a_step_that_launches_beside_earlier_work_is_timed_on_the_host(tmp_path: Path) -> None:
    events = [
        slice_("ProfilerStep#1", "user_annotation", 0, 100),
        kernel("earlier", 0, 50),
        call(LAUNCH, 20, 1),
        kernel("k", 60, 30, 1),
    ]
    rank = rank_of(tmp_path, events)
    assert rank.earlier_work.tolist() == [1] and rank.drained is None
    assert rank.iterations["start_ns"].tolist() == [0]
    events[2]["ts"] = 50
    rank = rank_of(tmp_path, events)
    assert rank.drained == 50_000 and rank.iteration_clock == "device"
    assert rank.iterations["start_ns"].tolist() == [60_000]
