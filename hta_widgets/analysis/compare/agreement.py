"""A step, its parts, and the kernels that these consist of confirm each other's change.

They are about the same time, but each level is corrected for its own number of comparisons: a copy that takes
1.2 ms longer may be lost among 200 kernels while exposed memory, one of eleven parts, has significantly grown
by just that; and fifteen slower kernels may be significant while compute, which holds their sum, is not. So
where a change agrees with that of the level above or below, and that one is significant, it needs to stand
only alone: zero outside its own 99 % interval. A test that is made only after another one has rejected takes
nothing from that one's level (gatekeeping: Westfall and Krishen, "Optimally weighted, fixed sequence and
gatekeeper multiple testing procedures", Journal of Statistical Planning and Inference 99, 2001). Between
equal runs nothing is confirmed unless something was significant before.

They need not agree: kernels run beside each other and beyond the end of their step, and a copy that takes as
long as before may be hidden no longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from hta_widgets.analysis.compare.entries import Line
from hta_widgets.analysis.compare.noise import Difference, difference
from hta_widgets.analysis.idle.split import BUSY, PARTS
from hta_widgets.arrays import Bool, Float64, Int64
from hta_widgets.trace.classify import EventClass

Float = Float64

_SHARE: Final = 0.8  # of the greater of two changes that agree, the smaller one is at least so much

_PART_OF: Final = {
    EventClass.COMMUNICATION.label: "exposed_communication",
    EventClass.MEMORY_COPY.label: "exposed_memory",
    EventClass.MEMORY_SET.label: "exposed_memory",
}  # all other device work counts as compute (`device_time.busy`)


def part_of(kind: str) -> str:
    """The part of a step that device work of a kind belongs to."""
    return _PART_OF.get(kind, BUSY[0])


def parts_of(lines: Sequence[Line]) -> Int64:
    """int64 per line by kernel or collective: the place in `PARTS` of the part that its kind belongs to."""
    return np.array([PARTS.index(part_of(line.kind)) for line in lines], np.int64)


def judged(
    before: Float, after: Float, lines: Difference, part_of: Int64
) -> tuple[Difference, Difference, Difference]:
    """The differences of the step, of its parts and of the lines, with what they confirm in each other.

    Args:
        before, after: [steps, parts] of both runs.
        lines: the difference of the lines between the same runs.
        part_of: of each line, the place of its part.
    """
    whole = difference(before.sum(axis=1, keepdims=True), after.sum(axis=1, keepdims=True))
    parts = difference(before, after)
    step, parts = _agreed(whole, parts, np.zeros(len(parts.change), np.int64))
    parts, lines = _agreed(parts, lines, part_of)
    return step, parts, lines


def _agreed(wholes: Difference, parts: Difference, whole_of: Int64) -> tuple[Difference, Difference]:
    """Both: a part confirmed by its whole, a whole by the sum of its significant parts."""
    by_whole = parts.alone & wholes.significant[whole_of] & _agree(parts.change, wholes.change[whole_of])
    significant = np.where(parts.significant, parts.change, 0.0)
    explained = np.bincount(whole_of, significant, len(wholes.change)).astype(np.float64)
    by_parts = wholes.alone & _agree(explained, wholes.change)
    return (
        replace(wholes, significant=wholes.significant | by_parts),
        replace(parts, significant=parts.significant | by_whole),
    )


def _agree(first: Float, second: Float) -> Bool:
    """Of one sign, and alike in size."""
    sizes = np.sort(np.abs([first, second]), axis=0)
    return (first * second > 0) & (sizes[0] >= _SHARE * sizes[1])
