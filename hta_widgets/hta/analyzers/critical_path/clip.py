"""Which events of a rank the graph is about: those of some instances of an annotation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hta_widgets.analysis.critical_path.path import annotation_rows
from hta_widgets.arrays import Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.waits import CONTEXT_SYNC, EVENT_SYNC, STREAM_WAIT, named_rows, sync_links


@dataclass(frozen=True)
class Clip:
    """Rows of one rank within a window."""

    rank_trace: RankTrace
    host: Int64  # rows of host threads; device: device work launched by them; sync: ``cuda_sync`` rows
    device: Int64
    sync: Int64
    # host call of each row of the rank: the launch of device work, the call of a sync row; -1: none
    call: Int64

    @property
    def rows(self) -> Int64:
        """All rows, in file order."""
        return np.sort(np.concatenate([self.host, self.device, self.sync]))


def instances_window(rank_trace: RankTrace, annotation: str, first: int, last: int) -> tuple[int, int] | None:
    """The time from the start of instance `first` of an annotation to the end of instance `last`.

    Instances are host annotations whose name contains the text, in time order (other host calls where no
    annotation does), and after these the device's copies of annotations. None: there are not so many. An
    empty text means the whole recording.
    """
    if annotation == "":
        return rank_trace.extent
    named = np.array([annotation in name for name in rank_trace.names], np.bool_)[rank_trace.name]
    copies = named & (rank_trace.event_class == EventClass.ANNOTATION) & (rank_trace.stream != NULL)
    copies_by_time = rank_trace.by_start[copies[rank_trace.by_start]]
    rows = np.concatenate([annotation_rows(rank_trace, annotation), copies_by_time])
    chosen = rows[first : last + 1] if 0 <= first <= last else rows[:0]
    if not len(chosen):
        return None
    return int(rank_trace.start[chosen].min()), int(rank_trace.end[chosen].max())


def clip(rank_trace: RankTrace, window: tuple[int, int]) -> Clip:
    """The host rows that start in a window, and the device work that they launch, whenever it runs.

    Rows without length are left out: they cannot hold anything up. Waits of one stream for another are kept
    wherever they are, since they may hold back what the window launches.
    """
    first, last = window
    starts = (rank_trace.start >= first) & (rank_trace.start <= last) & (rank_trace.dur > 0)
    recording = np.array([category == "Trace" for category in rank_trace.categories], np.bool_)
    is_sync = rank_trace.event_class == EventClass.SYNC
    host = starts & rank_trace.on_host & ~is_sync
    host &= ~recording[rank_trace.category]
    call = np.where(is_sync, sync_links(rank_trace), rank_trace.launch).astype(np.int64)
    called = (call >= 0) & starts[call]
    device = rank_trace.is_device & ~is_sync & called
    own_time = np.zeros(rank_trace.n, np.bool_)
    own_time[named_rows(rank_trace, EVENT_SYNC, CONTEXT_SYNC)] = True
    anywhere = np.zeros(rank_trace.n, np.bool_)
    anywhere[named_rows(rank_trace, STREAM_WAIT)] = True
    sync = is_sync & (np.where(own_time, starts, called) | anywhere)
    return Clip(rank_trace, np.flatnonzero(host), np.flatnonzero(device), np.flatnonzero(sync), call)
