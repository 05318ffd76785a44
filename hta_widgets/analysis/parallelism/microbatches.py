"""The passes of microbatches through one stage of a pipeline, told apart by what the stage exchanges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.calls.phases import PHASES, phases
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.medians import medians
from hta_widgets.analysis.core.sums import exact_sums
from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import distinct, first_of_each, numbered, rows_of_each
from hta_widgets.trace.rank_trace import RankTrace

FORWARD: Final = "F"
BACKWARD: Final = "B"
WEIGHTS: Final = "W"
"""The gradients of weights, where they are computed apart from those of the inputs."""

_BACKWARD, _OPTIMIZER = PHASES.index("backward"), PHASES.index("optimizer")
_NO_WORK = (EventClass.MEMORY_COPY, EventClass.MEMORY_SET)
_NEGLIGIBLE = 0.05
"""Work of less than this share of the median pass of its kind is no pass: bookkeeping between passes."""


@dataclass(frozen=True)
class Passes:
    """What one rank ran of the microbatches of one step, in the order of launch; ns by the rank's clock."""

    kind: npt.NDArray[np.str_]  # "F", "B" or "W" of each pass
    # of each pass, from its first kernel to its last
    start: Int64
    end: Int64
    computing: Intervals  # when its kernels ran, of all passes together
    enters: bool  # whether microbatches enter the pipeline here: the step's first exchange is a send

    @property
    def order(self) -> str:
        """Forward and backward in the order of launch, such as "FFBFBB"."""
        return "".join(self.kind[self.kind != WEIGHTS])


def passes_of(rank_trace: RankTrace, exchanged: pd.DataFrame, within: Int64) -> dict[int, Passes]:
    """The passes of a rank by step.

    Autograd's thread and operators tell backward from forward (`calls.phases`). What stages exchange is
    launched between passes, so two kernels of one direction with a send or a receive launched in between
    belong to different passes. After its backward a stage sends the gradients of its inputs; a backward pass
    that is not followed by a send computes the gradients of weights. Where microbatches enter, and therefore
    a step begins with a send, a stage need not send any, and the two are one kind.

    Args:
        exchanged: the rank's sends and receives with other stages: event_id, collective.
        within: event ids of the communication that belongs to passes, such as all-reduces of activations.
    """
    frame = rank_trace.iterations
    whole = frame.loc[~frame["partial"], "iteration"].to_numpy(np.int64)
    rows = np.flatnonzero(
        rank_trace.is_device & (rank_trace.launch >= 0) & np.isin(rank_trace.iteration, whole)
    )
    event_class = rank_trace.event_class[rows]
    work = ~np.isin(event_class, _NO_WORK)
    work &= (event_class != EventClass.COMMUNICATION) | np.isin(rank_trace.event_id[rows], within)
    phase = phases(rank_trace).of[rank_trace.launch[rows]]
    rows, phase = rows[work & (phase != _OPTIMIZER)], phase[work & (phase != _OPTIMIZER)]
    posts = _posts(rank_trace, exchanged)
    called = rank_trace.start[rank_trace.launch[rows]]
    work_of_rank = _Work(
        backward=phase == _BACKWARD,
        posted=np.searchsorted(posts.called, called, side="right"),
        called=called,
        start=rank_trace.start[rows],
        end=rank_trace.end[rows],
        computes=rank_trace.event_class[rows] != EventClass.COMMUNICATION,
    )
    steps, of_step = distinct(rank_trace.iteration[rows].astype(np.int64))
    return {
        step: found
        for step, own in zip(steps.tolist(), rows_of_each(of_step), strict=True)
        if (found := _of_step(work_of_rank.at(own), posts, step)) is not None
    }


class _Posts(NamedTuple):
    """Sends and receives of a rank, by the time of their call."""

    step: Int64
    called: Int64
    sends: Bool


class _Work(NamedTuple):
    """Kernels: in which direction, after how many posts they are called and when, when they run, and whether
    they compute."""

    backward: Bool
    posted: Int64
    called: Int64
    start: Int64
    end: Int64
    computes: Bool

    def at(self, rows: Int64) -> _Work:
        """Some of them."""
        return _Work(
            self.backward[rows], self.posted[rows], self.called[rows], self.start[rows], self.end[rows],
            self.computes[rows],
        )  # fmt: skip


def _posts(rank_trace: RankTrace, exchanged: pd.DataFrame) -> _Posts:
    rows = np.searchsorted(rank_trace.event_id, exchanged["event_id"].to_numpy(np.int32))
    launch = rank_trace.launch[rows]
    called = np.where(launch >= 0, rank_trace.start[launch], rank_trace.start[rows])
    sends = (exchanged["collective"] != "recv").to_numpy(np.bool_)
    order = np.argsort(called, kind="stable")
    return _Posts(rank_trace.iteration[rows].astype(np.int64)[order], called[order], sends[order])


def _of_step(work: _Work, posts: _Posts, step: int) -> Passes | None:
    own = posts.sends[posts.step == step]
    enters = bool(own[0]) if len(own) else True
    # what may be a pass: all of a direction between two posts
    number = numbered(work.posted, work.backward.astype(np.int64))
    first = first_of_each(number)
    called, start = (np.full(len(first), np.iinfo(np.int64).max) for _ in range(2))
    end = np.full(len(first), np.iinfo(np.int64).min)
    np.minimum.at(called, number, work.called)
    np.minimum.at(start, number, work.start)
    np.maximum.at(end, number, work.end)
    busy = exact_sums(number, work.end - work.start, len(first))
    posted, backward = work.posted[first], work.backward[first]
    order = np.lexsort((backward, posted, called))
    before = int(np.count_nonzero(posts.step < step))
    passes = order[_is_pass(backward[order], posted[order], busy[order], before, enters)]
    if not len(passes):
        return None
    backward, posted = backward[passes], posted[passes]
    sends = np.concatenate([[0], np.cumsum(posts.sends)])
    until = np.append(posted[1:], np.count_nonzero(posts.step <= step))
    sent = sends[until] > sends[posted]
    kind = np.where(backward, np.where(sent | enters, BACKWARD, WEIGHTS), FORWARD)
    computing = work.computes & np.isin(number, passes)
    return Passes(
        kind, start[passes], end[passes], Intervals.union(work.start[computing], work.end[computing]), enters
    )


def _is_pass(backward: Bool, posted: Int64, busy: Int64, before: int, enters: bool) -> Bool:
    """Which work is of a microbatch, given the number of exchanges in earlier steps.

    Not what follows the last backward, nor what a later stage does before it has posted a receive.
    """
    last = np.flatnonzero(backward).max(initial=-1)
    kept: Bool = np.arange(len(backward)) <= last
    if not enters:
        kept &= backward | (posted > before)
    direction = backward.astype(np.int64)
    kept &= busy >= _NEGLIGIBLE * medians(direction, busy, 2)[direction]
    return kept
