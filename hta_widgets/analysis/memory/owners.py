"""Who held a device's memory at its peak: by operator, module, phase or lifetime."""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.calls.phases import PHASES
from hta_widgets.analysis.calls.stacks import PREFIX
from hta_widgets.analysis.memory.events import Changes, outermost
from hta_widgets.analysis.memory.lifetimes import LIFETIMES, Lifetimes, lifetimes_of
from hta_widgets.analysis.memory.peaks import Peak, peak_of, recorded
from hta_widgets.analysis.memory.usage import NO_OPERATOR
from hta_widgets.analysis.operators.calls import is_module, module_calls, operator_calls
from hta_widgets.arrays import Int64
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

By = Literal["operator", "module", "phase", "lifetime"]
OwnersBy: Final[tuple[By, ...]] = get_args(By)

BEFORE_RECORDING: Final = "before the recording"
"""The owner of bytes whose allocation was not recorded."""
_NO_MODULE: Final = "(no module)"
_COLUMNS: Final = {
    "rank": "int64", "device": "str", "peak_ns": "int64", "peak_bytes": "int64", "name": "str",
    "blocks": "int64", "bytes": "int64", "share_pct": "float64", "operator": "str", "event_id": "Int64",
}  # fmt: skip


def memory_owners(trace: Trace, scope: Scope | None = None, by: By = "operator") -> pd.DataFrame:
    """Who held the memory of each device when most of it was allocated?

    The peak is that of `memory_peak`: the first highest level within the scope. A block has one owner, so
    their bytes add up to the peak exactly. What was allocated before the recording began is one owner.

    Args:
        trace: the job.
        scope: ranks, iterations, window; streams and names are ignored.
        by: what an owner is. "operator": the outermost operator that was running on the thread when the
            block was allocated (in backward passes, a node of autograd). "module": the innermost `nn.Module`
            that this operator works for; of backward operators, that of the forward operator that they
            differentiate. "phase": the phase of the training step in which it was allocated: forward,
            backward, optimizer, other. "lifetime": what it was for, by when it was allocated and freed:
            parameter, optimizer state, gradient, activation, temporary, communication, or unknown where
            neither shows it (see `Lifetimes`).

    Returns:
        One row per owner, by rank, device, most bytes first, then name. Columns: rank int64, device (str),
        peak_ns int64 (job's axis), peak_bytes int64, name (str, the owner; "(no operator)", "(no module)",
        "before the recording"), blocks int64 (0: not known), bytes int64, share_pct float64 (% of
        peak_bytes), operator (str, the outermost operator that allocated most of the owner's bytes,
        "(no operator)" for none), event_id (Int64, the call of that operator that allocated most at once, NA
        for none).

    Raises:
        MissingDataError: no selected rank has memory events, or, by module, frames of modules.
        ValueError: `by` is none of the above.
    """
    if by not in OwnersBy:
        raise ValueError(f"by must be one of {', '.join(OwnersBy)}, not {by!r}")
    scope = scope or Scope()
    ranks = recorded(trace, scope)
    if by == "module":
        ranks = [each for each in ranks if is_module(each[1]).any()]
        if trace.ranks_of(scope) and not ranks:
            raise MissingDataError("nn.Module frames", "Record with torch.profiler.profile(with_stack=True).")
    frames = [
        _of_device(rank_trace, changes, place, peak, lifetimes, by)
        for rank, rank_trace, changes in ranks
        for lifetimes in (lifetimes_of(rank_trace, trace.clock.offset_ns.get(rank, 0)),)
        for place in range(len(changes.places))
        if (peak := peak_of(rank_trace, changes, place, scope)) is not None
    ]
    frames = [frame for frame in frames if len(frame)]
    if not frames:
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in _COLUMNS.items()})
    found = pd.concat(frames, ignore_index=True)
    found["share_pct"] = 100.0 * found["bytes"] / found["peak_bytes"].where(found["peak_bytes"] != 0)
    found = found.sort_values(
        ["rank", "device", "bytes", "name"], ascending=[True, True, False, True], ignore_index=True
    )
    return found[list(_COLUMNS)].astype(_COLUMNS)


def _of_device(
    rank_trace: RankTrace, changes: Changes, place: int, peak: Peak, lifetimes: Lifetimes, by: By
) -> pd.DataFrame:
    top = outermost(rank_trace, EventClass.HOST_OP, lifetimes.operator[peak.live])
    blocks = pd.DataFrame(
        {
            "name": _owner(rank_trace, lifetimes, peak.live, top, by),
            "row": top,
            "operator": _names(rank_trace, top),
            "bytes": changes.change[peak.live],
        }
    )
    rows: list[dict[str, Any]] = [
        {"name": name, "blocks": len(owned), "bytes": int(owned["bytes"].sum()), **_most(rank_trace, owned)}
        for name, owned in blocks.groupby("name", sort=True)
    ]
    unseen = peak.unseen(changes)
    if unseen:
        rows.append(
            {
                "name": BEFORE_RECORDING,
                "blocks": 0,
                "bytes": unseen,
                "operator": NO_OPERATOR,
                "event_id": None,
            }
        )
    return pd.DataFrame(rows, columns=["name", "blocks", "bytes", "operator", "event_id"]).assign(
        rank=rank_trace.rank, device=changes.places[place], peak_ns=peak.time_ns, peak_bytes=peak.bytes
    )


def _most(rank_trace: RankTrace, owned: pd.DataFrame) -> dict[str, Any]:
    """The operator that allocated most of these blocks, and the call of it that allocated most."""
    owned = owned[owned["row"] >= 0]
    if owned.empty:
        return {"operator": NO_OPERATOR, "event_id": None}
    (operator, *_) = _greatest(owned, "operator")
    row = min(_greatest(owned[owned["operator"] == operator], "row"), key=lambda row: rank_trace.start[row])
    return {"operator": operator, "event_id": int(rank_trace.event_id[row])}


def _greatest(blocks: pd.DataFrame, column: str) -> list[Any]:
    """The values whose blocks have most bytes, ascending."""
    total = blocks.groupby(column, sort=True)["bytes"].sum()
    return total.index[total == total.max()].tolist()


def _owner(
    rank_trace: RankTrace, lifetimes: Lifetimes, at: Int64, top: Int64, by: By
) -> npt.NDArray[np.object_]:
    """The name of the owner of each block."""
    if by == "phase":
        return np.array(PHASES, object)[lifetimes.phase[at]]
    if by == "lifetime":
        return np.array(LIFETIMES, object)[lifetimes.lifetime[at]]
    if by == "operator":
        return _names(rank_trace, top)
    return _modules(rank_trace, lifetimes.operator[at])


def _names(rank_trace: RankTrace, row: Int64) -> npt.NDArray[np.object_]:
    """The names of operators; of row -1 that of none."""
    names = np.array([*rank_trace.names, NO_OPERATOR], object)
    return np.asarray(names[np.append(rank_trace.name, -1)[row]], object)


def _modules(rank_trace: RankTrace, operator: Int64) -> npt.NDArray[np.object_]:
    calls, of = module_calls(rank_trace)
    call = np.append(operator_calls(rank_trace).around, -1)[operator]
    module = np.append(of, -1)[call]
    row = np.append(calls.rows, -1)[module]
    texts = np.array([*(name.removeprefix(PREFIX) for name in rank_trace.names), _NO_MODULE], object)
    return np.asarray(texts[np.append(rank_trace.name, -1)[row]], object)
