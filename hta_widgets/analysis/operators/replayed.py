"""Rows for the kernels of replayed graphs, which no operator launched, by the part of the model they are."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.calls.phases import PHASES
from hta_widgets.analysis.core.longest import longest_name
from hta_widgets.analysis.operators.calls import Calls
from hta_widgets.analysis.serving.roles import MARK, roles_of
from hta_widgets.analysis.serving.table import is_server
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

_CATEGORIES: Final = {
    **dict.fromkeys(("qkv", "o_proj", "gate_up", "down", "router", "lm_head"), "matmul"),
    **dict.fromkeys(("product", "experts"), "matmul"),
    **dict.fromkeys(("activation", "rope", "quantization", "elementwise"), "elementwise"),
    **{role: role for role in ("attention", "norm", "embedding", "copy", "communication")},
    "cache": "copy",
}
_NOTHING: Final = {"i": 0, "b": False}


def with_replayed(
    frame: pd.DataFrame, rank_trace: RankTrace, scope: Scope, calls: Calls, by: str, outside: str
) -> pd.DataFrame:
    """The operators of a rank, whose row `outside` is divided by what the kernels of replays are.

    By module, kernels have the name of the module that annotates them or launched them when they were
    captured; else that of their role in the model (`roles`). What is not known stays outside.
    """
    is_outside = frame["name"].eq(outside).to_numpy(np.bool_)
    if not is_server(rank_trace) or not is_outside.any():
        return frame
    known = roles_of(rank_trace)
    # a graph that is a piece of the model may be launched within a module, or an operator
    in_none = np.isin(known.rows, calls.work[calls.owner < 0])
    chosen = np.flatnonzero(known.replayed & in_none & rank_trace.belong(known.rows, scope))
    labels = (known.module if by == "module" else known.role)[chosen]
    chosen, labels = chosen[labels != ""], labels[labels != ""]
    if not len(chosen):
        return frame
    rows = known.rows[chosen]
    frame = frame.copy()
    whole = int(frame["device_self_ns"].sum())
    # a server has one phase: that of most of what is outside
    phase = max(
        (f"{name}_ns" for name in PHASES),
        key=lambda name: int(frame.loc[is_outside, [name]].to_numpy().sum()),
    )
    times = ["device_self_ns", "device_total_ns", phase]
    added = []
    for label in sorted(set(labels.tolist())):
        mine = labels == label
        time = int(rank_trace.dur[rows[mine]].sum())
        added.append(
            {name: _nothing(frame[name]) for name in frame.columns}
            | dict.fromkeys(times, time)
            | {
                "rank": rank_trace.rank,
                "name": label if by == "module" else f"{MARK}{label}",
                "category": "" if by == "module" else _CATEGORIES.get(str(label), "other"),
                "kernels": int(mine.sum()),
                "longest_kernel": longest_name(rank_trace, rows[mine]),
            }
        )
    frame.loc[is_outside, "kernels"] -= len(rows)
    frame.loc[is_outside, times] -= int(rank_trace.dur[rows].sum())
    frame = frame[~is_outside | (frame["kernels"] > 0)]
    new = pd.DataFrame(added, columns=list(frame.columns)).astype(frame.dtypes.to_dict())
    both = pd.concat([frame, new], ignore_index=True)
    both["device_self_pct"] = 100.0 * both["device_self_ns"] / whole if whole else np.nan
    return both.sort_values("device_self_ns", ascending=False, kind="stable", ignore_index=True)


def _nothing(column: pd.Series[Any]) -> Any:
    """What a column holds in a row without calls."""
    if column.name == "bound":
        return None
    if column.dtype.kind == "f" or str(column.dtype) == "Int64":
        return np.nan if column.dtype.kind == "f" else pd.NA
    return _NOTHING.get(column.dtype.kind, "")
