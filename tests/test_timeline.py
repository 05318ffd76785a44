"""Lanes lose no slice, levels of detail conserve counts and time, and what is packed can be restored."""

from __future__ import annotations

import json
import math
import zlib
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hta_widgets.timeline import (
    Kinds,
    Lanes,
    Packed,
    Pyramid,
    build_lanes,
    gap_at,
    outline,
    pack_slices,
    pack_window,
    relative,
    window_sums,
)
from hta_widgets.timeline.counter_pixels import pixels_of
from hta_widgets.timeline.outline import ACTIVITY_CLASSES, activity
from hta_widgets.timeline.pack import CHUNK_BYTES, ESCAPE
from hta_widgets.timeline.pyramid import Items, merge
from hta_widgets.trace.accelerator import accelerator_in
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.reader.schema import NULL
from tests.support import shared_input, shared_trace, tried

CATEGORIES = ["kernel", "cpu_op", "user_annotation", "cuda_sync"]
CLASSES = [EventClass.COMPUTE, EventClass.HOST_OP, EventClass.ANNOTATION, EventClass.SYNC]

# (category, thread or stream, start, duration)
slices = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 1),
        st.integers(0, 2_000_000),
        st.one_of(st.integers(0, 3000), st.integers(0, 500_000)),
    ),
    max_size=200,
)


def rank_of(rows, number=0):
    """The part of a `RankTrace` that lanes are made of."""
    table = np.array(rows, np.int64).reshape(-1, 4)
    category, place, start, dur = (np.ascontiguousarray(column) for column in table.T)
    n = len(table)
    on_device = (category == 0) | (category == 3)
    launch = np.full(n, -1, np.int32)
    hosts, kernels = np.flatnonzero(category == 1), np.flatnonzero(category == 0)
    paired = min(len(hosts), len(kernels))
    launch[kernels[:paired]] = hosts[:paired]
    return SimpleNamespace(
        rank=number,
        n=n,
        event_id=np.arange(n, dtype=np.int32) * 2,
        start=start,
        dur=dur,
        name=(place % 2).astype(np.int32),
        names=["mm", "add"],
        category=category.astype(np.int32),
        categories=CATEGORIES,
        accelerator=accelerator_in(CATEGORIES),
        event_class=np.array(CLASSES, np.uint8)[category],
        is_device=category == 0,
        pid=np.zeros(n, np.int32),
        pids=["1"],
        tid=place.astype(np.int32),
        tids=["10", "11"],
        device=np.where(on_device, 0, NULL),
        stream=np.where(on_device, place + 7, NULL),
        launch=launch,
        threads=pd.DataFrame({"pid": ["1"], "tid": ["10"], "thread_name": ["main"]}),
    )


def assert_disjoint(lanes: Lanes) -> None:
    for a, b in zip(lanes.offsets[:-1], lanes.offsets[1:], strict=True):
        start, end = lanes.start[a:b], lanes.start[a:b] + lanes.dur[a:b]
        assert (end[:-1] <= start[1:]).all()


@settings(max_examples=tried(60), deadline=None)
@given(slices, slices)
def test_lanes_are_disjoint_and_hold_every_slice_once(first, second):
    ranks = [rank_of(first, 0), rank_of(second, 4)]
    lanes = build_lanes(ranks)
    assert_disjoint(lanes)
    drawn = []
    for track in lanes.tracks:
        span = slice(lanes.offsets[track.first], lanes.offsets[track.first + track.lanes])
        columns = (lanes.event_id[span], lanes.start[span], lanes.dur[span])
        drawn += [(track.rank, *box) for box in zip(*(c.tolist() for c in columns), strict=True)]
        assert track.count == span.stop - span.start
    expected = [(r.rank, 2 * i, row[2], row[3]) for r, rows in zip(ranks, (first, second), strict=True)
                for i, row in enumerate(rows)]  # fmt: skip
    assert sorted(drawn) == sorted(expected)
    category = {name: number for number, name in enumerate(CATEGORIES)}
    told = [CLASSES[category[lanes.kinds.categories[kind]]] for kind in lanes.kind.tolist()]
    assert lanes.classes.tolist() == told


def plain_lanes(rank):
    """Per lane (event_id, start, dur, name, category, class), with its track's label: row after row."""
    threads = {"10": "main"}
    tracks = {}
    for i in range(rank.n):
        category = rank.categories[rank.category[i]]
        place = f"GPU 0 stream {rank.stream[i]}"
        thread = rank.tids[rank.tid[i]]
        name = threads.get(thread, f"thread {thread}")
        kind, label = {
            "kernel": (0, place),
            "cuda_sync": (1, f"{place} sync"),
            "user_annotation": (2, f"annotations · {name}"),
            "cpu_op": (3, name),
        }[category]
        at = int(rank.stream[i]) if kind < 2 else int(thread)
        tracks.setdefault((kind, at, label), []).append(i)
    drawn = []
    for key in sorted(tracks, key=lambda k: (k[0], -len(tracks[k]) if k[0] > 1 else 0, k[1])):
        lanes, calls = [], []  # calls: (end, lane) of what is open
        for i in sorted(tracks[key], key=lambda i: (rank.start[i], -rank.dur[i], i)):
            start, end = int(rank.start[i]), int(rank.start[i] + rank.dur[i])
            while calls and calls[-1][0] <= start:
                calls.pop()
            at = calls[-1][1] + 1 if calls else 0
            while at < len(lanes) and lanes[at] and lanes[at][-1][1] + lanes[at][-1][2] > start:
                at += 1
            if at == len(lanes):
                lanes.append([])
            name, category = rank.names[rank.name[i]], rank.categories[rank.category[i]]
            lanes[at].append((2 * i, start, end - start, name, category, int(rank.event_class[i])))
            if key[0]:
                calls.append((end, at))
        drawn += [(key[2], lane) for lane in lanes]
    return drawn


@settings(max_examples=tried(60), deadline=None)
@given(slices, slices)
def test_lanes_are_those_of_a_plain_computation(first, second):
    ranks = [rank_of(first, 0), rank_of(second, 4)]
    lanes = build_lanes(ranks)
    told = []
    for a, b in pairwise(lanes.offsets.tolist()):
        kinds = lanes.kind[a:b].tolist()
        told.append((lanes.track_of(a).label, list(zip(
            lanes.event_id[a:b].tolist(), lanes.start[a:b].tolist(), lanes.dur[a:b].tolist(),
            [lanes.kinds.names[k] for k in kinds], [lanes.kinds.categories[k] for k in kinds],
            lanes.classes[a:b].tolist(), strict=True,
        ))))  # fmt: skip
    assert told == [lane for rank in ranks for lane in plain_lanes(rank)]


def test_an_event_is_found_on_its_own_rank_only():
    lanes = build_lanes([rank_of([(1, 0, 0, 5)], 0), rank_of([(1, 0, 0, 5), (1, 0, 9, 5)], 4)])
    assert [lanes.find(rank, event) for rank, event in ((0, 0), (4, 0), (4, 2), (0, 2))] == [0, 1, 2, -1]


@settings(max_examples=tried(60), deadline=None)
@given(slices)
def test_flows_join_a_launch_and_its_kernel(rows):
    rank = rank_of(rows)
    lanes = build_lanes([rank])
    pairs = {(int(lanes.event_id[a]), int(lanes.event_id[b]))
             for a, b in zip(lanes.flow_source, lanes.flow_target, strict=True)}  # fmt: skip
    assert pairs == {(2 * int(call), 2 * i) for i, call in enumerate(rank.launch) if call >= 0}


def test_flows_of_several_ranks_stay_on_their_rank():
    rows = [(1, 0, 0, 5), (0, 0, 10, 5)]
    lanes = build_lanes([rank_of(rows, 0), rank_of(rows, 4)])
    ends = [lanes.track_of(int(at)) for at in (*lanes.flow_source, *lanes.flow_target)]
    assert [(track.rank, track.kind) for track in ends] == [
        (0, "thread"), (4, "thread"), (0, "stream"), (4, "stream"),
    ]  # fmt: skip


def test_of_calls_that_begin_at_once_the_longest_is_the_caller():
    lanes = build_lanes([rank_of([(1, 0, 0, 20), (1, 0, 0, 100), (1, 0, 0, 50)])])
    assert [lanes.lane_of(lanes.find(0, 2 * i)) for i in range(3)] == [2, 0, 1]


def test_work_that_touches_shares_a_lane_and_work_that_overlaps_does_not():
    lanes = build_lanes([rank_of([(0, 0, 0, 10), (0, 0, 10, 10), (0, 1, 0, 10), (0, 1, 9, 10)])])
    assert [(track.label, track.lanes) for track in lanes.tracks] == [
        ("GPU 0 stream 7", 1), ("GPU 0 stream 8", 2),
    ]  # fmt: skip


def test_work_on_a_stream_takes_the_first_lane_that_is_free():
    """It is called by nothing that still runs: only on threads does one slice stand below another."""
    lanes = build_lanes([rank_of([(0, 0, 0, 10), (0, 0, 5, 20), (0, 0, 12, 5)])])
    assert [lanes.lane_of(lanes.find(0, 2 * i)) for i in range(3)] == [0, 1, 0]


def test_of_threads_the_busiest_comes_first():
    lanes = build_lanes([rank_of([(1, 0, 0, 5), (1, 1, 0, 5), (1, 1, 10, 5)])])
    assert [(track.label, track.count) for track in lanes.tracks] == [("thread 11", 2), ("main", 1)]


def test_nested_calls_stand_below_their_caller_and_streams_come_first():
    rows = [
        (1, 0, 0, 100),
        (1, 0, 10, 50),
        (1, 0, 20, 10),
        (1, 0, 70, 5),
        (0, 0, 30, 40),
        (0, 0, 50, 40),
        (2, 0, 0, 99),
    ]
    lanes = build_lanes([rank_of(rows)])
    assert [(t.kind, t.label, t.lanes) for t in lanes.tracks] == [
        ("stream", "GPU 0 stream 7", 2),
        ("annotation", "annotations · main", 1),
        ("thread", "main", 3),
    ]
    first = lanes.tracks[2].first
    depth = [lanes.lane_of(lanes.find(0, 2 * i)) - first for i in range(4)]
    assert depth == [0, 1, 2, 1]
    assert lanes.find(0, 1) == lanes.find(9, 0) == -1


def test_a_slice_that_straddles_its_neighbour_keeps_its_callees_below_it():
    # 5..15 begins inside 0..10 and outlives it; 11..14 runs inside 5..15.
    lanes = build_lanes([rank_of([(1, 0, 0, 10), (1, 0, 5, 10), (1, 0, 11, 3)])])
    assert [lanes.lane_of(lanes.find(0, 2 * i)) for i in range(3)] == [0, 1, 2]


def test_a_slice_that_only_overlaps_another_is_neither_its_caller_nor_its_callee():
    lanes = build_lanes([rank_of([(1, 0, 0, 10), (1, 0, 5, 10), (1, 0, 11, 3)])])
    first, second, third = (lanes.find(0, 2 * i) for i in range(3))
    assert [relative(lanes, at, "parent") for at in (first, second, third)] == [-1, -1, second]
    assert [relative(lanes, at, "child") for at in (first, second, third)] == [-1, third, -1]


def test_a_gap_reaches_to_the_nearest_slice_on_any_of_the_lanes():
    lanes = build_lanes([rank_of([(0, 0, 0, 10), (0, 0, 90, 10), (0, 1, 20, 5), (0, 1, 60, 5)])])
    assert gap_at(lanes, [0], 50) == (10, 90)
    assert gap_at(lanes, [0, 1], 50) == gap_at(lanes, [1, 0], 50) == (25, 60)
    assert gap_at(lanes, [0, 1], 22) is None


def test_a_deep_stack_has_a_lane_per_frame():
    n = 300
    lanes = build_lanes([rank_of([(1, 0, i, 2 * n - 2 * i) for i in range(n)])])
    assert len(lanes.offsets) - 1 == n


@settings(max_examples=tried(60), deadline=None)
@given(slices)
def test_every_level_conserves_counts_and_busy_time(rows):
    lanes = build_lanes([rank_of(rows)])
    base = Pyramid(lanes).levels[0].items
    finer = base
    for width in (1024, 2048, 4096, 8192):
        level = merge(finer, width, lanes.dur)
        direct = merge(base, width, lanes.dur)
        for name in ("start", "end", "busy", "count", "longest", "offsets"):
            np.testing.assert_array_equal(getattr(level, name), getattr(direct, name))
        assert level.count.sum() == lanes.n
        assert level.busy.sum() == lanes.dur.sum()
        assert (level.start[1:] >= level.end[:-1]).sum() >= len(level) - len(lanes.offsets) - 1
        finer = level


def plain_level(lanes, width):
    """(start, end, count, busy) of the items of a level: slice after slice."""
    items = []
    for a, b in pairwise(lanes.offsets.tolist()):
        run = None
        for start, dur in zip(lanes.start[a:b].tolist(), lanes.dur[a:b].tolist(), strict=True):
            if run is not None and dur < width and run == start // width:
                first, _, count, busy = items[-1]
                items[-1] = (first, start + dur, count + 1, busy + dur)
            else:
                items.append((start, start + dur, 1, dur))
                run = start // width if dur < width else None
    return items


@pytest.mark.parametrize("seed", range(12))
def test_stored_levels_are_the_small_ones_of_a_plain_computation(seed):
    random = np.random.default_rng(seed)
    start = np.cumsum(random.choice([1, 50, 700, 20_000], 800, p=[0.5, 0.3, 0.15, 0.05]))
    dur = random.choice([0, 1, 40, 900, 5000], 800, p=[0.2, 0.3, 0.3, 0.19, 0.01])
    rows = np.stack([random.integers(0, 2, 800), np.zeros(800, np.int64), start, dur], 1)
    rank = rank_of([*rows.tolist(), (1, 0, 80_000_000, 5)])
    rank.start -= int(random.choice([0, 100_000]))  # what a file holds before its job's start
    lanes = build_lanes([rank])
    pyramid = Pyramid(lanes)
    first, last = lanes.extent
    expected = []
    for bits in range(10, 40):
        items = plain_level(lanes, 1 << bits)
        if (1 << bits) * 256 <= last - first and len(items) <= lanes.n / 4:
            expected.append((1 << bits, items))
    told = [
        (level.width_ns, list(zip(*(getattr(level.items, name).tolist() for name in
                                    ("start", "end", "count", "busy")), strict=True)))
        for level in pyramid.levels[1:]
    ]  # fmt: skip
    assert told == expected
    assert len(told) > 2


@settings(max_examples=tried(60), deadline=None)
@given(slices, st.integers(0, 2_000_000), st.integers(1, 2_500_000), st.sampled_from([1, 40, 1600]))
def test_a_window_holds_every_slice_that_it_touches(rows, start, width, pixels):
    lanes = build_lanes([rank_of(rows)])
    order = list(range(len(lanes.offsets) - 1))[::-1]
    items = Pyramid(lanes).window(start, start + width, pixels, order)
    inside = (lanes.start < start + width) & (lanes.start + lanes.dur > start)
    touching = (lanes.start < start + width) & (lanes.start + lanes.dur >= start)
    assert inside.sum() <= items.count.sum() <= touching.sum()
    for position in np.flatnonzero(inside):
        k = order.index(lanes.lane_of(position))
        a, b = items.offsets[k], items.offsets[k + 1]
        assert ((items.start[a:b] <= lanes.start[position])
                & (items.end[a:b] >= lanes.start[position] + lanes.dur[position])).any()  # fmt: skip


def item_columns(start, dur, classes):
    start, dur = np.array(start, np.int64), np.array(dur, np.int64)
    return Items(
        start, start + dur, dur, np.ones(len(start), np.uint32), np.arange(len(start), dtype=np.uint32),
        np.array(classes, np.uint8), np.array([0, len(start)], np.int64),
    )  # fmt: skip


def test_a_merged_item_has_the_class_of_most_time_and_the_first_of_the_longest():
    items = item_columns([0, 10, 20, 40, 60], [2, 2, 2, 10, 10], [0, 0, 0, 1, 0])
    merged = merge(items, 1024, items.busy)
    (facts,) = zip(merged.start, merged.end, merged.busy, merged.count, merged.longest, merged.event_class,
                   strict=True)  # fmt: skip
    assert facts == (0, 70, 26, 5, 3, 0)
    most = merge(item_columns([0, 10, 20, 40], [2, 2, 2, 10], [0, 0, 0, 1]), 1024, items.busy)
    assert most.event_class.tolist() == [1], "the most time, not the most slices"


def test_what_begins_in_two_buckets_is_not_merged():
    items = item_columns([0, 1000, 1024, 3000], [5, 5, 5, 5], [0] * 4)
    assert merge(items, 1024, items.busy).count.tolist() == [2, 1, 1]


def test_what_stands_for_several_is_narrower_than_two_pixels():
    start = np.cumsum(np.random.default_rng(1).integers(200, 400, 40_000))
    lanes = build_lanes([rank_of(np.stack([start * 0, start * 0, start, start * 0 + 150], 1))])
    first, _ = lanes.extent
    items = Pyramid(lanes).window(first, first + 1025 * 2000, 2000, [0])
    several = items.count > 1
    assert several.any()
    assert (items.end - items.start)[several].max() < 2 * 1025


def test_what_begins_in_one_pixel_of_a_window_stands_together():
    """Pixels begin with the window, wherever that is."""
    rows = [(0, 0, 1_000 + start, 1) for start in (7, 47, 106, 107, 160, 300)]
    items = Pyramid(build_lanes([rank_of(rows)])).window(1_007, 1_407, 4, [0])
    assert items.count.tolist() == [3, 2, 1]


def test_coarse_levels_answer_wide_windows_and_conserve():
    random = np.random.default_rng(1)
    start = np.cumsum(random.integers(200, 400, 40_000))
    lanes = build_lanes([rank_of(np.stack([np.zeros_like(start), start * 0, start, start * 0 + 150], 1))])
    pyramid = Pyramid(lanes)
    assert len(pyramid.levels) > 3
    items = pyramid.window(*lanes.extent, 200, [0])
    assert items.count.sum() == 40_000
    assert items.busy.sum() == lanes.dur.sum()
    assert len(items) < 1000


@pytest.mark.parametrize(
    "window", [(0, 0, 10, [0]), (5, 1, 10, [0]), (0, 10, 0, [0]), (0, 10, 5, [9]), (0, 10, 5, [-1])]
)
def test_a_bad_window_is_refused(window):
    with pytest.raises(ValueError):
        Pyramid(build_lanes([rank_of([(1, 0, 0, 10)])])).window(*window)


def test_what_is_packed_can_be_restored_beyond_four_seconds():
    huge = 2**50 + 1
    lanes = build_lanes([rank_of([(1, 0, 3, 5), (1, 0, 7_000_000_000, ESCAPE), (1, 0, huge, huge)])])
    packed = pack_slices(lanes)
    data = zlib.decompress(packed.data)
    assert packed.layout == {
        "n": 3, "origin": 3, "gap_escapes": 2, "dur_escapes": 2, "kind_bytes": 2, "flows": 0,
    }  # fmt: skip
    gap, dur = (
        np.frombuffer(data[i : i + 12], np.uint8).reshape(4, 3).T.copy().view("<u4")[:, 0] for i in (0, 12)
    )
    assert gap.tolist() == [0, ESCAPE, ESCAPE]
    assert dur.tolist() == [5, ESCAPE, ESCAPE]
    escapes = np.frombuffer(data[24:56], "<f8")
    assert escapes.tolist() == [7_000_000_000 - 8, huge - 7_000_000_000 - ESCAPE, ESCAPE, huge]


def column(data: bytes, at: int, n: int, size: int):
    """Numbers that `shuffled` wrote."""
    planes = np.frombuffer(data, np.uint8, n * size, at).reshape(size, n)
    return planes.T.copy().view(f"<u{size}")[:, 0]


def restored(packed: Packed, offsets) -> tuple[list[list[int]], list[int], list[tuple[int, int]]]:
    """(start, dur) of each slice, their kinds, and the flows: what the browser makes of a block."""
    layout, data = packed.layout, zlib.decompress(packed.data)
    n, at = layout["n"], 8 * layout["n"]
    gap, dur = column(data, 0, n, 4), column(data, 4 * n, n, 4)
    escapes = np.frombuffer(data, "<f8", layout["gap_escapes"] + layout["dur_escapes"], at).tolist()
    gaps, durs = iter(escapes[: layout["gap_escapes"]]), iter(escapes[layout["gap_escapes"] :])
    at += 8 * len(escapes)
    times: list[list[int]] = []
    for first, stop in pairwise(offsets.tolist()):
        end = layout["origin"]
        for i in range(first, stop):
            start = end + int(next(gaps) if gap[i] == ESCAPE else gap[i])
            times.append([start, int(next(durs) if dur[i] == ESCAPE else dur[i])])
            end = sum(times[-1])
    kinds = column(data, at, n, layout["kind_bytes"]).tolist()
    at += n * layout["kind_bytes"]
    source, target = (
        np.cumsum(column(data, at + 4 * k * layout["flows"], layout["flows"], 4).view("<i4")).tolist()
        for k in (0, 1)
    )
    return times, kinds, list(zip(source, target, strict=True))


@settings(max_examples=tried(60), deadline=None)
@given(slices, slices)
def test_whatever_is_packed_can_be_restored(first, second):
    lanes = build_lanes([rank_of(first, 0), rank_of(second, 4)])
    times, kinds, flows = restored(pack_slices(lanes), lanes.offsets)
    assert times == np.stack([lanes.start, lanes.dur], 1).tolist()
    assert kinds == lanes.kind.tolist()
    assert flows == list(zip(lanes.flow_source.tolist(), lanes.flow_target.tolist(), strict=True))


def test_more_names_than_sixteen_bits_tell_apart_take_wider_numbers():
    lanes = build_lanes([rank_of([(1, 0, 3, 5), (1, 0, 10, 5)])])
    names = [str(number) for number in range(70_000)]
    kinds = Kinds(names, [""] * len(names), np.zeros(len(names), np.uint8))
    wide = replace(lanes, kinds=kinds, kind=np.array([1, 69_999], np.int32))
    assert restored(pack_slices(wide), wide.offsets)[1] == [1, 69_999]


def test_what_begins_before_the_origin_escapes():
    lanes = build_lanes([rank_of([(1, 0, 3, 5), (1, 0, 10, 5)])])
    packed = pack_window(lanes, Pyramid(lanes).window(0, 30, 100, [0]), 5)
    assert (packed.layout["gap_escapes"], packed.layout["dur_escapes"]) == (1, 0)
    assert np.frombuffer(zlib.decompress(packed.data), "<f8", 1, 16).tolist() == [-2.0]


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1])
def test_chunks_hold_all_and_none_is_larger_than_a_message(size):
    packed = Packed({}, bytes(size))
    chunks = [packed.chunk(number) for number in range(packed.chunks)]
    assert b"".join(chunks) == packed.data
    assert all(len(chunk) <= CHUNK_BYTES for chunk in chunks)
    with pytest.raises(ValueError, match="chunk"):
        packed.chunk(packed.chunks)


def test_a_window_reply_counts_its_items_per_lane():
    lanes = build_lanes([rank_of([(1, 0, 3, 5), (0, 0, 6, 5), (0, 0, 20, 5)])])
    items = Pyramid(lanes).window(0, 30, 100, [0, 1])
    packed = pack_window(lanes, items, 0)
    assert packed.layout["n"] == 3
    assert np.diff(items.offsets).tolist() == [2, 1]
    assert len(zlib.decompress(packed.data)) == 3 * (4 + 4 + 2 + 4 + 4 + 1 + 1)


def test_activity_is_the_share_of_each_bin_by_class():
    """A kernel of 20 in a job of 100 that begins at 1000: the device's work, and not the host's."""
    lanes = build_lanes([rank_of([(1, 0, 1000, 100), (0, 0, 1030, 20), (3, 0, 1000, 100)])])
    compute, *others = activity(lanes, 10)
    assert compute.tolist() == pytest.approx([0, 0, 0, 1, 1, 0, 0, 0, 0, 0])
    assert not np.any(others)
    (host,) = activity(build_lanes([rank_of([(1, 0, 1000, 50), (1, 1, 1050, 50)])]), 4)
    assert host.tolist() == pytest.approx([1, 1, 1, 1])


@settings(max_examples=tried(60), deadline=None)
@given(slices)
def test_activity_is_what_slices_cover_of_each_bin(rows):
    lanes = build_lanes([rank_of(rows)])
    first, last = lanes.extent
    bins = 7
    streams = [track for track in lanes.tracks if track.kind == "stream"]
    told = activity(lanes, bins)
    busy = np.zeros(told.shape)
    for position in range(lanes.n):
        event_class = int(lanes.classes[position])
        if streams and lanes.track_of(position).kind == "stream":
            group = next((g for g, members in enumerate(ACTIVITY_CLASSES) if event_class in members), -1)
        else:
            group = 0 if not streams and event_class == EventClass.HOST_OP else -1
        if group < 0:
            continue
        start, end = int(lanes.start[position]), int(lanes.start[position] + lanes.dur[position])
        for at in range(bins):
            edges = [first + Fraction(last - first, bins) * (at + step) for step in (0, 1)]
            busy[group, at] += float(max(0, min(end, edges[1]) - max(start, edges[0])))
    assert told.ravel().tolist() == pytest.approx((busy / max((last - first) / bins, 1e-9)).ravel().tolist())


def test_no_slices_no_lanes():
    lanes = build_lanes([rank_of([])])
    assert (lanes.n, lanes.extent, lanes.tracks) == (0, (0, 0), ())
    assert build_lanes([]).n == 0


@pytest.mark.parametrize(
    "name", ["hta/trace_filter", "tracelens/h100", "hta/cpu_only", "hta/mtia_inference_trace"]
)
def test_real_traces_are_drawn_whole(name):
    trace = Trace.open(shared_trace(name), cache=False)
    ranks = [trace.rank(r) for r in trace.ranks]
    lanes = build_lanes(ranks)
    assert_disjoint(lanes)
    assert lanes.n == sum(r.n for r in ranks)
    assert lanes.dur.sum() == sum(int(r.dur.sum()) for r in ranks)
    for level in Pyramid(lanes).levels:
        assert level.items.count.sum() == lanes.n
    outlined = json.loads(json.dumps(outline(lanes, {r.rank: r.label for r in ranks}, trace.iterations)))
    assert sum(sum(t["sizes"]) for t in outlined["tracks"]) == outlined["n"] == lanes.n
    busy = sum(int(r.dur[r.is_device].sum()) for r in ranks)
    if busy:
        width = (outlined["extent"][1] - outlined["extent"][0]) / len(outlined["activity"][0])
        known = sum(int(r.dur[r.is_device & np.isin(r.event_class, [0, 1, 2, 3])].sum()) for r in ranks)
        assert sum(map(sum, outlined["activity"])) * width == pytest.approx(known, rel=2e-2)


def test_devices_are_named_by_their_kind():
    """MTIA's device work has a category of its own."""
    trace = Trace.open(shared_trace("hta/mtia_inference_trace"))
    tracks = build_lanes([trace.rank(trace.ranks[0])]).tracks
    labels = [track.label for track in tracks if track.kind == "stream"]
    assert labels[0] == "MTIA 17 stream 101" and all(label.startswith("MTIA 17 ") for label in labels)


@pytest.mark.parametrize(("recording", "name"), [("mlu370", "MLU"), ("ascend_trace_view", "NPU")])
def test_a_lane_calls_a_device_what_the_headline_does(recording, name):
    trace = Trace.open(shared_input(f"recordings/{recording}"))
    tracks = build_lanes([trace.rank(trace.ranks[0])]).tracks
    assert {track.label.split()[0] for track in tracks if track.kind == "stream"} == {name}


def test_a_thread_without_a_name_has_no_empty_brackets():
    trace = Trace.open(shared_input("recordings/loader_cpu"))
    labels = [track.label for track in build_lanes([trace.rank(trace.ranks[0])]).tracks]
    assert "thread 14452" in labels and not any("()" in label for label in labels)


@pytest.mark.parametrize("name", ["cuda_event_sync", "alexnet"])
def test_a_wait_of_the_whole_device_is_on_no_stream(name):
    """CUPTI writes -1, signed or not, where a wait has no stream."""
    trace = Trace.open(shared_trace(f"hta/critical_path/{name}"))
    rank_trace = trace.rank(trace.ranks[0])
    assert np.isin(rank_trace.stream, [-1, 2**32 - 1]).any()
    labels = [track.label for track in build_lanes([rank_trace]).tracks if track.kind == "sync"]
    assert "GPU 0 sync" in labels and "GPU 0 stream 7 sync" in labels
    assert not any("-1" in label or "4294967295" in label for label in labels)


@given(
    st.dictionaries(st.integers(0, 60), st.integers(-5, 9), max_size=12),
    st.integers(-5, 50),
    st.integers(1, 40),
    st.integers(1, 20),
)
def test_a_pixel_shows_the_least_and_the_greatest_value_that_holds_in_it(changes, start, width, pixels):
    time = np.array(sorted(changes), np.int64)
    value = np.array([changes[t] for t in sorted(changes)], np.float64)
    least, greatest = pixels_of(time, value, start, start + width, pixels)
    for pixel in range(pixels):
        left, right = (start + Fraction(width * (pixel + more), pixels) for more in (0, 1))
        spans = zip(time.tolist(), [*time.tolist(), math.inf][1:], value, strict=False)
        held = [v for since, until, v in spans if since < right and until > left]
        assert held or (np.isnan(least[pixel]) and np.isnan(greatest[pixel]))
        if held:
            assert (least[pixel], greatest[pixel]) == (min(held), max(held))


@given(slices, slices, st.integers(0, 2_600_000), st.integers(1, 2_600_000), st.data())
@settings(deadline=None)
def test_a_window_is_summed_up_as_one_would_by_hand(first, second, start, width, data):
    lanes = build_lanes([rank_of(first, 0), rank_of(second, 3)])
    end = start + width
    every = list(range(len(lanes.offsets) - 1))
    shown = data.draw(st.permutations(every).map(lambda some: some[: len(some) // 2 + 1]))
    found = window_sums(lanes, start, end, [*shown, 10_000])
    inside = [
        (i, int(lanes.start[i]), int(lanes.start[i] + lanes.dur[i]))
        for i in range(lanes.n)
        if lanes.lane_of(i) in shown
        and lanes.start[i] < end
        and (lanes.start[i] + lanes.dur[i] > start or lanes.start[i] >= start)
    ]
    assert found["slices"] == len(inside)
    kinds = {lanes.track_of(int(lanes.offsets[lane])).kind for lane in shown}
    named = "stream" if "stream" in kinds else "thread"
    time, count, busy = {}, {}, {}
    for i, a, b in inside:
        track, kind = lanes.track_of(i), int(lanes.kind[i])
        if track.kind == named:
            time[kind] = time.get(kind, 0) + min(b, end) - max(a, start)
            count[kind] = count.get(kind, 0) + 1
        if track.kind == "stream":
            points = busy.setdefault(track.rank, [])
            points.append((max(a, start), min(b, end)))
    longest = sorted((k for k in time if time[k]), key=lambda k: (-time[k], k))[:3]
    assert found["longest"] == [[k, time[k], count[k]] for k in longest]
    for rank, ns in found["busy"]:
        edges = sorted({edge for pair in busy.get(rank, []) for edge in pair})
        by_hand = sum(
            b - a for a, b in pairwise(edges) if any(x <= a and b <= y for x, y in busy.get(rank, []))
        )
        assert ns == by_hand
    assert {rank for rank, ns in found["busy"]} >= set(busy)
