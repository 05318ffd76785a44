"""The ranks that the others wait for at collectives."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.arrivals import arrivals
from hta_widgets.analysis.communication.collectives import shared_collectives
from hta_widgets.analysis.communication.culprits import NOBODY
from hta_widgets.analysis.communication.standing_out import standing_out
from hta_widgets.analysis.communication.waits import arrived, waits
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.sums import exact_sums
from hta_widgets.arrays import Bool, Int64
from hta_widgets.charts.spec import Heat
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import counted, duration, none_of, percent, ranks_in_words
from hta_widgets.trace.model import Trace
from hta_widgets.trace.ordering import distinct, first_of_each, nth_of_each, paired
from hta_widgets.trace.scope import Scope

_LAST = np.iinfo(np.int64).max
_SUMS = ("waited_ns", "caused_wait_ns", "lateness_ns")


@kept()
def stragglers(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """Which ranks do the others wait for at the collectives, sends and receives, and how long?

    A collective in which every rank needs data of every other cannot end before the last
    rank has arrived, and then ends on all of them at once; so each kernel's duration is the time from its
    rank's arrival to the common end, and the kernel with the shortest duration belongs to the last to arrive.
    With d the durations of one collective and last the rank of the smallest:

    waited(rank) = d(rank) - min d; lateness(rank) = max d - d(rank);
    caused_wait(last) = sum of waited over the ranks, caused_wait(others) = 0.

    A collective counts only if max d - min d exceeds both 10 us and 1 % of min d: below that, ranks leave at
    slightly different moments, and the shortest kernel is chance. Broadcast, reduce, gather and scatter
    may end on one rank long before another: they count where they end on all together, by clocks that the
    others set. A send and its receive are an exchange of two ranks,
    if it is recorded who sends to whom. Kernels named only SendRecv are taken for all-to-all. If only some
    ranks of a group were recorded, all of this holds among those. `collectives` decides which kernels are one
    collective. A collective belongs to the scope and iteration of the kernel of its lowest rank.

    Who arrives last may itself have waited for another rank. `waits` follows that to the rank that causes
    the waiting: moment by moment, the one at the end of the chain, which computes, copies, transfers or
    idles. Where the chain leads to ranks or partners that were not recorded, or the ranks do not leave an
    exchange together, the cause of the waiting is not known.

    Source: the reasoning of HTA's `find_stragglers_with_late_start_comm_kernels`, that ranks leave a
    collective at about the same time, applied to durations instead of start times of different clocks.

    Args:
        trace: the job.
        scope: ranks, iterations, window, streams, names to look at; default everything.

    Returns:
        One row per rank and iteration, by iteration (NA last), rank. Columns: rank int64, iteration Int64,
        collectives int64 (matched, of the kinds that count), counted int64 (those above the noise), last
        int64 (times this rank arrived last), waited_ns, caused_wait_ns, lateness_ns int64 (sums over counted
        collectives; in each iteration caused_wait_ns and waited_ns have the same sum), start_offset_ns Int64
        (sum of own start - first start, comparable with lateness_ns; NA where ranks have no common clock),
        caused_pct float64 (% of all waiting of the iteration; NaN without any), position int64 (1 = the worst
        of the iteration: most waiting caused, then latest, then lowest rank), blamed_ns int64 (waiting of
        others that this rank causes), unfollowed_ns int64 (waiting of this rank whose cause is not known; in
        each iteration blamed_ns and unfollowed_ns add up to waited_ns).

    Raises:
        MissingDataError: fewer than two ranks, no communication, or none of it is matched across ranks.
    """
    scope = scope or Scope()
    require_exchanges(trace, scope)
    frame = _by_rank(arrived(trace, scope), trace.clock.method != "start")
    parts = waits(trace, scope)
    unknown = (parts["culprit"] == NOBODY).to_numpy(np.bool_)
    frame["blamed_ns"] = _waited(frame, parts, "culprit", ~unknown)
    frame["unfollowed_ns"] = _waited(frame, parts, "rank", unknown)
    return frame


def _waited(frame: pd.DataFrame, parts: pd.DataFrame, of: str, chosen: Bool) -> Int64:
    """How long is waited in the iteration of each row, in chosen parts whose `of` is its rank, int64 ns."""
    own, theirs = (
        [each[name].to_numpy(np.int64, na_value=_LAST) for name in columns]
        for each, columns in ((frame, ("iteration", "rank")), (parts, ("iteration", of)))
    )
    number = paired(*(np.concatenate(both) for both in zip(own, theirs, strict=True)))
    rows, place = np.unique(number, return_inverse=True)
    sums = exact_sums(place[len(frame) :][chosen], parts["wait_ns"].to_numpy(np.int64)[chosen], len(rows))
    return sums[place[: len(frame)]]


def lateness(frame: pd.DataFrame, common_clock: bool) -> pd.DataFrame:
    """The answer of `stragglers` for a frame like that of `collectives`."""
    return _by_rank(arrivals(frame), common_clock)


def _by_rank(each: pd.DataFrame, common_clock: bool) -> pd.DataFrame:
    """The sums of `stragglers` over some `arrivals`."""
    iteration, rank = (each[name].to_numpy(np.int64, na_value=_LAST) for name in ("iteration", "rank"))
    rows, group = distinct(paired(iteration, rank))
    first = first_of_each(group)
    sums = {
        name: exact_sums(group, each[name].to_numpy(np.int64), len(rows))
        for name in ("counted", "is_last", *_SUMS, "start_offset_ns")
    }
    _, of = distinct(iteration[first])
    caused, late = sums["caused_wait_ns"], sums["lateness_ns"]
    whole = exact_sums(of, caused, len(rows))[of]
    position = np.empty(len(rows), np.int64)
    worst = np.lexsort((-late, -caused, of))
    position[worst] = nth_of_each(of[worst]) + 1
    unknown = np.full(len(rows), not common_clock, np.bool_)
    return pd.DataFrame(
        {
            "rank": rank[first],
            "iteration": each["iteration"].array[first],
            "collectives": np.bincount(group, minlength=len(rows)),
            "counted": sums["counted"],
            "last": sums["is_last"],
            **{name: sums[name] for name in _SUMS},
            "start_offset_ns": pd.arrays.IntegerArray(sums["start_offset_ns"], unknown),
            "caused_pct": 100.0 * caused / np.where(whole > 0, whole, np.nan),
            "position": position,
        }
    )


def sentence(frame: pd.DataFrame) -> str:
    """The answer in words."""
    if frame.empty:
        return "No collective of several ranks lies in the selection."
    total = frame.groupby("rank")[["counted", "last", "waited_ns", "blamed_ns", "unfollowed_ns"]].sum()
    waited = int(total["waited_ns"].sum())
    if not waited:
        return f"None of {counted(len(total), 'rank')} waits noticeably for another at the collectives."
    iterations = frame["iteration"].nunique(dropna=False)
    span = f"{duration(waited)} in {counted(iterations, 'iteration')}"
    if 2 * int(total["unfollowed_ns"].sum()) > waited:
        return f"Ranks wait {span}. For most of it, the rank that causes it is not known."
    culprits = total.loc[standing_out(frame)]
    if culprits.empty:
        return f"Ranks wait {span}. No rank stands out as the cause."
    part = percent(100.0 * int(culprits["blamed_ns"].sum()) / waited)
    if len(culprits) > 1:
        them = ranks_in_words(culprits.index.tolist())
        return f"Ranks wait {span}. The others wait for {them}, which cause {part} of it."
    return (
        f"Ranks wait {span}. For {part} of it, the cause is rank {culprits.index[0]}. It arrives last at "
        f"{culprits['last'].iloc[0]} of its {counted(culprits['counted'].iloc[0], 'uneven exchange')}."
    )


def require_exchanges(trace: Trace, scope: Scope) -> None:
    """Raise a MissingDataError where no exchange of two ranks was recorded."""
    ranks = trace.ranks_of(scope)
    if len(ranks) < 2:
        raise MissingDataError(
            "second rank",
            "Record every rank of the job with its own torch.profiler.profile and open their folder.",
            "waiting shows only between ranks",
        )
    found = shared_collectives(trace, Scope(ranks=scope.ranks))
    if found.empty:
        raise MissingDataError(
            "communication kernels",
            "Record with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) "
            "while the ranks communicate.",
            none_of(ranks),
        )
    if found["match"].isna().all():
        raise MissingDataError(
            "collective that is recorded on two ranks",
            "Record the same steps on every rank; torch.profiler numbers collectives from PyTorch 2.4 on.",
            "the kernels' numbers, order or times do not fit together",
        )


ANALYSIS = Analysis(
    label="Stragglers",
    group="Communication",
    title="Whom the other ranks wait for",
    function=stragglers,
    sentence=sentence,
    chart=Heat("iteration", "rank", "blamed_ns", "communication", measure="Caused wait"),
    requires=("second rank", "communication kernels"),
    ignores=("ranks",),
    asks_little=True,
)
