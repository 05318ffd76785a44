"""A comparison as a panel: it follows the selections, computes little, searches its lines in Python."""

import gc
from typing import Any
from weakref import ref

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traitlets import TraitError

from hta_widgets import (
    ComparisonPanel,
    Scope,
    Selection,
    Trace,
    analysis,
    examples,
)
from hta_widgets.analysis import COMPARISONS
from hta_widgets.analysis.compare.compare import _COLUMNS as DIFF_COLUMNS
from hta_widgets.widgets.answer_cache import cached_comparison
from hta_widgets.widgets.changed_lines import COLUMNS, changed_lines
from tests.support import tried
from tests.widgets.comparing import Until, counted, texts
from tests.widgets.decoded import numbers

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", COMPARISONS)
def test_a_panel_shows_the_comparison_and_follows_a_selection(
    pair: dict[str, Trace], until: Until, kind: str
) -> None:
    selection = Selection()
    panel = ComparisonPanel(pair, kind, selections={"two": selection})
    until(lambda: panel.status == "idle")
    pd.testing.assert_frame_equal(panel.frame(), COMPARISONS[kind].function(pair))
    assert panel.sentence == COMPARISONS[kind].sentence(panel.frame())
    assert panel.get_state()["_view"] == "breakdown"
    assert (panel.get_state()["search"] is None) == (kind != "diff")
    selection.ranks = (1,)
    until(lambda: panel.status == "idle")
    expected = COMPARISONS[kind].function(pair, {"one": Scope(), "two": Scope(ranks=(1,))})
    pd.testing.assert_frame_equal(panel.frame(), expected)
    assert panel.sentence == COMPARISONS[kind].sentence(expected)
    panel.close()


def test_the_table_of_changed_lines_has_before_beside_after(pair: dict[str, Trace], until: Until) -> None:
    panel = ComparisonPanel(pair, "diff", by="op")
    until(lambda: panel.status == "idle")
    columns = [column["name"] for column in panel.table["columns"]]
    assert columns[:5] == ["change", "kind", "line", "before_ns", "after_ns"]
    frame = panel.frame()
    other = frame[frame["run"] == "two"]
    assert panel.rows == len(other)
    assert texts(panel.table, "line") == other["line"].tolist()
    before, after, change = (numbers(panel.table, f"{name}_ns") for name in ("before", "after", "change"))
    assert np.array(after) - np.array(before) == pytest.approx(np.array(change))
    assert before == frame.loc[frame["run"] == "two", "before_ns"].tolist()
    panel.close()


def test_lines_are_searched_sorted_and_left_out_in_python(pair: dict[str, Trace], until: Until) -> None:
    panel = ComparisonPanel(pair, "diff", by="op")
    until(lambda: panel.status == "idle")
    whole = panel.rows
    panel.set_state({"search": "ATEN::ADD", "sort": ["change_ns", False]})
    until(lambda: panel.status == "idle")
    assert 0 < panel.rows < whole
    for line, kernels in zip(texts(panel.table, "line"), texts(panel.table, "kernels"), strict=True):
        assert "aten::add" in line.lower() or "aten::add" in kernels.lower()
    shown = numbers(panel.table, "change_ns")
    assert shown == sorted(shown)
    panel.search, panel.sort, panel.only_significant = "", [], True
    until(lambda: panel.status == "idle")
    assert panel.rows == panel.frame().query("run == 'two' and significant").shape[0] > 0
    panel.search = "no line is called that"
    until(lambda: panel.status == "idle" and panel.rows == 0)
    assert panel.table["rows"] == 0
    assert panel.sentence  # the answer stands, and so does the toolbar
    panel.close()


def test_nothing_is_computed_again_to_search_and_sort(
    pair: dict[str, Trace], until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = ComparisonPanel(pair, "diff", by="phase")
    until(lambda: panel.status == "idle")
    asked = counted(monkeypatch, "diff")
    for text in ("f", "fo", "for"):
        panel.search = text
        until(lambda: panel.status == "idle")
    panel.sort = ["after_count", True]
    until(lambda: panel.status == "idle")
    assert texts(panel.table, "line") == ["forward"]
    assert not asked
    panel.close()


def test_wrong_requests_of_a_browser_are_refused(pair: dict[str, Trace]) -> None:
    panel = ComparisonPanel(pair, "diff")
    for name, wrong in {
        "sort": (["__class__", True], ["line", "yes"], ["line"], "line", 3),
        "line": (["kernel"], ["kernel", 3], "ab", 3),
        "options": ({"by": "colour"}, {"runs": 1}),
    }.items():
        for value in wrong:
            with pytest.raises(TraitError):
                setattr(panel, name, value)
    panel.close()
    with pytest.raises(ValueError, match="run_table, step_waterfall, diff"):
        ComparisonPanel(pair, "nonsense")
    with pytest.raises(ValueError, match="at least 2 runs"):
        ComparisonPanel({"one": pair["one"]})
    with pytest.raises(TypeError):
        ComparisonPanel(pair, "run_table", by="rank")


def test_other_lines_forget_the_chosen_one(pair: dict[str, Trace]) -> None:
    panel = ComparisonPanel(pair, "diff")
    panel.line = ["compute", "some kernel"]
    assert panel.line == ("compute", "some kernel")
    panel.options = {"time": "host"}
    assert panel.line is not None
    panel.options = {"time": "host", "by": "op"}
    assert panel.line is None
    panel.close()


def made_frame(rows: list[tuple[str, float, float, bool]]) -> pd.DataFrame:
    """A `diff` frame of two runs: line, before, after, whether significant."""
    records = []
    for line, before, after, significant in rows:
        for run, value in (("a", before), ("b", after)):
            row = dict.fromkeys(DIFF_COLUMNS, 0) | {
                "kind": "op", "line": line, "run": run, "exclusive_ns": value, "before_ns": before,
                "change_ns": value - before, "significant": significant and run == "b", "change": "same",
                "kernels": "", "moved_from": "",
                "change_pct": 100 * (value / before - 1) if before else np.nan,
            }  # fmt: skip
            records.append(row)
    return pd.DataFrame(records, columns=list(DIFF_COLUMNS)).astype(DIFF_COLUMNS)


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["aten::add", "aten::Add_", "mm", "a.b", "", "<b>"]),
        st.integers(0, 5).map(float),
        st.integers(0, 5).map(float),
        st.booleans(),
    ),
    min_size=1,
    max_size=40,
)


@settings(deadline=None, max_examples=tried(30))
@given(
    ROWS,
    st.sampled_from(["", "ADD", ".", "<", "  mm "]),
    st.sampled_from(
        [(), *((column, way) for column in ("line", "change_ns", "change_pct") for way in (0, 1))]
    ),
    st.booleans(),
)
def test_lines_shown_are_those_that_a_loop_would_find(
    rows: list[tuple[str, float, float, bool]], search: str, sort: tuple[Any, ...], only: bool
) -> None:
    frame = made_frame(rows)
    shown = changed_lines(frame, search, sort, only)
    expected = [
        (line, after - before, significant, 100 * (after / before - 1) if before else None)
        for line, before, after, significant in rows
        if (significant or not only)
        and (before or after)
        and (search.strip().lower() in line.lower() or search.strip().lower() in "op")
    ]
    if sort:
        column, descending = sort
        at = {"line": 0, "change_ns": 1, "change_pct": 3}[column]
        known = [row for row in expected if row[at] is not None]
        known.sort(key=lambda row: row[at], reverse=bool(descending))
        expected = known + [row for row in expected if row[at] is None]
    assert shown["line"].tolist() == [row[0] for row in expected]
    assert shown["change_ns"].tolist() == [row[1] for row in expected]
    assert "run" not in shown and "moved_from" not in shown
    assert list(shown) == [name for name in COLUMNS if name in shown]


def test_kernels_of_both_runs_are_shown_and_searched() -> None:
    frame = made_frame([("aten::mm", 5.0, 7.0, True), ("there", 3.0, 0.0, True), ("here", 0.0, 3.0, True)])
    at_first = frame["run"] == "a"
    frame.loc[at_first, "kernels"] = ["sm90_gemm", "attn_fwd", ""]
    frame.loc[~at_first, "kernels"] = ["Cijk_mm", "", "attn_fwd_2"]
    frame.loc[(frame["line"] == "here") & ~at_first, "moved_from"] = "there"
    shown = changed_lines(frame)
    assert shown["before_kernels"].tolist() == ["sm90_gemm", "attn_fwd", "attn_fwd"]
    assert shown["kernels"].tolist() == ["Cijk_mm", "", "attn_fwd_2"]
    assert changed_lines(frame, "SM90")["line"].tolist() == ["aten::mm"]
    assert changed_lines(frame, "cijk")["line"].tolist() == ["aten::mm"]
    assert changed_lines(frame, "there")["line"].tolist() == ["there", "here"]


def test_a_long_answer_is_searched_whole_and_cut_on_the_page(
    pair: dict[str, Trace], until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(f"line {at:04}", 10.0, 10.0 + at % 1500, at % 3 == 0) for at in range(2000)]
    frame = made_frame(rows)
    monkeypatch.setattr("hta_widgets.widgets.comparison_panel.cached_comparison", lambda *_: frame)
    panel = ComparisonPanel(pair, "diff")
    until(lambda: panel.status == "idle")
    assert (panel.rows, panel.table["rows"]) == (2000, 500)
    panel.sort = ["change_ns", True]
    until(lambda: panel.status == "idle")
    assert numbers(panel.table, "change_ns") == [float(at) for at in range(1499, 999, -1)]
    panel.search, panel.only_significant = "line 19", True  # beyond the first 500
    until(lambda: panel.status == "idle" and panel.rows == 33)
    assert sorted(texts(panel.table, "line")) == [f"line {at}" for at in range(1900, 2000) if at % 3 == 0]
    panel.close()


def test_a_storm_of_selections_computes_few_and_lands_on_the_last(
    pair: dict[str, Trace], until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = counted(monkeypatch, "step_waterfall")
    selection = Selection()
    panel = ComparisonPanel(pair, "step_waterfall", selections={"two": selection})
    until(lambda: panel.status == "idle")
    start, end = pair["two"].extent_ns
    before = len(asked)
    for turn in range(200):
        selection.window = (start, end - turn)
    until(lambda: panel.status == "idle")
    assert len(asked) - before <= 20
    expected = analysis.step_waterfall(pair, {"two": selection.scope})
    pd.testing.assert_frame_equal(panel.frame(), expected)
    panel.close()


def test_a_cached_answer_keeps_no_other_run_alive() -> None:
    base, other = examples.load("gpt2_baseline"), examples.load("gpt2_ddp")
    scopes = dict.fromkeys(("one", "two"), Scope())
    cached_comparison({"one": base, "two": other}, "step_waterfall", scopes)
    gone = ref(other)
    del other
    gc.collect()
    assert gone() is None
