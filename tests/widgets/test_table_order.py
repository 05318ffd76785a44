"""Tables and charts of many ranks begin with those that stand out; the frame keeps its order."""

import json

import pandas as pd
import pytest

from hta_widgets import BreakdownPanel, Trace, analysis
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.charts.marks import marks
from hta_widgets.charts.spec import Stack
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.table_order import outliers_first
from tests.job.many_ranks import write_job
from tests.widgets.decoded import numbers


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return Trace.open(write_job(tmp_path_factory.mktemp("many") / "job", 60, slow=44))


def test_the_slow_rank_is_the_first_row_and_it_is_said(many: Trace) -> None:
    panel = BreakdownPanel(many, "temporal_breakdown")
    settle([panel])
    assert panel.table is not None
    ranks = numbers(panel.table, "rank")
    assert ranks == [44, *(rank for rank in range(60) if rank != 44)]
    assert panel.table_order == "ranks that stand out first, then by rank"
    steps = Scope(iterations=(0, 1, 2, 3))
    pd.testing.assert_frame_equal(panel.frame(), analysis.temporal_breakdown(many, steps))
    # the rows are the frame's, whatever their order
    by_rank = panel.frame().set_index("rank")["compute_ns"]
    assert numbers(panel.table, "compute_ns") == [by_rank[int(rank)] for rank in ranks]


def test_its_chart_has_a_bar_for_it_and_all_ranks_in_the_distribution(many: Trace) -> None:
    frame = analysis.temporal_breakdown(many)
    chart = ANALYSES["temporal_breakdown"].chart
    assert chart is not None
    drawn = marks(chart, frame)
    assert drawn.left_out == 0
    assert drawn.table["rank"].tolist() == [44]
    strips = {strip["column"]: strip for strip in map(json.loads, drawn.legend)}
    assert set(strips) == {"compute_ns", "exposed_communication_ns", "idle_ns"}  # no memory work in any rank
    top = max(frame[name].max() for name in strips)
    for name, strip in strips.items():
        own = sorted(frame[name].tolist())
        assert drawn.table[name].tolist() == [frame.set_index("rank")[name][44]]
        assert (strip["least"], strip["most"], strip["ranks"]) == (own[0], own[-1], 60)
        assert strip["longest"] == frame["window_ns"].max()
        assert strip["median"] == (own[29] + own[30]) / 2
        counts = [0] * 96
        for value in own:
            counts[min(95, 96 * value // top)] += 1
        assert strip["counts"] == counts
    few = marks(chart, frame.head(48))
    assert (len(few.table), few.legend) == (48, [])


def test_ranks_that_do_nothing_have_strips_too() -> None:
    chart = ANALYSES["temporal_breakdown"].chart
    assert isinstance(chart, Stack)
    parts = {part.column: 0 for part in chart.series}
    drawn = marks(chart, pd.DataFrame({"rank": range(60), **parts, "window_ns": 0}))
    assert len(drawn.table) == 0
    assert [sum(json.loads(text)["counts"]) for text in drawn.legend] == [60] * len(parts)


def test_few_ranks_and_other_orders_stay_as_they_are(many: Trace) -> None:
    frame = analysis.temporal_breakdown(many)
    for same in (frame.iloc[28:], frame.iloc[::-1], frame.drop(columns="rank")):
        table, said = outliers_first(many, Scope(), same)
        assert table is same
        assert said == ""
