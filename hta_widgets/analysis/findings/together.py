"""What the changes of the findings save alone, one after the other, and together: savings do not add."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.judging import found_with_savings
from hta_widgets.analysis.findings.saving import Judged
from hta_widgets.analysis.findings.savings import edits_of
from hta_widgets.analysis.replay.expressions import written
from hta_widgets.analysis.replay.what_if import answered
from hta_widgets.frames import typed_frame
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

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
