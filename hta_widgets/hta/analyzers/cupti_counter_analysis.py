"""`get_cupti_counter_data_with_operators`: hardware counters by kernel, as HTA tabulates them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from hta_widgets.analysis.calls.cupti import CUDA_SASS_INSTRUCTION_COUNTER_FLOPS, cupti_counters
from hta_widgets.hta.common.trace import Trace
from hta_widgets.hta.common.trace_call_graph import CallGraph
from hta_widgets.hta.methods.conventions import chosen_ranks, or_else, warn
from hta_widgets.trace.scope import Scope

__all__ = [
    "CUDA_SASS_INSTRUCTION_COUNTER_FLOPS",
    "CuptiCounterAnalysis",
    "cupti_counter_data_with_operators",
]

_OWN = ["rank", "launch_event_id", "start_ns", "dur_ns", "name", "flops"]


@or_else(list[pd.DataFrame])
def cupti_counter_data_with_operators(t: Trace, ranks: Iterable[int] | None = None) -> list[pd.DataFrame]:
    """Hardware counters of each kernel, with the operators that launched it.

    Returns:
        Per rank a frame with a row per measured kernel, by ts: the columns of the rank's trace (name and cat
        as text), the stack columns of `CallGraph`, the counters under their own names, index_runtime (`index`
        of the launch), op_stack (list of the operators open at the launch, outermost first), top_level_op,
        bottom_level_op. Ranks whose kernels and launches do not agree in number are left out, with a warning.
        Empty, with a warning, without counters. Defined in `analysis.cupti_counters`.
    """
    chosen = chosen_ranks(t.job, ranks)
    # Pairs are found on the whole recording: a trimmed one may have lost a launch and kept its kernel.
    counters = cupti_counters(t.whole, Scope(ranks=tuple(chosen)))
    CallGraph(t, chosen)
    frames = []
    for rank in chosen:
        found = counters[counters["rank"] == rank].dropna(axis="columns", how="all")
        if not len(found):
            continue
        if (found["launch_event_id"] < 0).any():
            warn(f"rank {rank}: {len(found)} measured kernels, but another number of kernel launches")
            continue
        frames.append(_as_hta(t, rank, found))
    return frames


def _as_hta(t: Trace, rank: int, found: pd.DataFrame) -> pd.DataFrame:
    df = t.get_trace(rank).set_index("index", drop=False)
    found = found[found["event_id"].isin(df.index)].set_index("event_id")
    frame = df.loc[found.index].copy()
    symbols = np.array(t.symbol_table.get_sym_table(), object)
    for column in ("name", "cat"):
        frame[column] = symbols[frame[column].to_numpy(np.int64)]
    frame = frame.drop(columns=["s_name", "s_cat"], errors="ignore")
    own = found.drop(columns=[*_OWN, "op_stack", "top_level_op", "bottom_level_op"], errors="ignore")
    frame = frame.drop(columns=own.columns, errors="ignore").join(own)
    frame["index_runtime"] = found["launch_event_id"]
    for column in ("op_stack", "top_level_op", "bottom_level_op"):
        frame[column] = found[column]
    return frame.reset_index(drop=True)


class CuptiCounterAnalysis:
    """HTA's class of the same name."""

    get_counter_data_with_operators = staticmethod(cupti_counter_data_with_operators)
