"""Slices chosen by name: how many, where in the whole trace, and which comes next.

Names are compared once per kind, never once per slice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hta_widgets.timeline.kinds import Kinds
from hta_widgets.timeline.lanes import Lanes


def matching_kinds(kinds: Kinds, names: Sequence[str], query: str) -> NDArray[np.bool_]:
    """Per kind: whether its name is one of `names` and contains `query`, ignoring case. Empty means any."""
    wanted, part = set(names), query.strip().lower()
    return np.array(
        [(not wanted or name in wanted) and part in name.lower() for name in kinds.names], np.bool_
    )


class Matches:
    """The slices of some ranks (all without any) whose kind is one of `kinds`, by start."""

    def __init__(self, lanes: Lanes, kinds: NDArray[np.bool_], ranks: Sequence[int] = ()) -> None:
        chosen = kinds[lanes.kind] if lanes.n else np.zeros(0, np.bool_)
        for track in lanes.tracks:
            if ranks and track.rank not in ranks:
                chosen[lanes.offsets[track.first] : lanes.offsets[track.first + track.lanes]] = False
        found = np.flatnonzero(chosen)
        start = lanes.start[found]
        order = np.argsort(start, kind="stable")  # of equal starts, the smaller position first
        self.positions: NDArray[np.int64] = found[order]
        self.starts: NDArray[np.int64] = start[order]
        self._extent = lanes.extent

    def __len__(self) -> int:
        return len(self.positions)

    def counts(self, bins: int) -> NDArray[np.int64]:
        """How many begin in each of `bins` equal parts of the trace."""
        first, last = self._extent
        edges = np.linspace(first, last, bins + 1)[1:-1]
        return np.diff(np.searchsorted(self.starts, edges), prepend=0, append=len(self))

    def page(self, dur: NDArray[np.int64], longest: bool, offset: int, limit: int) -> NDArray[np.int64]:
        """Positions of some matches: by (start, position), or the longest first.

        `dur` holds the duration of every slice.
        """
        positions = self.positions
        if longest:
            positions = positions[np.argsort(-dur[positions], kind="stable")]
        return positions[offset : offset + limit]

    def beyond(self, start_ns: float, position: int, step: int) -> int:
        """Position of the next match by (start, position), or of the one before for a negative `step`.

        Goes on at the other end of the trace; -1 if nothing matches.
        """
        if not len(self):
            return -1
        a, b = np.searchsorted(self.starts, [start_ns, np.nextafter(start_ns, np.inf)])
        low, high = np.searchsorted(self.positions[a:b], [position, position + 1])
        at = int(a + high) if step > 0 else int(a + low) - 1
        return int(self.positions[at % len(self)])
