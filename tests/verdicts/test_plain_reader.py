"""The plain reader itself: each rule on events made by hand."""

import gzip
import json
from pathlib import Path

import pytest

from tests.support import SHARED_TRACES
from tests.verdicts.plain_reader import Event, Rank, length, nanoseconds, overlap, read, subtract, union
from tests.verdicts.recordings import RECORDINGS


def host(name: str, start: int, end: int, category: str = "cpu_op", thread: str = "main") -> Event:
    return Event(name, category, start, end, "host", thread, None)


def call(
    correlation: int, start: int, end: int, name: str = "cudaLaunchKernel", thread: str = "main"
) -> Event:
    return Event(name, "cuda_runtime", start, end, "host", thread, correlation)


def kernel(
    correlation: int | None,
    start: int,
    end: int,
    name: str = "gemm",
    stream: str = "7",
    category: str = "kernel",
) -> Event:
    return Event(name, category, start, end, 0, stream, correlation)


def step(number: int, start: int, end: int) -> Event:
    return host(f"ProfilerStep#{number}", start, end, "user_annotation")


def why(rank: Rank, *window: int) -> dict[str, int]:
    parts: dict[str, int] = {}
    for idle in rank.idle((window[0], window[1])):
        parts[idle.why] = parts.get(idle.why, 0) + idle.end - idle.start
    return parts


def test_a_file_is_read_to_the_nanosecond(tmp_path: Path) -> None:
    records = (
        '[{"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 7", "ts": 1712195495406752.797, '
    )
    records += '"dur": 0.5, "args": {"correlation": "3"}}, {"ph": "i", "ts": 1}]'
    with gzip.open(tmp_path / "rank0.json.gz", "wt") as file:
        file.write(f'{{"traceEvents": {records}}}')
    (tmp_path / "execution_trace.json").write_text(json.dumps({"nodes": []}))
    (rank,) = read(tmp_path)
    assert rank.work == [Event("k", "kernel", 1712195495406752797, 1712195495406753297, 0, "stream 7", 3)]


def test_a_microsecond_is_a_thousand_nanoseconds() -> None:
    assert nanoseconds("4203669603018.756") == 4203669603018756
    assert nanoseconds(12) == 12000


def test_intervals() -> None:
    assert union([(5, 7), (0, 2), (1, 3), (3, 4), (9, 9)]) == [(0, 4), (5, 7)]
    assert overlap([(0, 4), (5, 7), (8, 9)], (3, 6)) == [(3, 4), (5, 6)]
    assert overlap([(0, 4)], (4, 6)) == []
    assert subtract([(0, 10), (12, 14)], [(2, 3), (9, 13)]) == [(0, 2), (3, 9), (13, 14)]
    assert length([(0, 2), (5, 9)]) == 6


@pytest.mark.parametrize(
    ("name", "category", "kind"),
    [
        ("gemm", "kernel", "computing"),
        ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", "kernel", "communicating"),
        ("Memcpy DtoD (Device -> Device)", "gpu_memcpy", "copying"),
        ("Memset (Device)", "memset", "copying"),
        ("dma_request", "mtia_ccp_events", "copying"),
        ("event_wait", "mtia_ccp_events", ""),
        ("merge", "mtia_ccp_events", "computing"),
        ("ProfilerStep#1", "gpu_user_annotation", ""),
        ("triton_poi_fused_0", "cpu_op", ""),
    ],
)
def test_what_the_device_does(name: str, category: str, kind: str) -> None:
    assert kernel(1, 0, 1, name, category=category).kind == kind


def test_time_in_which_two_things_happen_counts_once() -> None:
    rank = Rank(
        [
            kernel(1, 0, 10),
            kernel(2, 5, 20, "ncclKernel_AllReduce", stream="21"),
            kernel(3, 15, 30, "Memcpy HtoD", stream="22", category="gpu_memcpy"),
        ]
    )
    assert rank.shares([(0, 40)]) == {"computing": 10, "communicating": 10, "copying": 10, "idle": 10}
    assert rank.shares([(2, 4), (18, 22)]) == {"computing": 2, "communicating": 2, "copying": 2, "idle": 0}
    assert rank.extent == (0, 30)


def test_work_belongs_to_the_step_that_launched_it() -> None:
    rank = Rank(
        [
            step(1, 0, 100),
            step(2, 100, 200),
            call(1, 10, 12),
            call(2, 110, 112),
            kernel(1, 40, 150),
            kernel(2, 160, 260),
        ]
    )
    assert rank.host_windows() == [(0, 100), (100, 200)]
    # what the device waits for between two steps is part of the second
    assert rank.device_windows() == [(40, 150), (150, 260)]
    assert rank.launch(rank.work[1]) == call(2, 110, 112)


def test_a_copy_launched_early_does_not_make_two_steps_overlap() -> None:
    early = kernel(2, 120, 130, "Memcpy HtoD", stream="22", category="gpu_memcpy")
    events = [step(1, 0, 100), step(2, 100, 200), call(1, 10, 12), call(2, 110, 112), call(3, 113, 114)]
    rank = Rank([*events, kernel(1, 40, 150), early, kernel(3, 150, 260)])
    assert rank.device_windows() == [(40, 150), (150, 260)]


def test_the_first_step_waits_for_work_launched_before_the_recording() -> None:
    copy = kernel(2, 12, 14, "Memcpy HtoD", stream="22", category="gpu_memcpy")
    rank = Rank([step(1, 0, 50), call(1, 5, 6), call(2, 7, 8), kernel(9, 0, 30), copy, kernel(1, 35, 60)])
    assert rank.unrecorded() == (1, 30)
    assert rank.device_windows() == [(30, 60)]


def test_steps_that_launch_nothing_are_not_steps_of_the_device() -> None:
    elsewhere = Event("ProfilerStep#3", "user_annotation", 0, 100, "another process", "main", None)
    rank = Rank([elsewhere, step(1, 0, 20), step(2, 20, 21), call(1, 5, 6), kernel(1, 8, 9)])
    assert [found.name for found in rank.steps] == ["ProfilerStep#1"]


@pytest.mark.parametrize(
    "name", ["execute_32_context_0(sq0)_generation_32", "execute_context_1(8)", "step[DECODE bs=32]"]
)
def test_serving_steps(name: str) -> None:
    rank = Rank([host(name, 0, 20, "user_annotation"), call(1, 5, 6), kernel(1, 8, 9)])
    assert [found.name for found in rank.steps] == [name]


def test_of_steps_inside_steps_the_innermost_count() -> None:
    outer, inner = (
        host(name, *when) for name, when in (("execute_2_context_0", (0, 50)), ("step[DECODE]", (5, 45)))
    )
    rank = Rank(
        [
            outer,
            inner,
            step(2, 60, 70),
            call(1, 10, 11),
            call(2, 62, 63),
            kernel(1, 12, 20),
            kernel(2, 64, 66),
        ]
    )
    assert [found.name for found in rank.steps] == ["step[DECODE]", "ProfilerStep#2"]


def test_idle_time_before_a_launch_is_the_hosts() -> None:
    rank = Rank(
        [
            step(1, 0, 200),
            call(1, 0, 5),
            kernel(1, 10, 20),
            call(3, 15, 40, "cudaStreamSynchronize"),
            host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 40, 70, "user_annotation"),
            host("aten::to", 45, 50),
            host("aten::mul", 75, 100),
            call(2, 95, 102),
            kernel(2, 110, 120),
        ]
    )
    assert why(rank, 0, 130) == {
        "launching": 10 + 15,  # from 0 and from 95
        "synchronising": 20,
        "loading": 30,
        "nothing_recorded": 5,
        "running": 20,
        "no_work_due": 10,
    }
    # a window cuts the gaps, and not the reasons
    assert why(rank, 30, 60) == {"synchronising": 10, "loading": 20}


def test_another_thread_tells_why_the_launching_one_did_nothing() -> None:
    rank = Rank(
        [
            host("## forward ##", 0, 30, "user_annotation"),
            call(1, 50, 51, thread="backward"),
            kernel(1, 60, 70),
            kernel(2, 0, 1),
        ]
    )
    assert why(rank, 1, 60) == {"running": 29, "nothing_recorded": 20, "launching": 10}


def test_idle_time_between_queued_kernels_and_before_unrecorded_launches() -> None:
    rank = Rank([call(1, 0, 2), call(2, 3, 4), kernel(1, 10, 20), kernel(2, 23, 30), kernel(7, 35, 40)])
    assert why(rank, 10, 40) == {"queued": 3, "unrecorded": 5}


def test_a_window_that_begins_after_a_launch_does_not_make_it_queued() -> None:
    rank = Rank([call(1, 0, 2), call(2, 25, 26), kernel(1, 10, 20), kernel(2, 30, 40)])
    assert why(rank, 28, 30) == {"launching": 2}


def test_work_that_takes_no_time_ends_no_gap() -> None:
    rank = Rank([call(1, 0, 2), call(2, 25, 26), kernel(1, 10, 20), kernel(9, 22, 22), kernel(2, 30, 40)])
    assert why(rank, 20, 30) == {"nothing_recorded": 5, "launching": 5}


def test_every_recording_of_the_shared_folder_is_named() -> None:
    if not SHARED_TRACES.exists():
        pytest.skip("no real traces")
    kineto = {
        str(file.relative_to(SHARED_TRACES))
        for file in SHARED_TRACES.rglob("*.json*")
        if not file.name.endswith("_et.json.gz")
    }
    named = {
        str(file.relative_to(SHARED_TRACES))
        for name in RECORDINGS
        for path in [SHARED_TRACES / name]
        for file in ([path] if path.is_file() else path.glob("*.json*"))
    }
    assert kineto <= named
