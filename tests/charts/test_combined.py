"""Bars of sums, means and maxima: each value is what its rows come to, in the order that the chart says."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hta_widgets.charts import plotly
from hta_widgets.charts.combined import MOST_BARS, combined
from hta_widgets.charts.marks import marks
from hta_widgets.charts.spec import Bars
from tests.support import tried

MEAN = Bars(
    "busy_pct",
    ("name",),
    "compute",
    combine="mean",
    weight="time_ns",
    ascending=True,
    limit=100,
    measure="Busy",
)
FRAME = pd.DataFrame(
    {
        "rank": [0, 1, 0, 0, 1],
        "name": ["<i>a", "<i>a", "b", "c", "none"],
        "busy_pct": [10.0, 40.0, 0.0, 90.0, np.nan],
        "time_ns": [100, 300, 5, 7, 9],
    }
)


def test_a_mean_counts_rows_by_their_weight_and_shows_the_least_first() -> None:
    table = marks(MEAN, FRAME).table
    assert table["label"].tolist() == ["b", "<i>a", "c"]  # 0 is a value; no value is no bar
    assert table["value"].tolist() == [0.0, (10 * 100 + 40 * 300) / 400, 90.0]
    assert table["count"].tolist() == [1, 2, 1]


def test_a_bar_knows_where_its_rows_begin() -> None:
    bars = combined(MEAN, FRAME).bars  # b, a, c
    assert bars[["first", "count"]].to_numpy().tolist() == [[2, 1], [0, 2], [3, 1]]


def test_bars_of_means_are_those_with_most_weight() -> None:
    many = pd.DataFrame(
        {"name": [f"k{i}" for i in range(30)], "busy_pct": range(30), "time_ns": range(30, 0, -1)}
    )
    drawn = marks(MEAN, many)
    assert drawn.left_out == 30 - MOST_BARS
    assert drawn.table["value"].tolist() == list(range(MOST_BARS))


def test_rows_without_weight_make_no_bar() -> None:
    frame = pd.DataFrame({"name": ["a", "b"], "busy_pct": [20.0, 90.0], "time_ns": [5, 0]})
    drawn = marks(MEAN, frame)
    assert (drawn.table["label"].tolist(), drawn.left_out) == (["a"], 0)


def test_the_greatest_of_a_label() -> None:
    table = marks(Bars("busy_pct", ("name",), "compute", combine="max"), FRAME).table
    assert table[["label", "value"]].to_numpy().tolist() == [["c", 90.0], ["<i>a", 40.0]]


def test_the_least_sums_are_shown_where_the_least_matter_and_nothing_weighs() -> None:
    frame = pd.DataFrame({"name": [f"k{i}" for i in range(30)], "time_ns": range(1, 31)})
    drawn = marks(Bars("time_ns", ("name",), "compute", ascending=True), frame)
    assert drawn.table["value"].tolist() == list(range(1, MOST_BARS + 1))


def test_a_mean_without_a_weight_is_refused() -> None:
    with pytest.raises(ValueError, match="weight"):
        Bars("busy_pct", ("name",), "compute", combine="mean")
    with pytest.raises(ValueError, match="weight"):
        Bars("time_ns", ("name",), "compute", weight="time_ns")


def test_a_figure_of_means_has_their_unit_scale_and_order() -> None:
    figure = plotly.figure(MEAN, FRAME, "How busy")
    (bars,) = figure.data
    assert list(bars.x) == [0.0, 32.5, 90.0]
    assert figure.layout.xaxis.title.text == "Busy (%)"
    assert list(figure.layout.xaxis.range) == [0, 100]
    assert list(figure.layout.yaxis.ticktext) == ["b", "&lt;i&gt;a", "c"]
    assert bars.customdata[1] == "&lt;i&gt;a<br>Busy: 32.50 %, the mean, by weight, of 2 rows"
    assert bars.customdata[2] == "rank: 0<br>name: c<br>busy_pct: 90.00 %<br>time_ns: 0.000007 ms"


rows = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.integers(0, 3), st.integers(0, 10**6)), min_size=1, max_size=80
)


@settings(deadline=None, max_examples=tried(20))
@given(rows)
def test_figures_and_panels_show_the_same_sums(drawn: list[tuple[str, int, int]]) -> None:
    frame = pd.DataFrame(drawn, columns=["name", "rank", "dur_ns"])
    chart = Bars("dur_ns", ("name",), "host")
    sums = frame.groupby("name")["dur_ns"].sum()
    table = marks(chart, frame).table
    assert dict(zip(table["label"], table["value"], strict=True)) == sums[sums > 0].to_dict()
    figure = plotly.figure(chart, frame, "")
    total = sum(sum(bar.x) for bar in figure.data)
    assert total == pytest.approx(sums.sum() / 1e6)


def test_bars_of_many_rows_have_a_piece_per_rank_and_their_sum() -> None:
    frame = pd.DataFrame({"name": "k", "rank": [0, 1] * 3000, "dur_ns": range(6000)})
    chart = Bars("dur_ns", ("name",), "host", measure="Time")
    (bars,) = plotly.figure(chart, frame, "").data
    assert list(bars.x) == (frame.groupby("rank")["dur_ns"].sum() / 1e6).tolist()
    assert bars.customdata[1] == "k · rank 1<br>Time: 9.000000 ms, the sum of 3,000 rows"
    assert combined(chart, frame).bars["count"].tolist() == [6000]


def test_notes_part_the_bars_of_a_label_and_stand_beside_them() -> None:
    frame = pd.DataFrame(
        {
            "name": ["k", "k", "k"],
            "why": ["<b>", "grid", "grid"],
            "busy_pct": [50.0, 10.0, 20.0],
            "time_ns": [5, 3, 1],
        }
    )
    chart = replace(MEAN, note="why")
    table = marks(chart, frame).table
    assert table[["label", "note", "value"]].to_numpy().tolist() == [["k", "grid", 12.5], ["k", "<b>", 50.0]]
    figure = plotly.figure(chart, frame, "")
    assert list(figure.layout.yaxis.ticktext) == ["k · grid", "k · &lt;b&gt;"]
    assert figure.data[0].customdata[0].startswith("k · grid<br>Busy: 12.50 %, the mean")
