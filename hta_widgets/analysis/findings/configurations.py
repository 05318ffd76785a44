"""The compute kernels of ranks by launch configuration: which of them are launched alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.breakdown import device_work
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["Configuration", "Configurations", "configurations"]

Int64 = npt.NDArray[np.int64]
Configuration = tuple[str, str, str]
"""Name, grid and block of a kernel, as texts; "" where they are not recorded."""


@dataclass(frozen=True)
class Configurations:
    """Compute kernels by launch configuration.

    Attributes:
        known: the configurations, ascending.
        rows: rank -> the rows of its compute kernels.
        number: rank -> the place in `known` of each of these.
    """

    known: list[Configuration]
    rows: dict[int, Int64]
    number: dict[int, Int64]


@memoize_per_rank(last=4)
def configurations(trace: Trace, ranks: tuple[int, ...] | None) -> Configurations:
    """The compute kernels of these ranks, in the whole trace; a scope only chooses among them."""
    rows, local, own = {}, {}, {}
    for rank, rank_trace, work in device_work(trace, Scope(ranks=ranks)):
        computes = work.event_class[work.group[work.rows]] == EventClass.COMPUTE
        rows[rank] = work.rows[computes]
        own[rank], local[rank] = _of_rank(rank_trace, rows[rank])
    known = sorted({each for of_rank in own.values() for each in of_rank})
    place = {each: at for at, each in enumerate(known)}
    number = {rank: np.array([place[each] for each in own[rank]], np.int64)[local[rank]] for rank in rows}
    return Configurations(known, rows, number)


def _of_rank(rank_trace: RankTrace, rows: Int64) -> tuple[list[Configuration], Int64]:
    """The configurations of these rows, and the number of each row's."""
    columns = (
        (rank_trace.name[rows], rank_trace.names),
        (rank_trace.argument_codes("grid")[rows], rank_trace.table.dictionary("grid")),
        (rank_trace.argument_codes("block")[rows], rank_trace.table.dictionary("block")),
    )
    code = np.zeros(len(rows), np.int64)
    for codes, texts in columns:
        _, code = np.unique(code * (len(texts) + 1) + codes + 1, return_inverse=True)
    _, first = np.unique(code, return_index=True)
    parts = [[[*texts, ""][one] for one in codes[first].tolist()] for codes, texts in columns]
    return list(zip(*parts, strict=True)), code
