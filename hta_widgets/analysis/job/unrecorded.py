"""What ranks that were not recorded leave open: how long others ideally wait for them, and what they do."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.job.ideal import COMMUNICATION
from hta_widgets.analysis.job.network import Network
from hta_widgets.arrays import Bool, Float64, Int64


def incomplete(ops: pd.DataFrame, meeting: Int64) -> Bool:
    """Communication with ranks that were not recorded."""
    size = pd.Series(meeting).groupby(meeting).transform("size").where(meeting >= 0, 1)
    expected = ops["group_size"].where(ops["kind"] == "collective", 2).astype(np.float64)
    communicates = ops["kind"].isin(COMMUNICATION).to_numpy()
    return communicates & (size.to_numpy() < expected.fillna(0).to_numpy())


def as_peers_wait(
    ops: pd.DataFrame, stage: dict[int, int], partial: Bool, net: Network, ideal: Int64
) -> tuple[Int64, Bool]:
    """Sends to and receives from ranks that were not recorded, as long as those of peers ideally are.

    A rank of a pipeline waits for its neighbour even if nobody is slow. Where the neighbour is missing, that
    is told by the ranks of its stage in other replicas: by what the same send or receive takes there from
    when it could begin, in the replay of the ideal times; the median.

    Args:
        ops: operations, and behind them other nodes of the network may follow.
        partial: bool[n], of the operations: communication with ranks that were not recorded.
        ideal: int64 ns, ideal times without such waits.

    Returns:
        The ideal times with them, and which operations have no peer to tell, bool[n].
    """
    alone = partial & ops["kind"].isin(("send", "recv")).to_numpy()
    if not alone.any():
        return ideal, alone
    ends = net.ends(ideal)
    lasts = pd.Series((ends - net.ready(ends))[: len(ops)], ops.index, dtype=np.float64)
    place = [ops["rank"].map(stage), ops["lane"], ops["nth"]]
    usual = lasts.where(~alone).groupby(place).transform("median").to_numpy()
    estimated = alone & np.isfinite(usual)
    found = ideal.copy()
    found[: len(ops)][estimated] = np.rint(usual[estimated]).astype(np.int64)
    return found, alone & ~estimated


def work_of_all(
    ops: pd.DataFrame, taken: Int64, works: Bool, missing: int, late_ns: float
) -> tuple[Float64, Float64]:
    """By how much less and more the mean work of all ranks may be than that of the recorded ones.

    A rank that was not recorded does at least as much under a name as the least of the others, and at most as
    much as the greatest, or as is usual and for as much longer as the others may be waiting for it.

    Args:
        taken: int64[n] ns. works: bool[n], computation and copies. missing: how many ranks were not recorded.
        late_ns: how long a step may wait for them.

    Returns:
        Two factors of each operation's time, float64[n]; 1 for what is no work.
    """
    of = ops[works]
    keys = [of["rank"], of["kind"], of["name"]]
    by_name = pd.Series(taken[works], of.index).groupby(keys).sum()
    spent = by_name.unstack([1, 2], fill_value=0)  # noqa: PD010 - one value each
    ranks, usual = len(spent), spent.mean()
    later = 1 + late_ns * of["step"].nunique() / max(float(usual.sum()), 1.0)
    name = pd.MultiIndex.from_frame(of[["kind", "name"]])
    found = []
    for work in (spent.min(), np.maximum(spent.max(), usual * later)):
        factor = (ranks + missing * work / usual.where(usual > 0, 1)) / (ranks + missing)
        each = np.ones(len(ops))
        each[works] = factor.reindex(name).to_numpy()
        found.append(each)
    return found[0], found[1]
