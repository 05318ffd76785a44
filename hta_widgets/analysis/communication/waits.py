"""What each rank waits for at exchanges: which rank causes it, through whom, and what that does meanwhile."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.arrivals import NOISE_NS, arrivals, uneven_ends
from hta_widgets.analysis.communication.collectives import belonging, shared_collectives
from hta_widgets.analysis.communication.culprits import NOBODY, Followed
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.device_time.busy import busy
from hta_widgets.arrays import Bool, Float64, Int64
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope


def waits(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """Whom each rank waits for at the exchanges of a scope, and what that rank does in the meantime.

    `culprits.follow` says who is the culprit. A wait is not followed if the ranks of its exchange do not
    leave it together: with the clocks of each two ranks set by the median of their ends, the ends must agree
    within 10 us or a quarter of the longest wait. Of ranks that arrive last within 10 us, each takes the
    blame of an exchange in turn.

    Args:
        scope: exchanges that belong to it, as in `stragglers`; default everything.

    Returns:
        One row per part of a wait, by iteration, rank, time. Columns: iteration (Int64), rank (int64, waits),
        last (int64, the rank that arrives last), culprit (int64; -1 if the waits cannot be followed), wait_ns
        (int64 ns), and what the culprit's device does in that time, which adds up to it: computing_ns,
        communicating_ns (transferring, or together with ranks that were not recorded), copying_ns, idle_ns
        (int64 ns; all 0 if the culprit is unknown).
    """
    scope = scope or Scope()
    parts = _followed(trace, scope.ranks)
    if scope == Scope(ranks=scope.ranks):
        return parts.drop(columns="match").copy()
    inside = parts["match"].isin(_exchanges(trace, scope))
    return parts[inside].drop(columns="match").reset_index(drop=True)


def arrived(trace: Trace, scope: Scope) -> pd.DataFrame:
    """`arrivals` of the exchanges, among the ranks of a scope, that belong to it.

    An exchange belongs to the scope and the iteration of the kernel of its lowest rank.
    """
    each = _arrivals(trace, scope.ranks)
    if scope == Scope(ranks=scope.ranks):
        return each
    return each[each["match"].isin(_exchanges(trace, scope))]


def meeting(trace: Trace, rank: int, event_id: int) -> pd.DataFrame:
    """Who waits for whom at the exchange that a kernel belongs to?

    Args:
        rank, event_id: a communication kernel.

    Returns:
        One row per rank, the last to arrive first. Columns: rank, event_id, waited_ns (int64 ns: from the
        start of its kernel until the last rank arrived), is_last (bool). No rows if the kernel is matched
        with no other rank's, nobody waited, or the ranks do not leave together, so that nobody is known to be
        last.
    """
    found = _kernels(trace, None)
    match = found.loc[(found["rank"] == rank) & (found["event_id"] == event_id), "match"]
    of = found[found["match"].isin(match.dropna())]
    last = of.loc[of["waited_ns"] > NOISE_NS, "last"]
    of = of[: len(of) if len(last) and last.iloc[0] >= 0 else 0]
    of = of.assign(is_last=of.index == (last.iloc[0] if len(last) else -1))
    of = of.sort_values(["is_last", "rank"], ascending=[False, True], kind="stable", ignore_index=True)
    return of[["rank", "event_id", "waited_ns", "is_last"]]


def wait_chain(trace: Trace, rank: int, event_id: int) -> pd.DataFrame:
    """Through whom does a rank wait at an exchange, from the kernel that waits to the rank that causes it?

    Where the last rank to arrive had been waiting itself, its wait is followed (`culprits.follow`). Of
    several chains of ranks that a wait divides into, the one that makes most of it.

    Args:
        rank, event_id: a communication kernel.

    Returns:
        One row per hop, the kernel asked for first. Columns: rank (int64, waits), event_id, start_ns, end_ns
        (int64, ns: of the kernel in which it does so longest), awaited, awaited_event_id (int64, the rank
        that it waits for there, and its kernel: that rank is in the next row, or the culprit), wait_ns
        (int64 ns of the first wait that pass through this rank, in whatever kernels: never more than in the
        row before), event_wait_ns (int64 ns of these in this kernel, at most what it waits). No rows if the
        kernel does not wait, or nobody is known to cause that.
    """
    found = _kernels(trace, None)
    at = np.flatnonzero((found["rank"] == rank) & (found["event_id"] == event_id))
    hops = _prepared(trace, None).chain(int(at[0])) if len(at) else []
    position, through, inside = np.array(hops, np.int64).reshape(-1, 3).T
    rows = found.iloc[position]
    lasts = found.iloc[rows["last"].to_numpy(np.int64)]
    columns = {name: rows[name].to_numpy(np.int64) for name in ("rank", "event_id", "start_ns", "end_ns")}
    return pd.DataFrame(
        {
            **columns,
            "awaited": lasts["rank"].to_numpy(np.int64),
            "awaited_event_id": lasts["event_id"].to_numpy(np.int64),
            "wait_ns": through,
            "event_wait_ns": inside,
        }
    )


def longest_wait(trace: Trace, rank: int, scope: Scope) -> pd.DataFrame:
    """The exchange of a scope at which others wait longest for a rank, or, if none does, it for others.

    Others wait for it where it is the last to arrive, and where ranks that wait for it are. If the longest of
    the latter is half as long as that of the former or more, it is the one: it shows those between, too
    (`wait_chain`).

    Returns:
        `meeting` of that exchange, with start_ns and end_ns (int64 ns) of the kernels, and waits (bool: of
        the one wait that is the longest); no rows if the rank has no part in any waiting.
    """
    parts = _followed(trace, scope.ranks)
    parts = parts[parts["match"].isin(_exchanges(trace, scope))]
    caused = parts[(parts["culprit"] == rank) & (parts["rank"] != rank)]
    own = parts[(parts["rank"] == rank) & (parts["culprit"] != NOBODY)]
    direct, through = (
        _in_exchanges(caused[(caused["last"] == rank) == is_last]) for is_last in (True, False)
    )
    by = direct if 2 * through.max() < direct.max() or through.empty else through
    by = by if len(by) else _in_exchanges(own)
    found = _kernels(trace, scope.ranks)
    if by.empty:
        columns = ["rank", "event_id", "waited_ns", "start_ns", "end_ns"]
        return found.head(0)[columns].assign(is_last=False, waits=False)
    match, victim = by.index[int(by.to_numpy().argmax())]
    kernel = found.loc[found["match"].eq(match) & (found["rank"] == victim), "event_id"].iloc[0]
    met = meeting(trace, int(victim), int(kernel))
    met["waits"] = met["rank"] == victim
    return met.merge(found[["rank", "event_id", "start_ns", "end_ns"]], "left", on=["rank", "event_id"])


def _in_exchanges(parts: pd.DataFrame) -> pd.Series[int]:
    """How long each rank waits in each exchange, int64 ns by match and rank."""
    return parts.groupby(["match", "rank"])["wait_ns"].sum()


def _exchanges(trace: Trace, scope: Scope) -> pd.Series:
    """The matches of the exchanges that belong to a scope."""
    found = _kernels(trace, scope.ranks)
    return found.loc[found["lowest"] & _inside(trace, scope), "match"]


def _inside(trace: Trace, scope: Scope) -> Bool:
    """Which rows of `_kernels` belong to a scope."""
    of_ranks = belonging(trace, Scope(ranks=scope.ranks))
    return belonging(trace, scope)[of_ranks]


def unclear(trace: Trace, scope: Scope) -> pd.Series[int]:
    """Communication in a scope that may be waiting or not: of each rank, int64 ns by rank.

    Kernels whose partners are unknown or were not recorded, without what they wait for recorded ranks.
    """
    found, inside = _kernels(trace, scope.ranks), _inside(trace, scope)
    waiting = (found["dur_ns"] - found["waited_ns"]).where(~found["known"], 0)
    return waiting[inside].groupby(found["rank"][inside]).sum()


@memoize_per_rank(last=4)
def _arrivals(trace: Trace, ranks: tuple[int, ...] | None) -> pd.DataFrame:
    """`arrivals` at all exchanges of these ranks among themselves."""
    return arrivals(shared_collectives(trace, Scope(ranks=ranks)))


@memoize_per_rank(last=4)
def _kernels(trace: Trace, ranks: tuple[int, ...] | None) -> pd.DataFrame:
    """`collectives` of these ranks among themselves, with what `follow` reads, and about their exchanges.

    The latter are exchange_iteration, and lowest: the first kernel of an exchange on its lowest rank.
    """
    found = shared_collectives(trace, Scope(ranks=ranks))
    each = _arrivals(trace, ranks)
    match, of_each = found["match"].to_numpy(np.int64, na_value=-1), each["match"].to_numpy(np.int64)
    ends = (each[name].to_numpy(np.int64) for name in ("match", "rank", "start_ns", "dur_ns"))
    apart = np.isin(of_each, uneven_ends(*ends))
    size = np.append(np.bincount(match[match >= 0]), 0)[match]
    waited = np.zeros(len(found), np.int64)
    waited[each.index] = each["waited_ns"]
    found["waited_ns"] = waited
    found["last"] = _position_of_last(match, each[~apart])
    found["known"] = np.isin(match, of_each[~apart]) & (size >= _expected(found, trace))
    found["exchange_iteration"] = each["iteration"].reindex(found.index)
    lowest = np.zeros(len(found), np.bool_)
    lowest[np.unique(match, return_index=True)[1]] = True
    found["lowest"] = lowest & (match >= 0)
    return found


@memoize_per_rank(last=2)
def _prepared(trace: Trace, ranks: tuple[int, ...] | None) -> Followed:
    """The kernels of these ranks among themselves, ready to be followed."""
    working = _working(trace, ranks)
    return Followed(_kernels(trace, ranks), {rank: work.compute for rank, work in working.items()})


class _Work(NamedTuple):
    """What a device does while others may wait for its rank."""

    compute: Intervals
    communication: Intervals
    copying: Intervals


@memoize_per_rank(last=2)
def _working(trace: Trace, ranks: tuple[int, ...] | None) -> dict[int, _Work]:
    """What the device of each of these ranks does while another one of them may wait for it."""
    windows = _waited_for(_kernels(trace, ranks))
    nonempty = {rank: own for rank, own in windows.items() if len(own)}
    nothing = Intervals.union([], [])
    return dict.fromkeys(windows, _Work(nothing, nothing, nothing)) | trace.each_with(_work_in, nonempty)


def _work_in(rank_trace: RankTrace, windows: Int64) -> _Work:
    during, device = Intervals.union(windows[:, 0], windows[:, 1]), busy(rank_trace, Scope())
    of_kind = device.compute, device.exposed_communication, device.exposed_memory
    return _Work(*(kind & during for kind in of_kind))


def _waited_for(found: pd.DataFrame) -> dict[int, Int64]:
    """When others may wait for each rank, int64[k, 2] windows by its clock.

    The spans that `culprits` looks into end where the rank starts a kernel, with which it is the last to
    arrive, and are no longer than another waits there. So little is asked of a rank that nobody waits for.
    """
    last, waited = found["last"].to_numpy(np.int64), found["waited_ns"].to_numpy(np.int64)
    longest = np.zeros(len(found), np.int64)
    np.maximum.at(longest, last[last >= 0], waited[last >= 0])
    start, rank_of = found["start_ns"].to_numpy(np.int64), found["rank"].to_numpy(np.int64)
    windows = np.column_stack([start - longest, start])
    ranks = np.unique(rank_of)
    edges = np.append(np.searchsorted(rank_of, ranks), len(found)).tolist()
    own = {
        rank: windows[first:end] for rank, first, end in zip(ranks.tolist(), edges, edges[1:], strict=False)
    }
    return {rank: each[each[:, 0] < each[:, 1]] for rank, each in own.items()}


@memoize_per_rank(last=4)
def _followed(trace: Trace, ranks: tuple[int, ...] | None) -> pd.DataFrame:
    """`waits` of these ranks among themselves, with the match of each exchange."""
    found, working = _kernels(trace, ranks), _working(trace, ranks)
    parts = _prepared(trace, ranks).parts()
    of = parts["kernel"].to_numpy()
    last = np.append(found["rank"].to_numpy(np.int64), NOBODY)[found["last"].to_numpy()[of]]
    frame = pd.DataFrame(
        {
            "iteration": found["exchange_iteration"].array[of],
            "rank": found["rank"].to_numpy(np.int64)[of],
            "last": last,
            "culprit": parts["culprit"],
            "wait_ns": parts["end_ns"] - parts["start_ns"],
            "match": found["match"].to_numpy()[of],
        }
    )
    for at, column in enumerate(("computing_ns", "communicating_ns", "copying_ns")):
        frame[column] = _of_culprits(parts, {rank: work[at] for rank, work in working.items()})
    active = frame[["computing_ns", "communicating_ns", "copying_ns"]].sum(axis=1)
    frame["idle_ns"] = (frame["wait_ns"] - active).where(frame["culprit"] != NOBODY, 0)
    return frame.sort_values(["iteration", "rank"], kind="stable", ignore_index=True)


def _of_culprits(parts: pd.DataFrame, work: dict[int, Intervals]) -> Int64:
    """How long the culprit of each part of a wait did some work in it, ns; 0 without one."""
    culprit = parts["culprit"].to_numpy(np.int64)
    windows = parts[["start_ns", "end_ns"]].to_numpy(np.int64)
    order = np.argsort(culprit, kind="stable")  # of each rank the rows together, not all rows for each
    ranks = np.fromiter(work, np.int64, len(work))
    first, last = (np.searchsorted(culprit[order], ranks, side) for side in ("left", "right"))
    spent = np.zeros(len(parts), np.int64)
    for intervals, begin, end in zip(work.values(), first.tolist(), last.tolist(), strict=True):
        rows = order[begin:end]
        spent[rows] = intervals.within_each(windows[rows])
    return spent


def _position_of_last(match: Int64, each: pd.DataFrame) -> Int64:
    """For each kernel the position of that of the last to arrive at its exchange; -1 if nobody is known.

    Ranks that arrive within the noise of the last are as late: the others' waiting is charged to each of them
    in turn.

    Args:
        match: the exchange of each kernel, or -1.
        each: `arrivals` of those whose ranks leave together, by exchange.
    """
    of, rank, waited = (each[name].to_numpy(np.int64) for name in ("match", "rank", "waited_ns"))
    position, is_last = each.index.to_numpy(), each["is_last"].to_numpy(np.bool_)
    last = np.full(int(match.max(initial=-1)) + 2, -1)
    last[of[is_last]] = position[is_last]
    late = np.flatnonzero((waited <= NOISE_NS) & each["counted"].eq(1).to_numpy(np.bool_))
    of_others, turns = last.copy(), Counter[tuple[int, ...]]()
    for rows in np.split(late, np.flatnonzero(np.diff(of[late])) + 1):
        if len(rows) > 1:
            ranks = tuple(rank[rows].tolist())
            of_others[of[rows[0]]] = position[rows[turns[ranks] % len(rows)]]
            turns[ranks] += 1
    itself = np.zeros(len(match), np.bool_)
    itself[position[late]] = True
    return np.where(itself, last[match], of_others[match])


def _expected(found: pd.DataFrame, trace: Trace) -> Float64:
    """How many ranks take part in each exchange: as recorded; else as matched, if no rank is missing."""
    world = trace.summary["world_size"]
    misses = isinstance(world, int) and world > len(trace.ranks)
    group, matched = (
        found[name].to_numpy(np.float64, na_value=np.nan) for name in ("group_size", "match_ranks")
    )
    group = np.where(found["match_key"].eq("pair"), 2, group)
    return np.where(np.isnan(group), world if misses else matched, group)
