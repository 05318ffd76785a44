"""The links of `common.rank_frame` for frames made elsewhere: launches, steps, forward and backward.

`Trace` links its own frames; these functions take any frame with HTA's columns.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.hta.common.trace_symbol_table import TraceSymbolTable
from hta_widgets.trace.links import windows_of
from hta_widgets.trace.step_names import profiler_step

_DEVICE_WAITS = ("Event Sync", "Context Sync")


def on_device_side(df: pd.DataFrame, symbol_table: TraceSymbolTable) -> pd.Series:
    """Rows that a device recorded: on a stream with a correlation, or waits of the whole device.

    Names are looked at only where the table has such waits: frames without them need no column `name`.
    """
    device = df["stream"].ge(0) & df["correlation"].ge(0)
    waits = [symbol_table.sym_index[name] for name in _DEVICE_WAITS if name in symbol_table.sym_index]
    return device | df["name"].isin(waits) if waits else device


def transform_correlation_to_index(df: pd.DataFrame, symbol_table: TraceSymbolTable) -> pd.DataFrame:
    """Add `index_correlation`, in place: the `index` of the row with the same correlation on the other side.

    -1 where there is none. Of several partners the last row counts.

    Args:
        df: columns index, name (id), stream, correlation.
    """
    if "correlation" not in df.columns:
        return df
    linked = df["correlation"].ne(-1)
    device = on_device_side(df, symbol_table)
    sides = [df.loc[linked & side, ["index", "correlation"]] for side in (~device, device)]
    partner = np.full(len(df), -1, np.int64)
    for here, there in ((0, 1), (1, 0)):
        found = sides[there].drop_duplicates("correlation", keep="last").set_index("correlation")["index"]
        rows = np.flatnonzero(linked & (device if here else ~device))
        partner[rows] = found.reindex(sides[here]["correlation"]).fillna(-1).to_numpy(np.int64)
    df["index_correlation"] = partner
    return df


def get_cpu_gpu_correlation(df: pd.DataFrame) -> pd.DataFrame:
    """gpu_index and cpu_index: the `index` of each device row that has a launch, and of that launch."""
    linked = df[df["stream"].ge(0) & df["index_correlation"].ge(0)]
    return pd.DataFrame(
        {"gpu_index": linked["index"].to_numpy(), "cpu_index": linked["index_correlation"].to_numpy()}
    )


def add_iteration(df: pd.DataFrame, symbol_table: TraceSymbolTable) -> pd.DataFrame:
    """Add `iteration`, in place: the ProfilerStep that a row starts in, for launched rows that of the launch.

    Args:
        df: columns index, ts, dur, name (id), stream, index_correlation.

    Returns:
        The steps: ts, dur, name, s_name (number), iter (name). Steps on streams (the device's side of the
        annotations) are none.
    """
    numbers = {
        code: number
        for code, name in enumerate(symbol_table.sym_table)
        if (number := profiler_step(name)) is not None
    }
    steps = df.loc[df["name"].isin(numbers) & df["stream"].lt(0), ["ts", "dur", "name"]].copy()
    steps["s_name"] = steps["name"].map(numbers).astype("int64")
    steps["iter"] = [symbol_table.sym_table[code] for code in steps["name"]]
    ordered = steps.sort_values("ts", kind="stable")
    iteration = _iteration_of(df["ts"], ordered)
    partner = df["index_correlation"].to_numpy(np.int64)
    device = df["stream"].ge(0).to_numpy() & (partner >= 0)
    row_of = pd.Series(np.arange(len(df)), index=df["index"].to_numpy())
    iteration[device] = iteration[row_of.reindex(partner[device]).to_numpy(np.int64)]
    df["iteration"] = iteration
    return steps


def _iteration_of(ts: pd.Series, steps: pd.DataFrame) -> npt.NDArray[np.int64]:
    begin = steps["ts"].to_numpy()
    at = windows_of(ts.to_numpy(), begin, (steps["ts"] + steps["dur"]).to_numpy())
    return np.append(steps["s_name"].to_numpy(np.int64), -1)[at]


def add_fwd_bwd_links(df: pd.DataFrame) -> None:
    """Add in place `fwdbwd` (0 forward, 1 backward, -1 neither) and `fwdbwd_index` (`index` of the other).

    Two ``fwdbwd`` flow events of one id connect two operators: those that start where the flow events are, on
    the same thread; of several the last in the file.

    Args:
        df: all events of a file, flows included: index, ph, id, bp, cat (text), ts, pid, tid. Without flow
            rows nothing is added (`Trace.add_fwd_bwd_links` reads the links from the trace itself).
    """
    if not pd.api.types.is_string_dtype(df["cat"]) or not df["cat"].eq("fwdbwd").any():
        return
    place = ["ts", "pid", "tid"]
    flows = df[df["cat"].eq("fwdbwd")]
    operators = df.loc[df["cat"].eq("cpu_op"), [*place, "index"]]
    ends = (flows["ph"].eq("s"), flows["ph"].eq("f") & flows["bp"].eq("e"))
    start, end = (
        flows.loc[end, [*place, "id"]].merge(operators, on=place).groupby("id")["index"].max() for end in ends
    )
    both = pd.concat([start, end], axis=1, join="inner", keys=["start", "end"])
    df["fwdbwd_index"], df["fwdbwd"] = np.int64(-1), np.int64(-1)
    for side, (here, there) in enumerate((("start", "end"), ("end", "start"))):
        chosen = both.drop_duplicates(here, keep="last").set_index(here)[there]
        rows = df["index"].isin(chosen.index)
        df.loc[rows, "fwdbwd_index"] = chosen.reindex(df.loc[rows, "index"]).to_numpy(np.int64)
        df.loc[rows, "fwdbwd"] = side
