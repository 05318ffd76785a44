"""What each block of memory was for, by when in a training step it was allocated and freed."""

from __future__ import annotations

from typing import Final

import numpy as np

from hta_widgets.analysis.calls.phases import PHASES, phases
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.memory.events import Changes, changes_of, innermost
from hta_widgets.analysis.operators.categories import category_of
from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

LIFETIMES: Final = (
    "parameter", "optimizer state", "gradient", "activation", "temporary", "communication", "unknown",
)  # fmt: skip
_FORWARD, _BACKWARD, _OPTIMIZER, _OTHER = range(len(PHASES))


class Lifetimes:
    """The blocks of a rank, by position in its `Changes`.

    A part of the recording is a run of forward calls, of backward calls or of optimizer calls, up to the next
    of another phase; see `Phases` for what these calls are. Of a block that was allocated

    in an operator that communicates: "communication";
    and freed in the same part: "temporary";
    in forward, and freed when a backward had begun: "activation";
    in backward, and not freed before an optimizer began: "gradient";
    in the optimizer, and not freed: "optimizer state";
    before the first part, and not freed though a backward followed: "parameter".

    All others are "unknown": kept without a backward, or beyond the end of the recording.

    Attributes:
        operator: row of the innermost operator open on the thread at each change, -1 for none.
        phase: position in `PHASES` of what was open on the thread.
        freed: position of the free of each allocation, -1 for none.
        lifetime: position in `LIFETIMES` of each allocation's; meaningless for frees.
    """

    def __init__(self, rank_trace: RankTrace, offset_ns: int) -> None:
        changes = changes_of(rank_trace, offset_ns)
        everything = np.arange(len(changes.time))
        self.operator = innermost(rank_trace, EventClass.HOST_OP, changes, everything)
        self.phase = _phase(rank_trace, changes, self.operator)
        self.freed = _freed(changes)
        part, parts = _parts(rank_trace, changes.time)
        last = np.where(self.freed >= 0, part[self.freed], len(parts))
        kept, phase = self.freed < 0, self.phase
        backwards, optimizers = (
            np.concatenate([[0], np.cumsum(parts == each)]) for each in (_BACKWARD, _OPTIMIZER)
        )

        def begun(count: Int64) -> Bool:
            """Whether a part of a kind began while the block was there."""
            return np.asarray(count[np.minimum(last + 1, len(parts))] > count[part + 1], np.bool_)

        rules = (
            ("communication", _communicates(rank_trace, self.operator)),
            ("temporary", ~kept & (last == part)),
            ("activation", (phase == _FORWARD) & ~kept & begun(backwards)),
            ("gradient", (phase == _BACKWARD) & begun(optimizers)),
            ("optimizer state", (phase == _OPTIMIZER) & kept),
            ("parameter", (phase == _OTHER) & kept & (part < 0) & begun(backwards)),
        )
        self.lifetime: Int64 = np.select(
            [holds for _, holds in rules],
            [LIFETIMES.index(name) for name, _ in rules],
            LIFETIMES.index("unknown"),
        ).astype(np.int64)


lifetimes_of = memoize_per_rank()(Lifetimes)


def _phase(rank_trace: RankTrace, changes: Changes, operator: Int64) -> Int64:
    """By the innermost operator, annotation or Python function that belongs to a phase."""
    of = np.append(phases(rank_trace).of, np.int8(_OTHER))
    found = of[operator].astype(np.int64)
    for event_class in (EventClass.ANNOTATION, EventClass.PYTHON):
        rest = np.flatnonzero(found == _OTHER)
        found[rest] = of[innermost(rank_trace, event_class, changes, rest)]
    return found


def _freed(changes: Changes) -> Int64:
    """The next change of each allocation's address on its device, if it is a free."""
    order = np.lexsort((np.arange(len(changes.time)), changes.address, changes.place))
    freed = np.full(len(order), -1, np.int64)
    first, second = order[:-1], order[1:]
    pairs = (changes.address[first] == changes.address[second]) & (
        changes.place[first] == changes.place[second]
    )
    pairs &= (changes.change[first] > 0) & (changes.change[second] < 0)
    freed[first[pairs]] = second[pairs]
    return freed


def _parts(rank_trace: RankTrace, time: Int64) -> tuple[Int64, Int64]:
    """The part that each time lies in, -1 before the first; and the phase of each part."""
    found = phases(rank_trace)
    calls = found.outermost[np.argsort(rank_trace.start[found.outermost], kind="stable")]
    begins = np.append(True, np.diff(found.of[calls]) != 0)[: len(calls)]
    part = np.searchsorted(rank_trace.start[calls[begins]], time, side="right") - 1
    return part.astype(np.int64), found.of[calls[begins]]


def _communicates(rank_trace: RankTrace, operator: Int64) -> Bool:
    """Whether an operator, or one around it, communicates."""
    named = np.array([category_of(name) == "communication" for name in rank_trace.names] or [False], np.bool_)
    found, row = np.zeros(len(operator), np.bool_), operator
    while (row >= 0).any():
        is_operator = rank_trace.event_class[row] == EventClass.HOST_OP
        found |= (row >= 0) & is_operator & named[rank_trace.name[row]]
        row = np.where(row >= 0, rank_trace.parent[row], -1)
    return found
