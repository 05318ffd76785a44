"""A run as an Excel workbook: a sheet for each of its tables, every digit kept, every text only a text."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import HtaWidgetsError, MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

SHEETS = {
    "findings": "overview",
    "steps": "step_times",
    "operators": "operators",
    "kernels": "kernel_breakdown",
    "kernel classes": "kernel_classes",
    "collectives": "collectives",
}
"""Sheet -> the analysis that it holds."""

MISSING = "not available"

_MOST_ROWS, _MOST_LETTERS = 1_048_576, 32_767  # of a sheet, of a cell
_EXACT = 2**53  # numbers in a sheet are double precision: greater ones become text
# Characters that XML does not have.
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def to_excel(
    trace: Trace, path: str | PathLike[str], scope: Scope | None = None, cut: Callable[[str], str] = str
) -> Path:
    """Write the tables of a run into one Excel workbook.

    Its sheets are findings, steps, operators, kernels, kernel classes and collectives, each the whole answer
    of an analysis with its columns. What the trace has no data for is listed on a sheet "not available", with
    what to record. Integers that Excel cannot hold exactly are written as text.

    Args:
        path: the file to write; it is returned.
        scope: ranks, iterations, time window, streams, names to look at; default everything.
        cut: what is done to every text, see `short_paths`.

    Raises:
        HtaWidgetsError: openpyxl is not installed.
        OSError: the file cannot be written.
    """
    content = whole_run(trace, scope, cut)
    path = Path(path)
    path.write_bytes(content)
    return path


def whole_run(trace: Trace, scope: Scope | None = None, cut: Callable[[str], str] = str) -> bytes:
    """The workbook that `to_excel` writes. `cut` is done to every text, see `short_paths`."""
    _openpyxl()
    sheets, missing = dict[str, pd.DataFrame](), list[dict[str, str]]()
    for sheet, kind in SHEETS.items():
        try:
            sheets[sheet] = ANALYSES[kind].answer(trace, scope)
        except MissingDataError as error:
            missing.append({"sheet": sheet, "missing": error.field, "remedy": error.remedy})
    if missing:
        sheets[MISSING] = pd.DataFrame(missing)
    return workbook(sheets, cut)


def workbook(sheets: Mapping[str, pd.DataFrame], cut: Callable[[str], str] = str) -> bytes:
    """Frames as the sheets of an Excel file; those with more rows than a sheet holds go on in further ones.

    Raises:
        HtaWidgetsError: openpyxl is not installed.
    """
    openpyxl = _openpyxl()
    book = openpyxl.Workbook(write_only=True)
    for name, frame in sheets.items():
        for number, at in enumerate(range(0, max(len(frame), 1), _MOST_ROWS - 1), start=1):
            sheet = book.create_sheet(name if number == 1 else f"{name} {number}")
            sheet.freeze_panes = "A2"
            sheet.append([_cell(openpyxl, sheet, str(column)) for column in frame.columns])
            for row in _rows(frame.iloc[at : at + _MOST_ROWS - 1]):
                sheet.append([_cell(openpyxl, sheet, value, cut) for value in row])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _rows(frame: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    return zip(*(frame[column].astype(object).tolist() for column in frame.columns), strict=True)


def _cell(openpyxl: Any, sheet: Any, value: Any, cut: Callable[[str], str] = str) -> Any:
    """A number, a truth value, nothing, or a text that stays a text, also if it begins like a formula."""
    if value is None or value is pd.NA or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, bool) or (isinstance(value, int | float) and abs(value) <= _EXACT):
        return value
    text = _NO_XML.sub("\ufffd", cut(str(value)))[:_MOST_LETTERS]
    cell = openpyxl.cell.WriteOnlyCell(sheet, value=text)
    cell.data_type = "s"
    return cell


def _openpyxl() -> Any:
    try:
        import openpyxl
        import openpyxl.cell
    except ImportError as error:
        raise HtaWidgetsError(
            "Excel files need openpyxl, which is not installed: pip install 'hta_widgets[excel]'"
        ) from error
    return openpyxl
