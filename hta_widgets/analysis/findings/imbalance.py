"""Rules about work that the ranks do not share evenly, and about ranks that wait for each other in turn."""

from __future__ import annotations

from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.job_rules import culprits, straggler, waiting_share
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import percent

__all__ = ["imbalance", "mutual_waiting"]

# A rank that is the main cause in fewer of the steps is one of several.
_MOST_STEPS = 0.75
_BALANCE = (
    "Give the ranks equal work: batches bucketed by length, a capacity for what a rank may get, or other "
    "boundaries between pipeline stages."
)


def imbalance(inputs: Inputs) -> Finding | None:
    """A rank that the others wait for, since it has more work: more launches, or larger ones.

    The cost is its compute time beyond the median of the others, in kernels that they do not launch alike and
    as often.
    """
    work = inputs.workloads
    compared = [work.compared(rank) for rank in culprits(inputs) if rank in work.ranks]
    if not compared:
        return None
    one = max(compared, key=lambda each: each.more_ns)
    window = inputs.temporal.set_index("rank")["window_ns"].get(one.rank, 0)
    if one.more_ns <= one.slower_ns or not window:
        return None
    how = "in kernels that the others launch otherwise"
    if one.more_launches > 0:
        how = f"it launches {one.more_launches:,} kernel{'s' * (one.more_launches > 1)} more per step"
    elif one.larger:
        how = "in kernels with larger grids"
    share = 100.0 * one.more_ns / int(window)
    return Finding(
        "imbalance",
        one.more_ns,
        share,
        f"Rank {one.rank} has more work than the others: it computes {percent(one.more_pct)} longer, "
        f"{inputs.share(share)}{inputs.per_step(one.more_ns)}; {how}. This is why the others wait for it, "
        "not another loss.",
        _BALANCE,
        "kernel_breakdown",
        Evidence(rank=one.rank),
    )


def mutual_waiting(inputs: Inputs) -> Finding | None:
    """Ranks that wait for each other, none of which is the main cause."""
    try:
        if straggler(inputs):
            return None
    except MissingDataError:  # nobody is known to wait for anybody
        return None
    late = inputs.late
    waited = int(late["waited_ns"].sum())
    if not waited:
        return None
    cost, share = waiting_share(inputs)
    by_step = late.pivot_table("blamed_ns", "iteration", "rank", "sum")
    alone = by_step[2 * by_step.max(axis=1) > late.groupby("iteration")["waited_ns"].sum()]
    often = alone.idxmax(axis=1).value_counts()
    if 2 * len(alone) > len(by_step) > 1 and often.iloc[0] < _MOST_STEPS * len(by_step):
        why = (
            f"the slowest rank changes from step to step (rank {often.index[0]} in {often.iloc[0]} of "
            f"{len(by_step)})"
        )
    else:
        caused = late.groupby("rank")["blamed_ns"].sum()
        most = int(caused.index.to_numpy()[caused.to_numpy().argmax()])
        why = f"no rank causes most of it (rank {most} most, {percent(100.0 * caused[most] / waited)})"
    found = inputs.collectives
    in_pairs = found["dur_ns"].where(found["match_key"].eq("pair"), 0).sum()
    suggestion = _BALANCE
    if 2 * in_pairs > found["dur_ns"].sum():
        suggestion = "Run more microbatches per step, interleave the stages, or move their boundaries."
    elif 2 * inputs.waits["idle_ns"].sum() > waited:
        suggestion = "Look at what delays the hosts in turn: the data loader, garbage collection, logging."
    return Finding(
        "mutual_waiting",
        cost,
        share,
        f"The ranks wait for each other {inputs.share(share)}{inputs.per_step(cost)}, and {why}.",
        suggestion,
        "stragglers",
    )
