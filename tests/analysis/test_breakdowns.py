"""Temporal breakdown and overlap on jobs small enough to check by hand."""

import gc
import random
import weakref

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hta_widgets.analysis import ANALYSES, comm_comp_overlap, temporal_breakdown
from hta_widgets.analysis.device_time import busy
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.scope import Scope
from tests.analysis.fakes import COMMUNICATION, COMPUTE, COPY, HOST, SET, SYNC, FakeRank, FakeTrace

# time       0    10   20   30   40   50   60   70   80   90   100
# compute    ##########                         #####
# comm            ###############               #####
# copy                           #####                    #####
# set                       #####
# sync, host: never busy
EVENTS = [
    (0, 20, COMPUTE),
    (70, 80, COMPUTE),
    (10, 40, COMMUNICATION),
    (70, 80, COMMUNICATION),
    (40, 50, COPY),
    (90, 100, COPY),
    (30, 40, SET),
    (0, 100, SYNC),
    (0, 1000, HOST),
]
EXPECTED = {
    "window_ns": 100,
    "compute_ns": 30,
    "exposed_communication_ns": 20,
    "exposed_memory_ns": 20,
    "idle_ns": 30,
    "communication_ns": 40,
    "memory_ns": 30,
    "busy_ns": 70,
}
PARTS = ["compute_ns", "exposed_communication_ns", "exposed_memory_ns", "idle_ns"]


def job(*ranks: FakeRank) -> FakeTrace:
    return FakeTrace(dict(enumerate(ranks)))


def measured(frame: pd.DataFrame, row: int = 0) -> dict[str, int]:
    return {column: int(frame[column].iloc[row]) for column in EXPECTED}


def test_temporal_breakdown_by_hand():
    frame = temporal_breakdown(job(FakeRank(EVENTS)))
    assert measured(frame) == EXPECTED
    assert frame["idle_pct"].tolist() == [30.0]
    assert list(frame.columns) == [
        "rank",
        *EXPECTED,
        "compute_pct",
        "exposed_communication_pct",
        "exposed_memory_pct",
        "idle_pct",
    ]
    assert {str(frame[column].dtype) for column in ["rank", *EXPECTED]} == {"int64"}


def test_overlap_by_hand():
    frame = comm_comp_overlap(job(FakeRank(EVENTS)))
    assert frame.to_dict("records") == [
        {"rank": 0, "communication_ns": 40, "overlapped_ns": 20, "exposed_ns": 20, "overlap_pct": 50.0}
    ]


def test_the_overlap_is_the_share_that_hides():
    frame = comm_comp_overlap(job(FakeRank([(0, 30, COMPUTE), (20, 60, COMMUNICATION)])))
    assert frame[["overlapped_ns", "exposed_ns", "overlap_pct"]].to_numpy().tolist() == [[10, 30, 25.0]]


def test_events_are_clipped_to_the_window():
    frame = temporal_breakdown(job(FakeRank(EVENTS)), Scope(window_ns=(15, 35)))
    assert measured(frame) == {
        "window_ns": 20,
        "compute_ns": 5,
        "exposed_communication_ns": 15,
        "exposed_memory_ns": 0,
        "idle_ns": 0,
        "communication_ns": 20,
        "memory_ns": 5,
        "busy_ns": 20,
    }


def test_window_outside_the_trace_is_all_idle():
    frame = temporal_breakdown(job(FakeRank(EVENTS)), Scope(window_ns=(5000, 5100)))
    assert frame[["window_ns", "idle_ns", "busy_ns"]].to_numpy().tolist() == [[100, 100, 0]]
    assert comm_comp_overlap(job(FakeRank(EVENTS)), Scope(window_ns=(5000, 5100)))["overlap_pct"].isna().all()


def test_iterations_add_up_and_their_percentages_are_of_themselves():
    steps = [(3, 0, 50), (4, 50, 100)]
    trace = job(FakeRank(EVENTS, steps=steps), FakeRank(EVENTS, steps=steps[:1]))
    frame = temporal_breakdown(trace, by="iteration")
    assert frame[["rank", "iteration"]].to_numpy().tolist() == [[0, 3], [0, 4], [1, 3]]
    first_rank = frame[frame["rank"] == 0]
    assert {column: int(first_rank[column].sum()) for column in EXPECTED} == EXPECTED
    assert frame["idle_pct"].tolist() == [0.0, 60.0, 0.0]


def test_an_iteration_the_rank_lacks_has_an_empty_window():
    trace = job(FakeRank(EVENTS, steps=[(3, 0, 50)]))
    frame = temporal_breakdown(trace, Scope(iterations=(9,)))
    assert frame["window_ns"].tolist() == [0]
    assert frame["idle_pct"].isna().all()
    assert temporal_breakdown(trace, Scope(iterations=(9,)), by="iteration").empty
    by_iteration = temporal_breakdown(trace, Scope(window_ns=(500, 600)), by="iteration")
    assert by_iteration.empty
    assert by_iteration["window_ns"].dtype == np.int64


def test_stream_and_name_filters_choose_the_events():
    rank = FakeRank(EVENTS, streams=[1, 1, 2, 2, 3, 3, 3, 4, 4])
    frame = temporal_breakdown(job(rank), Scope(streams=(2,), window_ns=(0, 100)))
    assert measured(frame)["compute_ns"] == 0
    assert measured(frame)["exposed_communication_ns"] == 40
    named = temporal_breakdown(job(rank), Scope(names=("compute",), window_ns=(0, 100)))
    assert measured(named)["busy_ns"] == measured(named)["compute_ns"] == 30


def test_ranks_without_device_events_are_left_out():
    host_only = FakeRank([(0, 10, HOST)])
    trace = job(host_only, FakeRank(EVENTS))
    assert temporal_breakdown(trace)["rank"].tolist() == [1]
    assert comm_comp_overlap(trace, Scope(ranks=(1,)))["rank"].tolist() == [1]
    with pytest.raises(MissingDataError, match=r"ProfilerActivity\.CUDA"):
        temporal_breakdown(trace, Scope(ranks=(0,)))
    with pytest.raises(MissingDataError):
        comm_comp_overlap(job(host_only))


def test_a_rank_the_job_lacks_gives_no_row():
    assert temporal_breakdown(job(FakeRank(EVENTS)), Scope(ranks=(12,))).empty


def test_unknown_grouping_is_refused():
    with pytest.raises(ValueError, match="by must be"):
        temporal_breakdown(job(FakeRank(EVENTS)), by="stream")


DEVICE_CLASS = st.sampled_from([COMPUTE, COMMUNICATION, COPY, SET, SYNC])
EVENT = st.tuples(st.integers(0, 60), st.integers(0, 20), DEVICE_CLASS)


@settings(deadline=None)
@given(st.lists(EVENT, min_size=1, max_size=25), st.integers(-10, 80), st.integers(1, 60), st.integers())
def test_parts_are_conserved_and_order_does_not_matter(events, low, width, seed):
    spans = [(start, start + length, kind) for start, length, kind in events] + [(0, 1, COMPUTE)]
    shuffled = spans[:]
    random.Random(seed).shuffle(shuffled)
    for scope in (Scope(), Scope(window_ns=(low, low + width))):
        frame = temporal_breakdown(job(FakeRank(spans)), scope)
        assert (frame[PARTS].sum(axis=1) == frame["window_ns"]).all()
        pd.testing.assert_frame_equal(frame, temporal_breakdown(job(FakeRank(shuffled)), scope))
        overlap = comm_comp_overlap(job(FakeRank(spans)), scope)
        assert (overlap["overlapped_ns"] + overlap["exposed_ns"] == overlap["communication_ns"]).all()
        assert (overlap["exposed_ns"] == frame["exposed_communication_ns"]).all()


def test_busy_time_is_cached_with_the_rank_and_freed_with_it():
    rank = FakeRank(EVENTS)
    first = busy.busy(rank, Scope())
    assert busy.busy(rank, Scope(window_ns=(0, 5))) is first, "a window is no filter"
    assert busy.busy(rank, Scope(streams=(1,))) is not first
    assert busy.busy(rank, Scope()) is first
    alive = weakref.ref(rank)
    del rank
    gc.collect()
    assert alive() is None, "what is kept holds no rank"


@pytest.mark.parametrize("kind", ["temporal_breakdown", "comm_comp_overlap"])
@pytest.mark.parametrize(
    "trace",
    [
        job(FakeRank(EVENTS)),
        job(FakeRank(EVENTS), FakeRank([(0, 90, COMPUTE), (50, 100, COMMUNICATION)])),
        job(FakeRank([(0, 90, COMPUTE)])),
    ],
    ids=["one rank", "two ranks", "no communication"],
)
def test_registry_entries_stack_draw_and_speak(kind, trace):
    analysis = ANALYSES[kind]
    frame = analysis.function(trace)
    chart = analysis.chart
    assert (frame[[series.column for series in chart.series]].sum(axis=1) == frame[chart.whole]).all()
    figure = analysis.figure(frame)
    assert [bar.name for bar in figure.data] == [series.label for series in chart.series]
    sentence = analysis.sentence(frame)
    assert sentence.endswith(".")
    assert "nan" not in sentence


@pytest.mark.parametrize("kind", ["temporal_breakdown", "comm_comp_overlap"])
def test_empty_selection_speaks_and_draws(kind):
    analysis = ANALYSES[kind]
    empty = analysis.function(job(FakeRank(EVENTS)), Scope(ranks=(12,)))
    assert analysis.sentence(empty).startswith("No ")
    assert len(analysis.figure(empty).data) == len(analysis.chart.series)


def test_sentences_name_the_rank_and_the_numbers():
    two = job(FakeRank(EVENTS), FakeRank([(0, 90, COMPUTE), (50, 100, COMMUNICATION)]))
    assert ANALYSES["temporal_breakdown"].sentence(temporal_breakdown(two)) == (
        "Rank 0 is idle most, 30.0 % of 100 ns. Rank 1 is idle least, 0 %. "
        "On average, ranks compute for 60.0 % of the time."
    )
    alike = temporal_breakdown(job(FakeRank(EVENTS), FakeRank(EVENTS)))
    assert ANALYSES["temporal_breakdown"].sentence(alike) == (
        "All ranks are idle equally, 30.0 % of the time. On average, they compute for 30.0 % of it."
    )
    assert ANALYSES["comm_comp_overlap"].sentence(comm_comp_overlap(two)) == (
        "66.7 % of all communication hides behind compute. Rank 0 leaves most exposed, 20 ns of 40 ns."
    )


def test_figure_by_iteration_names_the_iteration_and_where_there_are_several_the_rank():
    rank = FakeRank(EVENTS, steps=[(3, 0, 50), (4, 50, 100)])
    draw = ANALYSES["temporal_breakdown"].figure
    alone = draw(temporal_breakdown(job(rank), by="iteration"))
    assert list(alone.data[0].x) == ["iteration 3", "iteration 4"]
    both = draw(temporal_breakdown(job(rank, rank), by="iteration"))
    assert [list(level) for level in both.data[0].x] == [
        ["rank 0", "rank 0", "rank 1", "rank 1"],
        ["iteration 3", "iteration 4"] * 2,
    ]
