"""The critical path: hand-made chains with a known cause for every instant, and full cover on real traces."""

import functools
from collections import Counter
from types import SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hta_widgets import examples
from hta_widgets.analysis.critical_path import by_name, path
from hta_widgets.analysis.critical_path.host_time import HostTime
from hta_widgets.analysis.critical_path.path import critical_path
from hta_widgets.analysis.critical_path.summary import critical_path_summary, sentence
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.analysis.replay.kinds import KINDS
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope
from tests.analysis.kineto_file import event, job, kernel
from tests.replay.program import queued
from tests.replay.recordings import ranks_of, recorded
from tests.support import EVERY_CASE, SOME_EXAMPLES, SOME_GPU_TRACES, shared_trace, tried

pytestmark = pytest.mark.slow


def step(end: int, start: int = 0) -> dict:
    return event("user_annotation", "ProfilerStep#1", start, end - start)


def op(name: str, start: int, end: int, tid: int = 1) -> dict:
    return event("cpu_op", name, start, end - start, tid=tid)


def call(name: str, start: int, end: int, tid: int = 1, **args) -> dict:
    return event("cuda_runtime", name, start, end - start, tid=tid, **args)


def work(name: str, start: int, end: int, correlation: int, stream: int = 7, **args) -> dict:
    return kernel(name, start, end - start, stream=stream, correlation=correlation, **args)


def segments(frame) -> list[tuple]:
    columns = ["start_ns", "end_ns", "kind", "name"]
    return [tuple(row) for row in frame[columns].itertuples(index=False)]


def path_of(tmp_path, *events: dict, **options):
    return critical_path(job(tmp_path, list(events)), **options)


def test_a_launch_its_kernel_and_the_wait_for_it(tmp_path):
    frame = path_of(
        tmp_path,
        step(100_000),
        op("aten::mm", 5_000, 22_000),
        call("cudaLaunchKernel", 10_000, 20_000, correlation=1),
        work("gemm", 30_000, 50_000, 1),
        call("cudaDeviceSynchronize", 25_000, 60_000),
    )
    assert segments(frame) == [
        (0, 5_000, "host", "ProfilerStep#1"),
        (5_000, 10_000, "operator", "aten::mm"),
        (10_000, 20_000, "operator", "cudaLaunchKernel"),
        (20_000, 30_000, "launch_delay", "gemm"),
        (30_000, 50_000, "kernel", "gemm"),
        (50_000, 60_000, "sync", "cudaDeviceSynchronize"),  # then nothing but the open step is recorded
    ]
    assert frame["bound_by"].tolist() == [
        "cpu_bound",
        "cpu_bound",
        "cpu_bound",
        "kernel_launch_overhead",
        "gpu_compute_bound",
        "sync",
    ]
    assert frame["inferred"].tolist() == [False] * 5 + [True]
    assert frame["event_id"].tolist() == [0, 1, 2, 3, 3, 4]
    assert frame["stream"].dropna().tolist() == [7, 7]
    assert frame["thread"].tolist() == ["100/1"] * 3 + ["", "", "100/1"]


def test_work_that_runs_on_after_the_window_ends_the_path(tmp_path):
    """The host ran ahead: what the window launched, and what ran before it on the stream, is the path."""
    events = [
        step(50_000),
        call("cudaLaunchKernel", 1_000, 2_000, correlation=1),
        call("cudaLaunchKernel", 3_000, 4_000, correlation=2),
        work("first", 5_000, 40_000, 1),
        work("ncclDevKernel_AllReduce", 41_000, 90_000, 2),
    ]
    frame = critical_path(job(tmp_path, events), Scope(window_ns=(0, 50_000)))
    assert segments(frame)[-4:] == [
        (2_000, 5_000, "launch_delay", "first"),
        (5_000, 40_000, "kernel", "first"),
        (40_000, 41_000, "kernel_kernel", "ncclDevKernel_AllReduce"),
        (41_000, 50_000, "kernel", "ncclDevKernel_AllReduce"),
    ]
    assert frame["bound_by"].tolist()[-2:] == ["kernel_kernel_overhead", "gpu_communication_bound"]


def test_one_graph_launch_has_many_kernels(tmp_path):
    frame = path_of(
        tmp_path,
        step(60_000),
        call("cudaGraphLaunch", 0, 10_000, correlation=1),
        work("a", 12_000, 20_000, 1),
        work("b", 21_000, 30_000, 1),
        work("c", 30_000, 60_000, 1),
    )
    assert segments(frame) == [
        (0, 10_000, "operator", "cudaGraphLaunch"),
        (10_000, 12_000, "launch_delay", "a"),
        (12_000, 20_000, "kernel", "a"),
        (20_000, 21_000, "kernel_kernel", "b"),
        (21_000, 30_000, "kernel", "b"),
        (30_000, 60_000, "kernel", "c"),
    ]


def two_streams() -> list[dict]:
    return [
        step(90_000),
        call("cudaLaunchKernel", 0, 1_000, correlation=1),
        call("cudaLaunchKernel", 5_000, 6_000, correlation=2),
        work("producer", 2_000, 60_000, 1, stream=20),
        work("consumer", 61_000, 90_000, 2, stream=7),
    ]


def test_a_wait_between_streams_is_inferred_where_none_are_recorded(tmp_path):
    frame = path_of(tmp_path, *two_streams())
    assert segments(frame)[-3:] == [
        (2_000, 60_000, "kernel", "producer"),
        (60_000, 61_000, "dependency", "consumer"),
        (61_000, 90_000, "kernel", "consumer"),
    ]
    assert frame["inferred"].tolist()[-3:] == [False, True, False]


def test_no_wait_is_inferred_where_a_launch_takes_as_long(tmp_path):
    """The consumer started 5 us after its launch, as any kernel may: the producer's end is a coincidence."""
    prompt = [
        step(90_000),
        call("cudaLaunchKernel", 0, 1_000, correlation=1),
        call("cudaLaunchKernel", 55_000, 56_000, correlation=2),
        work("producer", 2_000, 60_000, 1, stream=20),
        work("consumer", 61_000, 90_000, 2, stream=7),
    ]
    frame = path_of(tmp_path, *prompt)
    assert segments(frame)[-2] == (56_000, 61_000, "launch_delay", "consumer")
    assert not frame["inferred"].any()


def test_without_a_selection_it_is_the_first_whole_step(tmp_path):
    events = []
    for number, launches in enumerate((1, 4, 4)):
        start = 100_000 * number
        events.append(event("user_annotation", f"ProfilerStep#{number}", start, 100_000))
        for at in range(launches):
            begins, correlation = start + 10_000 * at, 10 * number + at + 1
            events.append(call("cudaLaunchKernel", begins, begins + 1_000, correlation=correlation))
            events.append(work("gemm", begins + 2_000, begins + 9_000, correlation))
    frame = path_of(tmp_path, *events)
    assert (frame["start_ns"].iloc[0], frame["end_ns"].iloc[-1]) == (100_000, 200_000)


def test_a_collective_waits_for_what_it_exchanges(tmp_path):
    """It was launched long before its stream could start it: after the gradients on the other stream."""
    frame = path_of(
        tmp_path,
        step(90_000),
        call("cudaLaunchKernel", 0, 1_000, correlation=1),
        call("cudaLaunchKernel", 2_000, 3_000, correlation=2),
        work("gradients", 4_000, 30_000, 1, stream=7),
        work("ncclDevKernel_AllReduce", 60_000, 90_000, 2, stream=20),
    )
    assert segments(frame)[-3:] == [
        (4_000, 30_000, "kernel", "gradients"),
        (30_000, 60_000, "dependency", "ncclDevKernel_AllReduce"),
        (60_000, 90_000, "kernel", "ncclDevKernel_AllReduce"),
    ]
    assert frame["inferred"].tolist()[-3:] == [False, True, False]


def test_a_launch_into_a_full_queue_waits_for_an_earlier_one(tmp_path):
    """The queue holds 1,000 launches: the last of 1,500 returns when the 500th kernel is done."""
    events = queued(1_500, holds=1_000)
    done = (
        5_000 + 500 * 11_000 - 1_000
    )  # the first kernel starts after 5 us; each takes 10, and 1 to the next
    returned = done + 700
    after = op("aten::more", returned, 30_000_000)
    frame = critical_path(job(tmp_path, [*events, after]), Scope(window_ns=(0, 30_000_000)))
    assert segments(frame)[-3:] == [
        (done - 10_000, done, "kernel", "k499"),
        (done, returned, "sync", "cudaLaunchKernel"),
        (returned, 30_000_000, "operator", "aten::more"),
    ]
    assert frame["inferred"].tolist()[-3:] == [False, True, False]


def unlaunched(*other: dict, until: int = 50_000) -> list[dict]:
    """Two kernels without a launch, 300 us apart if the first ends after 50, and one with."""
    return [
        step(500_000),
        op("aten::mm", 100_000, 200_000),
        work("first", 10_000, until, 8),
        work("second", 350_000, 400_000, 9),
        call("cudaLaunchKernel", 0, 1_000, correlation=1),
        work("third", 401_000, 500_000, 1),
        *other,
    ]


def test_work_without_a_launch_that_an_idle_device_begins_is_taken_for_the_hosts(tmp_path):
    frame = path_of(tmp_path, *unlaunched())
    assert segments(frame)[2:8] == [
        (10_000, 50_000, "kernel", "first"),
        (50_000, 100_000, "host", "ProfilerStep#1"),
        (100_000, 200_000, "operator", "aten::mm"),
        (200_000, 350_000, "host", "ProfilerStep#1"),
        (350_000, 400_000, "kernel", "second"),
        (400_000, 401_000, "kernel_kernel", "third"),
    ]
    # Nor is it known what the first waited for.
    assert frame["inferred"].tolist() == [True, True, False, True, True, True, False, False, False]


def test_work_without_a_launch_that_starts_at_once_follows_its_stream(tmp_path):
    frame = path_of(tmp_path, *unlaunched(until=330_000))
    assert segments(frame)[3] == (330_000, 350_000, "kernel_kernel", "second")
    frame = path_of(tmp_path, *unlaunched(until=329_999))
    assert segments(frame)[3] == (329_999, 350_000, "host", "ProfilerStep#1")


def test_work_without_a_launch_may_wait_for_what_else_the_device_does(tmp_path):
    frame = path_of(tmp_path, *unlaunched(work("beside", 52_000, 300_000, 10, stream=20)))
    assert segments(frame)[3] == (50_000, 350_000, "kernel_kernel", "second")
    assert frame["inferred"].tolist()[3]


def test_a_short_pause_of_a_thread_is_its_own(tmp_path):
    """The other thread ended something in it, but a pause of 50 us needs no cause."""

    def frame(pause: int):
        events = [
            step(200_000),
            call("cudaLaunchKernel", 0, 10_000, correlation=1),
            work("a", 12_000, 13_000, 1),
            op("aten::other", 14_000, 40_000, tid=2),
            call("cudaLaunchKernel", 30_000, 35_000, tid=2, correlation=2),
            work("b", 36_000, 37_000, 2),
            call("cudaLaunchKernel", 10_000 + pause, 20_000 + pause, correlation=3),
            work("c", 22_000 + pause, 200_000, 3),
        ]
        return path_of(tmp_path, *events)

    assert (10_000, 60_000, "host", "ProfilerStep#1") in segments(frame(50_000))
    assert (40_000, 60_001, "host", "ProfilerStep#1") in segments(frame(50_001))
    assert frame(50_001)["thread"].tolist()[1:5] == ["100/2"] * 4


def test_no_wait_is_inferred_between_devices(tmp_path):
    *others, consumer = two_streams()
    elsewhere = {**consumer, "pid": 1, "args": {**consumer["args"], "device": 1}}
    frame = path_of(tmp_path, *others, elsewhere)
    assert segments(frame)[-2] == (6_000, 61_000, "launch_delay", "consumer")


def test_a_recorded_wait_between_streams_is_a_fact(tmp_path):
    waits = {"wait_on_stream": 20, "wait_on_cuda_event_record_corr_id": 10}
    frame = path_of(
        tmp_path,
        *two_streams(),
        call("cudaEventRecord", 2_000, 3_000, correlation=10),
        call("cudaStreamWaitEvent", 3_500, 4_000, correlation=11),
        kernel("Stream Wait Event", 3_500, 0, stream=7, cat="cuda_sync", correlation=11, **waits),
    )
    assert segments(frame)[-2][2] == "dependency"
    assert not frame["inferred"].any()


def test_a_wait_holds_for_what_another_thread_launches_next(tmp_path):
    """A stream is ordered by calls, whichever thread makes them: autograd waits, the main thread goes on."""
    waits = {"wait_on_stream": 20, "wait_on_cuda_event_record_corr_id": 10}
    frame = path_of(
        tmp_path,
        *two_streams(),
        call("cudaEventRecord", 2_000, 3_000, correlation=10, tid=2),
        call("cudaStreamWaitEvent", 3_500, 4_000, correlation=11, tid=2),
        kernel("Stream Wait Event", 3_500, 0, stream=7, cat="cuda_sync", correlation=11, **waits),
    )
    assert segments(frame)[-2][2] == "dependency"
    assert not frame["inferred"].any()


def test_with_waits_recorded_none_is_inferred(tmp_path):
    other = kernel("Context Sync", 95_000, 1, cat="cuda_sync", correlation=99)
    frame = path_of(tmp_path, *two_streams(), other)
    assert segments(frame)[-2] == (6_000, 61_000, "launch_delay", "consumer")


def test_a_wait_that_was_asked_for_but_not_recorded_is_inferred(tmp_path):
    """The profiler may record what calls wait for and leave out what streams do."""
    asked = call("cudaStreamWaitEvent", 3_500, 4_000, correlation=11)
    other = kernel("Context Sync", 95_000, 1, cat="cuda_sync", correlation=99)
    frame = path_of(tmp_path, *two_streams(), asked, other)
    assert segments(frame)[-2] == (60_000, 61_000, "dependency", "consumer")
    assert frame["inferred"].tolist()[-2]


def test_an_event_sync_waits_for_what_was_launched_before_its_record(tmp_path):
    """A later kernel on the stream still runs: it is not what the call waited for."""
    waits = {"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 10}
    frame = path_of(
        tmp_path,
        step(100_000),
        call("cudaLaunchKernel", 0, 1_000, correlation=1),
        call("cudaEventRecord", 2_000, 3_000, correlation=10),
        call("cudaLaunchKernel", 4_000, 5_000, correlation=2),
        work("awaited", 6_000, 30_000, 1),
        work("quick", 30_000, 33_000, 2),
        call("cudaEventSynchronize", 8_000, 35_000, correlation=12),
        kernel("Event Sync", 8_000, 27_000, stream=-1, cat="cuda_sync", correlation=12, **waits),
    )
    assert (30_000, 35_000, "sync", "cudaEventSynchronize") in segments(frame)
    assert "quick" not in frame["name"].tolist()
    assert not frame["inferred"].any()


def test_a_copy_that_returns_when_it_is_done(tmp_path):
    frame = path_of(
        tmp_path,
        step(50_000),
        call("cudaLaunchKernel", 0, 2_000, correlation=1),
        work("gemm", 3_000, 30_000, 1),
        call("cudaMemcpyAsync", 4_000, 45_000, correlation=2),
        work("Memcpy DtoH", 31_000, 40_000, 2, cat="gpu_memcpy"),
    )
    assert segments(frame) == [
        (0, 2_000, "operator", "cudaLaunchKernel"),
        (2_000, 3_000, "launch_delay", "gemm"),
        (3_000, 30_000, "kernel", "gemm"),
        (30_000, 31_000, "kernel_kernel", "Memcpy DtoH"),
        (31_000, 40_000, "kernel", "Memcpy DtoH"),
        (40_000, 45_000, "sync", "cudaMemcpyAsync"),
    ]
    assert frame["bound_by"].tolist()[4] == "gpu_memory_bound"


def test_a_copy_in_pieces_returns_when_the_last_is_done(tmp_path):
    frame = path_of(
        tmp_path,
        step(50_000),
        call("cudaMemcpyAsync", 4_000, 45_000, correlation=2),
        work("Memcpy DtoH", 31_000, 40_000, 2, cat="gpu_memcpy"),
        work("Memcpy DtoH", 10_000, 30_000, 2, stream=8, cat="gpu_memcpy"),
    )
    assert segments(frame)[-1] == (40_000, 45_000, "sync", "cudaMemcpyAsync")


def test_threads_that_take_turns(tmp_path):
    """The backward pass has its own thread, on which nothing happens before the forward pass is over."""
    frame = path_of(
        tmp_path,
        step(100_000),
        op("forward", 0, 30_000),
        call("cudaLaunchKernel", 1_000, 2_000, correlation=1),
        work("f", 3_000, 4_000, 1),
        op("backward", 35_000, 80_000, tid=2),
        call("cudaLaunchKernel", 40_000, 42_000, tid=2, correlation=2),
        work("b", 43_000, 44_000, 2),
        op("optimizer", 85_000, 100_000),
    )
    assert segments(frame) == [
        (0, 1_000, "operator", "forward"),
        (1_000, 2_000, "operator", "cudaLaunchKernel"),
        (2_000, 30_000, "operator", "forward"),
        (30_000, 35_000, "host", "(no operator recorded)"),
        (35_000, 40_000, "operator", "backward"),
        (40_000, 42_000, "operator", "cudaLaunchKernel"),
        (42_000, 80_000, "operator", "backward"),
        (80_000, 85_000, "host", "ProfilerStep#1"),
        (85_000, 100_000, "operator", "optimizer"),
    ]
    assert frame["inferred"].sum() == 2


def test_a_thread_goes_on_when_the_other_ended_while_it_rested(tmp_path):
    """What another thread ends while this one works did not let it go on."""
    frame = path_of(
        tmp_path,
        step(150_000),
        call("cudaLaunchKernel", 1_000, 2_000, correlation=1),
        work("f", 3_000, 4_000, 1),
        call("cudaLaunchKernel", 20_000, 22_000, tid=2, correlation=2),
        work("b", 23_000, 24_000, 2),
        op("backward", 5_000, 40_000, tid=2),
        op("cleanup", 45_000, 60_000, tid=2),
        op("optimizer", 50_000, 150_000),
        call("cudaLaunchKernel", 80_000, 82_000, correlation=3),
        work("o", 83_000, 84_000, 3),
    )
    assert segments(frame)[4:7] == [
        (20_000, 22_000, "operator", "cudaLaunchKernel"),
        (22_000, 40_000, "operator", "backward"),
        (40_000, 50_000, "host", "ProfilerStep#1"),
    ]
    assert frame["inferred"].tolist()[4:8] == [False, False, True, False]


def test_a_window_that_ends_after_all_that_the_graph_knows(tmp_path):
    """Of the threads busy then the one that launches most went on when another had launched."""
    frame = path_of(
        tmp_path,
        call("cudaLaunchKernel", 0, 2_000, correlation=1),
        work("f", 3_000, 4_000, 1),
        call("cudaLaunchKernel", 5_000, 6_000, correlation=2),
        work("g", 7_000, 8_000, 2),
        call("cudaLaunchKernel", 110_000, 112_000, tid=2, correlation=3),
        work("b", 113_000, 114_000, 3),
        op("report", 150_000, 200_000),
        op("worker", 100_000, 200_000, tid=3),
        scope=Scope(window_ns=(0, 200_000)),
    )
    assert segments(frame)[-3:] == [
        (110_000, 112_000, "operator", "cudaLaunchKernel"),
        (112_000, 150_000, "host", "(no operator recorded)"),
        (150_000, 200_000, "operator", "report"),
    ]
    assert frame["thread"].tolist()[-3:] == ["100/2", "100/1", "100/1"]


def test_host_time_inside_the_data_loader_is_data_loading(tmp_path):
    frame = path_of(
        tmp_path,
        step(50_000),
        event("user_annotation", "enumerate(DataLoader)#_Iter.__next__", 0, 20_000),
        op("aten::stack", 5_000, 10_000),
        call("cudaLaunchKernel", 25_000, 30_000, correlation=1),
        work("gemm", 31_000, 32_000, 1),
    )
    by = critical_path_summary(frame).set_index("bound_by")["dur_ns"]
    assert by["data_loading"] == 20_000
    other = path_of(
        tmp_path,
        step(50_000),
        op("aten::stack", 5_000, 10_000),
        call("cudaLaunchKernel", 25_000, 30_000, correlation=1),
        work("gemm", 31_000, 32_000, 1),
        data_loading=("stack$",),
    )
    assert other.loc[other["bound_by"] == "data_loading", "dur_ns"].tolist() == [5_000]


def test_windows_annotations_and_ranks(tmp_path):
    events = [
        step(50_000),
        event("user_annotation", "inner", 30_000, 10_000),
        event("user_annotation", "inner", 10_000, 10_000),
        call("cudaLaunchKernel", 12_000, 15_000, correlation=1),
        work("gemm", 16_000, 17_000, 1),
    ]
    trace = job(tmp_path, events, events)
    assert critical_path(trace).groupby("rank")["dur_ns"].sum().to_dict() == {0: 40_000, 1: 40_000}
    inner = critical_path(trace, Scope(ranks=(1,)), annotation="inner", instance=1)
    assert (inner["start_ns"].min(), inner["end_ns"].max(), set(inner["rank"])) == (30_000, 40_000, {1})
    window = critical_path(trace, Scope(window_ns=(13_000, 16_500), ranks=(0,)))
    assert segments(window) == [
        (13_000, 15_000, "operator", "cudaLaunchKernel"),
        (15_000, 16_000, "launch_delay", "gemm"),
        (16_000, 16_500, "kernel", "gemm"),
    ]
    with pytest.raises(ValueError, match="2 instances"):
        critical_path(trace, annotation="inner", instance=2)
    assert critical_path(trace, Scope(ranks=(9,))).empty
    assert sentence(critical_path(trace, Scope(ranks=(9,)))) == "The selection holds no time."


def test_without_launches_it_abstains(tmp_path):
    with pytest.raises(MissingDataError, match="ProfilerActivity"):
        path_of(tmp_path, step(10_000), op("aten::mm", 0, 5_000))
    with pytest.raises(MissingDataError, match="launch"):
        path_of(tmp_path, step(10_000), kernel("gemm", 0, 5_000))


def test_summary_sentence_and_figure(tmp_path):
    frame = path_of(
        tmp_path,
        step(100_000),
        call("cudaLaunchKernel", 0, 10_000, correlation=1),
        work("gemm<float>", 10_000, 90_000, 1),
        call("cudaDeviceSynchronize", 20_000, 100_000),
    )
    summary = critical_path_summary(frame)
    assert summary["bound_by"].tolist() == ["gpu_compute_bound", "cpu_bound", "sync"]
    assert summary["dur_ns"].tolist() == [80_000, 10_000, 10_000]
    assert summary["share_pct"].sum() == pytest.approx(100)
    assert critical_path_summary(frame, "name").iloc[0]["name"] == "gemm<float>"
    assert sentence(frame) == (
        "The path leads through compute kernels for 80.0 % of 100 µs. The longest item on it is gemm<float> "
        "(80.0 %)."
    )
    with pytest.raises(ValueError, match="bound_by"):
        critical_path_summary(frame, "rank")
    figure = ANALYSES["critical_path"].figure(frame)
    assert {bar.name for bar in figure.data} == {"Compute", "Host", "Synchronisation"}
    assert "gemm&lt;float&gt;" in [name for bar in figure.data for name in bar.customdata]
    assert sum(sum(bar.x) for bar in figure.data) == pytest.approx(0.1)


def test_what_delays_a_kernel_is_not_called_the_kernel(tmp_path):
    """The device begins 80 us after the call, and then computes for 5 us."""
    trace = job(
        tmp_path,
        [
            step(100_000),
            call("cudaLaunchKernel", 0, 10_000, correlation=1),
            work("gemm<float>", 90_000, 95_000, 1),
            call("cudaDeviceSynchronize", 20_000, 100_000),
        ],
    )
    said = sentence(critical_path(trace))
    assert said.endswith("The longest item on it is the launch delay of gemm<float> (80.0 %).")
    assert by_name.sentence(by_name.critical_path_by_name(trace)) == (
        "Longest on the path is the launch delay of gemm<float>: 80.0 % of it, in 1 segment."
    )


def test_shares_are_of_each_ranks_own_path(tmp_path):
    def events(end: int) -> list[dict]:
        return [
            step(end),
            call("cudaLaunchKernel", 0, end // 10, correlation=1),
            work("gemm", end // 10, end, 1),
        ]

    summary = critical_path_summary(critical_path(job(tmp_path, events(10_000), events(90_000))))
    assert summary[["rank", "bound_by", "share_pct"]].to_numpy().tolist() == [
        [0, "gpu_compute_bound", 90.0], [0, "cpu_bound", 10.0],
        [1, "gpu_compute_bound", 90.0], [1, "cpu_bound", 10.0],
    ]  # fmt: skip


def test_of_two_ranks_the_one_whose_path_it_is_most_of_is_named(tmp_path):
    def events(launch: int) -> list[dict]:
        return [
            step(10_000),
            call("cudaLaunchKernel", 0, launch, correlation=1),
            work("gemm", launch, 10_000, 1),
        ]

    frame = critical_path(job(tmp_path, events(3_000), events(1_000)))
    assert " for 80.0 % of 20.0 µs. On rank 1 it is most, 90.0 %. The longest" in sentence(frame)
    assert "On rank" not in sentence(frame[frame["rank"] == 1])


def slow_chain(graph, until: int) -> Counter[str]:
    """ns of the chain back from the last node, by kind of edge: read from the definition, edge by edge."""
    first, source, kind = graph.first.tolist(), graph.source.tolist(), graph.kind.tolist()
    time, length = graph.time.tolist(), (graph.weight + graph.residual).tolist()
    node = max(range(len(time)), key=lambda node: (time[node], node))
    found: Counter[str] = Counter()
    now = time[node]
    while node:
        causes = [e for e in range(first[node], first[node + 1]) if time[source[e]] + length[e] == time[node]]
        if not causes:
            break
        cause = causes[-1]
        begun = min(now, time[source[cause]])
        found[KINDS[kind[cause]]] += now - begun
        now, node = begun, source[cause]
    assert now == until
    return found


UNLIKE = [*(f"shared:{name}" for name in SOME_GPU_TRACES), *(f"example:{name}" for name in SOME_EXAMPLES)]


@pytest.mark.parametrize("name", UNLIKE)
def test_the_path_of_a_whole_recording_is_what_binds_its_replay(name):
    """The kinds of time that segments do not share out by what the host did then."""
    for rank_trace, graph in ranks_of(recorded(name)):
        if not (rank_trace.launch >= 0).any():
            continue
        last = graph.origin_ns + graph.extent
        frame = critical_path(
            recorded(name), Scope(ranks=(rank_trace.rank,), window_ns=(graph.origin_ns, last))
        )
        slow = slow_chain(graph, until=0)
        by_kind = Counter(frame.groupby("kind")["dur_ns"].sum().to_dict())
        assert by_kind["kernel"] == slow["device"]
        assert by_kind["sync"] == slow["sync"] + slow["copy"] + slow["queue"]
        assert by_kind["dependency"] == slow["wait"] + slow["collective"] + slow["late"]
        assert slow["stream"] <= by_kind["kernel_kernel"] <= slow["stream"] + slow["orphan"]
        assert by_kind["launch_delay"] <= slow["launch"] + slow["launch_first"]
        assert sum(by_kind.values()) == sum(slow.values()) == graph.extent


@pytest.mark.parametrize("name", ["hta/trace_diff/control", "kineto/resnet50_num_workers_0", "hta/amd_trace"])
def test_host_time_is_that_of_the_innermost_call(name):
    """Of some segments, against all calls on their thread: the one that began last of those still open."""
    trace = opened(name)
    rank = trace.ranks[0]
    frame = critical_path(trace, Scope(ranks=(rank,), window_ns=trace.extent_ns))
    frame = frame[frame["kind"].isin(["operator", "host"])]
    rank_trace = trace.rank(rank)
    on_host = ~rank_trace.is_device & (rank_trace.stream == NULL) & (rank_trace.dur > 0)
    for segment in frame.sample(min(len(frame), 200), random_state=3).itertuples():
        pid, tid = segment.thread.split("/")
        on_thread = (rank_trace.pid == rank_trace.pids.index(pid)) & (
            rank_trace.tid == rank_trace.tids.index(tid)
        )
        inside = (rank_trace.start <= segment.start_ns) & (rank_trace.end >= segment.end_ns)
        around = np.flatnonzero(on_host & on_thread & inside)
        if segment.event_id < 0:
            assert segment.name == "(no operator recorded)" and not len(around)
            continue
        innermost = max(around.tolist(), key=lambda row: (rank_trace.start[row], -rank_trace.end[row]))
        assert rank_trace.start[innermost] == rank_trace.start[segment_row(rank_trace, segment.event_id)]


def segment_row(rank_trace, event_id: int) -> int:
    return int(np.flatnonzero(rank_trace.event_id == event_id)[0])


def assert_covers(frame, first: int, last: int) -> None:
    assert frame["dur_ns"].sum() == last - first
    assert frame["start_ns"].iloc[0] == first
    assert frame["end_ns"].iloc[-1] == last
    assert (frame["start_ns"].to_numpy()[1:] == frame["end_ns"].to_numpy()[:-1]).all()
    assert (frame["dur_ns"] > 0).all()


def assert_all_covered(trace: Trace, scope: Scope) -> None:
    frame = critical_path(trace, scope)
    for rank in trace.ranks_of(scope):
        rows = frame[frame["rank"] == rank]
        if not (trace.rank(rank).launch >= 0).any():
            continue
        for first, last in trace.rank(rank).windows(scope).tolist():
            inside = rows[(rows["start_ns"] >= first) & (rows["end_ns"] <= last)]
            assert_covers(inside, first, last)
    assert critical_path_summary(frame)["dur_ns"].sum() == frame["dur_ns"].sum()


@functools.cache
def opened(name: str) -> Trace:
    return Trace.open(shared_trace(name))


@pytest.mark.parametrize("name", SOME_GPU_TRACES)
def test_the_path_covers_every_window_to_the_nanosecond(name):
    trace = opened(name)
    for iteration in sorted(trace.iterations["iteration"].unique())[: 4 if EVERY_CASE else 2]:
        assert_all_covered(trace, Scope(iterations=(int(iteration),)))
    first, last = trace.extent_ns
    assert_all_covered(trace, Scope(window_ns=(first, last)))
    random = np.random.default_rng(3)
    for _ in range(5 if EVERY_CASE else 2):
        low, high = np.sort(random.integers(first - 1000, last + 1000, 2)).tolist()
        if low < high:
            assert_all_covered(trace, Scope(window_ns=(low, high)))


@pytest.mark.parametrize("name", SOME_EXAMPLES)
def test_the_path_covers_simulated_steps(name):
    trace = examples.load(name)
    steps = sorted(trace.iterations["iteration"].unique())
    for iteration in steps if EVERY_CASE else steps[:4]:
        assert_all_covered(trace, Scope(iterations=(int(iteration),)))


def test_a_stalling_data_loader_is_on_the_path():
    frame = critical_path(examples.load("single_gpu_dataloader_stall"))
    assert critical_path_summary(frame).iloc[0]["bound_by"] == "data_loading"


times = st.tuples(st.integers(0, 60), st.integers(0, 20))


def test_many_windows_are_followed_back_once_and_made_into_one_table(tmp_path, monkeypatch):
    """What a window costs depends on its own events, not on those of the whole trace."""
    events = []
    for number in range(200):
        at = number * 100_000
        events += [
            event("user_annotation", f"ProfilerStep#{number}", at, 100_000),
            op("aten::mm", at + 5_000, at + 22_000),
            call("cudaLaunchKernel", at + 10_000, at + 20_000, correlation=number + 1),
            work("gemm", at + 30_000, at + 50_000, number + 1),
            call("cudaDeviceSynchronize", at + 25_000, at + 60_000),
        ]
    trace = job(tmp_path, events)
    steps, passes = [], {"segments_of": 0, "table_of": 0}
    chain_of = path.chain_of

    def chained(*arguments):
        chain = chain_of(*arguments)
        steps.append(len(chain.start))
        return chain

    def counted(name):
        function = getattr(path, name)

        def counting(*arguments):
            passes[name] += 1
            return function(*arguments)

        return counting

    monkeypatch.setattr(path, "chain_of", chained)
    for name in passes:
        monkeypatch.setattr(path, name, counted(name))
    frame = critical_path(trace, Scope(iterations=tuple(range(200))))
    assert len(steps) == 200
    assert max(steps) <= 10
    assert passes == {"segments_of": 1, "table_of": 1}
    assert int(frame["dur_ns"].sum()) == 200 * 100_000


@settings(max_examples=tried(25), deadline=None)
@given(
    host=st.lists(
        st.tuples(times, st.integers(1, 3), st.sampled_from(["op", "launch", "sync"])),
        min_size=1,
        max_size=12,
    ),
    device=st.lists(st.tuples(times, st.integers(0, 2), st.integers(0, 11)), min_size=1, max_size=12),
)
def test_any_tangle_of_events_is_covered(tmp_path_factory, host, device):
    """Overlaps, ties, events without length, kernels before their launch: the walk ends and has no gap."""
    events = [step(70)]
    for number, ((start, dur), tid, kind) in enumerate(host):
        name = {"op": "aten::mm", "launch": "cudaLaunchKernel", "sync": "cudaDeviceSynchronize"}[kind]
        cat = "cpu_op" if kind == "op" else "cuda_runtime"
        events.append(event(cat, name, start, dur, tid=tid, correlation=number + 1))
    events += [
        kernel(f"k{start}", start, dur, stream=stream, correlation=of + 1)
        for (start, dur), stream, of in device
    ]
    trace = job(tmp_path_factory.mktemp("tangle"), events)
    if (trace.rank(0).launch >= 0).any():
        (whole,) = trace.iterations[["start_ns", "end_ns"]].to_numpy().tolist()
        # what is recorded last ends the only step, on either clock
        assert whole[0] >= 0 and (whole[1] <= 70 or trace.rank(0).iteration_clock == "device")
        assert_covers(critical_path(trace), *whole)
        assert_covers(critical_path(trace, Scope(window_ns=(10, 40))), 10, 40)


def test_names_that_take_equally_long_stand_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    segments = [
        (1, "kernel", "b", 30), (0, "launch", "a", 30), (0, "kernel", "b", 20), (0, "kernel", "a", 30),
        (0, "kernel", "b", 10), (0, "idle", "", 40),
    ]  # fmt: skip
    found = pd.DataFrame(segments, columns=["rank", "bound_by", "name", "dur_ns"])
    found["start_ns"], found["event_id"] = range(len(found)), -1
    monkeypatch.setattr(by_name, "critical_path", lambda *_: found)
    trace = cast("Trace", SimpleNamespace(rank=lambda _: None))
    rows = by_name.critical_path_by_name(trace)
    assert list(rows[["rank", "bound_by", "name", "dur_ns"]].itertuples(index=False, name=None)) == [
        (0, "idle", "", 40), (0, "kernel", "a", 30), (0, "kernel", "b", 30), (0, "launch", "a", 30),
        (1, "kernel", "b", 30),
    ]  # fmt: skip
    assert rows["count"].tolist() == [1, 1, 2, 1, 1]
    assert rows["share_pct"].round(3).tolist() == [30.769, 23.077, 23.077, 23.077, 100.0]
    assert by_name.critical_path_by_name(trace, top=0).empty


def test_a_thread_without_calls_has_no_time():
    none = np.zeros(3, np.int64)
    two = HostTime(none, none, none > 0, np.array([0, 1, 3]), np.array([2, 5]), none)
    assert {thread: two.of_thread(thread) for thread in (1, 2, 3, 5, 9)} == {
        1: slice(0, 0), 2: slice(0, 1), 3: slice(0, 0), 5: slice(1, 3), 9: slice(0, 0),
    }  # fmt: skip
