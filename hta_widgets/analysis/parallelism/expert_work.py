"""Which kernels are those of experts: by their names, or since they lie between the exchanges of tokens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.idle.causes import named
from hta_widgets.analysis.serving.parts import part_of_kernel
from hta_widgets.analysis.serving.table import is_server
from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.classify import EventClass

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

_DISPATCH, _COMBINE = re.compile("dispatch", re.IGNORECASE), re.compile("combine", re.IGNORECASE)
# What a server may bring tokens to experts by instead, and back: other work is exchanged so, too.
_GATHER, _SCATTER = (re.compile(text, re.IGNORECASE) for text in ("all_?gather", "reduce_?scatter"))
_TO_ALL: Final = re.compile("all_?to_?all|SendRecv", re.IGNORECASE)


@memoize_per_rank()
def expert_rows(rank_trace: RankTrace) -> Bool:
    """Which rows of a rank are kernels of experts, or run between a dispatch and its combine."""
    computes = rank_trace.is_device & (rank_trace.event_class == EventClass.COMPUTE)
    inside = _inside(around_experts(rank_trace), rank_trace.start)
    return computes & (_of_part(rank_trace, "experts") | inside)


@memoize_per_rank()
def around_experts(rank_trace: RankTrace) -> Int64:
    """From the end of each dispatch of tokens to the begin of its combine, int64[n, 2]; none where not known.

    A server may exchange tokens by an all-gather and a reduce-scatter, or by two all-to-alls. Stages of a
    pipeline and shards of a sequence exchange so around attention, too; so does another microbatch beside
    experts. Where attention runs in between, only names of kernels tell.
    """
    computes = rank_trace.is_device & (rank_trace.event_class == EventClass.COMPUTE)
    attention = rank_trace.start[computes & _of_part(rank_trace, "attention")]
    windows = _between(rank_trace, _rows(rank_trace, _DISPATCH), _rows(rank_trace, _COMBINE))
    if not len(windows) and is_server(rank_trace) and len(attention):
        to_all = _rows(rank_trace, _TO_ALL)
        windows = _between(rank_trace, _rows(rank_trace, _GATHER), _rows(rank_trace, _SCATTER))
        windows = windows if len(windows) else _between(rank_trace, to_all[::2], to_all[1::2])
    return windows[:0] if _inside(windows, attention).any() else windows


def _of_part(rank_trace: RankTrace, part: str) -> Bool:
    """Which rows are named after a part of a model."""
    return named(rank_trace, lambda name: part_of_kernel(name) == part)


def _rows(rank_trace: RankTrace, pattern: re.Pattern[str]) -> Int64:
    """The communication of these names, by start."""
    exchanges = rank_trace.is_device & (rank_trace.event_class == EventClass.COMMUNICATION)
    rows = np.flatnonzero(exchanges & named(rank_trace, pattern.search))
    return rows[np.argsort(rank_trace.start[rows], kind="stable")]


def _between(rank_trace: RankTrace, there: Int64, back: Int64) -> Int64:
    """From the end of the last exchange there before one back to that one, int64[n, 2]."""
    begin, end = np.sort(rank_trace.end[there]), rank_trace.start[back]
    last = np.searchsorted(begin, end, "right") - 1
    first_back = np.diff(last, prepend=-1) > 0
    return np.column_stack([begin[last[first_back]], end[first_back]])


def _inside(windows: Int64, time: Int64) -> Bool:
    """Which times lie in one of the windows, which are sorted."""
    if not len(windows):
        return np.zeros(len(time), np.bool_)
    at = np.searchsorted(windows[:, 0], time, "right") - 1
    return (at >= 0) & (time < windows[at, 1])
