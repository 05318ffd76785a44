"""Which sequences of pointwise kernels one kernel could replace, and what that would save."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.operators.calls import operator_calls
from hta_widgets.analysis.operators.chains import chains_of
from hta_widgets.analysis.replay import edits
from hta_widgets.analysis.replay.quality import quality_of
from hta_widgets.analysis.replay.what_if import answered
from hta_widgets.charts.spec import Bars
from hta_widgets.engine import checkpoint
from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.formatting import byte_size, counted, duration
from hta_widgets.frames import typed_frame
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

REPLAYED: Final = 10
"""Of so many candidates of a rank, those that save most device time, a replay tells the saving."""

_COLUMNS: Final = {
    "rank": "int64", "pattern": "str", "operators": "str", "length": "int64", "count": "int64",
    "device_ns": "int64", "bytes": "int64", "saved_bytes": "int64", "saved_device_ns": "int64",
    "saved_ns": "Int64", "first_event_id": "int64", "edits": "str",
}  # fmt: skip


@kept(by_rank=True)
def fusion_candidates(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """Which sequences of pointwise kernels read and write results that one kernel would keep to itself?

    A sequence is a chain of consecutive kernels of a stream, each launched by a pointwise operator (or copy)
    of PyTorch that launches nothing else and reads a tensor of the shape and type that the one before writes.
    Tensors have no recorded identity, and a result may be needed later, as by a backward pass: all that is
    saved is saved at most.

    Args:
        trace: the job.
        scope: sequences that begin in it: ranks, iterations, time window, streams, names of the first kernel.

    Returns:
        One row per rank and sequence of kernels and operators, by rank, then most saved_device_ns first.
        Columns: rank int64, pattern (str, the names of the kernels, joined with ``|``), operators (str, those
        that launched them, likewise), length (int64, kernels), count (int64, how often), device_ns (int64,
        time of the kernels), bytes (int64, what the operators read and write, by shapes and types),
        saved_bytes (int64, of that what is written and read again in between), saved_device_ns (int64, device
        time that this takes at the bandwidth of the sequence), saved_ns (Int64, how much sooner the
        iterations of the scope end, or all of the recording without marked ones, by a replay with `edits`;
        these do not add; NA beyond the first ten rows of a rank, and where a replay is not trusted),
        first_event_id (int64, of
        the first kernel), edits (str, as `what_if` takes them: all sequences of these kernels).

    Raises:
        MissingDataError: no selected rank has device events that are linked to their launches, or shapes of
            operators.
    """
    scope = scope or Scope()
    ranks = trace.ranks_of(scope)
    linked = [rank for rank in ranks if (trace.rank(rank).launch >= 0).any()]
    if ranks and not linked:
        raise MissingDataError("device events linked to their launches", RECORD_DEVICE)
    shaped = [rank for rank in linked if trace.rank(rank).has_argument("input_dims")]
    if ranks and not shaped:
        raise MissingDataError(
            "shapes of operators", "Record with torch.profiler.profile(record_shapes=True)."
        )
    rows: list[dict[str, Any]] = []
    for rank in shaped:
        checkpoint()
        found = _of_rank(trace.rank(rank), scope)
        quality = quality_of(trace.rank(rank))
        for row in found[:REPLAYED] if quality is not None and quality.trusted else []:
            checkpoint()
            row["saved_ns"] = _saved(trace, rank, scope, row["pattern"])
        rows += found
    return typed_frame(rows, _COLUMNS)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `fusion_candidates` in words."""
    if frame.empty:
        return "No pointwise kernels follow each other of which one reads what the other wrote."
    count, whole = int(frame["count"].sum()), int(frame["device_ns"].sum())
    again, saved = int(frame["saved_bytes"].sum()), int(frame["saved_device_ns"].sum())
    return (
        f"{counted(count, 'chain')} of pointwise kernels {'takes' if count == 1 else 'take'} "
        f"{duration(whole)}. As one kernel each, they would save at most {duration(saved)} of device time "
        f"and {byte_size(again)} of memory traffic."
    )


def _of_rank(rank_trace: RankTrace, scope: Scope) -> list[dict[str, Any]]:
    chains = chains_of(rank_trace)
    if not len(chains.rows):
        return []
    calls = operator_calls(rank_trace)
    owner = np.full(rank_trace.n, -1, np.int64)
    owner[calls.work] = np.append(calls.rows, -1)[calls.owner]
    operator = rank_trace.name[owner[chains.rows]]
    first = np.flatnonzero(np.append(True, np.diff(chains.chain) != 0))
    inside = rank_trace.belong(chains.rows[first], scope)
    pieces = pd.DataFrame(
        {
            "pattern": chains.names,
            "operators": [
                "|".join(rank_trace.names[code] for code in part.tolist())
                for part in np.split(operator, first[1:])
            ],
            "length": np.bincount(chains.chain),
            "device_ns": np.add.reduceat(rank_trace.dur[chains.rows], first),
            "bytes": chains.bytes,
            "saved_bytes": np.minimum(chains.again, chains.bytes),
            "saved_device_ns": np.add.reduceat(rank_trace.dur[chains.rows] - chains.left_ns, first),
            "row": chains.rows[first],
        }
    )[inside]
    found = (
        pieces.groupby(["pattern", "operators", "length"], sort=True)
        .agg(
            count=("row", "size"),
            **{name: (name, "sum") for name in ("device_ns", "bytes", "saved_bytes", "saved_device_ns")},
            row=("row", lambda rows: min(rows, key=lambda row: rank_trace.start[row])),
        )
        .reset_index()
        .sort_values(["saved_device_ns", "pattern", "operators"], ascending=[False, True, True])
    )
    found["first_event_id"] = rank_trace.event_id[found["row"].to_numpy(np.int64)]
    found["edits"] = [edits.fused_pointwise(pattern).expression for pattern in found["pattern"]]
    return [
        {"rank": rank_trace.rank, **{str(key): value for key, value in row.items()}, "saved_ns": None}
        for row in found.to_dict("records")
    ]


def _saved(trace: Trace, rank: int, scope: Scope, pattern: str) -> int | None:
    """What the iterations of the scope take less with these chains fused."""
    edit = edits.fused_pointwise(pattern)
    rows = answered(trace, edit, Scope(ranks=(rank,), iterations=scope.iterations, window_ns=scope.window_ns))
    marked = rows["iteration"].notna()
    rows = rows[marked] if marked.any() else rows
    return int((rows["before_ns"] - rows["after_ns"]).sum()) if len(rows) else None


ANALYSIS = Analysis(
    label="Fusion",
    group="Kernels",
    title="Which kernels could be one, and what that saves",
    function=fusion_candidates,
    sentence=sentence,
    chart=Bars("saved_device_ns", ("operators",), "compute", measure="Device time saved at most"),
    requires=("device events linked to their launches", "shapes of operators"),
)
