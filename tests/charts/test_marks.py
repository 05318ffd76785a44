"""Charts show what the frame says: extremes kept, sums kept, nothing dropped without being counted."""

import json
from html import unescape

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hta_widgets import Trace, examples
from hta_widgets.analysis import ANALYSES
from hta_widgets.analysis.memory.usage import BEFORE
from hta_widgets.charts.flame_boxes import OTHER, flame_marks
from hta_widgets.charts.marks import marks
from hta_widgets.charts.plotly import figure
from hta_widgets.charts.spec import (
    Bars,
    Flame,
    Heat,
    Histogram,
    Lines,
    Roofline,
    Series,
    Spread,
    Stack,
    Trend,
)
from hta_widgets.charts.step_points import shown_points
from hta_widgets.widgets.files import as_bytes
from tests.support import tried


@pytest.fixture(scope="module")
def ddp() -> Trace:
    return examples.load("ddp_4ranks")


@settings(deadline=None, max_examples=tried(60))
@given(st.lists(st.tuples(st.integers(0, 500), st.integers(-50, 50)), min_size=60, max_size=400))
@example([(3, 4)])
def test_reduced_steps_keep_ends_and_extremes_of_every_column(points: list[tuple[int, int]]) -> None:
    points.sort(key=lambda point: point[0])
    time, value = (np.array(column) for column in zip(*points, strict=True))
    chosen = shown_points(time, value, most=40)
    few_time, few_value = time[chosen], value[chosen]
    assert len(few_time) <= 40 or len(time) <= 40
    assert (few_time[0], few_value[0]) == (time[0], value[0])
    assert (few_time[-1], few_value[-1]) == (time[-1], value[-1])
    assert (few_value.min(), few_value.max()) == (value.min(), value.max())
    kept = set(zip(few_time.tolist(), few_value.tolist(), strict=True))
    assert kept <= set(zip(time.tolist(), value.tolist(), strict=True))
    edges = np.linspace(time[0], time[-1], 11)[1:-1]
    for column in range(10):
        here = np.searchsorted(edges, time, side="right") == column
        left = np.searchsorted(edges, few_time, side="right") == column
        if here.any():
            assert few_value[left].max() == value[here].max()
            assert few_value[left].min() == value[here].min()


def test_bars_add_up_rows_of_a_label_and_count_what_is_left_out() -> None:
    frame = pd.DataFrame(
        {
            "rank": [0, 1, 0, *range(30)],
            "name": ["gemm", "gemm", "<b>", *(f"k{i}" for i in range(30))],
            "event_class": ["compute", "compute", "memory_copy", *["anything"] * 30],
            "sum_ns": [50, 60, 100, *range(30)],
        }
    )
    drawn = marks(Bars("sum_ns", ("name",), "event_class", names="name"), frame)
    assert drawn.table["label"].tolist()[:3] == ["gemm", "<b>", "k29"]
    assert drawn.table["value"].tolist()[:3] == [110, 100, 29]
    assert drawn.table["count"].tolist()[:3] == [2, 1, 1]
    assert drawn.table["time_class"].tolist()[:3] == ["compute", "memory", "host"]
    assert [json.loads(text) for text in drawn.table["names"][:2]] == [["gemm"], ["<b>"]]
    assert drawn.left_out == 31 - 20  # k0 takes no time: it would be no bar


def test_cumulative_bars_reach_the_share_of_all_rows_also_of_those_left_out(ddp: Trace) -> None:
    frame = ANALYSES["kernel_breakdown"].function(ddp)
    found = marks(ANALYSES["kernel_breakdown"].chart, frame)
    assert found.left_out
    reached = found.table["cumulative"].to_numpy()
    by_name = frame.groupby("name")["sum_ns"].sum().sort_values(ascending=False)
    expected = (100 * by_name.cumsum() / by_name.sum()).to_numpy()[: len(reached)]
    np.testing.assert_allclose(reached, expected)
    assert reached[-1] < 100


def test_bars_of_windows_are_single_rows() -> None:
    frame = pd.DataFrame({"rank": [0, 0, 1], "start_ns": [0, 10, 0], "end_ns": [5, 19, 7]})
    frame["dur_ns"] = frame["end_ns"] - frame["start_ns"]
    drawn = marks(Bars("dur_ns", ("rank",), "idle", window=("start_ns", "end_ns")), frame)
    assert drawn.table["label"].tolist() == ["rank 0", "rank 1", "rank 0"]
    assert drawn.table[["start", "end"]].to_numpy().tolist() == [[10, 19], [0, 7], [0, 5]]


def test_stacked_bars_have_the_window_of_their_whole_where_it_is_known() -> None:
    frame = pd.DataFrame({"rank": 0, "iteration": [0, 1], "a_ns": [3, 4], "whole_ns": [3, 4]})
    frame["start_ns"], frame["end_ns"] = pd.array([10, None], "Int64"), pd.array([13, 17], "Int64")
    chart = Stack(
        (Series("a_ns", "A", "idle"),), "whole_ns", ("rank", "iteration"), window=("start_ns", "end_ns")
    )
    drawn = marks(chart, frame).table
    assert drawn["start"].fillna(-1).tolist() == [10, -1]
    assert drawn["end"].tolist() == [13, 17]


def test_of_many_windows_the_longest_are_shown_and_the_others_counted() -> None:
    length = np.r_[np.zeros(5), np.arange(1, 31)].astype(np.int64)
    frame = pd.DataFrame({"rank": 0, "name": "k", "start_ns": 0, "end_ns": length, "dur_ns": length})
    drawn = marks(Bars("dur_ns", ("rank", "name"), "idle", window=("start_ns", "end_ns")), frame)
    assert drawn.table["value"].tolist() == list(range(30, 10, -1))
    assert drawn.left_out == 10  # what took no time would be no bar


def test_bars_choose_no_event_for_memory_from_before_the_recording() -> None:
    frame = pd.DataFrame({"rank": 0, "top_operator": [BEFORE, "aten::mm"], "bytes": [9, 5]})
    chart = Bars("bytes", ("top_operator",), "memory", names="top_operator", no_event=BEFORE)
    drawn = marks(chart, frame)
    assert drawn.table["names"].tolist() == ["[]", '["aten::mm"]']


@pytest.mark.parametrize(
    ("device", "labels"), [([3, 3], ["rank 0", "rank 1"]), ([3, 4], ["rank 0", "rank 1"])]
)
def test_the_only_device_of_each_rank_is_not_named(device: list[int], labels: list[str]) -> None:
    frame = pd.DataFrame({"rank": [0, 1], "device": device, "sum_ns": [9, 5]})
    assert marks(Bars("sum_ns", ("rank", "device"), "idle"), frame).table["label"].tolist() == labels


def test_several_devices_of_a_rank_are_named_and_its_only_rank_is_not() -> None:
    frame = pd.DataFrame({"rank": [0, 0], "device": [3, 4], "sum_ns": [9, 5]})
    drawn = marks(Bars("sum_ns", ("rank", "device"), "idle"), frame)
    assert drawn.table["label"].tolist() == ["device 3", "device 4"]


@pytest.mark.parametrize(
    ("told", "shown"),
    [("memory_copy", "memory"), ("memory_set", "memory"), ("host_sync", "sync"), ("edge", "idle"),
     ("data_stall", "host"), ("compute", "compute"), ("whatever", "host")],
)  # fmt: skip
def test_every_value_has_the_colour_of_its_class(told: str, shown: str) -> None:
    frame = pd.DataFrame({"name": ["k"], "event_class": [told], "sum_ns": [5]})
    drawn = marks(Bars("sum_ns", ("name",), "event_class"), frame)
    assert drawn.table["time_class"].tolist() == [shown]


def test_a_heat_map_shows_the_rows_of_the_greatest_sums() -> None:
    frame = pd.DataFrame(
        {"iteration": [0, 1] * 300, "kernel": np.repeat(range(300), 2), "dur_ns": range(600)}
    )
    drawn = marks(Heat("iteration", "kernel", "dur_ns", "host"), frame)
    assert sorted(set(drawn.table["y"])) == list(range(44, 300))
    assert (len(drawn.table), drawn.left_out) == (512, 44)


def test_a_heat_map_of_many_ranks_keeps_those_apart_and_has_the_others_in_bands() -> None:
    values = np.full((200, 3), 100) + np.arange(200)[:, None] % 3
    values[70], values[150] = 900, 1
    frame = pd.DataFrame(
        {"rank": np.repeat(range(200), 3), "iteration": [0, 1, 2] * 200, "dur_ns": values.ravel()}
    )
    chart = Heat("iteration", "rank", "dur_ns", "host")
    drawn = marks(chart, frame)
    bands = [json.loads(text) for text in drawn.legend]
    assert len(bands) == 32
    assert sorted(rank for band in bands for rank in band) == [r for r in range(200) if r not in (70, 150)]
    cells = drawn.table.set_index(["y", "x"])
    assert sorted(cells.index.get_level_values("y").unique()) == sorted([70, 150, *(b[0] for b in bands)])
    assert cells.loc[(70, 0), "value"] == 900
    assert cells.loc[(150, 2), "value"] == 1
    for band in bands:  # the mean by plain Python
        for x in range(3):
            mean = sum(int(values[rank, x]) for rank in band) / len(band)
            assert cells.loc[(band[0], x), "value"] == pytest.approx(mean)
    few = frame[frame["rank"] < 64]
    assert marks(chart, few).table["value"].tolist() == few["dur_ns"].tolist()
    assert marks(chart, few).legend == []


TREND = Trend("iteration", "rank", "dur_ns", "host", "outlier", (("partial", "cut"), ("start_up", "starts")))


def steps(times: dict[int, list[int]], cut: tuple[tuple[int, int], ...] = ()) -> pd.DataFrame:
    """Steps 5, 6, ... of each rank; `cut` ones (rank, step) are partial, and what takes 100 is unusual."""
    rows = [(rank, 5 + i, ns) for rank, own in times.items() for i, ns in enumerate(own)]
    frame = pd.DataFrame(rows, columns=["rank", "iteration", "dur_ns"])
    partial = [(rank, step) in cut for rank, step, _ in rows]
    return frame.assign(outlier=frame["dur_ns"] == 100, partial=partial, start_up=False)


def test_a_trend_goes_through_the_medians_of_ranks_between_the_fastest_and_the_slowest() -> None:
    frame = steps(
        {0: [10, 12, 3, 1], 1: [11, 100, 9, 2], 2: [15, 14, 8, 3]}, ((0, 7), *((r, 8) for r in range(3)))
    )
    drawn = marks(TREND, frame.sample(frac=1, random_state=0))
    points = drawn.table
    assert points[["x", "most", "rank", "outlier"]].to_numpy().tolist() == [
        [5, 15, 2, 0], [6, 100, 1, 1], [7, 9, 1, 0], [8, 3, 2, 0]]  # fmt: skip
    assert points["aside"].tolist() == ["", "", "", "cut"], "rank 0 alone does not count in step 7"
    known = points[["mid", "low", "high"]].iloc[:3].to_numpy().tolist()
    assert known == [[11, 10, 15], [14, 12, 100], [8.5, 8, 9]]
    assert points[["mid", "low", "high"]].iloc[3].isna().all()
    assert drawn.legend == ["median of 3 ranks", "fastest to slowest rank, 5 ns at the median"]


def test_a_trend_of_one_rank_has_the_quartiles_of_its_steps() -> None:
    drawn = marks(TREND, steps({3: [10, 12, 14, 16, 18, 1]}, ((3, 10),)))
    assert drawn.table[["low", "high"]].iloc[:5].to_numpy().tolist() == [[12, 16]] * 5
    assert drawn.table[["mid", "low", "high"]].iloc[5].isna().all()
    assert drawn.legend == ["rank 3", "middle half of its steps, 12 ns to 16 ns"]


def test_a_trend_of_steps_of_which_none_counts_says_only_what_it_would_be() -> None:
    drawn = marks(TREND, steps({3: [10]}, ((3, 5),)))
    assert drawn.table["mid"].isna().all()
    assert drawn.legend == ["rank 3", "middle half of its steps"]


def test_a_spread_shows_the_kernels_that_take_most_time() -> None:
    """Which are not those of the longest launches."""
    frame = pd.DataFrame({"name": [f"k{i:02}" for i in range(20)], "rank": 0, "sum_ns": range(20)})
    frame = frame.assign(min_ns=1, mean_ns=100 - frame["sum_ns"], max_ns=200, event_class="compute")
    drawn = marks(
        Spread("name", "min_ns", "mean_ns", "max_ns", "sum_ns", "event_class", item="launch"), frame
    )
    assert drawn.legend == [f"k{i:02}" for i in range(19, 7, -1)]
    assert drawn.left_out == 8
    by_line = drawn.table.sort_values("line")
    assert by_line[["low", "mid", "high"]].iloc[0].tolist() == [1, 81, 200]


def test_a_stack_of_rows_becomes_one_of_columns_that_add_up(ddp: Trace) -> None:
    analysis = ANALYSES["critical_path"]
    assert isinstance(analysis.chart, Stack)
    frame = analysis.function(ddp)
    table = marks(analysis.chart, frame).table
    parts = [series.column for series in analysis.chart.series]
    assert (table[parts].sum(axis=1) == table["path_ns"]).all()
    assert table["path_ns"].tolist() == frame.groupby("rank")["dur_ns"].sum().tolist()


@pytest.mark.parametrize("kind", ["stream_idle_breakdown", "kernel_type_breakdown", "critical_path"])
def test_series_cover_every_part_there_is(ddp: Trace, kind: str) -> None:
    chart = ANALYSES[kind].chart
    assert isinstance(chart, Stack)
    frame = ANALYSES[kind].function(ddp)
    assert set(frame[chart.part].astype(str)) <= {series.column for series in chart.series}


def test_lines_are_the_highest_and_named_by_what_differs() -> None:
    frame = pd.DataFrame(
        {
            "rank": [0] * 20,
            "device": [3] * 20,
            "stream": np.repeat(range(10), 2),
            "time_ns": [0, 5] * 10,
            "queue_length": np.repeat(range(10), 2),
        }
    )
    drawn = marks(Lines("time_ns", "queue_length", ("rank", "device", "stream"), "host"), frame)
    assert drawn.legend == [f"stream {number}" for number in range(2, 10)]
    assert drawn.left_out == 1  # stream 1; on stream 0 nothing ever waited
    assert drawn.table.groupby("line")["value"].max().tolist() == list(range(2, 10))


def test_histogram_counts_every_row() -> None:
    latency = np.random.default_rng(0).lognormal(10, 3, 5000).astype(np.int64)
    table = marks(Histogram("latency_ns", "host"), pd.DataFrame({"latency_ns": latency})).table
    assert table["count"].sum() == len(latency)
    same = marks(Histogram("latency_ns", "host"), pd.DataFrame({"latency_ns": [7, 7]})).table
    assert same["count"].sum() == 2


def test_flame_lays_ranks_on_each_other_and_keeps_the_whole(ddp: Trace) -> None:
    chart = ANALYSES["call_stacks"].chart
    assert isinstance(chart, Flame)
    frame = ANALYSES["call_stacks"].function(ddp)
    table, left_out = flame_marks(chart, frame)
    assert left_out > 0
    assert len(table) < len(frame) / 3
    tops = table[table["parent"] < 0]
    assert tops["width_0"].sum() == frame["host_self_ns"].sum()
    assert tops["width_1"].sum() == frame.loc[frame["parent_node"] < 0, "device_ns"].sum()
    assert tops.loc[tops["name"] == "ProfilerStep#10", "count"].tolist() == [4]
    assert OTHER in set(table["name"])
    below = table[table["parent"] >= 0]
    children = below.groupby("parent")["width_0"].sum()
    assert (children <= table["width_0"].loc[children.index] + 1e-6).all()


def test_a_call_is_as_wide_as_what_it_calls_and_narrow_ones_are_gathered() -> None:
    """main (5 of its own) calls a (600) and b, which calls 50 of 1 each: too narrow to see in 10,000."""
    rows = [("main", -1, 5), ("a", 0, 600), ("b", 0, 9_345), *((f"n{i}", 2, 1) for i in range(50))]
    frame = pd.DataFrame(rows, columns=["name", "parent_node", "own"])
    frame = pd.concat([frame.assign(rank=rank, node=range(len(frame))) for rank in (0, 1)])
    frame = frame.assign(count=1, total=0)
    table, left_out = flame_marks(
        Flame("node", "parent_node", "name", (("total", "own", "Own", "host"),)), frame
    )
    assert table[["parent", "name", "width_0", "count"]].to_numpy().tolist() == [
        [-1, "main", 20_000.0, 2], [0, "a", 1200.0, 2], [0, "b", 18_790.0, 2], [2, OTHER, 100.0, 100],
    ]  # fmt: skip
    assert left_out == 50


def test_files_keep_digits_and_run_no_formula() -> None:
    frame = pd.DataFrame({"name": ["=1+1", "-x", 'a,"b"', None], "dur_ns": [2**53 + 1, 0, -1, 2]})
    text = as_bytes(frame, "csv").decode()
    assert text.splitlines() == [
        '"name","dur_ns"', '"\'=1+1",9007199254740993', '"\'-x",0', '"a,""b""",-1', ",2",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="csv, parquet"):
        as_bytes(frame, "exe")


KERNEL = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, {}>(int, {})"
ALIKE = [KERNEL.format("a", "x"), KERNEL.format("b", "x"), "gemm"]


def test_bars_are_named_by_what_tells_them_apart() -> None:
    frame = pd.DataFrame({"name": ALIKE, "rank": [0, 1, 1], "sum_ns": [30, 20, 10]})
    chart = Bars("sum_ns", ("name", "rank"), "compute", names="name")
    table = marks(chart, frame).table
    assert table["label"].tolist() == [
        f"{name} · rank {rank}" for name, rank in zip(ALIKE, (0, 1, 1), strict=True)
    ]
    assert len(set(table["short"])) == 3
    assert [text.split(" · ")[1] for text in table["short"]] == ["rank 0", "rank 1", "rank 1"]
    assert all(text.startswith("vectorized_elementwise_kernel<") for text in table["short"][:2])
    assert all(len(text) <= 64 + len(" · rank 0") for text in table["short"])
    ticks = figure(chart, frame, "").layout.yaxis.ticktext
    assert [unescape(text) for text in ticks] == table["short"].tolist()


def test_spreads_and_boxes_have_both_names() -> None:
    numbers = {"low": 1, "mid": 2, "high": [9, 8, 7], "n": [3, 2, 1]}
    frame = pd.DataFrame({"name": ALIKE, "rank": 0, **numbers})
    chart = Spread("name", "low", "mid", "high", "n", "compute", "launch")
    drawn = marks(chart, frame)
    assert drawn.legend == ALIKE
    assert len(set(drawn.table["short"])) == 3 and drawn.table["short"].iloc[2] == "gemm"
    assert [unescape(text) for text in figure(chart, frame, "").layout.yaxis.ticktext] == drawn.table[
        "short"
    ].tolist()
    calls = pd.DataFrame(
        {"rank": 0, "node": [0, 1, 2], "parent": -1, "name": ALIKE, "count": 1, "dur_ns": [50, 30, 20]}
    )
    flame = Flame("node", "parent", "name", (("dur_ns", "", "Time", "host"),))
    boxes = marks(flame, calls).table
    assert boxes["name"].tolist() == ALIKE and len(set(boxes["short"])) == 3
    assert {unescape(text) for text in figure(flame, calls, "").data[0].labels} > set(boxes["short"])


def test_marks_of_a_roofline_are_of_all_ranks() -> None:
    # on two ranks 6 TFLOP (2e12 x 3 s) and 4 TFLOP in 3 s and 1 s, on one of them another operator
    shared = {"unit": "tensor_16bit", "device": "H100", "peak_tflops_s": 900.0, "peak_gb_s": 3000.0}
    own = {"input_shapes": "(4, 8)", "input_types": "", "category": "", "longest_kernel": "", "source": ""}
    frame = pd.DataFrame(
        [
            {"rank": 0, "name": "mm", "tflops_s": 2.0, "gb_s": 10.0, "bound": "memory"},
            {"rank": 1, "name": "mm", "tflops_s": 4.0, "gb_s": 50.0, "bound": "compute"},
            {"rank": 1, "name": "bmm", "tflops_s": 1.0, "gb_s": 10.0, "bound": "memory"},
        ]
    ).assign(**shared, **own, achievable_tflops_s=np.nan)
    frame["calls"], frame["device_self_ns"] = [3, 1, 1], [3_000_000_000, 1_000_000_000, 1_000_000_000]
    frame["device_self_pct"] = [100.0, 50.0, 50.0]
    frame["headroom_ns"] = pd.array([2_000_000_000, 500_000_000, None], "Int64")
    frame["efficiency_pct"] = [20.0, 60.0, np.nan]
    frame["flops_per_byte"] = [200.0, 80.0, 100.0]
    chart = ANALYSES["roofline"].chart
    assert isinstance(chart, Roofline)
    table = marks(chart, frame).table.set_index("label")
    assert table.index.tolist() == ["mm", "bmm"]
    assert table["detail"].tolist() == ["(4, 8), 2 ranks", "(4, 8), 1 rank"]
    mm = table.loc["mm"]
    assert (mm["size"], mm["calls"], mm["headroom"]) == (4e9, 4, 2.5e9)
    assert (mm["y"], mm["moved"], mm["efficiency"]) == (10 / 4, 80 / 4, 120 / 4)
    assert mm["x"] == pytest.approx(10e12 / 80e9) and mm["bound"] == ""
    assert mm["share"] == pytest.approx(100 * 4 / 5) and pd.isna(table.loc["bmm", "headroom"])
    alone = marks(chart, frame[frame["rank"] == 1]).table
    assert alone["label"].tolist() == ["mm", "bmm"] and alone["y"].tolist() == [4.0, 1.0]
