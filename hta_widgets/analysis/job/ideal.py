"""What each operation would take if no rank were slow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.arrays import Int64

COMMUNICATION = ("collective", "send", "recv")

_TOLD_BY_PLACE: Final = 9.0
"""How much more of the variance lies between places in the step than within them, where these tell times."""


def ideal_times(
    ops: pd.DataFrame,
    taken: Int64,
    alike: Mapping[int, int],
    complete: npt.NDArray[np.bool_] | None = None,
) -> Int64:
    """The ideal time of each operation, ns.

    Computation and copies: an even split. All that is spent on a name is shared equally among ranks and
    steps, and there among its operations; where all have equally many, that is the mean. One name may do
    unlike work, forward and backward or two layers: where ranks that do the same, and steps, agree on which
    operations of a name take longer, that of the step is shared in these proportions. Names that some
    ranks do not have at all count as one: what a rank spends on them is scaled to the mean of all ranks.
    Communication: the median of the transfers of the same operation, size of group and place in the step (of
    sends and receives: on the same lane).

    Source: "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI 2025), whose jobs
    have equally many operations on all ranks.

    Args:
        taken: int64[n] ns, what each operation takes by itself.
        alike: of each rank a number that those share which run the same operations in the same order.
        complete: bool[n], communication from which the medians are taken, where there is any of a kind: what
            ranks take that meet others which were not recorded may be waiting. Default all.
    """
    time = pd.Series(taken, ops.index)
    communicates = ops["kind"].isin(COMMUNICATION)
    other = ops[~communicates]
    found = time.astype(np.float64)
    found[~communicates] = _even_split(other, time[~communicates], ops["rank"].nunique(), alike)
    place = _place(ops[communicates])
    usual = time[communicates].groupby(place).transform("median")
    if complete is not None:
        known = time[communicates].where(complete[communicates.to_numpy()])
        usual = known.groupby(place).transform("median").fillna(usual).clip(upper=usual)
    found[communicates] = usual
    return np.rint(found.to_numpy()).astype(np.int64)


def _even_split(of: pd.DataFrame, time: pd.Series, ranks: int, alike: Mapping[int, int]) -> pd.Series:
    """Computation and copies as `ideal_times` says."""
    everywhere = of.groupby(["kind", "name"])["rank"].transform("nunique") == ranks
    name = [of["kind"], of["name"].where(everywhere, "")]
    here = [*name, of["rank"], of["step"]]
    places = of["step"].groupby(name).transform("nunique") * ranks
    share = time.groupby(name).transform("sum") / places
    own = time.groupby(here).transform("sum")
    each = share / time.groupby(here).transform("size")
    return (each * _proportions(of, time, alike)).where(everywhere, time * share / own.where(own > 0, 1))


def _proportions(of: pd.DataFrame, time: pd.Series, alike: Mapping[int, int]) -> pd.Series:
    """What each operation usually takes, of the mean of its name in the step; 1 where places tell nothing."""
    name = of.groupby(["kind", "name"]).ngroup()
    here = of["step"].groupby([name, of["rank"], of["step"]])
    mean = time.groupby(here.ngroup()).transform("mean")
    relative = (time / mean.where(mean > 0, 1)).where(mean > 0, 1.0)
    kin = [name, of["rank"].map(alike), here.transform("size")]
    group = relative.groupby(kin).ngroup()
    at = relative.groupby([group, here.cumcount()]).ngroup()
    usual = relative.groupby(at).transform("mean")
    within = ((relative - usual) ** 2).groupby(group).transform("sum")
    between = ((usual - 1) ** 2).groupby(group).transform("sum")
    seen = relative.groupby(at).transform("size") > 1
    return usual.where(seen & (between > _TOLD_BY_PLACE * within), 1.0)


def _place(of: pd.DataFrame) -> pd.Series:
    """A number for communication that should take the same time."""
    group = ["process_group", "group_ranks"]
    nth = of.groupby([*group, "rank", "step", "collective"], dropna=False).cumcount()
    pairwise = of["kind"] != "collective"
    place = nth.where(~pairwise, of["lane"])
    size = of["group_size"].where(~pairwise, 2)
    keys = pd.DataFrame({"collective": of["collective"], "size": size, "place": place})
    return keys.groupby(["collective", "size", "place"], dropna=False).ngroup()
