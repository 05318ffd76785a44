"""Why a stream ran nothing around a moment, and what the host did meanwhile."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.device_time.busy import busy
from hta_widgets.analysis.idle.breakdown import CONSECUTIVE_KERNEL_DELAY_NS
from hta_widgets.analysis.idle.causes import CAUSES, idle_causes
from hta_widgets.analysis.idle.places import Place, host_places
from hta_widgets.analysis.inspect.launch import launch_of
from hta_widgets.analysis.inspect.record import EventRef, Launch
from hta_widgets.analysis.inspect.refs import ref_or_none
from hta_widgets.arrays import Int64
from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope


@dataclass(frozen=True)
class GapFacts:
    """A stretch in which a stream ran nothing. Times in ns."""

    # which it is; at either end of the recording, as far as that goes
    rank: int
    stream: int
    start_ns: int
    end_ns: int
    causes_ns: dict[str, int]  # why, by the causes of `idle_breakdown`; they add up to the gap
    others_busy_ns: int  # the part of it in which other streams of the rank ran something
    # the work that ends where it begins, and that which ends it; None: there is none
    before: EventRef | None
    after: EventRef | None
    launch: Launch | None  # how the work after it was launched; why_no_launch: why that is unknown, else ""
    why_no_launch: str
    # the calls that were open on the thread that launched the work after it, while the gap waited for the
    # host, as `host_places` chooses them; empty where it did not
    host: tuple[Place, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same as dicts, lists and plain values, for `json.dumps`."""
        return asdict(self)


def inspect_gap(
    trace: Trace,
    rank: int,
    stream: int,
    time_ns: int,
    *,
    consecutive_kernel_delay_ns: int = CONSECUTIVE_KERNEL_DELAY_NS,
) -> GapFacts | None:
    """Why did a stream run nothing around a moment, and what ended that?

    Args:
        trace: the job.
        rank: its rank.
        stream: the device stream.
        time_ns: the moment, on the job's axis.
        consecutive_kernel_delay_ns: as in `idle_breakdown`.

    Returns:
        The gap as `GapFacts`; None if the stream ran something then.

    Raises:
        KeyError: there is no such rank.
        MissingDataError: the stream has no device work.
    """
    rank_trace, scope = trace.rank(rank), Scope(streams=(stream,))
    work = _work_on(rank_trace, stream)
    if not len(work):
        raise MissingDataError(f"device events on stream {stream} of rank {rank_trace.label}", RECORD_DEVICE)
    idle = idle_causes(rank_trace, scope, consecutive_kernel_delay_ns)
    at = int(np.searchsorted(idle.gaps.start, time_ns, side="right")) - 1
    if idle.gaps.end[at] <= time_ns:
        return None
    first, last = rank_trace.extent
    start, end = max(int(idle.gaps.start[at]), first), min(int(idle.gaps.end[at]), last)
    windows = np.array([[start, end]], np.int64)
    after = int(idle.next_row[at])
    ends_here = work[rank_trace.end[work] == start]
    before = int(ends_here[rank_trace.start[ends_here].argmax()]) if len(ends_here) else -1
    waits = _before_launch(rank_trace, after, start, end)
    launch = launch_of(rank_trace, after) if after >= 0 else "no work follows on the stream"
    return GapFacts(
        rank=rank,
        stream=stream,
        start_ns=start,
        end_ns=end,
        causes_ns={cause: idle.causes[cause].within(windows) for cause in CAUSES},
        others_busy_ns=busy(rank_trace, Scope()).any.within(windows),
        before=ref_or_none(rank_trace, before),
        after=ref_or_none(rank_trace, after),
        launch=launch if isinstance(launch, Launch) else None,
        why_no_launch=launch if isinstance(launch, str) else "",
        host=tuple(host_places(rank_trace, idle, waits, np.array([[first, last]], np.int64))),
    )


def _work_on(rank_trace: RankTrace, stream: int) -> Int64:
    """Work that takes time, as what takes none interrupts no gap."""
    works = rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC) & (rank_trace.dur > 0)
    return np.flatnonzero(works & (rank_trace.stream == stream))


def _before_launch(rank_trace: RankTrace, after: int, start: int, end: int) -> Intervals:
    """The part of a gap before the launch of what ends it began."""
    called = int(rank_trace.launched_at(np.array([after]))[0]) if after >= 0 else NULL
    return Intervals.union([start], [min(max(called, start), end)])
