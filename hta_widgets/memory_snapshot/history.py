"""What was allocated when: the allocator's events replayed, and anchored at what the snapshot holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.arrays import Bool, Int64

ROUNDED: Final = 512
"""The allocator's blocks are multiples of this many bytes."""


@dataclass(frozen=True)
class History:
    """Allocations of one device.

    `allocations` has one row per allocation that is known: address, bytes, begin and end (positions among the
    device's events, -1 and n where it began before or outlives them), stack, annotation.
    """

    events: pd.DataFrame
    allocations: pd.DataFrame
    allocated: Int64  # after each event; [0] is before the first
    reserved: Int64

    @property
    def peak(self) -> int:
        """After how many events most was allocated, the first time."""
        return int(self.allocated.argmax())

    def alive(self, position: int) -> pd.DataFrame:
        """The allocations that are known after so many events."""
        table = self.allocations
        return table[(table["begin"] < position) & (table["end"] >= position)]

    def segments(self, position: int, final: pd.DataFrame) -> tuple[Int64, Int64]:
        """Addresses and sizes of what was reserved after so many events, from what is reserved at the end."""
        pieces = [(int(a), int(a + b)) for a, b in zip(final["address"], final["total_bytes"], strict=True)]
        later = self.events.iloc[position:]
        later = later[later["action"].isin(_GROWS | _SHRINKS)]
        for action, address, size in zip(
            reversed(later["action"].tolist()),
            reversed(later["address"].tolist()),
            reversed(later["bytes"].tolist()),
            strict=True,
        ):
            piece = (address, address + size)
            pieces = _without(pieces, piece) if action in _GROWS else [*pieces, piece]
        pieces = sorted(pieces)
        return np.array([a for a, _ in pieces], np.int64), np.array([b - a for a, b in pieces], np.int64)


_GROWS: Final = frozenset({"segment_alloc", "segment_map"})
_SHRINKS: Final = frozenset({"segment_free", "segment_unmap"})


def history_of(events: pd.DataFrame, blocks: pd.DataFrame, segments: pd.DataFrame) -> History:
    """The history of one device.

    Args:
        blocks: its blocks at the end.
        segments: its segments at the end.
    """
    events = events.reset_index(drop=True)
    action = events["action"].to_numpy()
    size = events["bytes"].to_numpy()
    live = blocks[blocks["state"] == "active_allocated"]
    allocations = _allocations(events, live)
    change = np.zeros(len(events), np.int64)
    allocs = action == "alloc"
    frees = _frees(events)
    change[allocs] = size[allocs]
    change[frees] = -size[frees]
    reserve = np.where(np.isin(action, [*_GROWS]), size, np.where(np.isin(action, [*_SHRINKS]), -size, 0))
    return History(
        events,
        allocations,
        _anchored(change, int(live["requested_bytes"].sum())),
        _anchored(reserve, int(segments["total_bytes"].sum())),
    )


def _anchored(change: Int64, end: int) -> Int64:
    """Running sums that end at a known value."""
    sums = np.concatenate([[0], np.cumsum(change)]).astype(np.int64)
    return sums + (end - sums[-1])


def _frees(events: pd.DataFrame) -> Bool:
    """Which events end an allocation: the request to free it, which is recorded before memory is free again.

    Completions count where no request of the same address precedes them.
    """
    action = events["action"].to_numpy()
    requested: Bool = action == "free_requested"
    completed = action == "free_completed"
    if not completed.any():
        return requested
    rows = np.flatnonzero(requested | completed | (action == "alloc"))
    address = events["address"].to_numpy()[rows]
    order = np.lexsort((rows, address))
    rows, address = rows[order], address[order]
    follows = np.append(False, (address[1:] == address[:-1]) & requested[rows[:-1]])
    alone = completed[rows] & ~follows
    found = requested.copy()
    found[rows[alone]] = True
    return found


def _allocations(events: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
    action, address = events["action"].to_numpy(), events["address"].to_numpy()
    allocs, frees = np.flatnonzero(action == "alloc"), np.flatnonzero(_frees(events))
    rows = np.concatenate([allocs, frees])
    begins = np.concatenate([np.ones(len(allocs), np.bool_), np.zeros(len(frees), np.bool_)])
    order = np.lexsort((rows, address[rows]))
    rows, begins = rows[order], begins[order]
    place = address[rows]
    n = len(events)
    same = np.append((place[1:] == place[:-1]) & begins[:-1] & ~begins[1:], False) if len(rows) else begins
    first = np.flatnonzero(begins)
    end = np.where(same[first], rows[np.minimum(first + 1, len(rows) - 1)], n) if len(first) else rows[:0]
    # frees of what was allocated before the events begin
    preceded = np.append(False, same[:-1]) if len(rows) else begins
    orphans = rows[~begins & ~preceded]
    known = pd.DataFrame(
        {
            "address": place[first],
            "bytes": events["bytes"].to_numpy()[rows[first]],
            "begin": rows[first],
            "end": end,
            "stack": events["stack"].to_numpy()[rows[first]],
            "annotation": events["annotation"].to_numpy()[rows[first]],
        }
    )
    before = pd.DataFrame(
        {
            "address": address[orphans],
            "bytes": events["bytes"].to_numpy()[orphans],
            "begin": np.full(len(orphans), -1),
            "end": orphans,
            "stack": np.full(len(orphans), -1),
            "annotation": np.full(len(orphans), "", object),
        }
    )
    # blocks that live at the end and were allocated before the events begin
    still = set(known.loc[known["end"] == n, "address"].tolist())
    old = live[~live["address"].isin(still)]
    rest = pd.DataFrame(
        {
            "address": old["address"].to_numpy(),
            "bytes": old["requested_bytes"].to_numpy(),
            "begin": np.full(len(old), -1),
            "end": np.full(len(old), n),
            "stack": old["stack"].to_numpy(),
            "annotation": old["annotation"].to_numpy(),
        }
    )
    return pd.concat([known, before, rest], ignore_index=True)


def gaps_between(
    addresses: Int64, sizes: Int64, segment_addresses: Int64, segment_sizes: Int64
) -> tuple[Int64, Int64]:
    """Addresses and sizes of what is free in segments, which are sorted, between allocations."""
    order = np.argsort(addresses, kind="stable")
    starts, ends = addresses[order], (addresses + -(-sizes // ROUNDED) * ROUNDED)[order]
    found: list[tuple[int, int]] = []
    for at, size in zip(segment_addresses.tolist(), segment_sizes.tolist(), strict=True):
        first, last = np.searchsorted(starts, [at, at + size])
        begin = np.concatenate([[at], ends[first:last]])
        stop = np.concatenate([starts[first:last], [at + size]])
        free = stop - begin
        found += [(int(begin[k]), int(free[k])) for k in np.flatnonzero(free > 0)]
    return np.array([a for a, _ in found], np.int64), np.array([b for _, b in found], np.int64)


def _without(pieces: list[tuple[int, int]], piece: tuple[int, int]) -> list[tuple[int, int]]:
    """Ranges of addresses without one of them."""
    first, last = piece
    found = []
    for start, stop in pieces:
        if stop <= first or start >= last:
            found.append((start, stop))
            continue
        if start < first:
            found.append((start, first))
        if stop > last:
            found.append((last, stop))
    return found
