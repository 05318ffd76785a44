"""Idle time of a device: causes on hand-made traces, exactness against a sweep by instants, real traces."""

import functools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hta_widgets import examples
from hta_widgets.analysis import temporal_breakdown
from hta_widgets.analysis.idle import breakdown as idle
from hta_widgets.analysis.idle import gaps
from hta_widgets.analysis.idle.breakdown import idle_breakdown
from hta_widgets.analysis.idle.causes import CAUSES, is_data_loading, is_synchronising
from hta_widgets.analysis.idle.gaps import explain, idle_gaps
from hta_widgets.analysis.idle.streams import stream_idle_breakdown, stream_idle_intervals
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.support import shared_trace, tried
from tests.trace.helpers import kernel, slice_, write

US = 1000
PARTS = [f"{cause}_ns" for cause in CAUSES]
REAL = [
    "hta/trace_filter",
    "hta/trace_diff/control",
    "hta/trace_diff/test",
    "hta/ns_resolution_trace",
    "hta/critical_path/alexnet",
    "hta/mtia_inference_trace",
    "hta/amd_trace",
    "kineto/resnet50_num_workers_0",
    "tracelens/inference/sglang_decode",
    "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
]


@functools.cache
def opened(name: str) -> Trace:
    return Trace.open(shared_trace(name))


def call(name, start, dur, correlation=0, tid=1):
    return slice_(name, "cuda_runtime", start, dur, tid, correlation=correlation)


def trace_of(tmp_path, events, repair=True, **metadata):
    return Trace.open(write(tmp_path / "trace.json", events, **metadata), cache=False, repair=repair)


def causes_of(trace, scope=None):
    """The causes that have any time, in us."""
    row = idle_breakdown(trace, scope).iloc[0]
    assert row[PARTS].sum() == row["idle_ns"]
    return {cause: row[f"{cause}_ns"] / US for cause in CAUSES if row[f"{cause}_ns"]}


# -- the causes, worked out on paper ------------------------------------------------------------------

FIRST = [call("cudaLaunchKernel", 0, 3, 1), kernel("k1", 10, 10, 1)]


def test_a_late_host_is_classified_by_what_it_did(tmp_path):
    events = [
        *FIRST,
        call("cudaStreamSynchronize", 15, 10),
        slice_("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "user_annotation", 24, 6),
        call("cudaLaunchKernel", 32, 3, 2),
        kernel("k2", 38, 5, 2),
    ]
    expected = {"host_sync": 5, "data_stall": 5, "host_busy": 2, "launch_latency": 6}
    assert causes_of(trace_of(tmp_path, events)) == expected
    frame = idle_breakdown(trace_of(tmp_path, events))
    assert frame["host_wait_ns"].tolist() == [12 * US]
    assert frame["gaps"].tolist() == [1]
    assert frame["busy_ns"].tolist() == [15 * US]
    assert frame["idle_pct"].tolist() == [pytest.approx(100 * 18 / 33)]
    assert frame["host_sync_pct"].tolist() == [pytest.approx(100 * 5 / 18)], "a share of the idle time"


def test_neighbouring_iterations_share_the_gap_between_them(tmp_path):
    steps = [slice_(f"ProfilerStep#{k}", "user_annotation", 22 * k, 22) for k in range(2)]
    events = [*steps, *FIRST, call("cudaLaunchKernel", 32, 3, 2), kernel("k2", 38, 6, 2)]
    trace = trace_of(tmp_path, events)
    assert idle_breakdown(trace, by="iteration")["gaps"].tolist() == [2, 1]
    assert idle_breakdown(trace, Scope(iterations=(0, 1)))["gaps"].tolist() == [2]


def test_work_that_was_queued_waits_for_the_device(tmp_path):
    launch = call("cudaLaunchKernel", 12, 3, 2)
    short = trace_of(tmp_path / "short", [*FIRST, launch, kernel("k2", 22, 5, 2)])
    assert causes_of(short) == {"kernel_wait": 2}
    long = trace_of(tmp_path / "long", [*FIRST, launch, kernel("k2", 70, 5, 2)])
    assert causes_of(long) == {"device_wait": 50}
    assert idle_breakdown(long, consecutive_kernel_delay_ns=50_001)["kernel_wait_ns"].tolist() == [50 * US]
    assert idle_breakdown(long, consecutive_kernel_delay_ns=50_000)["device_wait_ns"].tolist() == [50 * US]


def test_how_long_work_was_queued_before_a_gap_does_not_matter(tmp_path):
    """Launched 500 us before the gap of 10 us: what is compared with the delay is the gap."""
    events = [
        call("cudaLaunchKernel", 0, 3, 1), call("cudaLaunchKernel", 4, 3, 2), kernel("k1", 10, 500, 1),
        kernel("k2", 520, 5, 2),
    ]  # fmt: skip
    trace = trace_of(tmp_path, events)
    for delay, cause in ((10_001, "kernel_wait"), (10_000, "device_wait")):
        frame = idle_breakdown(trace, consecutive_kernel_delay_ns=delay)
        assert frame[f"{cause}_ns"].tolist() == [10 * US]


def test_a_launch_that_is_being_made_is_latency(tmp_path):
    """The call begins before the gap and returns within it."""
    events = [*FIRST, call("cudaLaunchKernel", 18, 5, 2), kernel("k2", 24, 5, 2)]
    assert causes_of(trace_of(tmp_path, events)) == {"launch_latency": 4}


def test_a_launch_that_takes_too_long_to_arrive_waits_for_the_device(tmp_path):
    events = [*FIRST, call("cudaLaunchKernel", 25, 5, 2), kernel("k2", 80, 5, 2)]
    assert causes_of(trace_of(tmp_path, events)) == {"host_busy": 5, "launch_latency": 5, "device_wait": 50}


def test_without_a_launch_nothing_is_guessed(tmp_path):
    assert causes_of(trace_of(tmp_path, [*FIRST, kernel("k2", 24, 5)])) == {"unknown": 4}


def test_a_launch_after_the_start_means_the_host_was_late(tmp_path):
    """Clocks of host and device may disagree."""
    events = [*FIRST, call("cudaLaunchKernel", 25, 5, 2), kernel("k2", 24, 5, 2)]
    assert causes_of(trace_of(tmp_path, events)) == {"host_busy": 4}


def test_a_sleeping_worker_waits_for_the_thread_that_is_blocked(tmp_path):
    """Thread 2 (autograd) launches k2 but has no call open while thread 1 synchronises."""
    events = [
        *FIRST,
        call("cudaDeviceSynchronize", 15, 15, 0, 1),
        slice_("MulBackward0", "cpu_op", 26, 20, 2),
        call("cudaLaunchKernel", 33, 2, 2, 2),
        kernel("k2", 36, 5, 2),
    ]
    assert causes_of(trace_of(tmp_path, events)) == {"host_sync": 6, "host_busy": 7, "launch_latency": 3}


def test_time_outside_the_recorded_work_is_an_edge(tmp_path):
    events = [*FIRST, call("cudaDeviceSynchronize", 15, 40)]
    trace = trace_of(tmp_path, events)
    around = Scope(window_ns=(-5 * US, 100 * US))
    assert causes_of(trace, around) == {"launch_latency": 10, "edge": 85}
    assert causes_of(trace) == {}


def test_streams_that_are_left_out_do_not_count_as_work(tmp_path):
    events = [*FIRST, call("cudaLaunchKernel", 11, 1, 2), kernel("other", 20, 20, 3, stream=9)]
    trace = trace_of(tmp_path, [*events, kernel("k2", 42, 5, 2)])
    assert causes_of(trace) == {"kernel_wait": 2}
    assert causes_of(trace, Scope(streams=(7,))) == {"kernel_wait": 22}
    assert causes_of(trace, Scope(names=("k1", "k2"))) == {"kernel_wait": 22}


def test_of_two_that_start_at_once_the_earlier_launched_tells(tmp_path):
    late, early = call("cudaLaunchKernel", 25, 1, 2), call("cudaLaunchKernel", 12, 1, 3)
    pair = [kernel("k2", 30, 5, 2), kernel("k3", 30, 5, 3, stream=9)]
    for n, events in enumerate(([late, early, *pair], [early, late, *reversed(pair)])):
        trace = trace_of(tmp_path / str(n), [*FIRST, *events])
        assert causes_of(trace) == {"kernel_wait": 10}
        assert idle_gaps(trace)["name"].tolist() == ["k3"]


def test_waits_and_empty_kernels_are_no_work(tmp_path):
    wait = {**slice_("Stream Synchronize", "cuda_sync", 20, 4, 7, stream=7, device=0), "pid": 0}
    events = [*FIRST, wait, kernel("empty", 22, 0, 3), call("cudaLaunchKernel", 12, 1, 2)]
    assert causes_of(trace_of(tmp_path, [*events, kernel("k2", 25, 5, 2)])) == {"kernel_wait": 5}


@pytest.mark.parametrize(
    ("name", "blocks"),
    [
        ("cudaDeviceSynchronize", True),
        ("cudaStreamSynchronize_ptsz", True),
        ("hipEventSynchronize", True),
        ("cuCtxSynchronize", True),
        ("cudaMemcpy", True),
        ("hipMemcpyWithStream", True),
        ("cudaFree", True),
        ("aten::item", True),
        ("aten::_local_scalar_dense", True),
        ("cudaMemcpyAsync", False),
        ("cuMemcpyHtoDAsync_v2", False),
        ("cudaFreeAsync", False),
        ("cudaFreeHost", False),
        ("aten::item_like", False),
        ("cudaLaunchKernel", False),
    ],
)
def test_which_calls_block(name, blocks):
    assert is_synchronising(name) is blocks


def test_which_events_load_data():
    assert is_data_loading("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")
    assert is_data_loading("torch/utils/data/dataloader.py(630): __next__")
    assert not is_data_loading("DataLoader.__init__")


# -- gaps ---------------------------------------------------------------------------------------------


def test_a_gap_names_the_launch_that_ended_it(tmp_path):
    op = slice_("aten::copy_", "cpu_op", 21, 12)
    frame_ = slice_("train.py(3): step", "python_function", 1, 60)
    events = [*FIRST, frame_, op, call("cudaMemcpyAsync", 22, 3, 2), kernel("k2", 38, 5, 2)]
    frame = idle_gaps(trace_of(tmp_path, events))
    row = frame.iloc[0]
    assert (row["start_ns"], row["end_ns"], row["dur_ns"]) == (20 * US, 38 * US, 18 * US)
    assert (row["event_id"], row["launch_id"], row["operator_id"], row["stream"]) == (5, 4, 3, 7)
    assert row["cause"] == "launch_latency"
    text = explain(row)
    assert "until k2, launched by aten::copy_ -> cudaMemcpyAsync on thread 1" in text
    assert (
        "16.0 µs passed from the launch call to the start. 2.00 µs passed before the host began the launch."
        in text
    )
    assert gaps.sentence(frame).startswith("1 gap takes 18.0 µs in all. The longest: idle for 18.0 µs")


def test_gaps_at_the_edges_and_without_launch(tmp_path):
    trace = trace_of(tmp_path, [*FIRST, kernel("k2", 24, 5)])
    frame = idle_gaps(trace, Scope(window_ns=(0, 40 * US)))
    assert frame["name"].tolist() == ["k1", "k2", ""]
    assert frame["event_id"].tolist() == [1, 2, -1]
    assert frame["launch_id"].tolist() == [0, -1, -1]
    assert explain(frame.iloc[1]) == "Idle for 4.00 µs until k2. All of it passed without a recorded launch."
    assert explain(frame.iloc[2]) == "Idle for 11.0 µs: no device work follows."
    busy = idle_gaps(trace, Scope(window_ns=(12 * US, 15 * US)))
    assert busy.empty
    assert gaps.sentence(busy) == "The device is never idle in the selection."


@pytest.mark.parametrize("name", REAL)
def test_gaps_add_up_to_the_breakdown(name):
    trace = opened(name)
    first, last = trace.extent_ns
    steps = tuple(trace.iterations["iteration"].unique()[1:3].tolist())
    for scope in (Scope(), Scope(iterations=steps or None), Scope(window_ns=(first, (first + last) // 2))):
        frame, whole = idle_gaps(trace, scope), idle_breakdown(trace, scope)
        assert (frame[PARTS].sum(axis=1) == frame["dur_ns"]).all()
        assert (frame["dur_ns"] > 0).all()
        assert (frame[["dur_ns", *PARTS]].sum() == whole[["idle_ns", *PARTS]].sum().to_numpy()).all()
        assert len(frame) == whole["gaps"].sum()


# -- exactness ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REAL)
def test_causes_add_up_to_the_idle_time_of_the_temporal_breakdown(name):
    trace = opened(name)
    first, last = trace.extent_ns
    middle = (first + last) // 2
    stream = int(trace.rank(trace.ranks[0]).stream.max())
    for scope in (
        Scope(),
        Scope(window_ns=(first - 10, last + 10)),
        Scope(window_ns=(first, middle)),
        Scope(streams=(stream,)),
    ):
        for by in ("rank", "iteration"):
            frame, whole = idle_breakdown(trace, scope, by=by), temporal_breakdown(trace, scope, by=by)
            for column in ("rank", "window_ns", "busy_ns", "idle_ns", "idle_pct"):
                np.testing.assert_array_equal(frame[column], whole[column])
            assert (frame[PARTS].sum(axis=1) == frame["idle_ns"]).all()
            assert (frame[PARTS] >= 0).all(axis=None)
    halves = [idle_breakdown(trace, Scope(window_ns=w))[PARTS] for w in ((first, middle), (middle, last))]
    whole = idle_breakdown(trace, Scope(window_ns=(first, last)))
    assert (halves[0] + halves[1] == whole[PARTS]).all(axis=None)


INSTANT = st.integers(0, 60)
PIECE = st.tuples(INSTANT, st.integers(1, 12))
WORK = st.tuples(INSTANT, st.integers(0, 9), st.integers(7, 8), INSTANT, st.integers(0, 9), st.integers(0, 2))


@settings(max_examples=tried(25), deadline=None)
@given(work=st.lists(WORK, min_size=1, max_size=8), syncs=st.lists(PIECE, max_size=3))
def test_every_instant_has_the_cause_that_the_definition_gives(tmp_path_factory, work, syncs):
    """A sweep over instants that shares nothing with the implementation. Thread 0 stands for no launch."""
    events = [call("cudaDeviceSynchronize", start, dur, 0, 1) for start, dur in syncs]
    for n, (start, dur, stream, called, length, thread) in enumerate(work, 1):
        events.append(kernel(f"k{n}", start, dur, n, stream))
        if thread:
            events.append(call("cudaLaunchKernel", called, length, n, thread))
    trace = trace_of(tmp_path_factory.mktemp("sweep"), events, repair=False)  # whatever was drawn
    origin = min(event["ts"] for event in events)
    scope = Scope(window_ns=(-origin * US, (90 - origin) * US))
    found = idle_breakdown(trace, scope, consecutive_kernel_delay_ns=6 * US)

    solid = [item for item in work if item[1]]
    expected = dict.fromkeys(CAUSES, 0)
    for t in range(90):
        if not any(start <= t < start + dur for start, dur, *_ in solid):
            expected[_cause(t, solid, work, syncs, origin)] += US
    assert {cause: int(found[f"{cause}_ns"].iloc[0]) for cause in CAUSES} == expected
    assert found["gaps"].iloc[0] == len(idle_gaps(trace, scope))


def _cause(t, solid, work, syncs, origin):
    later = [item for item in solid if item[0] > t]
    if not later or t < origin:
        return "edge"
    b = min(item[0] for item in later)
    start, _, _, called, length, thread = min(
        (item for item in later if item[0] == b),
        key=lambda item: (item[3] if item[5] else 10**6, item[2]),
    )
    if not thread:
        return "unknown"
    a = max((s + d for s, d, *_ in solid if s <= t), default=None)
    returned = called + length
    if t < called:
        threads = {item[5] for item in work if item[5]}
        open_2 = any(c <= t < c + d for _, _, _, c, d, th in work if th == 2)
        blocked = any(s <= t < s + d for s, d in syncs)
        counts = thread == 1 or (1 in threads and not open_2)
        return "host_sync" if blocked and counts else "host_busy"
    if t < returned:
        return "launch_latency"
    since = max(returned, origin if a is None else a)
    if start - since >= 6:
        return "device_wait"
    return "launch_latency" if a is None or returned > a else "kernel_wait"


# -- what surrounds the numbers -----------------------------------------------------------------------


def test_a_data_loader_stall_is_found():
    """The simulated job stalls in its data loader by construction."""
    trace = examples.load("single_gpu_dataloader_stall")
    frame = idle_breakdown(trace, by="iteration")
    assert (frame["data_stall_ns"] > 0.5 * frame["idle_ns"]).all()
    assert "waits for the data loader" in idle.sentence(idle_breakdown(trace))


def test_order_in_the_file_does_not_matter(tmp_path):
    events = [*FIRST, call("cudaLaunchKernel", 25, 5, 2), kernel("k2", 40, 5, 2), kernel("k3", 90, 5)]
    first, second = trace_of(tmp_path / "a", events), trace_of(tmp_path / "b", events[::-1])
    pd.testing.assert_frame_equal(idle_breakdown(first), idle_breakdown(second))
    pd.testing.assert_frame_equal(stream_idle_breakdown(first), stream_idle_breakdown(second))


@pytest.mark.parametrize(
    "function", [idle_breakdown, stream_idle_breakdown, stream_idle_intervals, idle_gaps]
)
def test_a_trace_without_device_names_the_remedy(function):
    with pytest.raises(MissingDataError, match="ProfilerActivity"):
        function(opened("hta/cpu_only"))


@pytest.mark.parametrize(
    "function", [idle_breakdown, stream_idle_breakdown, stream_idle_intervals, idle_gaps]
)
def test_a_selection_without_ranks_is_empty(function, tmp_path):
    trace = trace_of(tmp_path, FIRST)
    full, empty = function(trace), function(trace, Scope(ranks=(99,)))
    assert empty.empty
    assert empty.dtypes.to_dict() == full.dtypes.to_dict()


def test_by_must_be_known(tmp_path):
    with pytest.raises(ValueError, match="by must be"):
        idle_breakdown(trace_of(tmp_path, FIRST), by="stream")


def test_sentences(tmp_path):
    events = [*FIRST, call("cudaLaunchKernel", 12, 3, 2), kernel("k2", 22, 8, 2)]
    trace = trace_of(tmp_path, events)
    assert idle.sentence(idle_breakdown(trace)) == (
        "Rank 0 is idle for 10.0 % of 20.0 µs. "
        "In 100 % of that time (1 gap), the device is between two queued kernels."
    )
    assert idle.sentence(idle_breakdown(trace, Scope(ranks=(9,)))) == "No device time lies in the selection."
    never = trace_of(tmp_path / "never", FIRST)
    assert idle.sentence(idle_breakdown(never)) == "No device is ever idle in the selection."
    several = idle.sentence(idle_breakdown(opened("hta/trace_filter")))
    assert several.startswith("Rank 0 is idle most, ")


def test_the_figure_draws_the_frame():
    trace = opened("hta/trace_filter")
    for by in ("rank", "iteration"):
        frame = idle_breakdown(trace, by=by)
        figure = ANALYSES["idle_breakdown"].figure(frame)
        np.testing.assert_allclose(np.sum([bar.y for bar in figure.data], axis=0), frame["idle_ns"] / 1e6)
        first = frame.iloc[0]
        stall = first["data_stall_ns"]
        assert figure.data[1].name == "Host waits for data"
        assert figure.data[1].customdata[0] == (
            f"<br>{100 * stall / first['idle_ns']:.2f} % of idle"
            f"<br>{100 * stall / first['window_ns']:.2f} % of window"
        )
    assert figure.layout.title.text == "Why each device is idle"
