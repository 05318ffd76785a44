"""The bars of a waterfall: where each begins and ends."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.charts.spec import Waterfall

_WHOLE_CLASS = "idle"  # a neutral colour: the whole is of no class


def waterfall_bars(chart: Waterfall, frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The bars of every run but the first, and the runs' names (with a rank, where there is a row for each).

    Parts that take no time in any run are left out: they change nothing.

    Columns: run (place among the names), label, value (ns, the change), start, end (ns, running sums of the
    changes; the whole goes from 0 to the whole change), time_class, low, high (NaN: unknown), significant
    (0 or 1), verdict (in words), whole (0 or 1), before, after (ns, the part's time in the first run and in
    this one).
    """
    of_rank = ["rank"] if "rank" in frame else []
    others = frame[frame[chart.run] != frame[chart.run].iloc[0]]
    parts = {part.column: part for part in chart.series}
    order = {name: place for place, name in enumerate([*parts, chart.whole])}
    occurs = set(frame.loc[frame[chart.time] != 0, chart.part]) | {chart.whole}
    rows = others[others[chart.part].isin(occurs)]
    groups = rows.groupby([chart.run, *of_rank], sort=False, observed=True)
    rows = rows.assign(_group=groups.ngroup(), _order=rows[chart.part].map(order))
    rows = rows.sort_values(["_group", "_order"], kind="stable")
    is_whole = (rows[chart.part] == chart.whole).to_numpy()
    change = rows[chart.change].to_numpy(np.int64)
    summed = pd.Series(np.where(is_whole, 0, change)).groupby(rows["_group"].to_numpy()).cumsum().to_numpy()
    table = pd.DataFrame(
        {
            "run": rows["_group"].to_numpy(np.int64),
            "label": [parts[name].label if name in parts else chart.whole_label for name in rows[chart.part]],
            "value": change,
            "start": np.where(is_whole, 0, summed - change),
            "end": np.where(is_whole, change, summed),
            "time_class": [
                parts[name].time_class if name in parts else _WHOLE_CLASS for name in rows[chart.part]
            ],
            "low": rows[chart.low].to_numpy(np.float64),
            "high": rows[chart.high].to_numpy(np.float64),
            "significant": rows[chart.significant].to_numpy(np.int64),
            "verdict": rows[chart.verdict].tolist(),
            "whole": is_whole.astype(np.int64),
            "before": rows[chart.time].to_numpy(np.int64) - change,
            "after": rows[chart.time].to_numpy(np.int64),
        }
    )
    named = rows.drop_duplicates("_group")
    legend = [str(run) for run in named[chart.run]]
    if of_rank:
        legend = [f"{run}, rank {rank}" for run, rank in zip(legend, named["rank"], strict=True)]
    return table, legend
