"""What each of several changes adds to the others: savings overlap, so they seldom add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.analysis.replay.expressions import written
from hta_widgets.analysis.replay.passes import ESTIMATE
from hta_widgets.analysis.replay.what_if import answered, planned, within_ranks
from hta_widgets.engine import checkpoint
from hta_widgets.frames import typed_frame
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

Change = Edit | Sequence[Edit]
"""An edit, or several that are one change."""

_COLUMNS = {
    "rank": "int64",
    "change": "int64",
    "edits": "str",
    "bound": "bool",
    "before_ns": "int64",
    "alone_ns": "int64",
    "next_ns": "int64",
    "together_ns": "int64",
}


def marginal_savings(trace: Trace, changes: Sequence[Change], scope: Scope | None = None) -> pd.DataFrame:
    """What does each of several changes save: alone, after those that save more, and all together?

    Two changes may take away the same time, or one may bring something only after the other. So the change
    that saves most is taken first, then the one that adds most to it, and so on: the greedy order.

    Args:
        trace: the job.
        changes: edits from the module `edits`; a list of edits among them counts as one change.
        scope: ranks and iterations, as in `what_if`.

    Returns:
        Rows for each rank whose replay can be trusted, one per change in greedy order (of equals, the first
        in the list comes first). Columns: rank int64; change int64, its place in `changes`; edits str, its
        expression; bound bool, it can be had at most in part; before_ns int64, the recorded time of the whole
        recording, or of the iterations of the scope together (ns); alone_ns int64, what the change saves of
        it by itself; next_ns int64, what it adds to what the rows above save, and together_ns int64, what it
        and they save (ns, the estimates of `what_if`; less than 0: it takes longer). For each rank, next_ns
        add up to the last together_ns.

    Raises:
        MissingDataError: no selected rank has device work, or the replay of none can be trusted.
        ValueError: a change is of several ranks.
    """
    scope = scope or Scope()
    taken = [(change,) if isinstance(change, Edit) else tuple(change) for change in changes]
    within_ranks(edit for made in taken for edit in made)
    recorded = answered(trace, (), scope)
    rows = []
    for rank, of_rank in recorded.groupby("rank", sort=False):
        own = replace(scope, ranks=(int(str(rank)),))
        before = time_of(of_rank, "before_ns")
        alone = [saved(trace, change, own) for change in taken]
        left, made, together = list(range(len(taken))), tuple[Edit, ...](), 0
        while left:
            with_it = [saved(trace, made + taken[i], own) for i in left] if made else alone
            best = max(range(len(left)), key=lambda place: with_it[place])
            i, above, together = left.pop(best), together, with_it[best]
            made += taken[i]
            rows.append(
                {
                    "rank": rank,
                    "change": i,
                    "edits": _expression(changes[i]),
                    "bound": any(edit.bound for edit in taken[i]),
                    "before_ns": before,
                    "alone_ns": alone[i],
                    "next_ns": together - above,
                    "together_ns": together,
                }
            )
    return typed_frame(rows, _COLUMNS)


def saved(trace: Trace, edits: Sequence[Edit], scope: Scope) -> int:
    """What edits save of a rank, ns: of the whole recording, or of the iterations of the scope together."""
    checkpoint()
    if scope.iterations is not None or scope.window_ns is not None:
        rows = answered(trace, edits, scope)
        return time_of(rows, "before_ns") - time_of(rows, "after_ns")
    (rank,) = trace.ranks_of(scope)
    plan = planned(trace.rank(rank), edits)
    return plan.graph.extent - int(plan.replay(ESTIMATE).max())


def time_of(rows: pd.DataFrame, column: str) -> int:
    """Of the whole recording if it is there, else of the iterations together, ns."""
    whole = rows["iteration"].isna()
    return int(rows.loc[whole if whole.any() else ~whole, column].sum())


def _expression(change: Change) -> str:
    if isinstance(change, Edit):
        return change.expression
    return written(change)
