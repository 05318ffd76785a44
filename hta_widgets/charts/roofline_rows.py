"""The rows of a frame as marks below their roofs, and as the lines of the list beside them."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pandas as pd

from hta_widgets.charts.labels import labels, telling
from hta_widgets.charts.spec import Roofline
from hta_widgets.formatting import counted
from hta_widgets.kernel_names import short_kernel_names

_MOST_ROWS = 300


def roofline_rows(chart: Roofline, frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str], int]:
    """The first rows, no legend, and how many are left out.

    Columns: the fields of the chart, with what the columns of their names hold; short (the name, cut to what
    tells it apart); detail (shapes where rows differ by them, and of how many ranks a row is).
    """
    merged = over_ranks(chart, frame)
    shown = merged.head(_MOST_ROWS)
    names = [field.name for field in fields(chart)]
    table = pd.DataFrame({name: shown[getattr(chart, name)].array for name in names})
    texts = table.select_dtypes(exclude="number").columns
    table[texts] = table[texts].astype("object").where(table[texts].notna(), "").astype("str")
    table["short"] = table["label"].map(short_kernel_names(table["label"]))
    columns = [name for name in telling(merged, ["label", "input_shapes"]) if name in merged]
    table["detail"] = labels(shown, columns) if columns else ""
    if "ranks" in shown:
        of = [counted(count, "rank") for count in shown["ranks"].tolist()]
        table["detail"] = [", ".join(filter(None, pair)) for pair in zip(table["detail"], of, strict=True)]
    return table, [], len(merged) - len(shown)


def over_ranks(chart: Roofline, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of a frame of several ranks, those of a name under the same roofs as one.

    Times, calls and headroom add up; rates are those of all the work in all the time, the share is of the
    device work of all ranks. What is unknown on one of the ranks is unknown of all. The column `ranks` counts
    them. Frames of one rank stay as they are.
    """
    if "rank" not in frame or frame["rank"].nunique() < 2:
        return frame
    same = [name for name in ("name", "input_shapes", "input_types") if name in frame]
    same += [chart.part, chart.device, chart.peak, chart.bandwidth, chart.achievable]
    time = frame[chart.size].to_numpy(np.float64)
    weighed = {name: frame[name] * time for name in (chart.y, chart.moved, chart.efficiency)}
    groups = frame.assign(**weighed, ranks=1, bounds=frame[chart.bound].fillna("")).groupby(
        same, dropna=False, sort=False
    )
    add = (chart.size, chart.calls, chart.headroom, chart.share, *weighed)
    merged = groups.agg(
        {
            **{name: "first" for name in frame.columns if name not in (*same, *add)},
            **dict.fromkeys(add, _sum),
            "ranks": "sum",
            "bounds": "nunique",
        }
    ).reset_index()
    whole_numbers = (chart.size, chart.calls, chart.headroom)
    merged = merged.astype({name: frame[name].dtype for name in whole_numbers})
    total = merged[chart.size].to_numpy(np.float64)
    for name in weighed:
        merged[name] = merged[name] / total
    merged[chart.x] = 1e3 * merged[chart.y] / merged[chart.moved]
    merged[chart.bound] = merged[chart.bound].where(merged["bounds"] == 1)
    first = frame[frame[chart.share] > 0].drop_duplicates("rank")
    whole = float((first[chart.size] / first[chart.share]).sum())
    merged[chart.share] = total / whole if whole else 0.0
    order = [chart.headroom, chart.size, "name"]
    return merged.drop(columns="bounds").sort_values(order, ascending=[False, False, True], ignore_index=True)


def _sum(values: pd.Series) -> object:
    return values.sum(skipna=False)
