"""Every counter of a job, as one table."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.counters.derived import derived_counters
from hta_widgets.analysis.counters.recorded import recorded_counters
from hta_widgets.analysis.counters.series import Counter
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_RANKS_KEPT: Final = 16
_COLUMNS: Final = {
    "rank": "int64", "counter": "str", "key": "str", "unit": "str", "device": "Int64", "stream": "Int64",
    "time_ns": "int64", "value": "float64",
}  # fmt: skip


def counters(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """How did queues, memory, bandwidth and what the recording itself counts change over time?

    - `queue length` of each stream: launched and not begun, as `queue_length` has it;
    - `allocated memory` and `reserved memory` of each device, as `memory_timeline` has them;
    - `copy bandwidth` by kind of copy, as `memory_bandwidth` has it;
    - `estimated SM efficiency` of each device: the share of its multiprocessors that have a block, which is
      the kernel's blocks by their number, at most all of them; kernels at once add up (the definition of
      PyTorch Profiler's TensorBoard plugin; only where the profiler wrote `blocks per SM`);
    - each number of each counter event (phase C), under its own name.

    Args:
        trace: the job.
        scope: ranks, iterations, window to look at, and the streams whose queues are; default everything.
            Names are ignored.

    Returns:
        One row per change, by rank, counter (in this order) and time; a value holds until the next row, and
        each window of a scope begins with the value at its start, if one is known. Columns: rank int64,
        counter str, key str (the stream, the device, the kind of copy; of a counter event its argument, id
        and process), unit str ("launches", "bytes", "GB/s", "%"; empty where the recording does not say),
        device, stream Int64 (NA unless it belongs to a stream), time_ns int64 (ns, job's axis), value
        float64.

    Raises:
        MissingDataError: no selected rank has anything that could be counted.
    """
    scope = scope or Scope()
    timed = scope.iterations is not None or scope.window_ns is not None
    found, parts = False, []
    for rank in trace.ranks_of(scope):
        for one in counters_of(trace, rank):
            found = True
            if scope.streams is not None and one.stream and one.stream[1] not in scope.streams:
                continue
            if not timed:
                parts.append(_frame(one, one.time, one.value))
                continue
            for first, last in trace.rank(rank).windows(scope).tolist():
                parts.append(_frame(one, *one.within(first, last)))
    if not found:
        raise MissingDataError(
            "counters",
            "Record device activity (ProfilerActivity.CUDA) for queues and copies, and profile_memory=True "
            "for memory.",
        )
    if not parts:
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in _COLUMNS.items()})
    return pd.concat(parts, ignore_index=True)


@memoize_per_rank(last=_RANKS_KEPT)
def counters_of(trace: Trace, rank: int) -> list[Counter]:
    """The counters of one rank: those that follow from its events, then what it recorded."""
    checkpoint()
    offset_ns = trace.clock.offset_ns.get(rank, 0)
    return [*derived_counters(trace, rank), *recorded_counters(trace.rank(rank), offset_ns)]


def _frame(one: Counter, time: np.ndarray, value: np.ndarray) -> pd.DataFrame:
    n = len(time)
    device, stream = one.stream or (None, None)
    same = {
        "rank": np.full(n, one.rank, np.int64),
        "counter": pd.Series([one.name], dtype="str").repeat(n).array,
        "key": pd.Series([one.key], dtype="str").repeat(n).array,
        "unit": pd.Series([one.unit], dtype="str").repeat(n).array,
        "device": pd.array([device] * n, dtype="Int64"),
        "stream": pd.array([stream] * n, dtype="Int64"),
    }
    return pd.DataFrame({**same, "time_ns": time, "value": value})
