"""The rows of a frame as marks below their roofs, and as the lines of the list beside them."""

from __future__ import annotations

from dataclasses import fields

import pandas as pd

from hta_widgets.charts.labels import labels, telling
from hta_widgets.charts.spec import Roofline
from hta_widgets.kernel_names import short_kernel_names

__all__ = ["roofline_rows"]

_MOST_ROWS = 300


def roofline_rows(chart: Roofline, frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str], int]:
    """The first rows, no legend, and how many are left out.

    Columns: the fields of the chart, with what the columns of their names hold; short (the name, cut to what
    tells it apart); detail (shapes and rank, where rows differ by them).
    """
    shown = frame.head(_MOST_ROWS)
    names = [field.name for field in fields(chart)]
    table = pd.DataFrame({name: shown[getattr(chart, name)].array for name in names})
    texts = table.select_dtypes(exclude="number").columns
    table[texts] = table[texts].astype("object").where(table[texts].notna(), "").astype("str")
    table["short"] = table["label"].map(short_kernel_names(table["label"]))
    told = [name for name in telling(frame, ["label", "rank", "input_shapes"]) if name in frame]
    table["detail"] = labels(shown, told) if told else ""
    return table, [], len(frame) - len(shown)
