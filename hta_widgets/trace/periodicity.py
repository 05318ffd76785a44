"""Finds where a sequence of work repeats: the loop of a program whose steps are not marked.

The anchor is a name that occurs once per repeat: among all names that occur a few times, the one whose
occurrences cut the sequence into equal pieces, and of several the one with the longest pieces, since layers
repeat inside steps and not the other way round.
"""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

MIN_REPEATS = 3
MAX_REPEATS = 500
MIN_LENGTH = 4
# Share of neighbouring pieces that must be the same, and of the sequence that the pieces must cover.
SAME = 0.8
COVERED = 0.7
MAX_ANCHORS = 200


def repeats(names: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Positions where repeats begin, and where the last one ends; empty when nothing repeats clearly.

    Args:
        names: name codes of a sequence of work in time order.
    """
    nothing = np.empty(0, np.int64)
    if len(names) < MIN_REPEATS * MIN_LENGTH:
        return nothing
    order = np.argsort(names, kind="stable")
    codes, first, counts = np.unique(names[order], return_index=True, return_counts=True)
    usable = np.flatnonzero((counts >= MIN_REPEATS) & (counts <= min(MAX_REPEATS, len(names) // MIN_LENGTH)))
    # Fewest occurrences first: the first anchor that cuts evenly has the longest pieces.
    usable = usable[np.lexsort((codes[usable], counts[usable]))][:MAX_ANCHORS]
    for at in usable:
        anchors = np.sort(order[first[at] : first[at] + counts[at]])
        edges = _even(names, anchors)
        if len(edges):
            return edges
    return nothing


def _even(names: npt.NDArray[np.int32], anchors: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The edges of equal pieces that begin at the anchors, empty if the pieces differ."""
    lengths = np.diff(anchors)
    typical = int(np.median(lengths))
    nothing = np.empty(0, np.int64)
    if typical < MIN_LENGTH:
        return nothing
    pieces = [names[a : a + typical] for a in anchors[:-1]]
    same = [
        len(piece) == len(other) and bool((piece == other).mean() >= 0.95)
        for piece, other in pairwise(pieces)
    ]
    even = np.abs(lengths - typical) <= max(1, typical // 20)
    if not same or np.mean(same) < SAME or even.mean() < SAME:
        return nothing
    end = min(int(anchors[-1]) + typical, len(names))
    if (end - int(anchors[0])) < COVERED * len(names):
        return nothing
    return np.append(anchors, end)
