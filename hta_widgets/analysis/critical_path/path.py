"""The critical path of a window of one rank, as a table of segments without gaps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.text_columns import stacked
from hta_widgets.analysis.critical_path.chain import chain_of, has_launches, joined
from hta_widgets.analysis.critical_path.segments import segments_of
from hta_widgets.analysis.critical_path.summary import sentence
from hta_widgets.analysis.critical_path.table import COLUMNS, table_of
from hta_widgets.arrays import Int64
from hta_widgets.charts.spec import Segments, Series, Stack
from hta_widgets.engine import checkpoint
from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

DATA_LOADING = (r"DataLoader",)


@kept(by_rank=True)
def critical_path(
    trace: Trace,
    scope: Scope | None = None,
    *,
    annotation: str | None = None,
    instance: int = 0,
    data_loading: Sequence[str] = DATA_LOADING,
) -> pd.DataFrame:
    """What was a rank waiting for at each instant of a window?

    The path ends with the device event that finishes last of all work launched before the window's end or, if
    the device is done by then, with the host. From there it follows the dependency graph that `what_if`
    replays (docs/what_if.md) back from effect to cause, at each point to the one that decided when it
    happened:

    - a device event waits for the event before it on its stream, for its launch, and for work on other
      streams. Of a launch, the time until its call has ended is the host's, the rest a delay.
    - a synchronising call, a blocking copy and a launch into a full queue return after device work.
    - any other point of the host follows what its thread did before, or after a pause of more than 50 us
      what another launching thread ended meanwhile (autograd's threads); this is inferred. Host time is that
      of the innermost call open then.

    Waits are taken from ``cuda_sync`` events. Without these (``inferred``) synchronising calls are known by
    name and wait for the last work to end before they return, collectives wait for work of other streams
    launched before them, and an event that starts late just after work on another stream ended waited for
    it. Work without a recorded launch follows the work before it on its stream, and the host where the device
    mostly idled in between; this is inferred too.

    Args:
        trace: the job.
        scope: ranks, and the iterations or the time window to look at. Without either, the first iteration
            that is not cut by the recording.
        annotation: instead, take the window of a host annotation whose name contains this text.
        instance: which one, counted in time order from 0.
        data_loading: regular expressions; host time inside annotations and calls that match one is
            ``data_loading``.

    Returns:
        One row per segment, by rank and time. Within a window each segment starts where the one before ends,
        the first at its start and the last at its end. Columns: rank int64; start_ns, end_ns, dur_ns (int64,
        ns); kind category (operator, host, sync, kernel, launch_delay, kernel_kernel, dependency); event_id
        int64 (-1 for none), name, event_class (category) of the event that the segment is attributed to (of
        delays: the event that was delayed); thread category ("pid/tid", empty on the device); stream Int64
        (null on the host); bound_by category (cpu_bound, data_loading, gpu_compute_bound,
        gpu_communication_bound, gpu_memory_bound, kernel_launch_overhead, kernel_kernel_overhead, sync);
        inferred bool.

    Raises:
        MissingDataError: no selected rank has device work with a recorded launch.
        ValueError: the annotation has no such instance.

    The path is the binding chain of the unchanged replay. That of the critical path analysis of Holistic
    Trace Analysis (`CriticalPathAnalysis`) is the longest chain of work and leaves out waiting; this one has
    no gaps.
    """
    scope = scope or Scope()
    frames: list[pd.DataFrame] = []
    ranks = trace.ranks_of(scope)
    launched = False
    for rank in ranks:
        checkpoint()
        rank_trace = trace.rank(rank)
        if not has_launches(rank_trace):
            continue
        launched = True
        windows = _windows(rank_trace, scope, annotation, instance)
        if windows:
            frames.append(_of_rank(rank_trace, windows, data_loading))
    if ranks and not launched:
        raise MissingDataError(
            "link from device work to its launch",
            RECORD_DEVICE,
            "no device event has a launching call with the same correlation id",
        )
    if not frames:
        return pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in COLUMNS.items()})
    return stacked(frames).astype(COLUMNS)


def _windows(
    rank_trace: RankTrace, scope: Scope, annotation: str | None, instance: int
) -> list[tuple[int, int]]:
    if annotation is not None:
        rows = annotation_rows(rank_trace, annotation)
        if not 0 <= instance < len(rows):
            raise ValueError(
                f"{annotation!r} has {len(rows)} instances on rank {rank_trace.rank}, not {instance}"
            )
        row = rows[instance]
        return [(int(rank_trace.start[row]), int(rank_trace.end[row]))]
    if scope.iterations is None and scope.window_ns is None:
        frame = rank_trace.iterations
        whole = frame[~frame["partial"]]
        chosen = (whole if len(whole) else frame).head(1)
        spans = chosen[["start_ns", "end_ns"]].to_numpy(np.int64)
    else:
        spans = rank_trace.windows(scope)
    return [(int(first), int(last)) for first, last in spans if first < last]


def annotation_rows(rank_trace: RankTrace, text: str) -> Int64:
    """The host rows whose name contains `text`, in time order: annotations, or else other calls."""
    matches = np.array([text in name for name in rank_trace.names], np.bool_)[rank_trace.name]
    matches &= rank_trace.on_host & (rank_trace.event_class != EventClass.SYNC)
    annotations = matches & (rank_trace.event_class == EventClass.ANNOTATION)
    chosen = annotations if annotations.any() else matches
    return rank_trace.by_start[chosen[rank_trace.by_start]]


def _of_rank(
    rank_trace: RankTrace, windows: Sequence[tuple[int, int]], data_loading: Sequence[str]
) -> pd.DataFrame:
    chains = []
    for first, last in windows:
        checkpoint()
        chains.append(chain_of(rank_trace, first, last))
    return table_of(rank_trace, segments_of(rank_trace, joined(chains)), data_loading)


_HELD_UP = (
    Series("cpu_bound", "Host", "host"),
    Series("data_loading", "Data loading", "host", "/"),
    Series("gpu_compute_bound", "Compute", "compute"),
    Series("gpu_communication_bound", "Communication", "communication"),
    Series("gpu_memory_bound", "Memory", "memory"),
    Series("kernel_launch_overhead", "Launch delay", "idle"),
    Series("kernel_kernel_overhead", "Between kernels", "idle", "/"),
    Series("sync", "Synchronisation", "sync"),
)

ANALYSIS = Analysis(
    label="Critical path",
    group="Critical path",
    title="What decides how long the window takes",
    function=critical_path,
    sentence=sentence,
    chart=Stack(_HELD_UP, "path_ns", part="bound_by", value="dur_ns"),
    requires=("link from device work to its launch",),
    pictured=Segments(_HELD_UP, "start_ns", "dur_ns", "bound_by", "name"),
)
