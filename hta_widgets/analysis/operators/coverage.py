"""How much of the device work has a formula, and what has none."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.operators.calls import operator_calls
from hta_widgets.analysis.operators.costs import Costs, operator_costs
from hta_widgets.analysis.operators.table import OUTSIDE
from hta_widgets.arrays import Bool, Int64
from hta_widgets.charts.spec import Bars
from hta_widgets.engine import checkpoint
from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.formatting import duration, none_of, percent
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

_STATES: Final = ("formula", "communication", "no operator", "inputs not recorded", "no formula")
_LEAST_PCT: Final = 0.05  # less is not worth a word
_WORDS: Final = {
    "communication": "is communication",
    "no operator": "was launched by no operator",
    "inputs not recorded": "lacks recorded shapes or values",
    "no formula": "is of operators without one",
}
_COLUMNS: Final = {
    "rank": "int64",
    "state": "str",
    "name": "str",
    "device_ns": "int64",
    "device_pct": "float64",
}


@kept(by_rank=True)
def formula_coverage(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """How much of the device work does a formula describe, and what is the rest?

    Device work is described if the operator that launched it, or one around that, has a formula that its
    recorded inputs suffice for (see `operators`).

    Args:
        trace: the job.
        scope: device work that belongs to it, as in `operators`.

    Returns:
        One row per rank, state and operator, by rank, then most device_ns first. Columns: rank int64, state
        (str): "formula"; "communication": collectives, which `collectives` describes; "no operator": launched
        by none; "inputs not recorded": there is a formula, but shapes or values are missing; "no formula";
        name (str, the operator that launched the work), device_ns (int64, ns), device_pct (float64, % of the
        rank's device work in the scope). The device_ns of a rank add up to all of that work.

    Raises:
        MissingDataError: no selected rank has device events.
    """
    scope = scope or Scope()
    ranks = trace.ranks_of(scope)
    frames, with_device = [], False
    for rank in ranks:
        checkpoint()
        rank_trace = trace.rank(rank)
        with_device |= rank_trace.device_span is not None
        frames.append(_of_rank(rank_trace, scope))
    if ranks and not with_device:
        raise MissingDataError("device events", RECORD_DEVICE, none_of(ranks))
    frames = [frame for frame in frames if len(frame)]
    if not frames:
        return pd.DataFrame({name: [] for name in _COLUMNS}).astype(_COLUMNS)
    return pd.concat(frames, ignore_index=True).astype(_COLUMNS)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of a `formula_coverage` frame in words."""
    whole = int(frame["device_ns"].sum())
    if not whole:
        return "No device work in the selection."
    spent = frame.groupby("state")["device_ns"].sum()
    rest = int(whole - spent.get("formula", 0))
    if not rest:
        return f"All {duration(whole)} of device work has a formula."
    shares = {state: 100.0 * spent[state] / whole for state in _STATES[1:] if state in spent}
    least = min(max(shares.values()), _LEAST_PCT)
    parts = [f"{percent(share)} {_WORDS[state]}" for state, share in shares.items() if share >= least]
    text = f"{percent(100.0 * rest / whole)} of device time has no formula"
    if len(parts) == 1:
        return f"{text}: it {_WORDS[max(shares, key=shares.__getitem__)]}."
    return ". ".join([text, *parts]) + "."


def _of_rank(rank_trace: RankTrace, scope: Scope) -> pd.DataFrame:
    calls, costs = operator_calls(rank_trace), operator_costs(rank_trace)
    inside = np.flatnonzero(rank_trace.belong(calls.work, scope))
    work, owner = calls.work[inside], calls.owner[inside]
    state = _states(calls.parent, costs)
    of = np.where(owner >= 0, np.append(state, -1)[owner], _STATES.index("no operator"))
    of[(of > 0) & (rank_trace.event_class[work] == EventClass.COMMUNICATION)] = _STATES.index("communication")
    pieces = pd.DataFrame(
        {
            "state": of,
            "name": np.where(owner >= 0, np.append(rank_trace.name[calls.rows], -1)[owner], -1),
            "device_ns": rank_trace.dur[work],
        }
    )
    frame = pieces.groupby(["state", "name"], sort=True).sum().reset_index()
    frame = frame.sort_values(
        ["device_ns", "state", "name"], ascending=[False, True, True], ignore_index=True
    )
    whole = int(frame["device_ns"].sum())
    frame["device_pct"] = 100.0 * frame["device_ns"] / whole if whole else np.nan
    frame["name"] = [rank_trace.names[name] if name >= 0 else OUTSIDE["name"] for name in frame["name"]]
    frame["state"] = [_STATES[each] for each in frame["state"]]
    frame.insert(0, "rank", rank_trace.rank)
    return frame


def _states(parent: Int64, costs: Costs) -> Int64:
    """For each call the state of what it launches itself."""
    covered, named = costs.has_formula.copy(), costs.named.copy()
    _inherit(parent, covered)
    _inherit(parent, named)
    rest = np.where(named, _STATES.index("inputs not recorded"), _STATES.index("no formula"))
    return np.where(covered, _STATES.index("formula"), rest)


@kernel
def _inherit(parent: Int64, holds: Bool) -> None:
    """What holds for a call holds for those in it; callers come first."""
    for call in range(len(parent)):
        if parent[call] >= 0 and holds[parent[call]]:
            holds[call] = True


ANALYSIS = Analysis(
    label="Formulas",
    group="Kernels",
    title="How much of the device work has a formula",
    function=formula_coverage,
    sentence=sentence,
    chart=Bars(
        "device_ns",
        ("name",),
        "compute",
        names="name",
        no_event=OUTSIDE["name"],
        note="state",
        measure="Device time",
    ),
    requires=("device events",),
)
