"""HTA's default way to find stragglers, and the extension point's helpers, on HTA-shaped frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.matching import match
from hta_widgets.analysis.communication.operations import collective_of
from hta_widgets.errors import MissingDataError
from hta_widgets.hta.methods.conventions import microseconds, show
from hta_widgets.trace.classify import EventClass, classify

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from hta_widgets.hta.common.trace import Trace
    from hta_widgets.hta.common.trace_symbol_table import TraceSymbolTable

_SHORT_US = 2000.0
"""HTA draws kernels at least this long, or they would be too thin to see."""
_PER_PANEL = 300


def extract_iteration_info(trace: Trace) -> pd.DataFrame:
    """The profiler steps of every rank: rank, iter (int64), ts, dur, end (float64 us), by rank and time.

    Unlike HTA's, only the host's annotations: the device's copies of them are not steps.
    """
    frame = trace.job.iterations
    steps = frame[frame["source"] == "ProfilerStep"].sort_values(["rank", "start_ns"], kind="stable")
    return pd.DataFrame(
        {
            "rank": steps["rank"].to_numpy(np.int64),
            "iter": steps["iteration"].to_numpy(np.int64),
            "ts": microseconds(steps["start_ns"]),
            "dur": microseconds(steps["end_ns"] - steps["start_ns"]),
            "end": microseconds(steps["end_ns"]),
        }
    )


def find_stragglers_with_late_start_comm_kernels(
    df: pd.DataFrame,
    symbol_table: TraceSymbolTable,
    n_stragglers: int = 2,
    visualize: bool = False,
) -> pd.Series:
    """How often each rank is among those that arrive last at the collectives.

    The definition is that of `analysis.stragglers`, on whatever device stream and iteration (0 too) the
    collectives run: the ranks that make the others wait longest, not those whose clock shows the latest
    start. A kernel is a collective by its class, so newer NCCL's names and RCCL's count.

    Args:
        df: events of several ranks with HTA's columns (rank, index, cat, name, ts, dur, stream, iteration;
            those of the collectives' arguments where present).
        symbol_table: decodes cat and name.
        n_stragglers: how many ranks of each iteration count as stragglers; at least 1.
        visualize: show HTA's three figures.

    Returns:
        rank -> number of iterations in which it is among the `n_stragglers` worst and late at all;
        the worst rank first.

    Raises:
        MissingDataError: no collective that two of the ranks took part in.
    """
    # here: `TraceAnalysis` names this function as a default, and most of its methods need nothing of that
    from hta_widgets.analysis.communication.stragglers import lateness

    kernels = match(_kernels(df, symbol_table))
    if kernels["match"].isna().all():
        raise MissingDataError(
            "collective that is recorded on two ranks",
            "Record the same steps of every rank with "
            "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]).",
            f"the frame holds {len(kernels)} communication kernels of {df['rank'].nunique()} ranks",
        )
    late = lateness(kernels, common_clock=True)
    if visualize:
        show(straggler_figures(kernels, late, n_stragglers))
    return counts(late, n_stragglers)


def counts(late: pd.DataFrame, n_stragglers: int) -> pd.Series:
    """The Series of `find_stragglers_with_late_start_comm_kernels` from a frame of `analysis.stragglers`."""
    chosen = _chosen(late, n_stragglers)
    by_rank = late.assign(is_straggler=chosen.astype(np.int64)).groupby("rank")
    total = by_rank[["is_straggler", "caused_wait_ns", "lateness_ns"]].sum().reset_index()
    total = total.sort_values(
        ["caused_wait_ns", "lateness_ns", "rank"], ascending=[False, False, True], kind="stable"
    )
    return total.set_index("rank")["is_straggler"]


def straggler_figures(kernels: pd.DataFrame, late: pd.DataFrame, n_stragglers: int) -> list[go.Figure]:
    """HTA's three pictures: the long collectives, the ones the ranks were compared by, and who was late.

    Args:
        kernels: of `analysis.collectives`.
        late: of `analysis.stragglers`.
    """
    t0 = int(kernels["start_ns"].min())
    iterations = sorted({int(number) for number in late["iteration"].dropna()})
    mean = (int((kernels["start_ns"] + kernels["dur_ns"]).max()) - t0) / max(len(iterations), 1)
    long = kernels[kernels["dur_ns"] >= 0.01 * mean]
    bars = _bars(late.assign(normalized_start_time=late["lateness_ns"] / mean), _chosen(late, n_stragglers))
    return [
        _timeline(long, "Timeline of Communication Kernels Longer Than 1.00% of Iteration Time\n", _SHORT_US),
        _timeline(
            kernels[kernels["match"].notna()], f"Timeline of Candidate Kernels (Iterations={iterations})"
        ),
        bars,
    ]


def _chosen(late: pd.DataFrame, n_stragglers: int) -> pd.Series:
    return (late["position"] <= max(n_stragglers, 1)) & (late["lateness_ns"] > 0)


def _kernels(df: pd.DataFrame, symbol_table: TraceSymbolTable) -> pd.DataFrame:
    """The collectives of an HTA frame with the columns that `match` and `lateness` need."""
    symbols = symbol_table.get_sym_table()
    pair = df["cat"].to_numpy(np.int64) * len(symbols) + df["name"].to_numpy(np.int64)
    communication = [
        code
        for code in pd.unique(pair).tolist()
        if classify(symbols[code // len(symbols)], symbols[code % len(symbols)])[0]
        == EventClass.COMMUNICATION
    ]
    rows = df[np.isin(pair, communication)]
    start = _ns(rows["ts"])
    dur = _ns(rows["dur"])
    name = pd.Series([symbols[code] for code in rows["name"].tolist()], rows.index, "str")
    name_recorded = _text(rows, "collective_name").fillna(name)
    return pd.DataFrame(
        {
            "rank": rows["rank"].astype("int64"),
            "event_id": rows["index" if "index" in rows else "idx"].astype("int64"),
            "iteration": _number(rows, "iteration"),
            "name": name,
            "collective": name_recorded.map(
                {text: collective_of(text) for text in name_recorded.unique()}
            ).astype("str"),
            "process_group": _text(rows, "process_group_name"),
            "group_ranks": _text(rows, "process_group_ranks"),
            "seq": _number(rows, "seq"),
            "comms_id": _number(rows, "comms_id"),
            "in_elements": _number(rows, "in_msg_nelems"),
            "sender": pd.Series(pd.NA, rows.index, "Int64"),  # HTA compares collectives alone
            "receiver": pd.Series(pd.NA, rows.index, "Int64"),
            "device": pd.Series(0, rows.index, "Int64"),
            "stream": _number(rows, "stream"),
            "start_ns": start,
            "end_ns": start + dur,
            "dur_ns": dur,
        }
    ).reset_index(drop=True)


def _ns(us: pd.Series) -> pd.Series:
    return (us.astype("float64") * 1000).round().astype("int64")


def _number(rows: pd.DataFrame, column: str) -> pd.Series:
    """A column of HTA's numbers, whose -1 means none."""
    if column not in rows:
        return pd.Series(pd.NA, rows.index, "Int64")
    values = pd.to_numeric(rows[column], errors="coerce")
    return values.where(values != -1).astype("Int64")


def _text(rows: pd.DataFrame, column: str) -> pd.Series:
    """A column of texts; HTA's "" and -1 mean none."""
    if column not in rows:
        return pd.Series(pd.NA, rows.index, "str")
    texts = rows[column].astype("str")
    return texts.where(rows[column].notna() & ~texts.isin(["", "-1", "nan"]))


def _timeline(kernels: pd.DataFrame, title: str, shortest_us: float = 0.0) -> go.Figure:
    import plotly.graph_objects as go

    figure = go.Figure()
    lane = "rank " + kernels["rank"].astype("str") + ", stream " + kernels["stream"].astype("str")
    for name in sorted(kernels["name"].unique()):
        of_name = kernels[kernels["name"] == name]
        figure.add_bar(
            base=microseconds(of_name["start_ns"]),
            x=np.maximum(microseconds(of_name["dur_ns"]), shortest_us),
            y=lane[of_name.index],
            orientation="h",
            name=_plain(name),
            customdata=microseconds(of_name["dur_ns"]),
            hovertemplate="%{base:.3f} us<br>%{customdata:.3f} us",
        )
    figure.update_layout(title=title, barmode="overlay", xaxis_title="Time (us)", yaxis_title="Rank")
    return figure


def _bars(late: pd.DataFrame, chosen: pd.Series) -> go.Figure:
    from plotly.subplots import make_subplots

    numbers = sorted({int(number) for number in late["iteration"].dropna()}) or [-1]
    several = len(numbers) > 1
    titles = [f"iteration={number}" for number in numbers] if several else None
    figure = make_subplots(1, len(numbers), shared_yaxes=True, subplot_titles=titles)
    for column, number in enumerate(numbers, 1):
        panel = late["iteration"].fillna(-1) == number
        for word, is_straggler, fill in (("Yes", True, "red"), ("No", False, "blue")):
            rows = late[panel & (chosen == is_straggler)]
            figure.add_bar(
                x=rows["rank"].astype("str"),
                y=rows["normalized_start_time"],
                name=word,
                legendgroup=word,
                showlegend=column == 1,
                marker_color=fill,
                row=1,
                col=column,
            )
    figure.update_xaxes(title="rank", type="category")
    figure.update_yaxes(title="normalized_start_time", col=1)
    figure.update_layout(
        title="Potential Stragglers", width=_PER_PANEL * len(numbers), legend_title="is_straggler"
    )
    return figure


def _plain(name: Any) -> str:
    """A name from the trace as text: plotly reads some tags."""
    return str(name)[:80].replace("<", "&lt;")
