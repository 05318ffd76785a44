"""The compute kernels of a rank by launch configuration and iteration: how many, and how long they take.

A kernel may run as many blocks as the device has multiprocessors, whatever it computes. The inputs of its
operator then tell launches apart that only look equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.breakdown import device_work_of
from hta_widgets.analysis.operators.calls import launched_inputs
from hta_widgets.arrays import Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import distinct, first_of_each
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope


class Configuration(NamedTuple):
    """What makes launches of a kernel equal, as texts; "" where it is not recorded."""

    name: str
    grid: str
    block: str
    inputs: str  # shapes of the inputs of the operator that launches it


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
    columns = (
        (rank_trace.name[rows], rank_trace.names),
        (rank_trace.argument_codes("grid")[rows], rank_trace.table.dictionary("grid")),
        (rank_trace.argument_codes("block")[rows], rank_trace.table.dictionary("block")),
        (launched_inputs(rank_trace, rows), rank_trace.table.dictionary("input_dims")),
    )
    code = np.zeros(len(rows), np.int64)
    for codes, texts in columns:
        code = distinct(code * (len(texts) + 1) + codes + 1)[1]
    first = first_of_each(code)
    parts = [[[*texts, ""][one] for one in codes[first].tolist()] for codes, texts in columns]
    own = [Configuration(*each) for each in zip(*parts, strict=True)]
    known = sorted(set(own))
    place = {each: at for at, each in enumerate(known)}
    return rows, known, np.array([place[each] for each in own], np.int64)[code]
