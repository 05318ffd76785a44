"""The compute kernels of a rank by launch configuration and iteration: how many, and how long they take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.breakdown import device_work_of
from hta_widgets.analysis.kernels.configurations import Configuration, configurations
from hta_widgets.arrays import Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import distinct
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope


@dataclass(frozen=True)
class Launched:
    """The compute kernels of a rank in a scope, by configuration and iteration: what can stay of them."""

    known: list[Configuration]  # the configurations of the whole rank, ascending
    number: Int64  # of each sum the place in `known`
    iteration: Int64  # of each sum the iteration, -1 for what belongs to none
    # how many kernels, and their time
    count: Int64
    dur_ns: Int64


@memoize_per_rank(last=2)
def launched(rank_trace: RankTrace, scope: Scope) -> Launched:
    """The compute kernels that belong to a scope."""
    rows, known, number = configured(rank_trace)
    chosen = rank_trace.belong(rows, scope)
    rows, number = rows[chosen], number[chosen]
    iterations, of = distinct(rank_trace.iteration[rows].astype(np.int64))
    sums, place = distinct(number * len(iterations) + of)
    count, dur = np.zeros((2, len(sums)), np.int64)
    np.add.at(count, place, 1)
    np.add.at(dur, place, rank_trace.dur[rows])
    number, of = np.divmod(sums, max(len(iterations), 1))
    return Launched(known, number, iterations[of], count, dur)


@memoize_per_rank()
def configured(rank_trace: RankTrace) -> tuple[Int64, list[Configuration], Int64]:
    """The rows of compute kernels, their configurations, ascending, and the number of each row's."""
    work = device_work_of(rank_trace)
    rows = work.rows[work.event_class[work.group[work.rows]] == EventClass.COMPUTE]
    return rows, *configurations(rank_trace, rows)
