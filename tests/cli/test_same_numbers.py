"""The API, the command line and the explorer give the same numbers."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hta_widgets import Scope, Trace, TraceExplorer, analysis, examples
from hta_widgets.analysis.findings import judged_scope
from hta_widgets.analysis.wholes import coverage_of, shown_scope, whole_of
from hta_widgets.errors import MissingDataError
from tests.cli.conftest import Run
from tests.support import crossed

pytestmark = pytest.mark.usefixtures("opened_once")  # the API looks at another trace

DDP = examples.path("ddp_4ranks")
PART = {"ranks": (0, 2), "iterations": (10, 11), "window": (2_000_000, 30_000_000)}
WHOLE = ["--budget", "all", "--sort", "none"]
ARGUMENTS = {
    "all": [],
    "part": ["--ranks", "0,2", "--iterations", "10-11", "--window", "2ms:30ms"],
}
SELECTIONS: dict[str, dict[str, Any]] = {"all": {}, "part": PART}


@pytest.fixture(scope="module")
def ddp() -> Trace:
    return examples.load("ddp_4ranks")


@pytest.fixture(scope="module")
def explorers(ddp: Trace) -> dict[str, TraceExplorer]:
    return {
        name: TraceExplorer(ddp, selection=selection, panels=[]) for name, selection in SELECTIONS.items()
    }


def plain(frame: pd.DataFrame) -> list[list[Any]]:
    """A frame's rows as Python values, absent ones None: read cell by cell, unlike what is tested."""
    columns = []
    for name in frame:
        column = []
        for value in frame[name].astype("object"):
            absent = (
                value is None or value is pd.NA or (isinstance(value, float) and not math.isfinite(value))
            )
            value = value.item() if hasattr(value, "item") else value
            column.append(None if absent else value)
        columns.append(column)
    return [list(row) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize(("kind", "part"), crossed(analysis.ANALYSES, ARGUMENTS))
def test_api_command_line_and_explorer_agree(
    ddp: Trace, explorers: dict[str, TraceExplorer], run: Run, kind: str, part: str
) -> None:
    chosen = SELECTIONS[part]
    scope = Scope(chosen.get("ranks"), chosen.get("iterations"), chosen.get("window"))
    scope = shown_scope(ddp, kind, scope)  # shares are of the steps that findings judge
    done = run("analyze", kind, DDP, *ARGUMENTS[part], "--format", "json", *WHOLE)
    try:
        frame = analysis.ANALYSES[kind].function(ddp, scope)
    except MissingDataError as missing:
        assert (done.code, done.out) == (4, "")
        assert done.err == f"hta-widgets: {missing}\n"
        with pytest.raises(MissingDataError):
            explorers[part].frame(kind)
        return
    assert (done.code, done.err) == (0, "")
    document = done.json
    # a panel does not filter by what its own marks select
    left_out = {"window_ns" if name == "window" else name: None for name in analysis.ANALYSES[kind].ignores}
    shown = analysis.ANALYSES[kind].function(ddp, replace(scope, **left_out)) if left_out else frame
    pd.testing.assert_frame_equal(explorers[part].frame(kind), shown)
    assert document["kind"] == kind
    assert document["of"] == whole_of(ddp, kind, scope)
    assert document["scope"] == {
        name: list(value) if value else None
        for name, value in (
            ("ranks", scope.ranks),
            ("iterations", scope.iterations),
            ("window_ns", scope.window_ns),
            ("streams", None),
        )
    }
    assert document["sentence"] == analysis.ANALYSES[kind].said(frame, ddp, scope)
    assert list(document["columns"]) == list(frame.columns)
    assert set(document["columns"].values()) <= {"int64", "float64", "bool", "str"}
    rows = [list(row.values()) for row in document["rows"]]
    assert rows == plain(frame)
    assert all(list(row) == list(frame.columns) for row in document["rows"])


def test_options_reach_the_analysis(ddp: Trace, run: Run) -> None:
    options = ("--option", "by=job", "--option", "top=2")
    done = run("analyze", "kernel_breakdown", DDP, *options, "--format", "json", *WHOLE)
    assert done.json["options"] == {"by": "job", "top": 2}
    rows = [list(row.values()) for row in done.json["rows"]]
    assert rows == plain(analysis.kernel_breakdown(ddp, by="job", top=2))


def test_summary_holds_the_same_answers(ddp: Trace, run: Run) -> None:
    document = run("summary", DDP, "--json").json
    judged = judged_scope(ddp)
    assert document["scope"]["iterations"] == list(judged.iterations or ())
    for kind, answer in document["answers"].items():
        asked = None if kind == "overview" else judged
        frame = analysis.ANALYSES[kind].function(ddp, asked, **answer["options"])
        assert [list(row.values()) for row in answer["rows"]] == plain(frame)
        assert answer["sentence"] == analysis.ANALYSES[kind].said(frame, ddp, asked)
    assert document["job"]["ranks"] == ddp.ranks
    assert document["judged"] == coverage_of(ddp, Scope())
    assert document["trust"] == ddp.trust.as_dict()
    printed = run("summary", DDP).out
    assert f"  Judged      {document['judged']}\n" in printed
    assert f"  Trust       {document['trust']['text']}\n" in printed
    assert document["job"]["duration_ns"] == ddp.summary["duration_ns"]
    assert [list(row.values()) for row in document["health"]["rows"]] == plain(ddp.health)


def test_csv_and_parquet_hold_every_digit(ddp: Trace, run: Run, tmp_path: Path) -> None:
    frame = analysis.temporal_breakdown(ddp, judged_scope(ddp))
    parquet, csv = tmp_path / "a.parquet", tmp_path / "a.csv"
    assert run("analyze", "temporal_breakdown", DDP, "-o", parquet).code == 0
    assert run("analyze", "temporal_breakdown", DDP, "-o", csv).code == 0
    pd.testing.assert_frame_equal(pd.read_parquet(parquet), frame)
    pd.testing.assert_frame_equal(pd.read_csv(csv), frame)
    printed = run("analyze", "temporal_breakdown", DDP, "--format", "csv").out
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(printed)), frame)
    assert [file.name for file in sorted(tmp_path.iterdir())] == ["a.csv", "a.parquet"]
