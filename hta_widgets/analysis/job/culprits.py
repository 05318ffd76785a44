"""Which ranks or stage cost the job its time: found by repairing them in the replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from hta_widgets.analysis.job.ideal import COMMUNICATION
from hta_widgets.analysis.job.model import HOST, JobModel
from hta_widgets.arrays import Int64

LEAST = 1.02
"""Below this slowdown nobody is a straggler."""
_HALF = 0.5
_AS_SLOW = 0.9
# Transfers of a group this many times as long as those of others are slow.
_LONGER = 1.5


@dataclass(frozen=True)
class Culprit:
    """Who is late."""

    # "none" (the job is not slow), "ranks", "place" (all ranks of one, such as a stage), "communication",
    # "missing" (a rank that was not recorded), "nobody" (too many ranks in turn) or "unknown" (communication
    # with ranks or partners that were not recorded may hide who it is)
    kind: str
    # whose repair wins half of the loss; of "communication" those of slow groups, if they are half of all
    # ranks at most; empty for other kinds
    ranks: tuple[int, ...] = ()
    won: float = 0.0  # what repairing them wins, a share of the loss
    # for "nobody": what varies from one microbatch to the next rather than between ranks, if anything does
    varies: Literal["work", "hosts", ""] = ""
    doubtful: bool = False  # for "unknown": communication with what was not recorded may hide who it is
    # for "place": which it is, such as "stage" 2
    scope: str = ""
    key: int = 0


def culprit(model: JobModel) -> Culprit:
    """Decide who is late.

    The ranks that slow the job most when all others are ideal are repaired one after the other, until half of
    the loss is won. If those are one rank (of eight or more, two; an eighth of many), they are the culprits.
    If they fill half of a stage, which is a third of all ranks at most, the stage is, or if they are a whole
    stage, half of all ranks at most, that are always slow; likewise the ranks of one tensor or context rank.
    Otherwise no few ranks are, unless one of them was not recorded.
    """
    loss = model.total - model.least
    doubtful = model.in_doubt >= (LEAST - 1) * model.least
    if model.total < LEAST * model.least:
        patient = model.time(np.where(model.incomplete, 0, model.ideal))
        return Culprit("unknown", doubtful=True) if model.total >= LEAST * patient else Culprit("none")
    missing = _missing(model)
    if missing >= _HALF * loss:
        return Culprit("missing", won=missing / loss)
    rank = model.ops["rank"].to_numpy(np.int64)
    communicates = model.ops["kind"].isin(COMMUNICATION).to_numpy()
    links = model.won(communicates) / loss
    if links >= _HALF:
        return Culprit("communication", _slow_links(model), links)
    slow = _slow(model)
    half, won = _half(model, rank, slow, loss)
    place = _place(model, half)
    if place is not None:
        members = model.places.of(*place)
        won = model.won(np.isin(rank, members)) / loss
        return Culprit("place", tuple(members), won, scope=place[0], key=place[1])
    if len(half) <= max(2 if len(slow) >= 8 else 1, len(slow) // 8):
        return Culprit("ranks", tuple(sorted(half)), won)
    if doubtful or model.missing:
        return Culprit("unknown", doubtful=doubtful)
    return Culprit("nobody", varies=_varies(model))


def _place(model: JobModel, half: list[int]) -> tuple[str, int] | None:
    """The stage, or another place in the job, that ranks are of which make half of the loss; None if none."""
    if len(half) < 2:
        return None
    count = len(model.places.alike)
    for scope in model.places.split:
        for key in {getattr(model.places, scope)[rank] for rank in half} if scope != "replica" else ():
            members = model.places.of(scope, key)
            few, whole = 3 * len(members) <= count, set(half) == set(members)
            fills = set(half) <= set(members) and 2 * len(half) >= len(members)
            if fills and (few or (whole and 2 * len(members) <= count and not _varies(model))):
                return scope, key
    return None


def _slow(model: JobModel) -> dict[int, float]:
    """How slow the job is if all ranks but one are ideal; without waits for ranks that were not recorded.

    Nobody is to blame for those but the ranks that are missing.
    """
    code, ranks = pd.factorize(model.ops["rank"])
    own = np.where(model.incomplete, model.ideal, model.taken)
    times = model.net.with_other(model.ideal, own, code, np.arange(len(ranks))).mean(axis=1) / model.least
    return dict(zip(ranks.tolist(), times.tolist(), strict=True))


def _half(model: JobModel, rank: Int64, slow: dict[int, float], loss: float) -> tuple[list[int], float]:
    """The fewest ranks, the slowest first, whose repair wins half of the loss, and what it wins.

    A rank that is as slow as the last one of these is one of them.
    """
    worst = sorted(slow, key=lambda r: (-slow[r], r))
    won = 0.0
    for count in range(1, len(worst) + 1):
        won = model.won(np.isin(rank, worst[:count])) / loss
        as_slow = count < len(worst) and slow[worst[count]] - 1 >= _AS_SLOW * (slow[worst[count - 1]] - 1)
        if won >= _HALF and not as_slow:
            return worst[:count], won
    return worst, won


def _slow_links(model: JobModel) -> tuple[int, ...]:
    """The ranks of groups whose transfers usually take longer than ideally; none if these are most ranks."""
    ops = model.ops
    of = np.flatnonzero(ops["kind"].isin(COMMUNICATION).to_numpy() & (model.meeting >= 0))
    each = pd.DataFrame({"at": model.meeting[of], "rank": ops["rank"].to_numpy()[of]})
    each["times"] = model.taken[of] / np.maximum(model.ideal[of], 1)
    members = each.groupby("at")["rank"].agg(lambda ranks: ",".join(map(str, sorted(set(ranks)))))
    usual = each.groupby("at")["times"].first().groupby(members).median()
    slow = {int(rank) for group in usual.index[usual > _LONGER] for rank in str(group).split(",")}
    return tuple(sorted(slow)) if 2 * len(slow) <= ops["rank"].nunique() else ()


def _missing(model: JobModel) -> float:
    """What a step would gain if communication with ranks that were not recorded held no waiting, ns."""
    patient = np.where(model.incomplete, np.minimum(model.ideal, model.taken), model.taken)
    return model.total - model.time(patient)


def _varies(model: JobModel) -> Literal["work", "hosts", ""]:
    """What varies on each rank and costs more than that ranks differ: work, or hosts that are late; or ""."""
    ops, taken = model.ops, pd.Series(model.taken)
    of_name = [ops["kind"], ops["name"]]
    own = taken.groupby([*of_name, ops["rank"]]).transform("mean")
    all_ranks = taken.groupby(of_name).transform("mean")
    communicates = ops["kind"].isin(COMMUNICATION)
    even = own.where(~communicates, taken)
    level = (taken * all_ranks / own.where(own > 0, 1.0)).where(~communicates, taken)

    def time(of: pd.Series) -> float:
        return model.time(np.rint(of.to_numpy()).astype(np.int64))

    if time(even) >= time(level):
        return ""
    of_hosts = ops["kind"].eq(HOST)
    return "hosts" if time(even.where(of_hosts, taken)) < time(even.where(~of_hosts, taken)) else "work"
