"""The ranks that the others wait for at collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.collectives import collectives
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.charts.spec import Heat
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import counted, duration, percent
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

__all__ = ["ANALYSIS", "arrivals", "lateness", "sentence", "stragglers"]

NOISE_NS = 10_000
NOISE_PERMILLE = 10

# These may end on one rank long before another: the first to finish says nothing about the last to arrive.
_LOOSE = ("broadcast", "reduce", "gather", "scatter")
_SUMS = ("waited_ns", "caused_wait_ns", "lateness_ns")


def stragglers(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """Which rank arrives last at the collectives, and how long do the others wait for it?

    No clock is needed. A collective in which every rank needs data of every other cannot end before the last
    rank has arrived, and then ends on all of them at once; so each kernel's duration is the time from its
    rank's arrival to the common end, and the kernel with the shortest duration belongs to the last to arrive.
    With d the durations of one collective and last the rank of the smallest:

    waited(rank) = d(rank) - min d; lateness(rank) = max d - d(rank);
    caused_wait(last) = sum of waited over the ranks, caused_wait(others) = 0.

    A collective counts only if max d - min d exceeds both 10 us and 1 % of min d: below that, ranks leave at
    slightly different moments, and the shortest kernel is chance. Broadcast, reduce, gather, scatter, send
    and recv are left out, since they do not end everywhere at once. Kernels named only SendRecv are taken for
    all-to-all. If only some ranks of a group were recorded, all of this holds among those.
    `collectives` decides which kernels are one collective. A collective belongs to the scope and iteration of
    the kernel of its lowest rank.

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
        of the iteration: most waiting caused, then latest, then lowest rank).

    Raises:
        MissingDataError: fewer than two ranks, no communication, or none of it is matched across ranks.
    """
    scope = scope or Scope()
    found = collectives(trace, Scope(ranks=scope.ranks))
    _require(trace.ranks_of(scope), found)
    inside = collectives(trace, scope)[["rank", "event_id"]]
    lowest = found[found["match"].notna()].drop_duplicates("match")
    chosen = lowest.merge(inside, on=["rank", "event_id"])["match"]
    return lateness(found[found["match"].isin(chosen)], trace.clock.method != "start")


def lateness(frame: pd.DataFrame, common_clock: bool) -> pd.DataFrame:
    """The answer of `stragglers` for a frame like that of `collectives`."""
    each = arrivals(frame)
    each["collectives"] = 1
    each["last"] = each["is_last"].astype(np.int64)
    by = each.groupby(["iteration", "rank"], dropna=False)
    sums = by[["collectives", "counted", "last", *_SUMS, "start_offset_ns"]].sum()
    result = sums.astype(np.int64).reset_index()
    result["iteration"] = result["iteration"].astype("Int64")
    result["start_offset_ns"] = result["start_offset_ns"].astype("Int64")
    if not common_clock:
        result["start_offset_ns"] = pd.Series(pd.NA, result.index, "Int64")
    whole = result.groupby("iteration", dropna=False)["caused_wait_ns"].transform("sum")
    result["caused_pct"] = 100.0 * result["caused_wait_ns"] / whole.where(whole > 0)
    worst = result.sort_values(
        ["iteration", "caused_wait_ns", "lateness_ns", "rank"],
        ascending=[True, False, False, True],
        kind="stable",
    )
    result["position"] = worst.groupby("iteration", dropna=False).cumcount().astype(np.int64) + 1
    order = [
        "rank",
        "iteration",
        "collectives",
        "counted",
        "last",
        *_SUMS,
        "start_offset_ns",
        "caused_pct",
        "position",
    ]
    return result[order]


def arrivals(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per matched kernel that counts: its part in its collective, as `stragglers` defines.

    Returns:
        rank, iteration (the collective's), match, start_ns, dur_ns, counted (int64 0 or 1), is_last (bool),
        waited_ns, caused_wait_ns, lateness_ns, start_offset_ns (int64, 0 where not counted).
    """
    each = frame.loc[
        frame["match"].notna() & ~frame["collective"].isin(_LOOSE),
        ["rank", "iteration", "match", "start_ns", "dur_ns"],
    ].sort_values(["match", "rank", "start_ns"], kind="stable", ignore_index=True)
    by = each.groupby("match", sort=False)
    each = each[by["rank"].transform("nunique") > 1].reset_index(drop=True)
    by = each.groupby("match", sort=False)
    shortest, longest = by["dur_ns"].transform("min"), by["dur_ns"].transform("max")
    spread = longest - shortest
    counts = (spread > NOISE_NS) & (spread * 1000 > shortest * NOISE_PERMILLE)
    each["iteration"] = by["iteration"].transform("first")
    each["counted"] = counts.astype(np.int64)
    short = each.assign(short=each["dur_ns"] == shortest)
    # Of equally short ones the lowest rank's, so that the waiting is charged once.
    each["is_last"] = short["short"] & ~short.duplicated(["match", "short"]) & counts
    each["waited_ns"] = (each["dur_ns"] - shortest).where(counts, 0)
    waited = each.groupby("match", sort=False)["waited_ns"].transform("sum")
    each["caused_wait_ns"] = waited.where(each["is_last"], 0)
    each["lateness_ns"] = (longest - each["dur_ns"]).where(counts, 0)
    each["start_offset_ns"] = (each["start_ns"] - by["start_ns"].transform("min")).where(counts, 0)
    return each


def sentence(frame: pd.DataFrame) -> str:
    """The answer in one sentence."""
    if frame.empty:
        return "No collective of several ranks lies in the selection."
    total = frame.groupby("rank")[["last", "waited_ns", "caused_wait_ns"]].sum()
    waited = int(total["waited_ns"].sum())
    if not waited:
        return f"None of {counted(len(total), 'rank')} waits noticeably for another at the collectives."
    caused = total["caused_wait_ns"].to_numpy()
    worst = int(caused.argmax())
    uneven = int(frame.groupby("iteration", dropna=False)["counted"].max().sum())
    iterations = frame["iteration"].nunique(dropna=False)
    return (
        f"The others wait for rank {total.index[worst]}: it arrives last at {total['last'].iloc[worst]} of "
        f"{counted(uneven, 'uneven collective')} and causes {percent(100.0 * caused[worst] / waited)} of all "
        f"waiting, {duration(waited)} on {counted(len(total), 'rank')} in {counted(iterations, 'iteration')}."
    )


def _require(ranks: list[int], found: pd.DataFrame) -> None:
    if len(ranks) < 2:
        raise MissingDataError(
            "second rank",
            "Record every rank of the job with its own torch.profiler.profile and open their folder.",
            f"{len(ranks)} of its ranks selected, and waiting shows only between ranks",
        )
    if found.empty:
        raise MissingDataError(
            "communication kernels",
            "Record with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) "
            "while the ranks communicate.",
            f"none of the ranks {', '.join(map(str, ranks))} has any",
        )
    if found["match"].isna().all():
        raise MissingDataError(
            "collective that is recorded on two ranks",
            "Record the same steps on every rank; torch.profiler numbers collectives from PyTorch 2.4 on.",
            "the kernels' numbers, order or times do not fit together",
        )


ANALYSIS = Analysis(
    kind="stragglers",
    label="Stragglers",
    group="Communication",
    title="Whom the other ranks wait for",
    function=stragglers,
    sentence=sentence,
    chart=Heat("iteration", "rank", "caused_wait_ns", "communication", measure="Caused wait"),
    requires=("second rank", "communication kernels"),
    ignores=("ranks",),
)
