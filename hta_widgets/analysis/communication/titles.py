"""The operation of a communication kernel from the range in which its backend launched it.

A process group opens a range such as `nccl:all_to_all` around each of its calls (`profilingTitle` of
torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp), also where it records no arguments. A kernel's own name
may tell less: NCCL runs sends, receives and all-to-alls as `SendRecv`.
"""

from __future__ import annotations

import re

import numpy as np

from hta_widgets.analysis.communication.operations import UNKNOWN, collective_of
from hta_widgets.arrays import Int32, Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

_TITLE = re.compile(r"[a-z]*ccl:(.+)")


def titles(rank_trace: RankTrace, rows: Int64) -> tuple[Int32, list[str]]:
    """Of each kernel the operation that the range around its launch is called after: codes, -1 for none, and
    what they stand for.

    Of several ranges around a launch the one that began last counts. One that names no known operation
    (`nccl:coalesced`) tells nothing.
    """
    words = [_operation(name) for name in rank_trace.names]
    named = np.array([word is not None for word in words], np.bool_)
    launched = np.flatnonzero(rank_trace.issuer[rows] >= 0)
    codes = np.full(len(rows), -1, np.int32)
    if not len(launched) or not named.any():
        return codes, []
    operations = sorted({word for word in words if word})
    code_of = np.array([operations.index(word) if word else -1 for word in words], np.int32)
    annotated = ~rank_trace.is_device & (rank_trace.event_class == EventClass.ANNOTATION)
    ranges, calls = np.flatnonzero(annotated & named[rank_trace.name]), rank_trace.issuer[rows[launched]]
    both = np.concatenate([ranges, calls])
    is_range = np.arange(len(both)) < len(ranges)
    # by thread and time; a range before what it holds
    order = np.lexsort((~is_range, -rank_trace.end[both], rank_trace.start[both], rank_trace.thread[both]))
    latest = np.maximum.accumulate(np.where(is_range[order], np.arange(len(order)), -1))
    before = np.empty(len(both), np.int64)
    before[order] = np.where(latest >= 0, order[latest], -1)
    before = before[len(ranges) :]
    around = both[before]
    same = (before >= 0) & (rank_trace.thread[around] == rank_trace.thread[calls])
    inside = same & (rank_trace.end[around] >= rank_trace.end[calls])
    codes[launched[inside]] = code_of[rank_trace.name[around[inside]]]
    return codes, operations


def _operation(name: str) -> str | None:
    """What a range is called after, "" if no known operation; None of what is no such range."""
    title = _TITLE.fullmatch(name)
    if title is None:
        return None
    word = collective_of(title[1])
    return "" if word == UNKNOWN else word
