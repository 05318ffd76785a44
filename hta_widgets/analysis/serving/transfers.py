"""Keys and values that move between devices: to or from a server that decodes, or another memory.

They are known by the names of kernels and copies, or of what launched them. Transfers that network cards make
by themselves leave no device work.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.calls.stacks import stacks
from hta_widgets.analysis.calls.tree import owners
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.device_time.busy import device_work
from hta_widgets.analysis.idle.causes import named
from hta_widgets.analysis.serving.table import is_server, steps_of

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

_NAMES: Final = re.compile(
    r"nixl|mooncake|lmcache|kv_?(?:cache_)?transfer|kv_?connector"
    # to and from memory of the host, in vLLM and SGLang
    r"|transfer_kv|kv_?(?:cache_)?offload|swap_blocks|hi_?cache",
    re.IGNORECASE,
)


@memoize_per_rank()
def _transfers(rank_trace: RankTrace) -> tuple[Intervals, Intervals]:
    """When keys and values move, and when anything else runs on the device."""
    moves = named(rank_trace, _NAMES.search)
    work = device_work(rank_trace)
    if not is_server(rank_trace) or not moves.any():
        return Intervals.union(work.start[:0], work.end[:0]), Intervals.union(work.start, work.end)
    tree = stacks(rank_trace)
    calls = moves & ~rank_trace.is_device & ~_around_steps(rank_trace)
    mine = moves[work.rows] | (owners(tree, calls)[work.rows] >= 0)
    return (
        Intervals.union(work.start[mine], work.end[mine]),
        Intervals.union(work.start[~mine], work.end[~mine]),
    )


def _around_steps(rank_trace: RankTrace) -> npt.NDArray[np.bool_]:
    """The calls in which a step begins: loops of an engine, whatever they are named after."""
    begin = np.sort(steps_of(rank_trace)["host_start_ns"].to_numpy(np.int64))
    return np.searchsorted(begin, rank_trace.start) < np.searchsorted(begin, rank_trace.end)


def moved(rank_trace: RankTrace) -> Intervals:
    """When keys and values move."""
    return _transfers(rank_trace)[0]


def moved_alone(rank_trace: RankTrace) -> Intervals:
    """When they move, and the device does nothing else."""
    transfers, others = _transfers(rank_trace)
    return transfers - others
