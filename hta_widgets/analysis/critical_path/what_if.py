"""What would a change save, and what is waited for then? The recording replayed under it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from hta_widgets.analysis.critical_path.replayed import path_of
from hta_widgets.analysis.critical_path.table import LIMITS
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.analysis.replay.what_if import answered, replayed
from hta_widgets.arrays import Int64
from hta_widgets.engine import checkpoint
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

_COLUMNS = [f"path_{limit}_ns" for limit in LIMITS]
_UNKNOWN = -1
_WHOLE = -1


def what_if(
    trace: Trace, edits: Edit | Sequence[Edit], scope: Scope | None = None, *, path: bool = False
) -> pd.DataFrame:
    """How long would the iterations take after a change?

    Each rank is replayed by itself through its dependencies: every call and every piece of device work
    happens as soon as what it waits for has happened, in the recorded order. What other ranks do stays as it
    was, so a collective takes as long as it did unless it is edited. Edits of several ranks
    (`edits.no_stragglers`, `edits.median_rank`, `edits.even_operations`, `edits.faster_links`,
    `edits.larger_buckets`, `edits.microbatches`) are answered
    by the replay of all ranks together, as in `slowdown`.

    Args:
        trace: the job.
        edits: the change, or several made together, from the module `edits`; an empty list changes nothing.
        scope: ranks and iterations to report; of a window, the iterations that overlap it. The whole
            recording is always replayed.
        path: also say where the critical path leads after the change. It takes longer than the rest.

    Returns:
        For each rank one row for the whole recording (without a choice of iterations or of a window in the
        scope), from the first call or device event to the last, and one per complete iteration. Columns:
        rank int64; iteration Int64, NA for the whole recording; clock str, what times the iteration, before
        and after: "host", "device", or, where the change lets the device fall behind a host that times the
        recording (by more than 0.5 % of the time), "device period" (from an iteration's first device work to
        the next one's); empty for the whole recording; before_ns, low_ns, after_ns, high_ns (int64, ns): its
        time as recorded, and replayed: the estimate between the shortest and the longest that the recording
        allows for. They differ where work on other streams delays, by sharing the device, what does not
        depend on it; a change to be had only in part (`bound`) may also change nothing. compute_ns,
        exposed_communication_ns, exposed_memory_ns, idle_ns (int64, ns): where after_ns goes, as
        `temporal_breakdown` divides it; they add up to after_ns. model_error_pct float64 and inferred
        int64: see `replay_quality`.
        With `path`, also path_cpu_bound_ns, path_data_loading_ns and so on (Int64, ns), one column for each
        bound_by of `critical_path`: what `replayed_path`, the chain of causes of what happens last in the
        recording, leads through within after_ns. They add up to after_ns; of edits of several ranks they are
        NA.
        Of edits of several ranks there is a row per rank and complete iteration that all ranks have. Its time
        is from the job's begin of the iteration to the rank's last device work; before_ns is replayed, too,
        and by model_error_pct longer than recorded; clock is "device"; low_ns and high_ns differ where the
        recording leaves the order of operations open; inferred counts dependencies between streams.

    Raises:
        MissingDataError: no selected rank has device work, or the replay of none can be trusted; of edits of
            several ranks: the trace has one rank, ranks do not meet, or their order does not explain the
            recording.
        ValueError: edits of several ranks together with others, or of a rank that the job does not have.
    """
    changes = (edits,) if isinstance(edits, Edit) else tuple(edits)
    frame = answered(trace, changes, scope)
    if not path:
        return frame
    found = np.full((len(frame), len(LIMITS)), _UNKNOWN)
    if not any(edit.across for edit in changes):
        for rank in frame["rank"].unique().tolist():
            checkpoint()
            at = (frame["rank"] == rank).to_numpy(np.bool_)
            found[at] = _path_within(trace.rank(rank), changes, frame["iteration"][at])
    columns = pd.DataFrame(found, frame.index, _COLUMNS, "Int64")
    return pd.concat([frame, columns.mask(found == _UNKNOWN)], axis=1)


def _path_within(rank_trace: RankTrace, edits: tuple[Edit, ...], iterations: pd.Series[int]) -> Int64:
    """How long the critical path of a rank leads through each kind of limit, in each of these iterations."""
    every = replayed(rank_trace, edits, parts=True)  # as `answered` has asked
    numbers = every["iteration"].fillna(_WHOLE)
    chosen = every[numbers.isin(iterations.fillna(_WHOLE))]
    segments = path_of(rank_trace, edits)
    start, end = (segments[name].to_numpy(np.int64) for name in ("start_ns", "end_ns"))
    limit = pd.Index(LIMITS).get_indexer(pd.Index(segments["bound_by"]))
    summed = np.zeros((len(chosen), len(LIMITS)), np.int64)
    begin, dur = (chosen[name].to_numpy(np.int64) for name in ("start_ns", "after_ns"))
    for row, (since, until) in enumerate(zip(begin.tolist(), (begin + dur).tolist(), strict=True)):
        np.add.at(summed[row], limit, np.maximum(np.minimum(end, until) - np.maximum(start, since), 0))
    return summed
