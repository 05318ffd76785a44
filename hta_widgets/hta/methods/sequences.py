"""`get_frequent_cuda_kernel_sequences`: patterns in HTA's table, and a trace file that marks them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hta_widgets.analysis.calls.sequences import sequence_instances
from hta_widgets.analysis.calls.stacks import stacks
from hta_widgets.analysis.calls.tree import owners
from hta_widgets.hta.methods.conventions import microseconds, or_else, show, warn
from hta_widgets.hta.methods.sequence_overlay import write_overlay
from hta_widgets.hta.utils.checker import is_valid_directory
from hta_widgets.palette import colour
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    import plotly.graph_objects as go

_GPU, _CPU = "GPU kernel duration (us)", "CPU op duration (us)"


@or_else(pd.DataFrame)
def frequent_cuda_kernel_sequences(
    job: Trace,
    operator_name: str,
    output_dir: str,
    min_pattern_len: int = 3,
    rank: int = 0,
    top_k: int = 5,
    visualize: bool = False,
    compress_other_kernels: bool = True,
) -> pd.DataFrame:
    """Which sequences of kernels does an operator launch, and how often?

    Writes `overlaid_<trace file>` into `output_dir`: the trace with the sequences marked. Calls count at the
    smallest depth at which the name occurs: this is how HTA avoids counting operators inside operators twice.
    It misses calls that are deeper elsewhere; `analysis.kernel_sequences` counts them.

    Args:
        operator_name: part of the name of the operators looked at.
        output_dir: an existing folder.
        min_pattern_len: operators that launch fewer kernels are left out.
        top_k: how many sequences to mark and to draw.
        compress_other_kernels: leave the arguments of all other events out of the file, and number their
            names.

    Returns:
        pattern (operator and kernels, parted by "|"), count, GPU kernel duration (us), CPU op duration
        (us); the most frequent first. Empty, with a warning, if there is none, no operator name or no
        folder to write into. Defined in `analysis.kernel_sequences`.

    Raises:
        ValueError: the job has no such rank.
    """
    if rank not in job.ranks:
        raise ValueError(f"no rank {rank}: this trace has {job.ranks}")
    problem = _problem(operator_name, output_dir)
    if problem is None:
        found = sequence_instances(job, Scope(ranks=(rank,)), operator_name, min_pattern_len, "shallowest")
        if found.empty:
            problem = (
                f"no operator named {operator_name!r} launches {max(min_pattern_len, 1)} kernels or more"
            )
    if problem is not None:
        warn(problem, UserWarning)
        return pd.DataFrame()
    sums = found.groupby("pattern").agg(
        count=("event_id", "size"), device_ns=("device_ns", "sum"), host_ns=("host_ns", "sum")
    )
    sums = sums.sort_values(["count", "pattern"], ascending=[False, True]).reset_index()
    top = sums.head(max(top_k, 0))
    rank_trace = job.rank(rank)
    _write_overlay(rank_trace, found, top, Path(output_dir), compress_other_kernels)
    if visualize:
        show([_bars(top, rank)])
    table = sums[["pattern", "count"]].copy()
    table[_GPU], table[_CPU] = microseconds(sums["device_ns"]), microseconds(sums["host_ns"])
    return table


def _problem(operator_name: str, output_dir: str) -> str | None:
    if not operator_name:
        return "operator_name is empty: name (part of) an operator, such as 'aten::linear'"
    folder = is_valid_directory(output_dir, must_be_writable=True)
    return None if folder.success else f"output_dir: {folder.reason}"


def _bars(top: pd.DataFrame, rank: int) -> go.Figure:
    import plotly.graph_objects as go

    escaped = [text.replace("<", "&lt;").replace("|", "<br>") for text in top["pattern"]]
    figure = go.Figure(
        go.Bar(
            x=top.index,
            y=top["count"],
            marker_color=colour("compute"),
            customdata=escaped,
            hovertemplate="%{customdata}<br>count=%{y}<extra></extra>",
        )
    )
    figure.update_layout(
        title=f"Top {len(top)} frequent patterns for rank {rank}",
        xaxis={"title": "Pattern Index", "type": "category"},
        yaxis={"title": "Pattern Count"},
        template="plotly_white",
    )
    return figure


def _write_overlay(
    rank_trace: RankTrace, found: pd.DataFrame, top: pd.DataFrame, folder: Path, compress: bool
) -> None:
    counts = dict(zip(top["pattern"], top["count"].tolist(), strict=True))
    shown = found[found["pattern"].isin(list(counts))]
    chosen = np.zeros(rank_trace.n, np.bool_)
    rows = np.searchsorted(rank_trace.event_id, shown["event_id"].to_numpy())
    chosen[rows] = True
    pattern = np.zeros(rank_trace.n, np.int64)
    pattern[rows] = pd.Categorical(shown["pattern"], categories=list(counts)).codes
    owner = owners(stacks(rank_trace), chosen)
    inside = np.flatnonzero(owner >= 0)
    target = folder / f"overlaid_{Path(rank_trace.path).name}"
    write_overlay(rank_trace, target, rank_trace.event_id[inside], pattern[owner[inside]], counts, compress)
