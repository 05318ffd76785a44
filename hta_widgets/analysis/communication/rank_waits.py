"""Who waits for whom: a matrix of ranks."""

from __future__ import annotations

from typing import Literal

import pandas as pd

from hta_widgets.analysis.communication.culprits import NOBODY
from hta_widgets.analysis.communication.stragglers import require_exchanges
from hta_widgets.analysis.communication.waits import waits
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.charts.spec import Heat
from hta_widgets.formatting import counted, duration, percent
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_PARTS = ("computing_ns", "communicating_ns", "copying_ns", "idle_ns")


@kept()
def rank_waits(
    trace: Trace, scope: Scope | None = None, by: Literal["job", "iteration"] = "job"
) -> pd.DataFrame:
    """Which rank waits for which other rank at exchanges, and what does that one do in the meantime?

    What counts as waiting is as in `stragglers`. Waits are followed from rank to rank: the awaited rank is
    the one at the end of the chain, which causes the wait, not the one that arrives last because it waits
    itself.

    Source: the reasoning of `stragglers`.

    Args:
        trace: the job.
        scope: exchanges that belong to it, as in `stragglers`; default everything.
        by: "iteration": rows of each iteration apart.

    Returns:
        One row per pair of ranks with a wait, by [iteration,] rank, awaited. Columns: [iteration (Int64, NA
        outside of iterations),] rank (int64, waits), awaited (int64, causes it; -1 where the waits cannot be
        followed), wait_ns (int64 ns), and its parts by what the device of the awaited rank does then, which
        add up to it: computing_ns, communicating_ns, copying_ns, idle_ns (int64 ns; all 0 where awaited is
        -1). The sum over awaited is waited_ns of `stragglers`, and that over ranks is blamed_ns.

    Raises:
        MissingDataError: fewer than two ranks, no communication, or none of it is matched across ranks.
        ValueError: `by` is neither.
    """
    if by not in ("job", "iteration"):
        raise ValueError(f'by must be "job" or "iteration", not {by!r}')
    scope = scope or Scope()
    require_exchanges(trace, scope)
    keys = [*(("iteration",) if by == "iteration" else ()), "rank", "culprit"]
    sums = waits(trace, scope).groupby(keys, dropna=False)[["wait_ns", *_PARTS]].sum()
    return sums.reset_index().rename(columns={"culprit": "awaited"})


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `rank_waits` in words."""
    total = int(frame["wait_ns"].sum())
    if not total:
        return "No rank waits noticeably for another at the collectives."
    pairs = frame.groupby(["rank", "awaited"])["wait_ns"].sum()
    known = pairs[pairs.index.get_level_values("awaited") != NOBODY]
    if known.empty:
        return f"Whom the ranks wait for, {duration(total)} in all, is not known."
    waiting, awaited = known.index[int(known.to_numpy().argmax())]
    most, ranks = int(known.max()), frame["rank"].nunique()
    return (
        f"{counted(ranks, 'rank')} {'waits' if ranks == 1 else 'wait'} "
        f"{duration(total)} in all. The largest part, {duration(most)} ({percent(100.0 * most / total)}), is "
        f"rank {waiting} waiting for rank {awaited}."
    )


ANALYSIS = Analysis(
    label="Who waits for whom",
    group="Communication",
    title="Which rank waits for which",
    function=rank_waits,
    sentence=sentence,
    chart=Heat("awaited", "rank", "wait_ns", "communication", measure="Wait"),
    requires=("second rank", "communication kernels", "collective that is recorded on two ranks"),
    ignores=("ranks",),
    asks_little=True,
)
