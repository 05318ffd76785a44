"""Whether a server has requests: time without any lies between two steps, and is no loss of the engine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.idle.causes import named
from hta_widgets.arrays import Bool, Int64

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

# Calls in which engines sleep until a request comes, named so by vLLM, SGLang and TensorRT-LLM.
_SLEEPS: Final = re.compile(
    r"_process_input_queue|self_check_during_idle|maybe_sleep|on_idle|fetch_new_requests|get_from_request_queue"
)
# A shorter pause is what engines take between any two steps, and so is one that is not much longer than most.
_LEAST_NS: Final = 1_000_000
_LONGER: Final = 2
_MOSTLY: Final = 0.5


def without_requests(rank_trace: RankTrace, steps: pd.DataFrame) -> Bool:
    """Of each step whether the server has no requests until the next one.

    Then the host sleeps in a call for that; or all requests that decode later are of prompts that come next.

    Args:
        rank_trace: the rank.
        steps: its steps, with the columns phase, requests, prompts, start_ns, device_ns, next_ns, bubble_ns.
    """
    bubble = steps["bubble_ns"].to_numpy(np.int64, na_value=0)
    usual = float(np.median(bubble[bubble > 0])) if bubble.any() else 0.0
    long = bubble >= max(_LEAST_NS, _LONGER * usual)
    if not long.any():
        return np.zeros(len(steps), np.bool_)
    end = (steps["start_ns"] + steps["device_ns"]).to_numpy(np.int64, na_value=0)
    windows: Int64 = np.column_stack([end, steps["next_ns"].to_numpy(np.int64, na_value=0)])
    asleep = _sleeping(rank_trace).within_each(windows[long]) >= _MOSTLY * bubble[long]
    found = _emptied(steps) & long
    found[long] |= asleep
    return found


def _sleeping(rank_trace: RankTrace) -> Intervals:
    calls = rank_trace.on_host
    rows = np.flatnonzero(named(rank_trace, _SLEEPS.search) & calls)
    return Intervals.union(rank_trace.start[rows], rank_trace.end[rows])


def _emptied(steps: pd.DataFrame) -> Bool:
    """Whether only prompts follow, and then no more requests decode than one step read prompts of."""
    phases = steps["phase"].tolist()
    counts = (steps[name].to_numpy(np.int64, na_value=-1) for name in ("requests", "prompts"))
    requests, prompts = (each.tolist() for each in counts)
    found = np.zeros(len(phases), np.bool_)
    read, decoding = -1, -1  # of the prompts that follow; of the first step after them
    for at in range(len(phases) - 1, -1, -1):
        found[at] = phases[at] == "decode" and 0 < decoding <= read
        if phases[at] == "prefill":
            read = max(read, prompts[at])
        else:
            read, decoding = -1, requests[at] if phases[at] == "decode" else -1
    return found
