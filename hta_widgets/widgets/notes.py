"""What a panel adds in words to its answer: the longest gaps, with their causes and events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hta_widgets.analysis.gaps import explain
from hta_widgets.widgets.memo import answer

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.scope import Scope

__all__ = ["Note", "notes_on"]

_MOST = 5

Note = dict[str, Any]


def notes_on(trace: Trace, kind: str, scope: Scope) -> list[Note]:
    """`[{text, window, focus}]` for a panel `kind`: the time that a note is about, and (rank, event_id)."""
    if kind != "idle_gaps" and not (kind == "idle_breakdown" and scope.window_ns):
        return []
    gaps = answer(trace, "idle_gaps", scope).nlargest(_MOST, "dur_ns")
    return [
        {
            "text": f"Rank {gap['rank']}: {explain(gap)}",
            "window": [int(gap["start_ns"]), int(gap["end_ns"])],
            "focus": [int(gap["rank"]), int(gap["event_id"])] if gap["event_id"] >= 0 else None,
        }
        for _, gap in gaps.iterrows()
    ]
