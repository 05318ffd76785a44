"""What the building of a dependency graph has seen so far, in the order of the graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hta_widgets.arrays import Int64

NODE, TIME, THREAD = range(3)


class Progress(NamedTuple):
    """Attributes:
    last: for each thread its last node, -1 for none yet.
    done: node, time, thread of the last point that ended something, of any thread; node 0 for none yet.
    last_event: for each stream its last launched event, -1 for none.
    last_of_thread: for each thread the last event that it launched, -1 for none.
    last_of_call: for each host point where a call begins, the last event that it launched, -1 for none.
    launching: the host points of the calls that launched something, in order; ``launched``: how many, in [0].
    """

    last: Int64
    done: Int64
    last_event: Int64
    last_of_thread: Int64
    last_of_call: Int64
    launching: Int64
    launched: Int64


def start(threads: int, streams: int, points: int) -> Progress:
    """Nothing seen yet."""
    return Progress(
        last=np.full(threads, -1, np.int64),
        done=np.array([0, 0, -1], np.int64),
        last_event=np.full(streams, -1, np.int64),
        last_of_thread=np.full(threads, -1, np.int64),
        last_of_call=np.full(points, -1, np.int64),
        launching=np.empty(points, np.int64),
        launched=np.zeros(1, np.int64),
    )
