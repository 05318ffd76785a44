"""The analysis of roles: which part of the model takes how much of a server's device time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.serving.roles import REMEDY, roles_of
from hta_widgets.analysis.serving.steps import server_ranks
from hta_widgets.analysis.serving.traffic import traffic_of
from hta_widgets.charts.spec import Bars
from hta_widgets.formatting import percent
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

_NO_ROLE: Final = "(unknown)"


def roles(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """What do the kernels of a server's steps do: which part of the model, in which layers?

    A replay of a graph records kernels without operators. Their roles are known, in this order of trust, by
    what annotates them (`module_fqn` of PyTorch 2.15), by the capture of the graph (`Trace.open(...,
    capture=)`, or a capture trace beside the replay), or by structure: which kinds of kernels repeat around
    attention. Structure is refused unless as many writes to the cache as calls of attention, norms and
    products make up layers that repeat, in an order that models have; then the modules that launched or
    captured a kernel count, if they were recorded. Light kernels whose place leaves open what they are for
    stay unknown.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names of the work; default everything.

    Returns:
        One row per rank, role, layer and way of knowing it, by rank and time. Columns: rank (int64), role
        (str: "embedding", "qkv", "rope", "cache", "attention", "o_proj", "norm", "gate_up", "activation",
        "down", "router", "experts", "lora", "lm_head", "sampling", "communication", "quantization",
        "elementwise", "copy", "product", or "(unknown)"), layers (int64: how many layers have it), kernels
        (int64), time_ns (int64, ns), share_pct (float64, % of the device work of these steps), gb_s, tflops_s
        (float64, 1e9 bytes and 1e12 operations per second; of products, experts and attention, from shapes
        and lengths of sequences, and of what collectives are given; at least, where layers may read only a
        window of these, or tokens choose the same experts; NaN where they are not recorded), known_by (str:
        "annotation", "capture", "operator" for what no graph launched, placed by structure, "structure", or
        ""), name (str: the kernel that takes most of the time), why (str: of "(unknown)" the reason, or "").

    Raises:
        MissingDataError: no selected rank has steps that a server names.
    """
    scope = scope or Scope()
    found = []
    for rank, rank_trace in server_ranks(trace, scope):
        known, traffic = roles_of(rank_trace), traffic_of(rank_trace)
        chosen = np.flatnonzero(rank_trace.belong(known.rows, scope))
        rows = known.rows[chosen]
        frame = pd.DataFrame(
            {
                "role": [role or _NO_ROLE for role in known.role[chosen]],
                "layer": known.layer[chosen],
                "known_by": known.known_by[chosen],
                "name": [rank_trace.names[code] for code in rank_trace.name[rows].tolist()],
                "time_ns": rank_trace.dur[rows],
                "bytes": (traffic.moved_bytes - traffic.kv_bytes + traffic.kv_least_bytes)[chosen],
                "flops": traffic.flops[chosen],
            }
        )
        found += _rows(rank, frame, "; ".join(known.refused))
    columns = {
        "rank": "int64", "role": "str", "layers": "int64", "kernels": "int64", "time_ns": "int64",
        "share_pct": "float64", "gb_s": "float64", "tflops_s": "float64", "known_by": "str",
        "name": "str", "why": "str",
    }  # fmt: skip
    answer = pd.DataFrame(found, columns=list(columns)).astype(columns)
    return answer.sort_values(["rank", "time_ns"], ascending=[True, False], kind="stable", ignore_index=True)


def _rows(rank: int, frame: pd.DataFrame, why: str) -> list[dict[str, object]]:
    whole = int(frame["time_ns"].sum())
    rows = []
    for (role, known_by), group in frame.groupby(["role", "known_by"], sort=True):
        by_name = group.groupby("name")["time_ns"].sum()
        time = int(group["time_ns"].sum())
        rows.append(
            {
                "rank": rank,
                "role": role,
                "layers": group.loc[group["layer"] >= 0, "layer"].nunique(),
                "kernels": len(group),
                "time_ns": time,
                "share_pct": 100.0 * time / whole if whole else 0.0,
                "gb_s": int(group["bytes"].sum()) / time if group["bytes"].any() else np.nan,
                "tflops_s": int(group["flops"].sum()) / time / 1e3 if group["flops"].any() else np.nan,
                "known_by": known_by,
                "name": str(by_name.idxmax()),
                "why": why if role == _NO_ROLE else "",
            }
        )
    return rows


def sentence(frame: pd.DataFrame) -> str:
    """The answer in words."""
    if frame.empty:
        return "No device work of a server's step lies in the selection."
    whole = int(frame["time_ns"].sum())
    known = frame[frame["role"] != _NO_ROLE]
    if known.empty:
        why = frame["why"].iloc[0]
        return f"It is unknown which part of the model each kernel is: {why}. To know it, {REMEDY}."
    by_role = known.groupby("role")["time_ns"].sum().sort_values(ascending=False)
    first, *next_ = [f"{role} ({percent(100.0 * time / whole)})" for role, time in by_role.head(3).items()]
    ways = known.groupby("known_by")["time_ns"].sum().sort_values(ascending=False)
    text = f"The most device time of steps goes to {first}, known by {ways.index[0]}."
    return f"{text} Next {'is' if len(next_) == 1 else 'are'} {' and '.join(next_)}." if next_ else text


ANALYSIS = Analysis(
    label="Roles of kernels",
    group="Serving",
    title="Which part of the model the kernels of steps are",
    function=roles,
    sentence=sentence,
    chart=Bars("time_ns", ("role",), "compute", note="known_by"),
    requires=("steps of a server",),
)
