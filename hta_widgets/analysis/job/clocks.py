"""How far the clocks of ranks are apart in one step, from where they meet."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.arrays import Int64

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
    member = meeting >= 0
    each = pd.DataFrame({"at": meeting[member], "rank": rank[member], "end": end[member]})
    each = each.sort_values(["at", "rank"], ignore_index=True)
    following = each.shift(-1)
    same = each["at"] == following["at"]
    found = pd.DataFrame(
        {"a": each["rank"], "b": following["rank"], "apart": following["end"] - each["end"]}
    )[same].astype({"b": "int64"})
    found = found[found["a"] != found["b"]]
    by = found.groupby(["a", "b"])["apart"]
    middle = by.median()
    deviation = (found["apart"] - by.transform("median")).abs().groupby([found["a"], found["b"]]).median()
    count = by.size().to_numpy()
    cost = (deviation.to_numpy() + 1.0) / np.sqrt(count)
    steadiest = [at for at in np.argsort(cost, kind="stable").tolist() if count[at] >= _ENOUGH]
    of = middle.reset_index().iloc[steadiest]
    return list(zip(of["a"].tolist(), of["b"].tolist(), of["apart"].astype(float).tolist(), strict=True))
