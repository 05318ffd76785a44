"""Kernels that could take less: how much of the judged time they take, and how much of it would be left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.finding import NOTE_PCT
from hta_widgets.analysis.findings.idle_rules import concerned
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.kernels.peaks import peaks_of_rank
from hta_widgets.errors import MissingDataError

if TYPE_CHECKING:
    from hta_widgets.analysis.kernels.peaks import Peaks
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["Find", "Shorter", "known_peaks", "longest", "matters", "peaks_of", "shorter", "time_of"]

Int64 = npt.NDArray[np.int64]
Find = Callable[["RankTrace"], tuple[Int64, Int64]]


@dataclass(frozen=True)
class Shorter:
    """What such kernels take on the ranks that it is about.

    Attributes:
        ranks: these ranks; alone: it is one of several.
        worst: the rank that loses most, rows: its kernels in the judged time.
        cost_ns: what is lost on each rank on average. taken_pct, lost_pct: shares of the judged time.
    """

    ranks: list[int]
    alone: bool
    worst: int
    rows: Int64
    cost_ns: int
    taken_pct: float
    lost_pct: float


def shorter(inputs: Inputs, find: Find) -> Shorter | None:
    """What is lost to kernels, given for a rank with the time that would be left of each; None: nothing."""
    frame = inputs.temporal
    if frame.empty:
        return None
    parts = {rank: inputs.of(rank, _of_rank, find) for rank in frame["rank"].tolist()}
    lost = frame["rank"].map(lambda rank: parts[rank][2])
    if not (lost > 0).any():
        return None
    about = concerned(frame, lost)
    ranks = about["rank"].tolist()
    whole, lost = int(about["window_ns"].sum()), lost[about.index]
    worst = int(about["rank"].iloc[int(lost.to_numpy(np.float64).argmax())])
    return Shorter(
        ranks,
        len(about) < len(frame),
        worst,
        parts[worst][0],
        int(lost.sum()) // len(about),
        100.0 * sum(parts[rank][1] for rank in ranks) / whole,
        100.0 * float(lost.sum()) / whole,
    )


def matters(inputs: Inputs, rank: int, rows: Int64) -> bool:
    """Whether this work takes enough of the judged time to be told."""
    windows = inputs.trace.rank(rank).windows(inputs.scope)
    judged_ns = int((windows[:, 1] - windows[:, 0]).sum())  # that of `temporal`, without asking other ranks
    return bool(100.0 * time_of(inputs, rank, rows) >= NOTE_PCT * judged_ns)


def longest(rank_trace: RankTrace, rows: Int64) -> str:
    """The name of the kernels with most time among these."""
    return rank_trace.names[int(np.bincount(rank_trace.name[rows], rank_trace.dur[rows]).argmax())]


def time_of(inputs: Inputs, rank: int, rows: Int64) -> int:
    """How much of the judged time any of this device work runs, ns."""
    rank_trace = inputs.trace.rank(rank)
    running = Intervals.union(rank_trace.start[rows], rank_trace.end[rows])
    return running.within(rank_trace.windows(inputs.scope))


def known_peaks(inputs: Inputs, ranks: list[int], why: str) -> Peaks:
    """The peaks of the devices of these ranks.

    Raises:
        MissingDataError: they are not known, or those of several models.
    """
    found = [inputs.of(rank, peaks_of) for rank in ranks]
    if not found or found[0] is None or any(peaks != found[0] for peaks in found):
        raise MissingDataError(
            "name of the device",
            "Record with a version of PyTorch that writes deviceProperties, or state the peaks of the device "
            "by hta_widgets.analysis.register_peaks.",
            why,
        )
    return found[0]


def peaks_of(inputs: Inputs, rank: int) -> Peaks | None:
    """`peaks_of_rank`."""
    return peaks_of_rank(inputs.trace.rank(rank))


def _of_rank(inputs: Inputs, rank: int, find: Find) -> tuple[Int64, int, int]:
    """The kernels in the judged time, how much of it they take, and how much of that is lost, ns."""
    rank_trace = inputs.trace.rank(rank)
    rows, left = find(rank_trace)
    if not len(rows):
        return rows, 0, 0
    chosen = rank_trace.overlap(rows, inputs.scope)
    rows, left = rows[chosen], left[chosen]
    taken, whole = time_of(inputs, rank, rows), int(rank_trace.dur[rows].sum())
    if not whole:
        return rows, 0, 0
    return rows, taken, round(taken * (1 - int(left.sum()) / whole))
