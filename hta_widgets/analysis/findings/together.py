"""What the changes of the findings save alone, one after the other, and together: savings do not add."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.judging import found_with_savings
from hta_widgets.analysis.findings.saving import Judged, Saved
from hta_widgets.analysis.findings.savings import edits_of, saved
from hta_widgets.analysis.replay.expressions import parse_all, written
from hta_widgets.analysis.replay.what_if import answered
from hta_widgets.frames import typed_frame
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_SAME_PCT = 1e-6  # of shares of one whole, which differ by rounding

_COLUMNS = {
    "rank": "int64",
    "topic": "str",
    "edits": "str",
    "method": "str",
    "before_ns": "int64",
    "alone_low_ns": "int64",
    "alone_ns": "int64",
    "alone_high_ns": "int64",
    "marginal_ns": "int64",
    "together_ns": "int64",
}
_SAVED = {
    "clock": "str",
    "whole_ns": "int64",
    "low_ns": "int64",
    "ns": "int64",
    "high_ns": "int64",
    "noise_ns": "int64",
    "bound": "bool",
}


def savings(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """What do the changes that the findings suggest save alone, one after the other, and together?

    Each finding of `overview` whose cost an edit takes away is replayed alone. Then they are made together in
    a greedy order: first what saves most alone, next what saves most on top of those before.

    Args:
        trace: the job.
        scope: what the findings are about, as in `overview`. The whole recording is replayed and timed.

    Returns:
        One row per finding with an edit, by rank, in the greedy order. Columns: rank (int64, that was
        replayed), topic, edits, method (str: as in `overview`), before_ns (int64, ns of the whole recording
        as `what_if` has it), alone_low_ns, alone_ns, alone_high_ns (int64, ns that the edits of this finding
        save: at least, estimate, at most), marginal_ns (int64, ns that they save on top of those above) and
        together_ns (int64, ns that they and all above save). In each rank marginal_ns adds up to the last
        together_ns, which is no less than any alone_ns. No rows where nothing is found or replayed.
    """
    found = [each for each in found_with_savings(Inputs(trace, scope or Scope())) if each.saving.edits]
    ranks = sorted({each.saving.rank for each in found if each.saving.rank is not None})
    rows = [
        row
        for rank in ranks
        for row in _greedy(trace, rank, [each for each in found if each.saving.rank == rank])
    ]
    return typed_frame(rows, _COLUMNS)


def saved_together(trace: Trace, scope: Scope, rows: pd.DataFrame) -> Saved | None:
    """What the changes of some rows of `overview` save together; None where that cannot be told.

    It can where two or more were replayed on one rank, and one clock times the steps with each and with all.
    """
    ranks = set(rows["saving_rank"])
    is_replayed = rows["method"].isin(["replay", "bound"]).all()
    if len(rows) < 2 or not is_replayed or len(ranks) > 1 or pd.NA in ranks:
        return None
    (rank,) = ranks
    found = _replayed_together(trace, scope, int(rank), tuple(rows["edits"]))
    both = next((Saved(*row) for row in found.itertuples(index=False)), None)
    if both is None or both.ns < rows["saving_ns"].max():
        return None
    shares = 100.0 * rows["saving_ns"] / both.whole_ns
    return both if (shares - rows["saving_pct"]).abs().max() < _SAME_PCT else None


@kept()
def _replayed_together(
    trace: Trace, scope: Scope | None = None, rank: int = 0, edits: tuple[str, ...] = ()
) -> pd.DataFrame:
    """What these edits save together on a rank, a column for each field of `Saved`; no row where none can.

    Kept, since it is asked of every job that is opened, and takes the graph of the rank and a replay.
    """
    made = tuple(edit for text in edits for edit in parse_all(text))
    found = saved(Inputs(trace, scope or Scope()), rank, made)
    return pd.DataFrame([vars(found)] if found else [], columns=list(_SAVED)).astype(_SAVED)


def _greedy(trace: Trace, rank: int, left: list[Judged]) -> Iterator[dict[str, object]]:
    alone = {each.rule.topic: _recording(trace, rank, [each]) for each in left}
    made: list[Judged] = []
    together = 0
    while left:
        after = {each.rule.topic: int(_recording(trace, rank, [*made, each])["after_ns"]) for each in left}
        best = min(left, key=lambda each: (after[each.rule.topic], each.rule.topic))
        left = [each for each in left if each is not best]
        made.append(best)
        own = alone[best.rule.topic]
        before, saved = int(own["before_ns"]), int(own["before_ns"]) - after[best.rule.topic]
        yield {
            "rank": rank,
            "topic": best.rule.topic,
            "edits": written(best.saving.edits),
            "method": best.saving.method,
            "before_ns": before,
            "alone_low_ns": before - int(own["high_ns"]),
            "alone_ns": before - int(own["after_ns"]),
            "alone_high_ns": before - int(own["low_ns"]),
            "marginal_ns": saved - together,
            "together_ns": saved,
        }
        together = saved


def _recording(trace: Trace, rank: int, judged: list[Judged]) -> pd.Series:
    """The row of `what_if` for the whole recording of a rank."""
    frame = answered(trace, edits_of(judged), Scope(ranks=(rank,)))
    return frame[frame["iteration"].isna()].iloc[0]
