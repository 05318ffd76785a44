"""Queue lengths: who waits, how many, for how long, and whether the queue was full."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.simulator import simulate
from examples.simulator.bundled import JOBS
from hta_widgets.analysis.core.step_function import StepFunction, quantile, time_with
from hta_widgets.analysis.launches.queue import blocked_on_full_queue, queue_length, queue_summary, sentence
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.analysis.test_launches import call, opened
from tests.support import SIMULATED, shared_trace
from tests.trace.helpers import kernel

EVENTS = [
    call("cudaLaunchKernel", 0, 2, 1),
    call("cuLaunchKernel", 4, 2, 2),
    call("cudaMemcpyAsync", 8, 2, 3),
    call("cudaGraphLaunch", 10, 2, 4),
    call("hipLaunchKernel", 10, 2, 5, tid=2),
    kernel("a", 10, 10, 1),
    kernel("b", 20, 10, 2),
    kernel("c", 30, 5, 3),
    kernel("g1", 35, 5, 4), kernel("g2", 40, 5, 4), kernel("g3", 41, 5, 4, stream=8),
    kernel("early", 9, 3, 5, stream=9),  # before its own call: clocks differ
]  # fmt: skip


def points(frame, stream):
    rows = frame[frame["stream"] == stream]
    return list(zip(rows["time_ns"] // 1000, rows["queue_length"], strict=True))


def test_lengths_rise_with_calls_and_fall_with_starts(tmp_path):
    frame = queue_length(opened(tmp_path, EVENTS))
    assert points(frame, 7) == [(0, 1), (4, 2), (8, 3), (10, 2), (10, 3), (20, 2), (30, 1), (35, 0)]
    assert points(frame, 8) == [(10, 1), (41, 0)]  # the graph is one entry on each stream
    assert points(frame, 9) == [(10, 1), (10, 0)]  # never negative
    assert frame["event_id"].tolist()[:4] == [0, 1, 2, 5]
    assert frame["device_event_id"].tolist()[:4] == [5, 6, 7, 5]


def test_statistics_are_weighted_by_time(tmp_path):
    frame = queue_summary(opened(tmp_path, EVENTS)).set_index("stream")
    of_7 = frame.loc[7]
    assert of_7["window_ns"] == 46_000
    assert of_7["entry_ns"] == 1000 * (10 + 16 + 22 + 25) == of_7["mean"] * 46_000
    assert of_7[["launched", "queued_ns", "max", "p50", "p95"]].tolist() == [4, 35_000, 3, 2, 3]
    assert frame.loc[9, "max"] == 0 and frame.loc[9, "launched"] == 1


def test_windows_begin_with_the_length_they_find_and_add_up(tmp_path):
    trace = opened(tmp_path, EVENTS)
    assert points(queue_length(trace, Scope(window_ns=(9_000, 21_000))), 7) == [
        (9, 3), (10, 2), (10, 3), (20, 2),
    ]  # fmt: skip
    parts = [queue_summary(trace, Scope(window_ns=w)) for w in ((0, 9_500), (9_500, 46_000))]
    whole = queue_summary(trace, Scope(window_ns=(0, 46_000)))
    for column in ("launched", "window_ns", "queued_ns", "entry_ns"):
        assert (parts[0][column] + parts[1][column]).tolist() == whole[column].tolist()
    assert queue_summary(trace, Scope(window_ns=(900_000, 900_001)))["max"].tolist() == [0, 0, 0]


def naive(entries, first, last):
    """Time-weighted totals by looking at every stretch between two changes."""
    moments = sorted({first, last, *(t for entry in entries for t in entry if first < t < last)})
    total, queued, most = 0, 0, 0
    for start, end in pairwise(moments):
        length = sum(came <= start < left for came, left in entries)
        total += length * (end - start)
        queued += (end - start) * (length > 0)
        most = max(most, length)
    return total, queued, most


@pytest.mark.parametrize("name", SIMULATED)
def test_queues_of_the_simulated_jobs(name, tmp_path):
    simulation = simulate(JOBS[name])
    simulation.write(tmp_path)
    trace = Trace.open(tmp_path, cache=False)
    frame = queue_summary(trace)
    for rank in simulation.ranks[:1]:
        for stream in {work.stream for work in rank.device.work}:
            entries = {}
            for work in rank.device.work:
                if work.stream == stream:
                    left = min(work.start_ns, entries.get(id(work.launch), (0, 1 << 62))[1])
                    entries[id(work.launch)] = (work.launch.start_ns, left)
            first = min(work.launch.start_ns for work in rank.device.work)
            last = max(work.end_ns for work in rank.device.work)
            truth = naive(list(entries.values())[:400], first, last)
            row = frame[(frame["rank"] == rank.index) & (frame["stream"] == stream)].iloc[0]
            assert row["launched"] == len(entries)
            assert row["entry_ns"] == sum(left - came for came, left in entries.values())
            assert row["window_ns"] == last - first
            if len(entries) <= 400:
                assert (row["entry_ns"], row["queued_ns"], row["max"]) == truth


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40), st.integers(7, 9)), min_size=1, max_size=25)
)
def test_the_queue_is_never_negative_and_ends_empty(tmp_path_factory, launches):
    events = []
    for number, (at, delay, stream) in enumerate(launches, 1):
        events.append(call("cudaLaunchKernel", at, 1, number))
        events.append(kernel("k", at + delay, 1, number, stream=stream))
    path = tmp_path_factory.mktemp("queue") / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    trace = Trace.open(path, cache=False)
    frame = queue_length(trace)
    assert (frame["queue_length"] >= 0).all()
    assert (frame.groupby("stream")["queue_length"].last() == 0).all()
    assert len(frame) == 2 * len(launches)
    assert queue_summary(trace)["entry_ns"].sum() == 1000 * sum(delay for _, delay, _ in launches)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5))), st.sampled_from([0.0, 0.5, 0.95, 1.0]))
def test_weighted_quantiles_are_those_of_repeated_values(pairs, share):
    values, weights = (np.array(part, np.int64) for part in (zip(*pairs, strict=True) if pairs else ([], [])))
    repeated = np.sort(np.repeat(values, weights))
    expected = repeated[max(0, int(np.ceil(share * len(repeated))) - 1)] if len(repeated) else 0
    assert quantile(values, weights, share) == expected


def test_a_step_function_measures_windows():
    steps = StepFunction.of_changes(np.array([5, 5, 10]), np.array([2, 1, -3]))
    assert [steps.at(t) for t in (4, 5, 9, 10, 99)] == [0, 3, 3, 0, 0]
    value, held = steps.within(np.array([[0, 6], [8, 20]]))
    assert held.sum() == 18 and (value * held).sum() == 3 * (1 + 2)
    assert [part.tolist() for part in steps.within(np.empty((0, 2), np.int64))] == [[], []]


MOMENT = st.integers(0, 20)


@given(st.lists(st.tuples(MOMENT, st.integers(-3, 3)), max_size=12), st.sets(MOMENT, max_size=8))
def test_windows_of_a_step_function_hold_what_each_instant_does(changes, edges):
    changes.sort(key=lambda change: change[0])
    time, change = (np.array([item[at] for item in changes], np.int64) for at in (0, 1))
    steps = StepFunction.of_changes(time, change)
    pairs = sorted(edges)[: len(edges) // 2 * 2]
    windows = np.array(pairs, np.int64).reshape(-1, 2)
    value, held = steps.within(windows)
    assert (held >= 0).all()
    expected = [steps.at(instant) for first, last in windows.tolist() for instant in range(first, last)]
    assert np.repeat(value, held).tolist() == expected


@given(st.lists(st.tuples(MOMENT, st.integers(0, 9)), max_size=12), st.integers(1, 4))
def test_the_time_with_so_many_is_that_of_each_instant(stays, many):
    came, left = (np.array([came + more * stay for came, stay in stays], np.int64) for more in (0, 1))
    there = [((came <= instant) & (instant < left)).sum() for instant in range(31)]
    assert time_with(came, left, many) == sum(count >= many for count in there)


def test_steps_add_up_and_hold_the_calls_that_begin_in_them():
    trace = Trace.open(shared_trace("hta/ns_resolution_trace"))
    steps = tuple(trace.iterations["iteration"].tolist())
    each = [blocked_on_full_queue(trace, Scope(iterations=(step,))) for step in steps]
    whole = blocked_on_full_queue(trace, Scope(iterations=steps))
    for column in ("window_ns", "blocked_ns", "calls_at_limit", "calls_at_limit_ns"):
        assert (sum(frame[column] for frame in each) == whole[column]).all()
    full = whole.iloc[0]
    assert full["max"] == max(frame["max"].iloc[0] for frame in each) == full["limit"]
    rank_trace, frame = trace.rank(trace.ranks[0]), queue_length(trace, Scope(iterations=steps, streams=(7,)))
    at_limit = frame[(frame["queue_length"] >= full["limit"]) & (frame["event_id"] >= 0)]
    calls = np.searchsorted(rank_trace.event_id, at_limit["event_id"].to_numpy(np.int32))
    calls = calls[~rank_trace.is_device[calls]]
    assert full["stream"] == 7 and full["calls_at_limit"] == len(calls)
    assert full["calls_at_limit_ns"] == rank_trace.dur[calls].sum()
    came = queue_summary(trace, Scope(iterations=steps))["launched"]
    assert (came == sum(queue_summary(trace, Scope(iterations=(step,)))["launched"] for step in steps)).all()


def test_a_saturated_queue_is_recognised_by_its_plateau():
    """HTA's 1024 is never reached where the queue is full at 1022."""
    frame = blocked_on_full_queue(Trace.open(shared_trace("hta/ns_resolution_trace")))
    row = frame.iloc[0]
    assert (row["limit"], row["limit_source"], row["max"]) == (1022, "plateau", 1022)
    assert 0.45 < row["blocked_ns"] / row["window_ns"] < 0.55
    assert row["calls_at_limit"] == 1288
    assert (
        blocked_on_full_queue(Trace.open(shared_trace("hta/ns_resolution_trace")), limit=1024).iloc[0][
            "blocked_ns"
        ]
        == 0
    )


@pytest.mark.parametrize(("length", "source"), [(20, "usual"), (140, "plateau")])
def test_a_short_plateau_is_the_programs_own_rhythm(tmp_path, length, source):
    """`length` launches at once, then one more, slow, whenever a kernel has started."""
    calls, kernels = [], []
    for number in range(length + 20):
        waits = number >= length
        at = number if not waits else 1000 + 100 * (number - length)
        calls.append(call("cudaLaunchKernel", at, 50 if waits else 1, number + 1))
        kernels.append(kernel("k", 999 + 100 * number, 90, number + 1))
    frame = blocked_on_full_queue(opened(tmp_path, [*calls, *kernels]))
    assert frame["limit_source"].tolist() == [source]
    assert frame["max"].tolist() == [length]


def test_a_queue_that_grows_unhindered_was_not_full():
    frame = blocked_on_full_queue(Trace.open(shared_trace("tracelens/mi300/resnet_act_checkpoint.json.gz")))
    row = frame[frame["stream"] == 0].iloc[0]
    assert (row["limit"], row["limit_source"], row["blocked_ns"]) == (1841, "not reached", 0)


def test_every_stream_is_reported():
    trace = Trace.open(shared_trace("hta/trace_filter"))
    frame = blocked_on_full_queue(trace, Scope(ranks=(0,)), limit=1)
    assert frame["stream"].tolist() == [7, 23, 25, 84, 203]
    assert (frame["blocked_ns"] > 0).all()
    assert frame["blocked_ns"].tolist() == queue_summary(trace, Scope(ranks=(0,)))["queued_ns"].tolist()
    with pytest.raises(ValueError, match="at least 1"):
        blocked_on_full_queue(trace, limit=0)


def test_names_and_streams_pick_entries(tmp_path):
    trace = opened(tmp_path, EVENTS)
    frame = queue_length(trace, Scope(names=("a", "c")))
    assert points(frame, 7) == [(0, 1), (8, 2), (10, 1), (30, 0)]
    assert set(queue_length(trace, Scope(streams=(8,)))["stream"]) == {8}
    empty = queue_length(trace, Scope(streams=(99,)))
    assert empty.empty and (empty.dtypes == np.int64).all()
    assert queue_summary(trace, Scope(streams=(99,))).empty
    assert blocked_on_full_queue(trace, Scope(streams=(99,))).empty


def test_the_order_in_the_file_does_not_matter(tmp_path):
    order = np.random.default_rng(1).permutation(len(EVENTS))
    straight = queue_length(opened(tmp_path / "a", EVENTS))
    shuffled = queue_length(opened(tmp_path / "b", [EVENTS[i] for i in order]))
    columns = ["stream", "time_ns", "queue_length"]
    pd.testing.assert_frame_equal(straight[columns], shuffled[columns])


def test_words_picture_and_missing_launches(tmp_path):
    trace = opened(tmp_path, EVENTS)
    assert "stream 7: 1.59 entries" in sentence(queue_summary(trace))
    assert "No stream" in sentence(queue_summary(trace, Scope(streams=(99,))))
    assert len(ANALYSES["queue_length"].figure(queue_length(trace)).data) == 3
    with pytest.raises(MissingDataError, match="launch calls"):
        queue_length(opened(tmp_path / "b", EVENTS[5:]))
