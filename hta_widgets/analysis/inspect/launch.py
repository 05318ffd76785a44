"""How a piece of device work was launched."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.inspect.record import Launch
from hta_widgets.analysis.inspect.refs import ref, several
from hta_widgets.analysis.launches.delays import measured
from hta_widgets.analysis.launches.launched import Launched, launched
from hta_widgets.errors import RECORD_DEVICE
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace


def launch_of(rank_trace: RankTrace, row: int) -> Launch | str:
    """The launch of a row, or why none is known."""
    if not rank_trace.is_device[row]:
        return "only device work is launched"
    call = int(rank_trace.launch[row])
    if call < 0 and row in rank_trace.earlier_work:
        return "it was launched before the recording began"
    if call < 0:
        return f"no recorded call launched it. {RECORD_DEVICE}"
    is_wait = rank_trace.event_class[row] == EventClass.SYNC
    work = Launched(rank_trace, waits=True) if is_wait else launched(rank_trace)
    timed = measured(rank_trace, work, np.flatnonzero(work.rows == row)).iloc[0]
    latency, queued, overhead, delay = (
        int(timed[f"{name}_ns"]) for name in ("latency", "queued", "overhead", "launch_delay")
    )
    siblings = np.flatnonzero(rank_trace.is_device & (rank_trace.launch == call))
    return Launch(
        ref(rank_trace, call),
        latency,
        queued,
        overhead,
        delay,
        several(rank_trace, siblings[siblings != row]),
    )
