"""What each operation would take if no rank were slow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.medians import medians
from hta_widgets.analysis.core.sums import exact_sums
from hta_widgets.arrays import Bool, Float64, Int64
from hta_widgets.trace.ordering import differing, distinct, nth_of_each, numbered

COMMUNICATION = ("collective", "send", "recv")

_ALIKE: Final = 1.4
_TOLD_BY_PLACE: Final = 9.0
"""How much more of the variance lies between places in the step than within them, where these tell times."""


def ideal_times(
    ops: pd.DataFrame,
    taken: Int64,
    alike: Mapping[int, int],
    complete: Bool | None = None,
) -> Int64:
    """The ideal time of each operation, ns.

    Computation and copies: an even split. All that is spent on a name is shared equally among ranks and
    steps, and there among its operations; where all have equally many, that is the mean. One name may do
    unlike work, forward and backward or two layers: where ranks that do the same, and steps, agree on which
    operations of a name take longer, that of the step is shared in these proportions. Names that some
    ranks do not have at all count as one: what a rank spends on them is scaled to the mean of all ranks.
    Communication: the median of the transfers of the same operation, about as many bytes, size of group and
    place in the step (of sends and receives: on the same lane).

    Source: "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI 2025), whose jobs
    have equally many operations on all ranks.

    Args:
        taken: int64[n] ns, what each operation takes by itself.
        alike: of each rank a number that those share which run the same operations in the same order.
        complete: bool[n], communication from which the medians are taken, where there is any of a kind: what
            ranks take that meet others which were not recorded may be waiting. Default all.
    """
    found = taken.astype(np.float64)
    communicates = ops["kind"].isin(COMMUNICATION).to_numpy(np.bool_)
    found[~communicates] = _even_split(ops[~communicates], taken[~communicates], ops["rank"].nunique(), alike)
    place, time = _place(ops[communicates]), taken[communicates]
    places = int(place.max(initial=-1)) + 1
    usual = medians(place, time, places)[place]
    if complete is not None:
        known = complete[communicates]
        usual = np.fmin(usual, medians(place[known], time[known], places)[place])  # NaN where none is known
    found[communicates] = usual
    return np.rint(found).astype(np.int64)


def _even_split(of: pd.DataFrame, time: Int64, ranks: int, alike: Mapping[int, int]) -> Float64:
    """Computation and copies as `ideal_times` says."""
    kind, name = (pd.factorize(of[column])[0] for column in ("kind", "name"))
    rank, step = (distinct(of[column].to_numpy(np.int64))[1] for column in ("rank", "step"))
    own_name = numbered(kind, name)
    everywhere = (differing(own_name, rank) == ranks)[own_name]
    name = numbered(kind, np.where(everywhere, name, -1))
    here = numbered(name, rank, step)
    places = differing(name, step) * ranks
    share = (exact_sums(name, time, len(places)) / places)[name]
    size = np.bincount(here)
    own = exact_sums(here, time, len(size))
    kin = numbered(name, of["rank"].map(alike).to_numpy(np.int64), size[here])
    even = share / size[here] * _proportions(time, here, own / size, kin)
    return np.where(everywhere, even, time * share / np.where(own > 0, own, 1)[here])


def _proportions(time: Int64, here: Int64, mean: Float64, kin: Int64) -> Float64:
    """What each operation usually takes, of the mean of its name in the step; 1 where places tell nothing.

    Args:
        here: the name, rank and step of each operation. mean: of the time, of each of these.
        kin: the name of each operation, the ranks that do the same, and how often they do it in the step.
    """
    relative = pd.Series(np.where(mean[here] > 0, time / np.where(mean > 0, mean, 1)[here], 1.0))
    at = numbered(kin, nth_of_each(here))
    usual = relative.groupby(at).transform("mean")
    within = ((relative - usual) ** 2).groupby(kin).transform("sum")
    between = ((usual - 1) ** 2).groupby(kin).transform("sum")
    seen = np.bincount(at)[at] > 1
    return usual.where(seen & (between > _TOLD_BY_PLACE * within), 1.0).to_numpy()


def _place(of: pd.DataFrame) -> Int64:
    """A number for communication that should take the same time."""
    group, members, operation = (
        pd.factorize(of[name])[0] for name in ("process_group", "group_ranks", "collective")
    )
    rank, step, lane = (distinct(of[name].to_numpy(np.int64))[1] for name in ("rank", "step", "lane"))
    pairwise = (of["kind"] != "collective").to_numpy(np.bool_)
    nth = nth_of_each(numbered(group, members, rank, step, operation))
    size = np.where(pairwise, 2, of["group_size"].to_numpy(np.int64, na_value=-1))
    place = numbered(operation, distinct(size)[1], np.where(pairwise, lane, nth))
    return numbered(place, _about_as_many(place, of["bytes"].to_numpy(np.float64, na_value=0.0)))


def _about_as_many(place: Int64, sent: Float64) -> Int64:
    """A number for those of a place that send about as many bytes: sizes without a gap of `_ALIKE` times."""
    order = np.lexsort((sent, place))
    before, after = sent[order[:-1]], sent[order[1:]]
    apart = (np.diff(place[order]) != 0) | (after > _ALIKE * np.maximum(before, 1.0))
    found = np.zeros(len(place), np.int64)
    found[order[1:]] = np.cumsum(apart)
    return found
