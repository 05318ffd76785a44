"""How busy devices are over time: small jobs by hand, a slow count, and the busy share of the breakdown."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hta_widgets import Scope, Trace, analysis, examples
from hta_widgets.analysis.device_time.gpu_utilization import gpu_utilization, sentence
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.charts.marks import marks
from hta_widgets.errors import MissingDataError
from tests.analysis.fakes import COMMUNICATION, COMPUTE, COPY, HOST, SYNC, FakeRank, FakeTrace
from tests.support import tried

# time     0   100  200  300  400  500  600  700  800  900  1000
# compute  ######                             ###########
# comm         ######                              #############
# copy                          #  (one ns)
# sync: a wait is no work
EVENTS = [
    (0, 120, COMPUTE),
    (80, 200, COMMUNICATION),
    (500, 501, COPY),
    (705, 905, COMPUTE),
    (800, 1003, COMMUNICATION),
    (0, 1003, SYNC),
    (0, 1003, HOST),
]
HOUR = 3_600_000_000_000


def job(*ranks: FakeRank) -> FakeTrace:
    return FakeTrace(dict(enumerate(ranks)))


def values(frame, *columns):
    return list(frame[list(columns)].itertuples(index=False, name=None))


def test_bins_by_hand_with_what_lies_outside_cut_at_both_ends():
    long = [(start * 10**6, end * 10**6, kind) for start, end, kind in EVENTS]
    frame = gpu_utilization(job(FakeRank(long)), Scope(window_ns=(103_500_000, 119_000_000)))
    assert (frame["end_ns"] - frame["start_ns"]).max() == 50_000, "15.5 ms in at most 400 bins"
    frame = gpu_utilization(job(FakeRank(EVENTS)), Scope(window_ns=(3, 1003)))
    assert set((frame["end_ns"] - frame["start_ns"]).iloc[1:-1]) == {5}
    assert values(frame.iloc[[0, 1, 40, 99, 100, 140, -1]], *frame.columns) == [
        (0, 3, 5, 2, 2, 100.0),
        (0, 5, 10, 5, 5, 100.0),
        (0, 200, 205, 5, 0, 0.0),
        (0, 495, 500, 5, 0, 0.0),
        (0, 500, 505, 5, 1, 20.0),
        (0, 700, 705, 5, 0, 0.0),
        (0, 1000, 1003, 3, 3, 100.0),
    ]
    assert (frame["busy_ns"].sum(), frame["window_ns"].sum()) == (197 + 1 + 298, 1000)
    assert sentence(frame) == "Rank 0 is busy 49.6 % of 1.00 µs."
    assert [str(kind) for kind in frame.dtypes] == ["int64"] * 5 + ["float64"]


def test_iterations_that_are_apart_leave_out_the_bins_between_and_share_one():
    steps = [(3, 0, 202), (4, 202, 600), (5, 600, 700), (6, 701, 1003)]
    trace = job(FakeRank(EVENTS, steps=steps))
    frame = gpu_utilization(trace, Scope(iterations=(3, 5, 6)))
    by_start = frame.set_index("start_ns")
    assert by_start.loc[200, ["end_ns", "window_ns", "busy_ns"]].tolist() == [205, 2, 0]
    assert by_start.loc[700, ["window_ns", "busy_ns"]].tolist() == [4, 0], "of 700 to 701 no step has it"
    assert not ((frame["start_ns"] > 200) & (frame["end_ns"] < 600)).any()
    assert frame["window_ns"].sum() == 202 + 100 + 302
    drawn = marks(ANALYSES["gpu_utilization"].chart, frame)
    assert (drawn.table["end"].iloc[:-1] < drawn.table["time"].iloc[1:].to_numpy()).sum() == 1
    assert drawn.table["mean"].unique() == pytest.approx([100 * (200 + 298) / 604])


def test_ranks_are_compared_and_those_least_busy_are_drawn():
    ranks = [FakeRank([(0, 10 + rank, COMPUTE), (99, 100, COPY)]) for rank in range(9, -1, -1)]
    frame = gpu_utilization(job(*ranks))
    assert sentence(frame) == "Rank 9 is busy least, 11.0 % of the time; all together are busy 15.5 %."
    drawn = marks(ANALYSES["gpu_utilization"].chart, frame)
    assert drawn.legend == [f"rank {rank}" for rank in range(2, 10)] and drawn.left_out == 2
    means = drawn.table.groupby("line")["mean"].first()
    assert means.tolist() == pytest.approx([18 - line for line in range(8)])
    same = gpu_utilization(job(*[FakeRank([(0, 50, COMPUTE), (99, 100, COPY)])] * 2))
    assert sentence(same) == "All ranks are busy equally, 51.0 % of the time."


def test_of_an_hour_there_are_few_bins():
    rng = np.random.default_rng(0)
    start = np.sort(rng.integers(0, HOUR - 10**6, 5000))
    events = [(int(at), int(at) + 10**6, COMPUTE) for at in start]
    trace = job(
        FakeRank(
            [*events, (HOUR - 1, HOUR, COPY)], steps=[(i, i * 10**9, (i + 1) * 10**9) for i in range(3600)]
        )
    )
    for scope in (Scope(), Scope(iterations=tuple(range(0, 3600, 2)))):
        frame = gpu_utilization(trace, scope)
        assert 100 < len(frame) <= 400
        assert frame["busy_ns"].sum() == analysis.temporal_breakdown(trace, scope)["busy_ns"].sum()


@settings(deadline=None, max_examples=tried(60))
@given(
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 60), st.sampled_from([COMPUTE, COPY, SYNC]))),
    st.integers(-50, 900),
    st.integers(1, 1200),
)
def test_bins_hold_what_a_slow_count_finds(events, low, length):
    trace = job(FakeRank([(at, at + dur, kind) for at, dur, kind in events] + [(0, 1, COMPUTE)]))
    frame = gpu_utilization(trace, Scope(window_ns=(low, low + length)))
    working = {
        ns for at, dur, kind in [*events, (0, 1, COMPUTE)] if kind != SYNC for ns in range(at, at + dur)
    }
    for start, end, window, busy in values(frame, "start_ns", "end_ns", "window_ns", "busy_ns"):
        assert window == end - start
        assert busy == sum(ns in working for ns in range(start, end))
    assert [low, *frame["end_ns"]] == [*frame["start_ns"], low + length]


@pytest.fixture(scope="module")
def ddp() -> Trace:
    return examples.load("ddp_4ranks")


@pytest.mark.parametrize(
    "scope",
    [
        Scope(),
        Scope(ranks=(1, 3)),
        Scope(iterations=(10, 12)),
        Scope(window_ns=(10_000_001, 34_567_891)),
        Scope(iterations=(11, 13), window_ns=(20_000_003, 60_000_007), streams=(7,)),
    ],
    ids=["all", "ranks", "iterations", "window", "streams"],
)
def test_the_mean_of_the_line_is_the_busy_share_of_the_breakdown(ddp: Trace, scope: Scope) -> None:
    frame, whole = gpu_utilization(ddp, scope), analysis.temporal_breakdown(ddp, scope).set_index("rank")
    sums = frame.groupby("rank")[["busy_ns", "window_ns"]].sum()
    whole = whole[whole["window_ns"] > 0]
    assert len(whole) and sums.equals(whole[["busy_ns", "window_ns"]])
    mean = {
        rank: np.average(own["busy_pct"], weights=own["window_ns"]) for rank, own in frame.groupby("rank")
    }
    assert mean == pytest.approx((100.0 - whole["idle_pct"]).to_dict())
    drawn = marks(ANALYSES["gpu_utilization"].chart, frame).table
    assert drawn.groupby("line")["mean"].first().tolist() == pytest.approx([*mean.values()])


def test_the_figure_has_a_line_with_its_mean_per_rank(ddp: Trace) -> None:
    frame = gpu_utilization(ddp, Scope(ranks=(0,), iterations=(10, 12)))
    line, mean = ANALYSES["gpu_utilization"].figure(frame).data
    assert np.isnan(line.y).sum() == 2, "a gap between the steps, and the end"
    assert mean.y[0] == mean.y[1] == pytest.approx(100 * frame["busy_ns"].sum() / frame["window_ns"].sum())
    assert (mean.x[0], mean.x[1]) == (frame["start_ns"].min() / 1e6, frame["end_ns"].max() / 1e6)
    assert ANALYSES["gpu_utilization"].figure(frame.head(0)).layout.yaxis.range == (0, 100)


def test_without_device_events_it_says_so(ddp: Trace) -> None:
    with pytest.raises(MissingDataError, match="device events"):
        gpu_utilization(job(FakeRank([(0, 10, HOST)])))
    nothing = gpu_utilization(ddp, Scope(window_ns=(10**15, 10**15 + 5)))
    assert nothing["busy_ns"].sum() == 0
    assert sentence(nothing.head(0)) == "No device time lies in the selection."
