"""Finds the kernels of different ranks that are one collective: by recorded ids, else by their order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

# Point-to-point: one partner sends, the other receives; not all ranks take part.
_POINT_TO_POINT = ("send", "recv")
_EQUAL_ON_ALL_RANKS = ("allreduce", "broadcast", "reduce")
_TOGETHER_NS = 1_000_000
_CLOCKS_DIFFER_NS = 5_000_000


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
    frame = frame.sort_values(["rank", "start_ns", "event_id"], kind="stable", ignore_index=True)
    identified = frame["comms_id"].notna()
    numbered = ~identified & frame["seq"].notna() & frame["process_group"].notna()
    collective = ~frame["collective"].isin(_POINT_TO_POINT)
    lane = _lanes(frame)
    by_key = {
        "comms_id": (collective & identified, ["comms_id", "seq"]),
        "seq": (collective & numbered, ["process_group", "group_ranks", "collective", "seq"]),
        "order": (
            collective & ~identified & ~numbered,
            ["iteration", "collective", "process_group", "group_ranks", "lane"],
        ),
        "pair": (
            ~collective & frame["sender"].notna() & frame["receiver"].notna(),
            ["iteration", "process_group", "group_ranks", "sender", "receiver"],
        ),
    }
    key = pd.Series(pd.NA, frame.index, "str")
    number = pd.Series(-1, frame.index, "int64")
    first = 0
    placed = frame.assign(lane=lane)
    for name, (rows, columns) in by_key.items():
        if not rows.any():
            continue
        found = _same(placed[rows], columns, first)
        if name == "order":
            found = found[_possible(frame.loc[found.index], found, common_clock)]
        elif name == "pair":
            found = found[_transferred(frame.loc[found.index], found, common_clock)]
        number[found.index] = found["number"]
        key[found.index] = name
        first += len(frame)
    frame["match"], frame["match_ranks"] = _renumbered(number)
    frame["match_key"] = key
    return frame


def _lanes(frame: pd.DataFrame) -> pd.Series:
    """The stream in terms that ranks share: its place on the rank; its number if some have more of them."""
    streams = frame[["rank", "device", "stream"]].drop_duplicates().dropna(subset="stream")
    if len(set(streams["rank"].value_counts())) > 1:
        return frame["stream"]
    streams = streams.sort_values(["rank", "device", "stream"], kind="stable")
    streams["lane"] = streams.groupby("rank").cumcount().astype("Int64")
    return frame.merge(streams, "left", on=["rank", "device", "stream"])["lane"]


def _same(frame: pd.DataFrame, columns: list[str], first: int) -> pd.DataFrame:
    """bucket, number: rows whose bucket (equal columns) is equally full on two ranks or more."""
    bucket = frame.groupby(columns, dropna=False, sort=False).ngroup()
    of_rank = frame["rank"].groupby([bucket, frame["rank"]], sort=False)
    ordinal = of_rank.cumcount()
    size = of_rank.size().groupby(level=0).agg(["min", "max", "size"])
    usable = size.index[(size["min"] == size["max"]) & (size["size"] > 1)]
    kept = bucket.isin(usable)
    pair = pd.DataFrame({"bucket": bucket[kept], "ordinal": ordinal[kept]})
    pair["number"] = pair.groupby(["bucket", "ordinal"], sort=False).ngroup() + first
    return pair


def _possible(frame: pd.DataFrame, found: pd.DataFrame, common_clock: bool) -> pd.Series:
    """Which matches by order hold: those of buckets whose collectives all overlap and have equal sizes."""
    if found.empty:
        return pd.Series(dtype=bool, index=found.index)
    starts, ends = _on_one_clock(frame, found, common_clock)
    meet = found["number"].map(starts.max(axis=1) <= ends.min(axis=1))
    elements = frame["in_elements"].where(frame["collective"].isin(_EQUAL_ON_ALL_RANKS))
    equal = elements.groupby(found["number"].to_numpy()).transform("nunique") <= 1
    return (meet & equal).groupby(found["bucket"].to_numpy()).transform("all")


def _transferred(frame: pd.DataFrame, found: pd.DataFrame, common_clock: bool) -> pd.Series:
    """Which sends and receives meet: those that overlap, in buckets where no receive precedes its send."""
    if found.empty:
        return pd.Series(dtype=bool, index=found.index)
    starts, ends = _on_one_clock(frame, found, common_clock)
    ranks = frame[["sender", "receiver"]].groupby(found["number"].to_numpy()).first().loc[starts.index]
    row = np.arange(len(starts))
    sends, receives = (starts.columns.get_indexer(pd.Index(ranks[side])) for side in ranks)
    start, end = starts.to_numpy(), ends.to_numpy()
    backwards = pd.Series(end[row, receives] < start[row, sends], starts.index)
    buffered = pd.Series(end[row, sends] < start[row, receives], starts.index)
    impossible = found["number"].map(backwards).groupby(found["bucket"].to_numpy()).transform("any")
    return ~impossible & ~found["number"].map(buffered)


def _on_one_clock(
    frame: pd.DataFrame, found: pd.DataFrame, common_clock: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Starts and ends by match (row) and rank (column), with the ranks' clocks set as `match` says."""
    key = frame.assign(number=found["number"]).set_index(["number", "rank"])[["start_ns", "end_ns"]]
    starts, ends = (key[column].unstack() for column in key)  # noqa: PD010 - one value each, nothing to aggregate
    shift = _clock_shifts(ends.to_numpy(), common_clock)
    return starts - shift, ends - shift


def _clock_shifts(ends: npt.NDArray[np.float64], common_clock: bool) -> npt.NDArray[np.float64]:
    """For each collective (row) and rank (column; NaN: takes no part) how far its clock seems ahead.

    Ahead of that of the first rank which takes part; found for all collectives of the same ranks together.
    """
    shifts = np.zeros_like(ends)
    sets, which = np.unique(~np.isnan(ends), axis=0, return_inverse=True)
    for number, takes_part in enumerate(sets):
        rows = np.flatnonzero(which.reshape(-1) == number)
        first, *others = np.flatnonzero(takes_part)
        for rank in others:
            apart = (ends[rows, rank] - ends[rows, first]).astype(np.int64)
            shifts[rows, rank] = _most_agree(apart, common_clock)
    return shifts


def _most_agree(apart: npt.NDArray[np.int64], common_clock: bool) -> int:
    """The median of the largest group of values within 1 ms; of equal groups the one nearest 0; else 0."""
    ordered = np.sort(apart[np.abs(apart) < _CLOCKS_DIFFER_NS] if common_clock else apart)
    if not len(ordered):
        return 0
    after = np.searchsorted(ordered, ordered + _TOGETHER_NS, side="right")
    best = np.lexsort((np.abs(ordered), np.arange(len(ordered)) - after))[0]
    return int(ordered[(best + after[best] - 1) // 2])


def _renumbered(number: pd.Series) -> tuple[pd.Series, pd.Series]:
    """match, match_ranks: the numbers (-1: none) as 0, 1, ... in row order, and how many ranks share each."""
    matched = number[number >= 0]
    codes, distinct = pd.factorize(matched.to_numpy())
    size = np.bincount(codes, minlength=len(distinct))
    return (
        pd.Series(codes, matched.index, "Int64").reindex(number.index),
        pd.Series(size[codes], matched.index, "Int64").reindex(number.index),
    )
