"""Finds the kernels of different ranks that are one collective: by recorded ids, else by their order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.ordering import distinct, first_of_each, nth_of_each, numbered, paired

# Point-to-point: one partner sends, the other receives; not all ranks take part.
_POINT_TO_POINT = ("send", "recv")
_EQUAL_ON_ALL_RANKS = ("allreduce", "broadcast", "reduce")
_TOGETHER_NS = 1_000_000
_CLOCKS_DIFFER_NS = 5_000_000
_LEAST = np.iinfo(np.int64).min
_KEYS = ("iteration", "collective", "process_group", "group_ranks", "seq", "comms_id", "sender", "receiver")


class _Found(NamedTuple):
    """Rows whose bucket (equal keys) is equally full on two ranks or more."""

    rows: Int64  # in ascending order
    # of each row, from 0; the n-th rows of the ranks in a bucket share a number
    bucket: Int64
    number: Int64


def match(frame: pd.DataFrame, common_clock: bool = False) -> pd.DataFrame:
    """Number the collectives that ran on several ranks.

    Kernels are compared by the best key they have, and by no other:

    - comms_id: the recorded id (with the sequence number, where there is one).
    - seq: process group and its ranks, operation, sequence number.
    - order: iteration, operation, process group, stream; the n-th kernel on each rank. Streams are compared
      by their place among the rank's communication streams if all ranks have equally many, else by number.
    - pair: iteration, process group, sender and receiver; the n-th send is the n-th receive. For sends and
      receives alone, which have no numbers that both sides share.

    Several kernels of a rank with the same key are distinguished by their order. All ranks that have a key
    must have it equally often; otherwise nothing under it is matched, since it is unknown which kernel is
    missing. Matches by order must also be possible: with the ranks' clocks set so that most matches end
    together (within 1 ms), the kernels of a collective must overlap in time, and an operation that takes the
    same number of elements from every rank must have it. Otherwise the recording has gaps, and nothing under
    the key is matched. Nor is anything if a receive ends before its send begins. A send that ends before its
    receive begins was buffered: it matches nothing, since neither side waits for the other.

    Args:
        frame: columns rank, event_id, iteration, collective, process_group, group_ranks, seq, comms_id,
            in_elements, sender, receiver (Int64, NA where not known), device, stream, start_ns, end_ns.
        common_clock: the times are of one clock, or of clocks that differ by less than 5 ms: ranks whose
            matches by order end further apart count different iterations.

    Returns:
        The frame, by rank and start, with match (Int64, numbered in this order), match_key (str), match_ranks
        (Int64).
    """
    order = np.lexsort([frame[name].to_numpy(np.int64) for name in ("event_id", "start_ns", "rank")])
    frame = frame.iloc[order].reset_index(drop=True)
    of = {name: pd.factorize(frame[name])[0] for name in _KEYS}
    of["lane"] = _lanes(frame)
    identified = of["comms_id"] >= 0
    has_number = ~identified & (of["seq"] >= 0) & (of["process_group"] >= 0)
    collective = ~frame["collective"].isin(_POINT_TO_POINT).to_numpy(np.bool_)
    by_key = {
        "comms_id": (collective & identified, ["comms_id", "seq"], None),
        "seq": (collective & has_number, ["process_group", "group_ranks", "collective", "seq"], None),
        "order": (
            collective & ~identified & ~has_number,
            ["iteration", "collective", "process_group", "group_ranks", "lane"],
            _possible,
        ),
        "pair": (
            ~collective & (of["sender"] >= 0) & (of["receiver"] >= 0),
            ["iteration", "process_group", "group_ranks", "sender", "receiver"],
            _transferred,
        ),
    }
    key = np.full(len(frame), None, object)
    number = np.full(len(frame), -1, np.int64)
    first = 0
    for name, (chosen, columns, may_be) in by_key.items():
        rows = np.flatnonzero(chosen)
        if not len(rows):
            continue
        found = _same(frame, rows, [of[column] for column in columns])
        if may_be and len(found.rows):
            holds = may_be(frame, found, common_clock)
            found = _Found(*(values[holds] for values in found))
        number[found.rows] = found.number + first
        key[found.rows] = name
        first += len(frame)
    frame["match"], frame["match_ranks"] = _renumbered(number)
    frame["match_key"] = pd.Series(key, dtype="str")
    return frame


def _lanes(frame: pd.DataFrame) -> Int64:
    """The stream in terms that ranks share: its place on the rank; its code if some have more of them."""
    rows = np.flatnonzero(frame["stream"].notna())
    rank, device, stream = (
        frame[name].to_numpy(np.int64, na_value=_LEAST)[rows] for name in ("rank", "device", "stream")
    )
    _, lane = distinct(paired(paired(rank, device), stream))
    _, first, count = np.unique(rank[first_of_each(lane)], return_index=True, return_counts=True)
    if len(set(count.tolist())) > 1:
        return pd.factorize(frame["stream"])[0]
    place = np.arange(count.sum()) - np.repeat(first, count)
    lanes = np.full(len(frame), -1, np.int64)
    lanes[rows] = place[lane]
    return lanes


def _same(frame: pd.DataFrame, rows: Int64, keys: list[Int64]) -> _Found:
    """Of some rows those that may be matches, as these keys are equal."""
    bucket = numbered(*(key[rows] for key in keys))
    of_rank = numbered(bucket, distinct(frame["rank"].to_numpy(np.int64)[rows])[1])
    # of each rank in each bucket
    size, within = np.bincount(of_rank), bucket[first_of_each(of_rank)]
    uneven = _of_any(within, size < _greatest(within, size))
    several = np.bincount(within)[within] > 1
    kept = (several & ~uneven)[of_rank]
    number = numbered(bucket[kept], nth_of_each(of_rank)[kept])
    return _Found(rows[kept], bucket[kept], number)


def _possible(frame: pd.DataFrame, found: _Found, common_clock: bool) -> Bool:
    """Which matches by order hold: those of buckets whose collectives all overlap and have equal sizes."""
    start, end = _on_one_clock(frame, found, common_clock)
    apart = end < _greatest(found.number, start)
    of_all = frame["collective"].isin(_EQUAL_ON_ALL_RANKS) & frame["in_elements"].notna()
    known = of_all.to_numpy(np.bool_)[found.rows]
    size = np.where(known, frame["in_elements"].to_numpy(np.int64, na_value=0)[found.rows], _LEAST)
    unequal = known & (size < _greatest(found.number, size))
    return ~_of_any(found.bucket, apart | unequal)


def _transferred(frame: pd.DataFrame, found: _Found, common_clock: bool) -> Bool:
    """Which sends and receives meet: those that overlap, in buckets where no receive precedes its send."""
    start, end = _on_one_clock(frame, found, common_clock)
    rank, sender = (frame[name].to_numpy(np.int64, na_value=-1)[found.rows] for name in ("rank", "sender"))
    sent = rank == sender
    numbers = int(found.number.max(initial=-1)) + 1
    begins, ends = np.empty((2, numbers), np.int64), np.empty((2, numbers), np.int64)
    for side, of_side in enumerate((sent, ~sent)):
        begins[side, found.number[of_side]], ends[side, found.number[of_side]] = start[of_side], end[of_side]
    backwards, buffered = ends[1] < begins[0], ends[0] < begins[1]
    return ~_of_any(found.bucket, backwards[found.number]) & ~buffered[found.number]


def _on_one_clock(frame: pd.DataFrame, found: _Found, common_clock: bool) -> tuple[Int64, Int64]:
    """Starts and ends, with the ranks' clocks set as `match` says."""
    rank, start, end = (frame[name].to_numpy(np.int64)[found.rows] for name in ("rank", "start_ns", "end_ns"))
    ranks, of_rank = distinct(rank)
    ends = np.zeros((int(found.number.max(initial=-1)) + 1, len(ranks)), np.int64)
    takes_part = np.zeros(ends.shape, np.bool_)
    ends[found.number, of_rank], takes_part[found.number, of_rank] = end, True
    shift = _clock_shifts(ends, takes_part, common_clock)[found.number, of_rank]
    return start - shift, end - shift


def _clock_shifts(ends: Int64, takes_part: Bool, common_clock: bool) -> Int64:
    """For each collective (row) and rank (column) how far its clock seems ahead.

    Ahead of that of the first rank which takes part; found for all collectives of the same ranks together.
    """
    shifts = np.zeros_like(ends)
    sets, which = np.unique(takes_part, axis=0, return_inverse=True)
    for number, of_set in enumerate(sets):
        rows = np.flatnonzero(which.reshape(-1) == number)
        first, *others = np.flatnonzero(of_set)
        for rank in others:
            shifts[rows, rank] = _most_agree(ends[rows, rank] - ends[rows, first], common_clock)
    return shifts


def _most_agree(apart: Int64, common_clock: bool) -> int:
    """The median of the largest group of values within 1 ms; of equal groups the one nearest 0; else 0."""
    ordered = np.sort(apart[np.abs(apart) < _CLOCKS_DIFFER_NS] if common_clock else apart)
    if not len(ordered):
        return 0
    after = np.searchsorted(ordered, ordered + _TOGETHER_NS, side="right")
    best = np.lexsort((np.abs(ordered), np.arange(len(ordered)) - after))[0]
    return int(ordered[(best + after[best] - 1) // 2])


def _greatest(group: Int64, values: Int64) -> Int64:
    """For each row the greatest value of its group."""
    found = np.full(int(group.max(initial=-1)) + 1, _LEAST)
    np.maximum.at(found, group, values)
    return found[group]


def _of_any(group: Int64, chosen: Bool) -> Bool:
    """Which rows belong to the group of one that is chosen."""
    found = np.zeros(int(group.max(initial=-1)) + 1, np.bool_)
    found[group[chosen]] = True
    return found[group]


def _renumbered(number: Int64) -> tuple[pd.arrays.IntegerArray, pd.arrays.IntegerArray]:
    """match, match_ranks: the numbers (-1: none) as 0, 1, ... in row order, and how many ranks share each."""
    absent = number < 0
    codes, ranks = np.zeros(len(number), np.int64), np.zeros(len(number), np.int64)
    codes[~absent] = numbered(number[~absent])
    ranks[~absent] = np.bincount(codes[~absent])[codes[~absent]]
    return pd.arrays.IntegerArray(codes, absent), pd.arrays.IntegerArray(ranks, absent.copy())
