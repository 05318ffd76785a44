"""Why some ranks are slow: their kernels, their work, their host, their copies or their links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.job.ideal import COMMUNICATION
from hta_widgets.analysis.job.model import HOST, JobModel

__all__ = ["COPIES", "LATE_HOST", "MORE_WORK", "SLOWER_KERNELS", "SLOW_LINK", "UNKNOWN", "Cause", "cause_of"]

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

SLOWER_KERNELS = "same kernels slower"
MORE_WORK = "more work"
LATE_HOST = "host late"
COPIES = "copies"
SLOW_LINK = "slow link"
UNKNOWN = "unknown"

_MOST = 0.5
# Ranks of a stage that differ this little from each other, compared with their distance from the others, have
# the same reason: their work. Devices are not slow alike by chance.
_ALIKE = 0.25


@dataclass(frozen=True)
class Cause:
    """Why ranks are slow, and what shows it."""

    cause: str
    evidence: str


def cause_of(model: JobModel, ranks: tuple[int, ...], whole_stage: bool = False) -> Cause:
    """The cause of what ranks cost: of their parts the one whose repair wins most, if that is half of it.

    Parts: computation whose operations take longer than the same ones of other ranks; operations that others
    have fewer of, or with another launch grid; waits for the host; copies; transfers.

    Args:
        ranks: the slow ranks; the others of their stage are their peers, without any all others.
        whole_stage: the ranks are a whole stage.
    """
    ops = model.ops
    mine = ops["rank"].isin(ranks).to_numpy()
    stages = {model.places.stage[rank] for rank in ranks}
    of_stage = ops["rank"].map(model.places.stage).isin(stages).to_numpy()
    peers = of_stage & ~mine if (of_stage & ~mine).any() else ~mine
    kind = ops["kind"]
    compute = mine & kind.eq("compute").to_numpy()
    slower, more, ratio, count = _compared(ops, pd.Series(model.taken), compute, peers)
    ideal = np.where(model.ideal < model.taken, model.ideal, model.taken)
    repaired = {
        SLOWER_KERNELS: np.where(compute, slower, model.taken),
        MORE_WORK: np.where(compute, more, model.taken),
        LATE_HOST: np.where(mine & kind.eq(HOST).to_numpy(), ideal, model.taken),
        COPIES: np.where(mine & kind.eq("copy").to_numpy(), ideal, model.taken),
        SLOW_LINK: np.where(mine & kind.isin(COMMUNICATION).to_numpy(), ideal, model.taken),
    }
    won = {part: model.total - model.time(taken) for part, taken in repaired.items()}
    whole = model.won(mine)
    best = max(won, key=lambda part: won[part])
    if whole <= 0 or won[best] < _MOST * whole:
        return Cause(UNKNOWN, "no part of what these ranks do explains half of what they cost")
    share = f"({min(100 * won[best] / whole, 100):.0f} % of what they cost)"
    if best == SLOWER_KERNELS and whole_stage and len(ranks) > 1 and _alike(ops, model.taken, compute):
        text = f"all {len(ranks)} ranks of the stage alike take {ratio:.2f} times as long: uneven stages"
        return Cause(MORE_WORK, f"{text} {share}")
    words = {
        SLOWER_KERNELS: f"the same operations take {ratio:.2f} times as long as on other ranks",
        MORE_WORK: f"{count:.2f} times as many operations as on other ranks, or larger ones",
        LATE_HOST: "the device had ended all before the host called the next work",
        COPIES: "copies take longer than on other ranks",
        SLOW_LINK: "transfers take longer than the same ones of other ranks",
    }
    return Cause(best, f"{words[best]} {share}")


def _compared(
    ops: pd.DataFrame, taken: pd.Series, mine: Bool, peers: Bool
) -> tuple[Int64, Int64, float, float]:
    """Computation as fast per operation as that of peers, and as much of it; and how far both are from it.

    An operation of a launch grid that no peer has under that name counts as more work, not as a slower one.
    """
    peers = peers & ops["kind"].eq("compute").to_numpy()
    per_step = ops["rank"].astype(str) + "/" + ops["step"].astype(str)
    shape = ops["name"] + "/" + ops["shape"].astype(str)
    other = (
        mine
        & ~shape.isin(set(shape[peers])).to_numpy()
        & ops["name"].isin(set(ops["name"][peers])).to_numpy()
    )

    def means(rows: Bool) -> tuple[pd.Series, pd.Series]:
        by = ops["name"][rows]
        return taken[rows].groupby(by).mean(), by.groupby(by).size() / per_step[rows].nunique()

    own_mean, own_count = means(mine & ~other)
    peer_mean, peer_count = means(peers)
    name = ops["name"]
    slow = (name.map(peer_mean) / name.map(own_mean)).clip(upper=1.0).fillna(1.0).where(~other, 1.0)
    all_count = means(mine)[1]
    fewer = (name.map(peer_count).fillna(0.0) / name.map(all_count)).clip(upper=1.0).fillna(1.0)
    lean = (taken * fewer).where(~other, taken.where(taken < name.map(peer_mean), name.map(peer_mean)))
    same = own_mean.index.intersection(peer_mean.index)
    weight = own_count[same]
    ratio = (own_mean[same] * weight).sum() / max((peer_mean[same] * weight).sum(), 1.0)
    count = all_count.sum() / max(peer_count.sum(), 1e-9)
    as_fast, as_much = (np.rint(of.to_numpy()).astype(np.int64) for of in (taken * slow, lean))
    return as_fast, as_much, float(ratio), float(count)


def _alike(ops: pd.DataFrame, taken: Int64, compute: Bool) -> bool:
    """Do the ranks spend nearly the same time, compared with how much more than the others they spend?"""
    every = ops["kind"].eq("compute").to_numpy()
    whole = pd.Series(taken)[every].groupby(ops["rank"][every]).sum()
    mine = whole[sorted(ops["rank"][compute].unique())]
    return bool(mine.max() - mine.min() <= _ALIKE * (mine.mean() - whole.drop(mine.index).mean()))
