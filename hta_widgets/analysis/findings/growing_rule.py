"""The rule about a tensor that grows by being copied in each call, such as a cache of keys and values."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from hta_widgets.analysis.findings.host_loss import calls_rule
from hta_widgets.analysis.idle.causes import named
from hta_widgets.analysis.operators.inputs import parse_shapes, parse_types
from hta_widgets.arrays import Int64
from hta_widgets.trace.rank_trace import RankTrace

STATIC_CACHE: Final = (
    "If that is a cache of keys and values, allocate it once at its full size and write into it. "
    'Transformers has such a static cache: cache_implementation="static".'
)
_CAT: Final = "aten::cat"
_FAR_SMALLER: Final = 10
_SEVERAL: Final = 3


def growing(rank_trace: RankTrace, thread: int) -> Int64:
    """Calls of a thread that join far smaller tensors to what such a call made, or make what another takes.

    None where no tensor grows several times.
    """
    rows = np.flatnonzero(named(rank_trace, _CAT.__eq__) & (rank_trace.thread == thread))
    if not len(rows) or not rank_trace.has_argument("input_dims"):
        return rows[:0]
    rows = rows[np.argsort(rank_trace.start[rows], kind="stable")]
    texts, kinds = rank_trace.table.dictionary("input_dims"), rank_trace.table.dictionary("input_type")
    joins: list[tuple[int, int, int]] = []  # row, size of the first tensor, size of the joined one
    for row, dims, types in zip(
        rows.tolist(),
        rank_trace.argument_codes("input_dims")[rows].tolist(),
        rank_trace.argument_codes("input_type")[rows].tolist(),
        strict=True,
    ):
        shapes = (
            parse_shapes(texts[dims], parse_types(kinds[types]) if types >= 0 else ()) if dims >= 0 else ()
        )
        joined = shapes[0] if shapes and isinstance(shapes[0], list) else []
        first, *rest = [math.prod(shape) for shape in joined if isinstance(shape, tuple)] or [0]
        if rest and 0 < sum(rest) * _FAR_SMALLER <= first:
            joins.append((row, first, first + sum(rest)))
    last = {first: at for at, (_, first, _) in enumerate(joins)}
    made = dict[int, int]()
    for at, (_, _, size) in enumerate(joins):
        made.setdefault(size, at)
    grows = [
        (row, first)
        for at, (row, first, size) in enumerate(joins)
        if last.get(size, -1) > at or made.get(first, at) < at
    ]
    several = len({first for _, first in grows}) >= _SEVERAL
    return np.array([row for row, _ in grows if several], np.int64)


RULE = calls_rule(
    "growing",
    growing,
    "{who} copies a tensor that grows {lost}. Each call of {name} copies all of it, to add little.",
    STATIC_CACHE,
    topic="growing_tensor",
    title="Copying a tensor that grows",
    label="Growing tensor",
    cause="copies of a tensor that grows",
    risk="A tensor of the full size takes its memory from the start.",
    needs="An upper bound of its size.",
    wrong_if="The tensor is joined for another purpose than to grow.",
)
