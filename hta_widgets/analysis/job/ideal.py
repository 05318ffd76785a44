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

    Computation and copies: an even split. All that the ranks spend on a name, by the ranks and steps that
    have it, shared equally among its operations there; where all have equally many, that is the mean.
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
    by_name = [other["kind"], other["name"]]
    per_step = pd.DataFrame({"time": time[~communicates], "count": 1}).groupby(
        [*by_name, other["rank"], other["step"]]
    )
    whole = per_step["time"].sum().groupby(level=["kind", "name"]).mean()
    share = pd.Series(whole.loc[pd.MultiIndex.from_arrays(by_name)].to_numpy(), other.index)
    found = time.astype(np.float64)
    found[~communicates] = share / per_step["count"].transform("size")
    place = _place(ops[communicates])
    usual = time[communicates].groupby(place).transform("median")
    if complete is not None:
        told = time[communicates].where(complete[communicates.to_numpy()])
        usual = told.groupby(place).transform("median").fillna(usual).clip(upper=usual)
    found[communicates] = usual
    return np.rint(found.to_numpy()).astype(np.int64)


def _place(of: pd.DataFrame) -> pd.Series:
    """A number for communication that should take the same time."""
    group = ["process_group", "group_ranks"]
    nth = of.groupby([*group, "rank", "step", "collective"], dropna=False).cumcount()
    pairwise = of["kind"] != "collective"
    place = nth.where(~pairwise, of["lane"])
    size = of["group_size"].where(~pairwise, 2)
    keys = pd.DataFrame({"collective": of["collective"], "size": size, "place": place})
    return keys.groupby(["collective", "size", "place"], dropna=False).ngroup()
