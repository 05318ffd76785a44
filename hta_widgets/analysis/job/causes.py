"""Why some ranks are slow: their kernels, their work, their host, their copies or their links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from hta_widgets.analysis.job.ideal import COMMUNICATION
from hta_widgets.analysis.job.model import HOST, JobModel
from hta_widgets.arrays import Bool, Float64, Int64

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


def cause_of(model: JobModel, ranks: tuple[int, ...], of_place: str = "") -> Cause:
    """The cause of what ranks cost: of their parts the one whose repair wins most, if that is half of it.

    Parts: computation whose operations take longer than the same ones of other ranks; operations that others
    have fewer of, or with another launch grid; waits for the host; copies; transfers.

    Args:
        ranks: the slow ranks; the others of their stage are their peers, without any all others.
        of_place: what all the ranks of are, a stage or another place in the job; "" if they are not.
    """
    ops = model.ops
    mine = ops["rank"].isin(ranks).to_numpy()
    of = {model.places.peers[rank] for rank in ranks}
    peers = ops["rank"].map(model.places.peers).isin(of).to_numpy() & ~mine
    peers = peers if peers.any() else ~mine
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
    share = f"({min(100 * won[best] / whole, 100):.0f} % of the cost)"
    if best == SLOWER_KERNELS and of_place and len(ranks) > 1 and _alike(ops, model.taken, compute):
        text = f"all {len(ranks)} ranks of the {of_place} take {ratio:.2f} times as long"
        text += f": uneven {'stages' if of_place == 'stage' else 'parts'}"
        return Cause(MORE_WORK, f"{text} {share}")
    larger = f"{count:.2f} times as many, or " if round(count, 2) > 1 else ""
    words = {
        SLOWER_KERNELS: f"the same operations take {ratio:.2f} times as long as on other ranks",
        MORE_WORK: f"operations are {larger}larger than on other ranks, or run by other kernels",
        LATE_HOST: "the device runs out of work before the host launches more",
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
    own = taken.to_numpy(np.float64)
    name, names = pd.factorize(ops["name"])
    shape, shapes = pd.factorize(name * (int(ops["shape"].max()) + 2) + ops["shape"].to_numpy() + 1)
    place, places = pd.factorize(ops["rank"] * (int(ops["step"].max()) + 1) + ops["step"])
    other = mine & ~_held(shape, peers, len(shapes))[shape] & _held(name, peers, len(names))[name]

    def means(rows: Bool) -> tuple[Float64, Float64]:
        """Of each name the mean time, and how many there are in a step; NaN where there is none."""
        count = np.bincount(name[rows], minlength=len(names)).astype(np.float64)
        count[count == 0] = np.nan
        spent = np.bincount(name[rows], own[rows], minlength=len(names))
        return spent / count, count / max(_held(place, rows, len(places)).sum(), 1)

    own_mean, own_count = means(mine & ~other)
    peer_mean, peer_count = means(peers)
    all_count = means(mine)[1]
    faster = np.divide(peer_mean, own_mean, out=np.ones(len(names)), where=own_mean > 0)
    slow = np.where(other, 1.0, np.nan_to_num(np.minimum(faster, 1.0), nan=1.0)[name])
    fewer = np.nan_to_num(np.minimum(np.nan_to_num(peer_count) / all_count, 1.0), nan=1.0)[name]
    lean = np.where(other, np.where(own < peer_mean[name], own, peer_mean[name]), own * fewer)
    same = np.isfinite(own_mean) & np.isfinite(peer_mean)
    weight = own_count[same]
    ratio = (own_mean[same] * weight).sum() / max((peer_mean[same] * weight).sum(), 1.0)
    count = np.nansum(all_count) / max(np.nansum(peer_count), 1e-9)
    as_fast, as_much = (np.rint(of).astype(np.int64) for of in (own * slow, lean))
    return as_fast, as_much, float(ratio), float(count)


def _held(code: Int64, rows: Bool, size: int) -> Bool:
    """Which codes occur among these rows."""
    found = np.zeros(size, np.bool_)
    found[code[rows]] = True
    return found


def _alike(ops: pd.DataFrame, taken: Int64, compute: Bool) -> bool:
    """Do the ranks spend nearly the same time, compared with how much more than the others they spend?"""
    every = ops["kind"].eq("compute").to_numpy()
    whole = pd.Series(taken)[every].groupby(ops["rank"][every]).sum()
    mine = whole[sorted(ops["rank"][compute].unique())]
    return bool(mine.max() - mine.min() <= _ALIKE * (mine.mean() - whole.drop(mine.index).mean()))
