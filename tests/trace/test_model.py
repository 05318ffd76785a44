"""Scopes, windows, the events frame, clocks."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hta_widgets.trace import Scope, Trace
from hta_widgets.trace.clocks import align
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.scanner import scan
from hta_widgets.trace.reader.schema import ARGUMENT_COLUMNS, NULL
from tests.trace.helpers import kernel, rank_of, slice_, write

EVENTS = [
    slice_("ProfilerStep#1", "user_annotation", 0, 100),
    slice_("ProfilerStep#2", "user_annotation", 100, 100),
    slice_("cudaLaunchKernel", "cuda_runtime", 10, 5, correlation=1),
    kernel("a", 20, 10, correlation=1),
    kernel("b", 150, 10, stream=20),
    {"ph": "i", "name": "mark", "ts": 3, "pid": 1, "tid": 1},
]


def test_scopes_are_values():
    assert Scope(ranks=[2, 1, 1]) == Scope(ranks=(1, 2))
    assert hash(Scope(iterations=[3])) == hash(Scope(iterations=(3,)))
    assert Scope(ranks=(), names=[], streams=()) == Scope()
    assert Scope(window_ns=(9, 3)).window_ns == (3, 9)
    with pytest.raises(ValueError, match="empty"):
        Scope(window_ns=(3, 3))


def test_an_argument_keeps_its_type(tmp_path):
    values = {"stream": 7, "blocks per SM": 8.727, "warps per SM": 4, "dtype": "Float", "own": 1}
    rank = rank_of(tmp_path, [slice_("k", "kernel", 0, 5, **values), slice_("op", "cpu_op", 0, 5)])
    assert rank.argument("stream").tolist() == [7, NULL]
    assert rank.argument_of("stream", np.array([1, 0, 0])).tolist() == [NULL, 7, 7]
    assert rank.argument_of("cbid", np.array([0])).tolist() == [NULL]
    assert rank.argument_of("dur_ns", np.array([1])).tolist() == [5_000]
    np.testing.assert_array_equal(rank.argument("blocks_per_sm"), [8.727, np.nan])
    np.testing.assert_array_equal(rank.argument("warps_per_sm"), [4.0, np.nan])
    assert rank.argument_codes("dtype").tolist() == [0, -1]
    assert rank.argument("dur_ns").tolist() == [5_000, 5_000]


def test_an_argument_no_file_has_reads_as_absent(tmp_path):
    rank = rank_of(tmp_path, [slice_("op", "cpu_op", 0, 5)])
    assert rank.argument("cbid").tolist() == [NULL]
    assert np.isnan(rank.argument("occupancy_pct")).tolist() == [True]
    assert rank.argument_codes("kernel_file").tolist() == [-1]


def test_a_wrong_argument_says_what_there_is(tmp_path):
    rank = rank_of(tmp_path, [slice_("op", "cpu_op", 0, 5, dtype="Float")])
    with pytest.raises(ValueError, match=r"no column 'streams'; there are .*blocks_per_sm.*, stream, "):
        rank.argument("streams")
    with pytest.raises(ValueError, match="no column 'shape'"):
        rank.argument_codes("shape")
    with pytest.raises(ValueError, match="holds text: use argument_codes"):
        rank.argument("dtype")
    with pytest.raises(ValueError, match="holds numbers: use argument"):
        rank.argument_codes("stream")


def test_an_extra_argument_is_json(tmp_path):
    path = write(
        tmp_path / "trace.json", [slice_("op", "cpu_op", 0, 5, shape=[1, 2]), slice_("op", "cpu_op", 9, 5)]
    )
    rank = RankTrace(scan(path, extra_args=["shape"]), 0)
    codes = rank.argument_codes("shape")
    assert [rank.table.dictionary("shape")[codes[0]], codes[1]] == ["[1, 2]", -1]
    with pytest.raises(ValueError, match=r"there are .*, shape, "):
        rank.argument("shapes")


def test_windows_of_a_scope(tmp_path):
    rank = rank_of(tmp_path, EVENTS)
    assert rank.windows(Scope()).tolist() == [[20_000, 160_000]]
    assert rank.windows(Scope(iterations=(1, 2))).tolist() == [[0, 100_000], [100_000, 200_000]]
    assert rank.windows(Scope(iterations=(1,), window_ns=(50_000, 150_000))).tolist() == [[50_000, 100_000]]
    both = Scope(iterations=(1, 2), window_ns=(50_000, 150_000))
    assert rank.windows(both).tolist() == [[50_000, 100_000], [100_000, 150_000]]
    assert rank.windows(Scope(iterations=(77,))).tolist() == []


def test_rows_of_a_scope(tmp_path):
    rank = rank_of(tmp_path, EVENTS)
    assert rank.rows().tolist() == [0, 2, 3, 1, 4]
    assert rank.rows(Scope(iterations=(2,))).tolist() == [1, 4]
    assert rank.rows(Scope(window_ns=(29_999, 100_000))).tolist() == [0, 3]
    assert rank.rows(Scope(streams=(20,))).tolist() == [4]
    assert rank.rows(Scope(names=("a", "b"))).tolist() == [3, 4]
    assert rank.rows(Scope(ranks=(5,))).tolist() == []


def test_members_of_a_scope_share_no_row_with_neighbours(tmp_path):
    late = kernel("late", 120, 10, correlation=2)
    rank = rank_of(
        tmp_path, [*EVENTS, slice_("cudaLaunchKernel", "cuda_runtime", 90, 5, correlation=2), late]
    )
    names = lambda rows: [rank.names[code] for code in rank.name[rows]]  # noqa: E731
    assert names(rank.members(Scope(iterations=(1,)))) == [
        "ProfilerStep#1", "cudaLaunchKernel", "a", "cudaLaunchKernel", "late",
    ]  # fmt: skip
    assert names(rank.members(Scope(iterations=(2,)))) == ["ProfilerStep#2", "b"]
    for scope in (
        Scope(iterations=(1,)),
        Scope(names=("a", "b"), streams=(20,)),
        Scope(window_ns=(0, 25_000)),
    ):
        chosen = rank.by_start[::2]
        assert chosen[rank.belong(chosen, scope)].tolist() == [
            row for row in chosen.tolist() if row in rank.members(scope)
        ]
        assert chosen[rank.overlap(chosen, scope)].tolist() == [
            row for row in chosen.tolist() if row in rank.rows(scope)
        ]
    for middle in (25_000, 20_000):  # at 20_000 a kernel starts
        windows = ((0, middle), (middle, 999_000))
        halves = [rank.members(Scope(window_ns=window)) for window in windows]
        assert sorted(np.concatenate(halves).tolist()) == list(range(rank.n))
    assert names(rank.members(Scope(names=("a", "b"), streams=(20,)))) == ["b"]


def test_selected_slices_are_linked_anew_on_the_same_axis(tmp_path):
    path = write(tmp_path / "trace.json", [slice_("first", "cpu_op", -50, 5), *EVENTS])
    whole = Trace.open(path, cache=False)
    part = whole.keep(lambda window: window.start < whole.rank(0).start.max())
    (rank,) = [part.rank(rank) for rank in part.ranks]
    assert rank.n == whole.rank(0).n - 1
    assert rank.device_span == (70_000, 80_000)
    assert rank.event_id[rank.launch[rank.is_device]].tolist() == [3]
    assert part.keep(lambda item: np.zeros(item.n, np.bool_)).extent_ns == (0, 0)


def assert_told_by_the_json(frame, events):
    """Every argument of every row of the frame is the one in the file, or absent as there."""
    told = set()
    for column in ARGUMENT_COLUMNS:
        values = [events[i].get("args", {}).get(column.key) for i in frame["event_id"]]
        if column.name in ("correlation", "device", "stream") or all(value is None for value in values):
            assert column.name in frame.columns[:18] or column.name not in frame
            continue
        told.add(column.name)
        kind = {"int": "Int64", "float": "float64"}.get(column.kind, "category")
        assert frame[column.name].dtype == kind, column.name
        found = frame[column.name].astype(object).where(frame[column.name].notna(), None)
        if column.kind == "json":
            found = found.map(lambda text: None if text is None else json.loads(text))
        assert found.tolist() == values, column.name
    assert set(frame.columns[18:]) == told


def test_arguments_of_the_frame_are_those_of_the_file(tmp_path):
    random = np.random.default_rng(3)
    choices = {
        "Ev Idx": [0, 5, -7, 2**62],
        "blocks per SM": [0.5, 8.727],
        "grid": [[1, 1, 1], [64, 2, 1]],
        "dtype": [f"type {number}" for number in range(200)],  # more than eight bits tell apart
    }
    events = []
    for _ in range(600):
        args = {key: values[random.integers(len(values))] for key, values in choices.items()
                if random.random() < 0.6}  # fmt: skip
        events.append(slice_("op", "cpu_op", int(random.integers(500)), 1, **args))
    events.append(slice_("alone", "cpu_op", 0, 1, **{"Sequence number": 4}))
    trace = Trace.open(write(tmp_path / "rank0.json", events), cache=False)
    assert_told_by_the_json(trace.events(), events)
    part = trace.events(Scope(names=("op",)))
    assert "sequence_number" not in part
    assert_told_by_the_json(part, events)


def test_the_frame_is_the_callers_own(tmp_path):
    """Of a file that is already in order no column is a view of the trace."""
    trace = Trace.open(
        write(tmp_path / "rank0.json", [slice_("op", "cpu_op", i, 1, **{"Ev Idx": i}) for i in range(5)]),
        cache=False,
    )
    before = trace.events()
    changed = trace.events()
    for name in changed:
        if changed[name].dtype.kind in "iuf":
            changed.loc[:, name] = 77
    pd.testing.assert_frame_equal(trace.events(), before)


def test_events_frame(tmp_path):
    write(tmp_path / "rank0.json", EVENTS)
    write(tmp_path / "rank1.json", [*EVENTS, kernel("only here", 500, 1)])
    trace = Trace.open(tmp_path, cache=False)
    frame = trace.events()
    core = [
        "rank",
        "event_id",
        "name",
        "category",
        "event_class",
        "pid",
        "tid",
        "device",
        "stream",
        "start_ns",
        "end_ns",
        "dur_ns",
    ]
    core += ["correlation", "launch_id", "iteration", "parent_id", "depth", "mark"]
    assert list(frame.columns[: len(core)]) == core
    assert frame["name"].dtype == "category"
    assert frame["launch_id"].dtype == "Int64"
    a = frame[(frame["name"] == "a") & (frame["rank"] == 1)].iloc[0]
    assert (a["event_id"], a["launch_id"], a["iteration"], a["stream"], a["event_class"]) == (
        3,
        2,
        1,
        7,
        "compute",
    )
    host = frame[frame["name"] == "cudaLaunchKernel"].iloc[0]
    assert host[["stream", "device", "launch_id"]].isna().all()
    assert frame.sort_values(["rank", "start_ns", "event_id"]).index.tolist() == list(range(len(frame)))
    assert trace.events(Scope(ranks=(1,), names=("only here",)))["event_id"].tolist() == [len(EVENTS)]
    assert trace.events(Scope(ranks=(9,))).empty


def test_begin_end_pairs_are_slices(tmp_path):
    pairs = [
        {"ph": "B", "name": "outer", "cat": "cpu_op", "ts": 1, "pid": 1, "tid": 1},
        {"ph": "B", "name": "inner", "cat": "cpu_op", "ts": 2, "pid": 1, "tid": 1},
        {"ph": "E", "ts": 4, "pid": 1, "tid": 1},
        {"ph": "E", "ts": 9, "pid": 1, "tid": 1},
        {"ph": "E", "ts": 10, "pid": 1, "tid": 1},
        {"ph": "B", "name": "open", "cat": "cpu_op", "ts": 11, "pid": 1, "tid": 1},
        {"ph": "E", "ts": 12, "pid": 1, "tid": 2},
    ]
    rank = rank_of(tmp_path, pairs)
    assert [(rank.names[code], dur) for code, dur in zip(rank.name, rank.dur, strict=True)] == [
        ("outer", 8_000),
        ("inner", 2_000),
    ]
    assert rank.parent.tolist() == [-1, 0]
    assert {problem.check: problem.count for problem in rank.slices.problems} == {
        "unfinished": 1,
        "unmatched_end": 2,
    }


def test_slices_are_in_the_order_of_the_file_however_they_are_written(tmp_path):
    events = [
        {"ph": "B", "name": "pair", "cat": "cpu_op", "ts": 1, "pid": 1, "tid": 1},
        {"ph": "E", "ts": 4, "pid": 1, "tid": 1},
        slice_("whole", "cpu_op", 10, 5),
    ]
    rank = rank_of(tmp_path, events)
    assert [(rank.names[code], dur) for code, dur in zip(rank.name, rank.dur, strict=True)] == [
        ("pair", 3_000),
        ("whole", 5_000),
    ]


def test_the_device_of_a_rank_is_the_one_that_it_uses(tmp_path):
    devices = [{"id": number, "name": name} for number, name in enumerate(("used", "idle"))]
    for order in (devices, devices[::-1]):
        assert rank_of(tmp_path, EVENTS, deviceProperties=order).device_name == "used"


def test_ranks_share_an_axis_by_base_time(tmp_path):
    write(tmp_path / "rank0.json", [kernel("a", 100, 10)], baseTimeNanoseconds=1_700_000_000_000_000_000)
    write(tmp_path / "rank1.json", [kernel("a", 50, 10)], baseTimeNanoseconds=1_700_000_000_000_080_000)
    trace = Trace.open(tmp_path, cache=False)
    assert trace.origin_ns == 1_700_000_000_000_100_000
    assert trace.rank(0).start.tolist() == [0]
    assert trace.rank(1).start.tolist() == [30_000]
    assert trace.extent_ns == (0, 40_000)


def test_clock_methods():
    assert align({0: (100, 200), 1: (150, 300)}, {0: None, 1: None}).method == "shared"
    apart = align({0: (100, 200), 1: (900, 950)}, {0: None, 1: None})
    assert (apart.method, apart.offset_ns) == ("start", {0: 100, 1: 900})
    assert align({0: (100, 200), 1: (150, 300)}, {0: 5, 1: None}).method == "start"
    for hours, method in ((24, "base"), (25, "start")):
        base = hours * 3600 * 10**9
        assert align({0: (0, 1), 1: (0, 1)}, {0: 0, 1: base}).method == method


def test_threads_carry_their_names(tmp_path):
    named = [
        {"ph": "M", "name": "process_name", "pid": 10, "tid": 0, "ts": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "pid": 10, "tid": 1, "ts": 0, "args": {"name": "thread 1 (main)"}},
        {"ph": "M", "name": "thread_sort_index", "pid": 10, "tid": 1, "ts": 0, "args": {"sort_index": 4}},
    ]
    labels = [
        {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "ts": 0, "args": {"labels": text}}
        for pid, text in ((10, "CPU"), (0, "GPU 0"))
    ]
    frame = rank_of(tmp_path, [*EVENTS, *named, *labels]).threads
    row = frame[(frame["pid"] == "10") & (frame["tid"] == "1")].iloc[0]
    assert (row["process_name"], row["thread_name"], row["sort_index"]) == ("python", "thread 1 (main)", 4)
    assert set(frame.loc[frame["pid"] == "0", "process_name"]) == {"GPU 0"}


def test_a_trace_without_slices_is_still_a_trace(tmp_path):
    rank = rank_of(tmp_path, [{"ph": "i", "name": "mark", "ts": 3, "pid": 1, "tid": 1}])
    assert rank.n == 0
    assert rank.iterations.empty
    assert rank.windows().tolist() == []
    assert np.array_equal(rank.rows(), np.empty(0))


def test_unknown_rank(tmp_path):
    trace = Trace.open(write(tmp_path / "a.json", EVENTS), cache=False)
    with pytest.raises(KeyError, match="no rank 3"):
        trace.rank(3)


def test_a_dask_cluster_reads_the_files_and_a_bad_one_does_not_sink_the_others(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="dask.distributed is an optional dependency")
    for rank in (0, 1):
        write(
            tmp_path / f"rank{rank}.json",
            [kernel("k", 1.001, 2.5)],
            distributedInfo={"rank": rank, "world_size": 2},
        )
    (tmp_path / "rank2.json").write_text("<html>")
    seen: list[int] = []
    with distributed.Client(n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        trace = Trace.open(
            tmp_path, client=client, cache=False, progress=lambda done, total, text: seen.append(done)
        )
        pd.testing.assert_frame_equal(trace.events(), Trace.open(tmp_path, cache=False).events())
    assert trace.ranks == [0, 1]
    assert list(trace.failed) == ["rank2.json"]
    assert seen == [1, 2, 3]
