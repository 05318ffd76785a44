"""How far the clocks of ranks are apart in one step, from where they meet."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.core.medians import medians
from hta_widgets.arrays import Int64
from hta_widgets.trace.ordering import distinct, first_of_each, paired

_ENOUGH = 3
"""Meetings of two ranks that make a median."""
_BEYOND_NOISE = 3


def offsets(rank: Int64, end: Int64, meeting: Int64) -> dict[int, int]:
    """How far each rank's clock is ahead, ns: all members leave a meeting together.

    Two ranks differ by the median over their meetings. The steadiest pairs (median absolute deviation by the
    root of the number) span a tree, and the others tell how wrong it is: offsets within three times what nine
    of ten of them differ by are noise, and 0.

    Args:
        rank, end (ns, by the rank's clock), meeting: of operations of one step, int64.
    """
    ranks = sorted(set(rank.tolist()))
    pairs = _pairs(rank, end, meeting)
    ahead = dict.fromkeys(ranks, 0.0)
    members = {r: [r] for r in ranks}
    tree = {r: r for r in ranks}
    others = []
    for a, b, apart in pairs:
        if tree[a] == tree[b]:
            others.append((a, b, apart))
            continue
        shift = ahead[a] + apart - ahead[b]
        for r in members.pop(tree[b]):
            ahead[r] += shift
            tree[r] = tree[a]
            members[tree[a]].append(r)
    wrong = [abs(ahead[b] - ahead[a] - apart) for a, b, apart in others]
    noise = _BEYOND_NOISE * float(np.quantile(wrong, 0.9)) if wrong else 0.0
    middle = float(np.median(list(ahead.values())))
    return {r: round(at - middle) if abs(at - middle) > noise else 0 for r, at in ahead.items()}


def _pairs(rank: Int64, end: Int64, meeting: Int64) -> list[tuple[int, int, float]]:
    """Ranks that meet, and how much later the second leaves; the steadiest first."""
    rows = np.flatnonzero(meeting >= 0)
    rows = rows[np.lexsort((rank[rows], meeting[rows]))]
    before, after = rows[:-1], rows[1:]
    neighbours = (meeting[before] == meeting[after]) & (rank[before] != rank[after])
    before, after = before[neighbours], after[neighbours]
    apart = end[after] - end[before]
    pair = distinct(paired(rank[before], rank[after]))[1]
    count, first = np.bincount(pair), first_of_each(pair)
    middle = medians(pair, apart, len(count))
    deviation = medians(pair, np.abs(apart - middle[pair]), len(count))
    order = np.argsort((deviation + 1.0) / np.sqrt(count), kind="stable")
    steadiest = order[count[order] >= _ENOUGH]
    a, b = rank[before][first][steadiest].tolist(), rank[after][first][steadiest].tolist()
    return list(zip(a, b, middle[steadiest].tolist(), strict=True))
