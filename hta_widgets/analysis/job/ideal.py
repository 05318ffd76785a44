"""What each operation would take if no rank were slow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

__all__ = ["COMMUNICATION", "ideal_times"]

Int64 = npt.NDArray[np.int64]

COMMUNICATION = ("collective", "send", "recv")


def ideal_times(ops: pd.DataFrame, taken: Int64, complete: npt.NDArray[np.bool_] | None = None) -> Int64:
    """The ideal time of each operation, ns.

    Computation and copies: an even split. All that is spent on a name is shared equally among ranks and
    steps, and there among its operations; where all have equally many, that is the mean. Names that some
    ranks do not have at all count as one: what a rank spends on them is scaled to the mean of all ranks.
    Communication: the median of the transfers of the same operation, size of group and place in the step (of
    sends and receives: on the same lane).

    Source: "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI 2025), whose jobs
    have equally many operations on all ranks.

    Args:
        taken: int64[n] ns, what each operation takes by itself.
        complete: bool[n], communication from which the medians are taken, where there is any of a kind: what
            ranks take that meet others which were not recorded may be waiting. Default all.
    """
    time = pd.Series(taken, ops.index)
    communicates = ops["kind"].isin(COMMUNICATION)
    other = ops[~communicates]
    found = time.astype(np.float64)
    found[~communicates] = _even_split(other, time[~communicates], ops["rank"].nunique())
    place = _place(ops[communicates])
    usual = time[communicates].groupby(place).transform("median")
    if complete is not None:
        told = time[communicates].where(complete[communicates.to_numpy()])
        usual = told.groupby(place).transform("median").fillna(usual).clip(upper=usual)
    found[communicates] = usual
    return np.rint(found.to_numpy()).astype(np.int64)


def _even_split(of: pd.DataFrame, time: pd.Series, ranks: int) -> pd.Series:
    """Computation and copies as `ideal_times` says."""
    everywhere = of.groupby(["kind", "name"])["rank"].transform("nunique") == ranks
    name = [of["kind"], of["name"].where(everywhere, "")]
    here = [*name, of["rank"], of["step"]]
    places = of["step"].groupby(name).transform("nunique") * ranks
    share = time.groupby(name).transform("sum") / places
    own = time.groupby(here).transform("sum")
    alike = share / time.groupby(here).transform("size")
    return alike.where(everywhere, time * share / own.where(own > 0, 1))


def _place(of: pd.DataFrame) -> pd.Series:
    """A number for communication that should take the same time."""
    group = ["process_group", "group_ranks"]
    nth = of.groupby([*group, "rank", "step", "collective"], dropna=False).cumcount()
    pairwise = of["kind"] != "collective"
    place = nth.where(~pairwise, of["lane"])
    size = of["group_size"].where(~pairwise, 2)
    keys = pd.DataFrame({"collective": of["collective"], "size": size, "place": place})
    return keys.groupby(["collective", "size", "place"], dropna=False).ngroup()
