"""A run as a workbook: whole tables, exact numbers, and texts that stay texts."""

from __future__ import annotations

import builtins
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hta_widgets import Scope, Trace, TraceExplorer, analysis, examples
from hta_widgets.errors import HtaWidgetsError
from hta_widgets.report import excel, to_excel
from tests.analysis.kineto_file import event, job

DDP = examples.path("ddp_4ranks")


def read(content: bytes | Path) -> dict[str, list[list[Any]]]:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(io.BytesIO(content) if isinstance(content, bytes) else content)
    return {sheet.title: [list(row) for row in sheet.iter_rows(values_only=True)] for sheet in book}


def test_each_sheet_is_the_answer_of_an_analysis(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    trace = Trace.open(DDP)
    scope = Scope(ranks=(1, 2))
    sheets = read(to_excel(trace, tmp_path / "run.xlsx", scope))
    assert list(sheets) == ["findings", "steps", "operators", "kernels", "kernel classes", "collectives"]
    kernels = analysis.kernel_breakdown(trace, scope)
    head, *rows = sheets["kernels"]
    assert head == list(kernels.columns) and len(rows) == len(kernels)
    for column in ("rank", "name", "count", "sum_ns"):
        assert [row[head.index(column)] for row in rows] == kernels[column].tolist()
    head, *rows = sheets["kernel classes"]
    classes = analysis.kernel_classes(trace, scope)
    stages = [None if pd.isna(value) else value for value in classes["stages"]]
    assert [row[head.index("stages")] for row in rows] == stages


def test_what_is_missing_has_a_sheet(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    sheets = read(excel.whole_run(job(tmp_path, [event("cpu_op", "aten::mm", 0, 10)])))
    assert "kernels" not in sheets
    head, *rows = sheets[excel.MISSING]
    assert head == ["sheet", "missing", "remedy"]
    assert ["kernels", "device events"] in [row[:2] for row in rows]


def test_cells_are_exact_and_harmless() -> None:
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame(
        {
            "ns": np.array([2**53, 2**53 + 1, -(2**60)], np.int64),
            "text": ["=HYPERLINK(1)", "a\x00b\uffff", "x" * 40_000],
            "pct": [1.5, np.nan, np.inf],
            "flag": pd.array([True, None, False], "boolean"),
        }
    )
    head, *rows = read(excel.workbook({"a": frame}))["a"]
    assert head == ["ns", "text", "pct", "flag"]
    assert rows[0] == [2**53, "=HYPERLINK(1)", 1.5, True]
    assert rows[1] == [str(2**53 + 1), "a\ufffdb\ufffd", None, None]
    assert rows[2] == [str(-(2**60)), "x" * 32_767, None, False]
    content = excel.workbook({"a": frame})
    openpyxl = pytest.importorskip("openpyxl")
    assert openpyxl.load_workbook(io.BytesIO(content))["a"]["B2"].data_type == "s"


def test_rows_that_do_not_fit_go_on_in_another_sheet(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openpyxl")
    monkeypatch.setattr(excel, "_MOST_ROWS", 3)
    sheets = read(excel.workbook({"a": pd.DataFrame({"x": range(5)}), "none": pd.DataFrame({"y": []})}))
    assert sheets == {"a": [["x"], [0], [1]], "a 2": [["x"], [2], [3]], "a 3": [["x"], [4]], "none": [["y"]]}


def test_without_openpyxl_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported = builtins.__import__

    def no_openpyxl(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("openpyxl"):
            raise ImportError(name)
        return imported(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", no_openpyxl)
    with pytest.raises(HtaWidgetsError, match=r"hta_widgets\[excel\]"):
        to_excel(Trace.open(DDP), tmp_path / "run.xlsx")
    assert not (tmp_path / "run.xlsx").exists()


def test_the_explorer_writes_its_selection(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    explorer = TraceExplorer(DDP, panels=[]).wait()
    explorer.selection.ranks = (3,)
    head, *rows = read(explorer.to_excel(tmp_path / "run.xlsx"))["kernels"]
    assert {row[head.index("rank")] for row in rows} == {3}
    explorer.close()
