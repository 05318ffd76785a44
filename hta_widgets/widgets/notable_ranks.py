"""The ranks of a job to look at first, each with what shows it: culprits, who waits, and what is usual."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.waits import longest_wait, wait_chain
from hta_widgets.analysis.job.parts import PARTS
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_CULPRITS, _BESIDES = 6, 2
# A rank that costs less than this part of what the worst costs, or causes less of all waiting, has no row of
# its own, and neither has one that waits hardly longer than others do.
_LEAST = 0.1
_STANDS_OUT = 1.2


def notable_ranks(trace: Trace, scope: Scope, ranks: pd.DataFrame) -> list[dict[str, Any]]:
    """Culprits, others that cost much, the one that waits by far the most, and the most usual one.

    Where costs are not known, those that the others wait for. Otherwise these would only distract: who is
    waited for may be a victim itself.

    Returns:
        ``[{"rank", "why", "cause", "evidence"}]``, each rank once, under the first of these that it is: why
        is "culprit", "costs", "causes", "waits" or "usual"; cause is that of a culprit; evidence is what a
        timeline can show of it, as the cards of a verdict have it, or None: the exchange at which others wait
        longest for it, or else it for others.
    """
    found: dict[int, tuple[str, str]] = {}
    culprits = ranks[ranks["culprit"]].sort_values(["cost_ns", "rank"], ascending=[False, True])
    for rank, cause in culprits[["rank", "cause"]].head(_CULPRITS).itertuples(index=False):
        found[int(rank)] = ("culprit", cause)
    known = ranks["cost_ns"].notna().any()
    column, whole = ("cost_ns", ranks["cost_ns"].max()) if known else ("caused_ns", ranks["caused_ns"].sum())
    besides = ranks[ranks[column] > max(0.0, _LEAST * whole)]
    for rank in besides.sort_values([column, "rank"], ascending=[False, True])["rank"].head(_BESIDES):
        found.setdefault(int(rank), ("costs" if known else "causes", ""))
    if len(ranks) and ranks["waiting_ns"].max() > _STANDS_OUT * ranks["waiting_ns"].median():
        longest = int(ranks["waiting_ns"].to_numpy().argmax())
        found.setdefault(int(ranks["rank"].iloc[longest]), ("waits", ""))
    others = ranks[~ranks["rank"].isin(found)]
    if len(others) > 1:
        found.setdefault(_most_usual(others), ("usual", ""))
    return [
        {"rank": rank, "why": why, "cause": cause, "evidence": _evidence(trace, scope, rank)}
        for rank, (why, cause) in found.items()
    ]


def _most_usual(ranks: pd.DataFrame) -> int:
    """The rank whose time is split most like the median's."""
    parts = ranks[list(PARTS)].to_numpy(np.float64)
    apart = np.abs(parts - np.median(parts, axis=0)).sum(axis=1)
    return int(ranks["rank"].iloc[int(apart.argmin())])


def _evidence(trace: Trace, scope: Scope, rank: int) -> dict[str, Any] | None:
    met = longest_wait(trace, rank, scope)
    if met.empty:
        return None
    victim = met[met["waits"]].iloc[0]
    last = met.iloc[0]
    hops = wait_chain(trace, int(victim["rank"]), int(victim["event_id"]))
    passed = {*hops["rank"].tolist(), *hops["awaited"].tolist()}
    return {
        "ranks": sorted({rank, int(last["rank"]), int(victim["rank"]), *passed}),
        "names": [],
        "focus": [int(last["rank"]), int(last["event_id"])],
        "window": [
            min(int(victim["start_ns"]), *hops["start_ns"].tolist()),
            max(int(victim["end_ns"]), int(last["end_ns"]), *hops["end_ns"].tolist()),
        ],
    }
