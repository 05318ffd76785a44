"""The ranks of a job side by side: where each stands, what it does, waits for, and costs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.culprits import NOBODY
from hta_widgets.analysis.communication.rank_waits import rank_waits
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.job.meetings import matched, paired
from hta_widgets.analysis.job.operations import operations
from hta_widgets.analysis.job.parts import PARTS, job_iterations
from hta_widgets.analysis.job.roles import Places, places
from hta_widgets.analysis.job.slowdown import slowdown
from hta_widgets.analysis.job.trusted import trusted_model
from hta_widgets.analysis.parallelism.coordinates import SCOPES, coordinates
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope


def job_ranks(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """What does each rank of a job do, whom does it hold up, and what does it cost?

    Args:
        trace: the job.
        scope: iterations to look at; default all. Its ranks are those that are compared with each other, by
            default all. Its window, streams and names change nothing: a step is replayed as a whole.

    Returns:
        One row per rank with device work, ascending. Columns: rank (int64); stage, replica, tensor, context
        (Int64, its place along each, as in `slowdown`; NA where the job is not split so, or each rank has a
        place of its own, as replicas without a pipeline are); node (Int64, counted from 0, where
        the ranks' device numbers ascend from 0 again and again, as on hosts with equally many devices; else
        NA); iterations (int64, how many); window_ns, and its parts compute_ns, waiting_ns, transferring_ns,
        copying_ns, idle_ns (int64 ns, sums over the iterations of `job_iterations`); caused_ns (int64 ns,
        waiting of others that this rank causes, by `rank_waits`); cost_ns (Int64 ns per step), culprit
        (bool), cause (str): those of `slowdown`, NA, False and "" where that cannot answer.

    Raises:
        MissingDataError: fewer than two ranks, no communication, or none of it is matched across ranks.
    """
    scope = scope or Scope()
    scope = Scope(ranks=scope.ranks, iterations=scope.iterations)
    try:
        costs = slowdown(trace, scope)
    except MissingDataError:
        costs = None
    parts = rank_parts(trace, scope, job_iterations(trace, scope))
    return rank_costs(trace, scope, parts, costs)


def rank_parts(trace: Trace, scope: Scope, iterations: pd.DataFrame) -> pd.DataFrame:
    """The columns of `job_ranks` that take no replay, of `job_iterations`; of places, nodes only."""
    counted = iterations.assign(iterations=np.int64(1))
    frame = counted.groupby("rank")[["iterations", "window_ns", *PARTS]].sum().reset_index()
    pairs = rank_waits(trace, scope)
    caused = pairs[pairs["awaited"] != NOBODY].groupby("awaited")["wait_ns"].sum()
    frame["caused_ns"] = frame["rank"].map(caused).fillna(0).astype(np.int64)
    absent = pd.Series(pd.NA, frame.index, "Int64")
    for at, column in enumerate(SCOPES, 1):
        frame.insert(at, column, absent)
    frame.insert(len(SCOPES) + 1, "node", nodes(trace, frame["rank"]))
    return frame.assign(cost_ns=absent, culprit=False, cause=pd.Series("", frame.index, "str"))


def rank_costs(trace: Trace, scope: Scope, parts: pd.DataFrame, costs: pd.DataFrame | None) -> pd.DataFrame:
    """`rank_parts` with the places of ranks, and with what `slowdown` says of the ranks, if anything."""
    frame = parts.copy()
    at = _places(trace, scope.ranks, scope.iterations, costs is not None)
    for column in at.shared if at is not None else ():
        frame[column] = frame["rank"].map(getattr(at, column)).astype("Int64")
    if costs is not None:
        of = costs[costs["scope"] == "rank"].copy()
        of.index = of["key"].astype(np.int64)
        frame["cost_ns"] = frame["rank"].map(of["cost_ns"]).astype("Int64")
        frame["culprit"] = frame["rank"].map(of["culprit"]).eq(True)
        frame["cause"] = frame["rank"].map(of["cause"]).fillna("").astype("str")
        named = costs.loc[costs["scope"].isin(SCOPES) & costs["culprit"], ["scope", "key", "cause"]]
        for scope_, key, cause in named.itertuples(index=False):
            members = frame[scope_].eq(int(key)).fillna(False).astype(bool)
            frame.loc[members, "culprit"], frame.loc[members, "cause"] = True, cause
    return frame


@memoize_per_rank(last=2)
def _places(
    trace: Trace, ranks: tuple[int, ...] | None, iterations: tuple[int, ...] | None, modelled: bool
) -> Places | None:
    """The places of ranks: of the model, else found without one; None where ranks have no common step."""
    if modelled:
        return trusted_model(trace, ranks, iterations).places
    try:
        ops = operations(trace, ranks, iterations)
    except MissingDataError:
        return None
    return places(ops, matched(ops), paired(ops)[0], coordinates(trace, ranks))


def nodes(trace: Trace, ranks: pd.Series) -> pd.Series:
    """The node of each rank by its device's number, if these ascend from 0 again and again; else NA."""
    devices = np.array([_device(trace, rank) for rank in ranks.tolist()], np.int64)
    begins = np.flatnonzero(devices == 0)
    size = int(begins[1]) if len(begins) > 1 else len(devices)
    if size < 2 or len(begins) < 2 or not np.array_equal(devices, np.arange(len(devices)) % size):
        return pd.Series(pd.NA, ranks.index, "Int64")
    return pd.Series(np.arange(len(devices)) // size, ranks.index).astype("Int64")


def _device(trace: Trace, rank: int) -> int:
    """The one device that a rank works on; -1 if there are several."""
    rank_trace = trace.rank(rank)
    used = np.unique(rank_trace.device[rank_trace.is_device])
    return int(used[0]) if len(used) == 1 else -1
