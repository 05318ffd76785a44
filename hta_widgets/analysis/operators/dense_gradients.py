"""Dense gradients of look-ups: as large as the table, where few of its rows were looked up.

Filling such a gradient, and the optimizer, which updates every row, take as long as the table is large.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, NamedTuple

import numpy as np

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.idle.causes import named, rows_named
from hta_widgets.analysis.operators.inputs import Inputs, Shape, UnknownInputError
from hta_widgets.analysis.operators.recorded import alike, recorded_inputs
from hta_widgets.arrays import Float64, Int64
from hta_widgets.trace.classify import EventClass, is_optimizer_step
from hta_widgets.trace.rank_trace import RankTrace

_MAKE: Final = {"aten::embedding_dense_backward", "aten::_embedding_bag_dense_backward"}
_LOOK_UP: Final = {"aten::embedding", "aten::_embedding_bag"}
_FEW: Final = 0.1
"""Of the rows of a table: where more are looked up, a dense gradient does little for nothing."""
_PRODUCTS: Final = {"aten::mm", "aten::addmm", "aten::bmm", "aten::linear", "aten::matmul"}


class LookUp(NamedTuple):
    """What a gradient is of: a table, and how many rows were looked up in it."""

    rows: int
    width: int
    looked_up: int


class DenseGradients(NamedTuple):
    """Operators that make or use such gradients, and the share of their work for rows not looked up."""

    rows: Int64
    lost: Float64


@memoize_per_rank()
def look_ups(rank_trace: RankTrace) -> dict[int, LookUp]:
    """Row -> the look-up whose dense gradient an operator makes, as far as shapes are recorded.

    It is the one of so wide a table and so many indices, of several the one in the smallest table.
    """
    tables: dict[tuple[int, int], int] = {}
    for inputs, _ in alike(rank_trace, rows_named(rank_trace, _LOOK_UP.__contains__)):
        with suppress(UnknownInputError):
            (rows, width), indices = inputs.shape(0, 2), inputs.numel(1)
            tables[width, indices] = min(rows, tables.get((width, indices), rows))
    found: dict[int, LookUp] = {}
    for inputs, same in alike(rank_trace, making(rank_trace)):
        with suppress(UnknownInputError, IndexError, KeyError):
            width, indices = inputs.shape(0)[-1], inputs.numel(1)
            found |= dict.fromkeys(same.tolist(), LookUp(tables[width, indices], width, indices))
    return dict(sorted(found.items()))


def making(rank_trace: RankTrace) -> Int64:
    """The operators that make dense gradients of look-ups, however many rows were looked up."""
    return rows_named(rank_trace, _MAKE.__contains__)


@memoize_per_rank()
def dense_gradients(rank_trace: RankTrace) -> DenseGradients:
    """The operators that make gradients of tables most rows of which are not looked up, or update these.

    A table that products use, too, as the last layer of a language model may, has a dense gradient.
    """
    made = look_ups(rank_trace)
    if not made:
        return DenseGradients(np.empty(0, np.int64), np.empty(0))
    used = _used_in_products(rank_trace)
    lost: dict[int, float] = {}
    tables: dict[Shape, float] = {}
    for row, each in made.items():
        unused = 1.0 - each.looked_up / max(each.rows, 1)
        if unused >= 1.0 - _FEW and not {(each.rows, each.width), (each.width, each.rows)} & used:
            lost[row] = tables[each.rows, each.width] = unused
    for row, inputs in _updates(rank_trace) if tables else ():
        first = inputs.shapes[0] if inputs.shapes else None
        shapes = first if isinstance(first, list) else [first]
        sizes = {shape: float(np.prod(shape)) for shape in shapes if shape}
        whole = sum(sizes[shape] for shape in shapes if shape)
        of_tables = sum(sizes[shape] * tables[shape] for shape in shapes if shape in tables)
        if of_tables:
            lost[row] = of_tables / whole
    rows = np.array(sorted(lost), np.int64)
    return DenseGradients(rows, np.array([lost[row] for row in rows.tolist()], np.float64))


def _used_in_products(rank_trace: RankTrace) -> set[Shape]:
    rows = rows_named(rank_trace, _PRODUCTS.__contains__)
    return {
        shape for inputs, _ in alike(rank_trace, rows) for shape in inputs.shapes if isinstance(shape, tuple)
    }


def _updates(rank_trace: RankTrace) -> list[tuple[int, Inputs]]:
    """The operators in steps of optimizers that take tensors, and their inputs."""
    steps = named(rank_trace, is_optimizer_step)
    steps &= rank_trace.event_class == EventClass.ANNOTATION
    time = Intervals.union(rank_trace.start[steps], rank_trace.end[steps])
    recorded = recorded_inputs(rank_trace)
    rows = np.flatnonzero((rank_trace.event_class == EventClass.HOST_OP) & (recorded.of_row >= 0))
    begins = rank_trace.start[rows]
    rows = rows[time.within_each(np.stack([begins, begins + 1], 1)) > 0]
    return [(row, recorded.of(row)) for row in rows.tolist()]
