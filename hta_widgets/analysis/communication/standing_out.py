"""Whether some ranks are the cause of most waiting, or all of them wait for each other in turn."""

from __future__ import annotations

from typing import Final

import pandas as pd

# Chosen so that stages of a slow pipeline and the published culprits of recorded jobs are named, and the
# bubbles of balanced pipelines and ranks that are late in turn name nobody.
_MORE_THAN_NEXT: Final = 1.1
_MORE_THAN_FAIR: Final = 1.25
_OWN_WAITING: Final = 0.6
_MOST_STEPS: Final = 0.75


def standing_out(frame: pd.DataFrame) -> list[int]:
    """The ranks that cause the waiting, ascending; none if no few of them do.

    They are the smallest number of ranks, at most half, each of which causes at least 1.1 times as much as
    any other, with these properties: together they cause at least 1.25 times their share by number; each of
    them waits at most 0.6 times as long as the others do on average; and they cause their share by number in
    iterations with three quarters of the waiting.
    """
    total = frame.groupby("rank")[["blamed_ns", "waited_ns"]].sum()
    total = total.sort_values("blamed_ns", ascending=False, kind="stable")
    caused, waited = total["blamed_ns"].to_numpy(), total["waited_ns"].to_numpy()
    everything, size = int(waited.sum()), len(total)
    if not everything:
        return []
    steps = frame["iteration"].astype("Int64").fillna(-1)
    by_step = frame["waited_ns"].groupby(steps).sum()
    for count in range(1, size // 2 + 1):
        ranks = sorted(total.index[:count].tolist())
        share = caused[:count].sum() / everything
        own = frame["blamed_ns"].where(frame["rank"].isin(ranks), 0).groupby(steps).sum()
        if (
            caused[count - 1] >= _MORE_THAN_NEXT * caused[count]
            and share >= _MORE_THAN_FAIR * count / size
            and waited[:count].max() <= _OWN_WAITING * waited[count:].mean()
            and by_step[own * size >= by_step * count].sum() >= _MOST_STEPS * everything
        ):
            return ranks
    return []
