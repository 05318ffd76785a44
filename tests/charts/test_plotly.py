"""Figures follow from the description of a chart: units, titles, scales, places and exact texts."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hta_widgets import examples
from hta_widgets.analysis import ANALYSES
from hta_widgets.charts.marks import marks
from hta_widgets.charts.plotly import figure
from hta_widgets.charts.plotly.axis_unit import axis_unit, in_words
from hta_widgets.charts.spec import Bars, Heat, Lines, Spread, Stack, Table, Trend


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("dur_ns", 1_234_567, "1.234567 ms"),
        ("share_pct", 12.345, "12.35 %"),
        ("bytes", 3 * 1024**3, "3.000 GiB"),
        ("alloc_bytes", 17, "17 B"),
        ("mean_gbps", 1234.5, "1,234.5000 GB/s"),
        ("flops", 86_114_304, "86.114304 MFLOP"),
        ("count", 1_234_567, "1,234,567"),
        ("rank_ratio", 1.25, "1.25"),
        ("dur_ns", float("nan"), "–"),
    ],
)
def test_numbers_have_the_unit_of_their_column(column: str, value: float, text: str) -> None:
    assert axis_unit(column, value).text(value) == text


def test_axes_are_named_by_the_measure_or_the_column() -> None:
    assert in_words("caused_wait_ns") == "Caused wait"
    assert in_words("queue_length") == "Queue length"
    assert in_words("sum_ns", "Device time") == "Device time"


@pytest.mark.parametrize("kind", ["idle_breakdown", "temporal_breakdown"])
def test_stacks_of_iterations_stand_within_their_ranks(kind: str) -> None:
    frame = ANALYSES[kind].function(examples.load("ddp_4ranks"), by="iteration")
    drawn = ANALYSES[kind].figure(frame)
    assert drawn.layout.xaxis.type == "multicategory"
    outer, inner = drawn.data[0].x
    assert list(outer) == [f"rank {rank}" for rank in frame["rank"]]
    assert list(inner) == [f"iteration {number}" for number in frame["iteration"]]
    chart = ANALYSES[kind].chart
    assert isinstance(chart, Stack)
    assert [bar.marker.pattern.shape or "" for bar in drawn.data] == [part.pattern for part in chart.series]


def test_cumulative_shares_are_a_line_on_an_axis_of_their_own() -> None:
    frame = pd.DataFrame({"name": ["gemm", "<b>", "gemm"], "rank": [0, 0, 1], "sum_ns": [40e6, 30e6, 30e6]})
    chart = Bars("sum_ns", ("name",), "compute", cumulative=True)
    *_, line = figure(chart, frame, "").data
    assert (list(line.x), list(line.y), list(line.customdata)) == ([70, 100], [0, 1], ["gemm", "&lt;b&gt;"])
    axis = figure(chart, frame, "").layout[line.xaxis.replace("x", "xaxis")]
    assert (axis.range, axis.overlaying, axis.side) == ((0, 100), "x", "top")
    assert not [one for one in figure(replace(chart, cumulative=False), frame, "").data if one.type != "bar"]
    assert [one.type for one in figure(chart, frame.head(0), "").data] == ["scatter"]


def test_the_panel_and_the_figure_of_kernels_reach_the_same_shares() -> None:
    entry = ANALYSES["kernel_breakdown"]
    frame = entry.function(examples.load("ddp_4ranks"))
    shown = marks(entry.chart, frame)
    line = entry.figure(frame).data[-1]
    assert shown.left_out and list(line.x) == shown.table["cumulative"].tolist()
    assert 0 < line.x[0] < line.x[-1] < 100


def test_rates_over_time_have_their_own_axis() -> None:
    frame = pd.DataFrame({"rank": 0, "kind": ["<b>", "<b>"], "time_ns": [0, 10**6], "gbps": [2.5, 0.0]})
    drawn = figure(Lines("time_ns", "gbps", ("rank", "kind"), "memory"), frame, "")
    assert drawn.layout.yaxis.title.text == "Gbps (GB/s)"
    (line,) = drawn.data
    assert (list(line.x), list(line.y), line.name) == ([0.0, 1.0], [2.5, 0.0], "&lt;b&gt;")
    assert line.hovertemplate == "%{x:,.6f} ms: %{y:,.4f} GB/s"


def test_heat_begins_at_its_least_value_only_where_the_chart_says_so() -> None:
    frame = pd.DataFrame({"rank": [0, 0], "iteration": [5, 6], "busy_pct": [80.0, 82.0]})
    chart = Heat("iteration", "rank", "busy_pct", "host")
    (cells,) = figure(chart, frame, "").data
    assert (cells.zmin, cells.zmax) == (0, 82)
    assert cells.colorbar.title.text == "Busy (%)"
    contrast = figure(replace(chart, contrast=True), frame, "").data[0]
    # the scale ends at the greatest value, in a quarter of the colour: differences of 2 in 80 are small
    assert (contrast.zmin, contrast.zmax, contrast.showscale) == (80, 82, True)
    assert [end for _, end in contrast.colorscale] == ["#ffffff", "#bfe7dc"]
    same = figure(replace(chart, contrast=True), frame.assign(busy_pct=80.0), "").data[0]
    assert not same.showscale and [end for _, end in same.colorscale] == ["#ffffff", "#ffffff"]
    assert cells.colorscale[1][1] == "#009e73"


def test_a_trend_is_a_line_with_its_band_and_its_outliers_by_number() -> None:
    frame = pd.DataFrame(
        {"rank": [0, 0, 0, 1, 1, 1], "iteration": [5, 6, 7] * 2, "dur_ns": [10e6, 10e6, 4e6, 12e6, 30e6, 4e6]}
    )
    frame = frame.assign(outlier=frame["dur_ns"] == 30e6, partial=frame["iteration"] == 7)
    chart = Trend("iteration", "rank", "dur_ns", "host", "outlier", (("partial", "cut"),), "Step time")
    low, high, line, slow, aside = figure(chart, frame, "").data
    assert [list(low.y)[:2], list(line.y)[:2], list(high.y)[:2]] == [[10, 10], [11, 20], [12, 30]]
    assert list(line.x) == ["5", "6", "7"] and np.isnan(line.y[2])
    assert (high.fill, line.name) == ("tonexty", "median of 2 ranks")
    assert (list(slow.text), list(slow.y), list(slow.customdata)) == (["6"], [30], [1])
    assert (list(aside.x), list(aside.y), list(aside.customdata)) == (["7"], [4], ["cut"])
    assert figure(chart, frame.head(0), "").layout.yaxis.title.text == "Step time (ms)"


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_spreads_take_the_scale_and_the_unit_of_their_values(scale: str) -> None:
    frame = pd.DataFrame(
        {"name": "<k>", "rank": [0, 1], "low": [1.0, 3.75], "mid": [3.0, 4.0], "high": [9.0, 4.5], "n": 1}
    )
    frame = frame.rename(columns={"low": "low_pct", "mid": "mid_pct", "high": "high_pct"})
    chart = Spread(
        "name", "low_pct", "mid_pct", "high_pct", "n", "compute", item="step", scale=scale, measure="Busy"
    )  # type: ignore[arg-type]
    drawn = figure(chart, frame, "")
    assert drawn.layout.xaxis.type == scale
    assert drawn.layout.xaxis.title.text == "Busy (%)"
    assert list(drawn.layout.yaxis.ticktext) == ["&lt;k&gt;"]
    first, second = drawn.data
    for mark, ends in ((first, (1.0, 9.0)), (second, (3.75, 4.5))):
        assert (mark.x[0] - mark.error_x.arrayminus[0], mark.x[0] + mark.error_x.array[0]) == ends
    assert "high_pct: 4.50 %" in second.customdata[0]


def test_boxes_have_the_quartiles_of_the_frame() -> None:
    frame = ANALYSES["kernel_durations"].function(examples.load("ddp_4ranks"))
    boxes = ANALYSES["kernel_durations"].figure(frame).data
    first = frame.iloc[0]
    of_rank = next(box for box in boxes if box.name == f"rank {first['rank']}" and 0 in box.y)
    at = list(of_rank.y).index(0)
    assert of_rank.median[at] == pytest.approx(first["median_ns"] / 1e6)
    assert of_rank.upperfence[at] == pytest.approx(first["max_ns"] / 1e6)


def test_a_table_puts_values_side_by_side_and_keeps_equal_names_apart() -> None:
    frame = pd.DataFrame(
        {"check": ["x", "x", "y", "y"], "run": ["check", "b", "check", "b"], "value": [1, 2, None, 3.5]}
    )
    cells = figure(Table(across="run", value="value"), frame, "").data[0]
    assert list(cells.header["values"]) == ["check", "check", "b"]
    assert [list(column) for column in cells.cells["values"]] == [["x", "y"], ["1", "–"], ["2", "3.50"]]


def test_the_same_rows_make_the_same_figure_in_any_order() -> None:
    frame = ANALYSES["stream_idle_breakdown"].function(examples.load("ddp_4ranks"))
    shuffled = frame.sample(frac=1, random_state=np.random.default_rng(0))
    drawn, again = (ANALYSES["stream_idle_breakdown"].figure(rows) for rows in (frame, shuffled))
    assert drawn.to_dict() == again.to_dict()
