"""Launches: every call paired with its work, and the time between split by cause."""

import numpy as np
import pandas as pd
import pytest

from examples.simulator import simulate
from examples.simulator.bundled import JOBS
from hta_widgets.analysis.launches.delays import launch_stats, launch_summary, sentence
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.support import SIMULATED, shared_trace
from tests.trace.helpers import kernel, slice_, write


def call(name, start, dur, correlation, tid=1, category="cuda_runtime"):
    return slice_(name, category, start, dur, tid, correlation=correlation)


def opened(tmp_path, events, repair=True, **metadata):
    return Trace.open(write(tmp_path / "trace.json", events, **metadata), cache=False, repair=repair)


EVENTS = [
    call("cudaLaunchKernel", 0, 4, 1),
    call("cuLaunchKernelEx", 5, 60, 2),
    call("cudaGraphLaunch", 70, 5, 3),
    call("hipExtModuleLaunchKernel", 80, 2, 4),
    call("cudaStreamSynchronize", 90, 20, 9),
    kernel("a", 3, 40, 1),  # starts before its call returns
    kernel("b", 50, 2, 2),  # waits for a until 43
    kernel("g1", 80, 3, 3, stream=8),
    kernel("g2", 83, 3, 3, stream=8),
    kernel("h", 200, 5, 4),
    kernel("orphan", 300, 5, 77),
]


def test_each_event_is_paired_with_its_call(tmp_path):
    frame = launch_stats(opened(tmp_path, EVENTS))
    assert frame["name"].tolist() == ["a", "b", "g1", "g2", "h"]
    assert frame["api"].tolist() == [
        "cudaLaunchKernel", "cuLaunchKernelEx", "cudaGraphLaunch", "cudaGraphLaunch",
        "hipExtModuleLaunchKernel",
    ]  # fmt: skip
    assert frame["launch_id"].tolist() == [0, 1, 2, 2, 3]
    assert frame["event_id"].tolist() == [5, 6, 7, 8, 9]
    assert frame["launch_delay_ns"].tolist() == [-1000, -15000, 5000, 8000, 118000]
    assert frame["latency_ns"].tolist() == [3000, 45000, 10000, 13000, 120000]
    assert frame["queued_ns"].tolist() == [0, 38000, 0, 13000, 0]
    assert (frame["queued_ns"] + frame["overhead_ns"] == frame["latency_ns"]).all()
    assert frame["is_graph"].tolist() == [False, False, True, True, False]
    assert frame["short_kernel"].tolist() == [False, True, True, True, False]
    assert frame["slow_call"].tolist() == [False, True, False, False, False]
    assert frame["delayed"].tolist() == [False, False, False, False, True]
    # a call that launches a graph is longer than most of its kernels, which says nothing
    assert sentence(frame).endswith(" 33.3 % of the 3 that a call launched alone run shorter than it.")
    assert sentence(frame[frame["is_graph"]]).endswith(" after its call began.")


def test_cutoffs_are_the_callers(tmp_path):
    frame = launch_stats(opened(tmp_path, EVENTS), None, 4_999, 4_000)
    assert frame["slow_call"].tolist() == [False, True, True, True, False]
    assert frame["delayed"].tolist() == [False, False, True, True, True]
    # what is just as long as the cutoff is not beyond it
    frame = launch_stats(opened(tmp_path, EVENTS), None, 5_000, 5_000)
    assert frame["slow_call"].tolist() == [False, True, False, False, False]
    assert frame["delayed"].tolist() == [False, False, False, True, True]


def test_work_queues_until_all_that_started_before_it_has_ended(tmp_path):
    """The second kernel of the stream runs beside the first, and ends long before it."""
    calls = [call("cudaLaunchKernel", at, 1, number) for number, at in enumerate((0, 2, 4), 1)]
    kernels = [kernel("a", 10, 40, 1), kernel("b", 20, 5, 2), kernel("c", 60, 5, 3)]
    frame = launch_stats(opened(tmp_path, [*calls, *kernels], repair=False))
    assert frame["queued_ns"].tolist() == [0, 18_000, 46_000]


def test_the_summary_counts_a_graph_call_once(tmp_path):
    frame = launch_summary(opened(tmp_path, EVENTS)).set_index("api")
    graph = frame.loc["cudaGraphLaunch"]
    assert graph[["calls", "graph_calls", "launched", "cpu_ns", "gpu_ns"]].tolist() == [1, 1, 2, 5000, 6000]
    assert graph["mean_launch_delay_ns"] == 6500.0
    assert frame["launched"].sum() == 5
    assert frame.index.tolist() == sorted(frame.index)


def test_nothing_depends_on_the_order_of_events_in_the_file(tmp_path):
    order = np.random.default_rng(3).permutation(len(EVENTS))
    straight = launch_stats(opened(tmp_path / "a", EVENTS))
    shuffled = launch_stats(opened(tmp_path / "b", [EVENTS[i] for i in order]))
    ids = ["launch_id", "event_id"]
    pd.testing.assert_frame_equal(straight.drop(columns=ids), shuffled.drop(columns=ids))


def test_neighbouring_windows_share_no_event_and_lose_none():
    trace = Trace.open(shared_trace("hta/trace_filter"))
    first, last = trace.extent_ns
    middle = (first + last) // 3
    parts = [launch_stats(trace, Scope(window_ns=w)) for w in ((first, middle), (middle, last + 1))]
    whole = launch_stats(trace)
    keys = pd.concat(parts)[["rank", "event_id"]].sort_values(["rank", "event_id"], ignore_index=True)
    pd.testing.assert_frame_equal(
        keys, whole[["rank", "event_id"]].sort_values(["rank", "event_id"], ignore_index=True)
    )


def test_iterations_streams_and_names_pick_events():
    trace = Trace.open(shared_trace("hta/ns_resolution_trace"))
    whole = launch_stats(trace)
    numbers = [int(number) for number in trace.iterations["iteration"].unique()]
    by_iteration = [launch_stats(trace, Scope(iterations=(number,))) for number in numbers]
    inside = trace.rank(0).iteration[trace.rank(0).launch >= 0] >= 0
    assert sum(map(len, by_iteration)) == inside.sum()
    name = str(whole["name"].iloc[0])
    assert set(launch_stats(trace, Scope(names=(name,)))["name"]) == {name}
    assert launch_stats(trace, Scope(streams=(99,))).empty
    assert launch_summary(trace, Scope(streams=(99,))).empty
    assert "No launched" in sentence(launch_stats(trace, Scope(streams=(99,))))


@pytest.mark.parametrize("name", SIMULATED)
def test_launches_of_the_simulated_jobs_are_its_own(name, tmp_path):
    simulation = simulate(JOBS[name])
    simulation.write(tmp_path)
    trace = Trace.open(tmp_path, cache=False)
    frame = launch_stats(trace)
    for rank in simulation.ranks:
        mine = frame[frame["rank"] == rank.index]
        work = sorted(rank.device.work, key=lambda window: (window.launch.start_ns, window.start_ns))
        truth = [
            (item.start_ns - item.launch.start_ns, item.launch.end_ns - item.launch.start_ns,
             item.end_ns - item.start_ns)
            for item in work
        ]  # fmt: skip
        got = zip(mine["latency_ns"], mine["cpu_dur_ns"], mine["gpu_dur_ns"], strict=True)
        assert sorted(map(tuple, got)) == sorted(truth)
        free = {}
        queued = 0
        for rank_trace in sorted(rank.device.work, key=lambda window: window.start_ns):
            until = min(free.get(rank_trace.stream, 0), rank_trace.start_ns)
            queued += max(0, until - rank_trace.launch.start_ns)
            free[rank_trace.stream] = max(free.get(rank_trace.stream, 0), rank_trace.end_ns)
        assert mine["queued_ns"].sum() == queued


# HTA counts cudaLaunchKernel(ExC), memory calls and MTIA's runFunction only; here that is every launch.
@pytest.mark.parametrize("name", ["hta/critical_path/alexnet", "hta/critical_path/simple_add"])
def test_sums_of_hta_on_whole_microseconds(name):
    expected = {
        "hta/critical_path/alexnet": (98, 3113616, 66203),
        "hta/critical_path/simple_add": (98, 4260778, 49816),
    }
    frame = launch_stats(Trace.open(shared_trace(name)))
    assert (len(frame), frame["cpu_dur_ns"].sum() // 1000, frame["gpu_dur_ns"].sum() // 1000) == expected[
        name
    ]


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(MissingDataError, match="device events"):
        launch_stats(opened(tmp_path / "a", EVENTS[:5]))
    with pytest.raises(MissingDataError, match="launch calls"):
        launch_stats(opened(tmp_path / "b", EVENTS[5:]))


def test_words_and_picture(tmp_path):
    frame = launch_stats(opened(tmp_path, EVENTS))
    assert "5 device events" in sentence(frame) and "13.0 µs" in sentence(frame)
    figure = ANALYSES["launch_stats"].figure(frame)
    assert sum(sum(bar.y) for bar in figure.data) == 5
    waiting = (2 * frame["queued_ns"] > frame["latency_ns"]).sum()
    assert {bar.name: sum(bar.y) for bar in figure.data} == {
        "Mostly behind earlier work": waiting,
        "Mostly launching": 5 - waiting,
    }
    ANALYSES["launch_stats"].figure(frame.iloc[:0])
