"""Whether some ranks are the cause of most waiting, or all of them wait for each other in turn."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

__all__ = ["main_culprits", "ranks_in_words", "standing_out"]

# Chosen so that the bubbles of balanced pipelines and ranks that are late in turn name nobody, and the
# published culprits of recorded jobs are named.
_LEAST_SHARE: Final = 1 / 3
_MORE_THAN_NEXT: Final = 1.5
_OWN_WAITING: Final = 0.4
_MOST_STEPS: Final = 0.75


def standing_out(frame: pd.DataFrame) -> list[int]:
    """The ranks that cause the waiting, ascending; none if no few of them do.

    They are the smallest number of ranks, at most half, each of which causes at least 1.5 times as much as
    any other. Together they cause a third of all waiting or more; each of them waits at most 0.4 times as
    long as the others do on average; and in iterations with three quarters of the waiting, one of them is its
    main cause.

    Args:
        frame: of `stragglers`.
    """
    total = frame.groupby("rank")[["blamed_ns", "waited_ns"]].sum()
    total = total.sort_values("blamed_ns", ascending=False, kind="stable")
    caused, waited = total["blamed_ns"].to_numpy(), total["waited_ns"].to_numpy()
    everything = int(waited.sum())
    by_iteration = frame.groupby("iteration", dropna=False)["waited_ns"].sum().to_numpy()
    mains = main_culprits(frame)
    for count in range(1, max(1, len(total) // 2) + 1) if everything and len(total) > 1 else ():
        ranks = sorted(total.index[:count].tolist())
        if (
            caused[count - 1] >= _MORE_THAN_NEXT * caused[count]
            and caused[:count].sum() >= _LEAST_SHARE * everything
            and waited[:count].max() <= _OWN_WAITING * waited[count:].mean()
            and by_iteration[np.isin(mains, ranks)].sum() >= _MOST_STEPS * everything
        ):
            return ranks
    return []


def main_culprits(frame: pd.DataFrame) -> list[int]:
    """Of each iteration of `stragglers`, in order, the rank that causes most of its waiting; -1 if none."""
    ordered = frame.sort_values(["iteration", "rank"], kind="stable")
    return [
        int(of["rank"].iloc[int(of["blamed_ns"].to_numpy().argmax())]) if of["blamed_ns"].any() else -1
        for _, of in ordered.groupby("iteration", dropna=False)
    ]


def ranks_in_words(ranks: list[int]) -> str:
    """`rank 3`, `ranks 1, 2 and 5`, or how many if they are more than four."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) > 4:
        return f"{len(ranks)} ranks"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"
