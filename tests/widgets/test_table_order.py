"""Tables and charts of many ranks begin with those that stand out; the frame keeps its order."""

import numpy as np
import pandas as pd
import pytest

from hta_widgets import BreakdownPanel, Trace, analysis
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.charts.marks import marks
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.table_order import outliers_first
from tests.job.many_ranks import write_job


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return Trace.open(write_job(tmp_path_factory.mktemp("many") / "job", 60, slow=44))


def column(table: object, name: str) -> list[float]:
    assert isinstance(table, dict)
    (of,) = (each for each in table["columns"] if each["name"] == name)
    return np.frombuffer(table["data"], "<f8", table["rows"], of["offset"]).tolist()


def test_the_slow_rank_is_the_first_row_and_it_is_said(many: Trace) -> None:
    panel = BreakdownPanel(many, "temporal_breakdown")
    settle([panel])
    ranks = column(panel.table, "rank")
    assert ranks == [44, *(rank for rank in range(60) if rank != 44)]
    assert panel.table_order == "ranks that stand out first, then by rank"
    pd.testing.assert_frame_equal(panel.frame(), analysis.temporal_breakdown(many))
    # the rows are the frame's, whatever their order
    by_rank = panel.frame().set_index("rank")["compute_ns"]
    assert column(panel.table, "compute_ns") == [by_rank[int(rank)] for rank in ranks]


def test_its_chart_has_a_bar_for_it_and_all_ranks_in_the_distribution(many: Trace) -> None:
    frame = analysis.temporal_breakdown(many)
    chart = ANALYSES["temporal_breakdown"].chart
    assert chart is not None
    drawn = marks(chart, frame)
    assert drawn.left_out == 0
    assert drawn.table["rank"].tolist()[0] == 44
    assert drawn.table["bar"].tolist() == [True] + [False] * 59
    same = drawn.table.sort_values("rank")
    for name in ("compute_ns", "exposed_communication_ns", "idle_ns", "window_ns"):
        assert same[name].tolist() == frame[name].tolist()
    few = marks(chart, frame.head(48))
    assert "bar" not in few.table


def test_few_ranks_and_other_orders_stay_as_they_are(many: Trace) -> None:
    frame = analysis.temporal_breakdown(many)
    for same in (frame.iloc[28:], frame.iloc[::-1], frame.drop(columns="rank")):
        table, said = outliers_first(many, Scope(), same)
        assert table is same
        assert said == ""
