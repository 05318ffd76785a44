"""Drops the last profiler step, as HTA does by default.

A recording often ends inside its last step, so HTA drops it, including device work launched in it. The rules
are those of `Trace.load_traces` in HTA 0.6, with its bugs fixed: only host annotations are steps, and a rank
without steps is not changed.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL


def without_last_step(trace: Trace) -> Trace:
    """The job up to the start of each rank's last ProfilerStep; the job itself if it has fewer than two.

    Host rows stay if they start before it; device rows if their cause stays: their launch (by correlation)
    or, for the device's side of an annotation, the host's side (by external id). Device rows of unknown cause
    stay if they start before it.
    """
    steps = {rank: _steps(trace.rank(rank)) for rank in trace.ranks}
    if len({number for frame in steps.values() for number in frame["iteration"]}) < 2:
        return trace
    cut = {rank: int(frame["host_start_ns"].max()) for rank, frame in steps.items() if len(frame)}
    return trace.keep(lambda rank_trace: _begun_before(rank_trace, cut.get(rank_trace.rank)))


def _steps(rank_trace: RankTrace) -> pd.DataFrame:
    return rank_trace.iterations[rank_trace.iterations["source"] == "ProfilerStep"]


def _begun_before(rank_trace: RankTrace, cut: int | None) -> Bool:
    if cut is None:
        return np.ones(rank_trace.n, np.bool_)
    kept: Bool = rank_trace.start < cut
    device = rank_trace.launched
    kept[device] = kept[rank_trace.launch[device]]
    on_device = rank_trace.stream != NULL
    waits = on_device & (rank_trace.event_class == EventClass.SYNC)
    calls = ~on_device & (rank_trace.event_class == EventClass.RUNTIME)
    _follow(kept, rank_trace.correlation, waits, calls)
    annotations = rank_trace.event_class == EventClass.ANNOTATION
    _follow(kept, rank_trace.argument("external_id"), annotations & on_device, annotations & ~on_device)
    return kept


def _follow(kept: Bool, key: Int64, effects: Bool, causes: Bool) -> None:
    """Mark each effect like its cause, the row with the same key; those without a cause are unchanged."""
    usable = (key != NULL) & (key != 0)
    cause = np.flatnonzero(causes & usable)
    effect = np.flatnonzero(effects & usable)
    if not len(cause):
        return
    cause = cause[np.argsort(key[cause], kind="stable")]
    at = np.minimum(np.searchsorted(key[cause], key[effect]), len(cause) - 1)
    found = key[cause[at]] == key[effect]
    kept[effect[found]] = kept[cause[at[found]]]
