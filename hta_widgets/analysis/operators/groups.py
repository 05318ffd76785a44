"""What the rows of the table of operators are: calls of one name, shape, category, path, module or class."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.calls.stacks import PREFIX
from hta_widgets.analysis.compare.paths import call_paths
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.operators.calls import Calls, module_calls, operator_calls
from hta_widgets.analysis.operators.categories import category_of
from hta_widgets.analysis.operators.inputs import parse_shapes, parse_types, text_of
from hta_widgets.arrays import Int64
from hta_widgets.trace.rank_trace import RankTrace

By = Literal["name", "shapes", "module", "module_class", "category", "call_path"]
BY: Final[tuple[By, ...]] = get_args(By)
OF_MODULES: Final[tuple[By, ...]] = ("module", "module_class")
_INSTANCE: Final = re.compile(r"_\d+$")


@dataclass(frozen=True)
class Groups:
    """The groups of a rank's calls."""

    of: Int64  # int64 group of each call
    names: list[str]  # the name of each group
    # other columns, each with a text for each group
    further: dict[str, list[str]] = field(default_factory=dict)


@memoize_per_rank(last=len(BY))
def groups_of(rank_trace: RankTrace, by: By) -> Groups:
    """The groups of `operator_calls`, or of `module_calls` by module or its class."""
    if by in OF_MODULES:
        calls, _ = module_calls(rank_trace)
        found = _named(calls, rank_trace)
        names = [name.removeprefix(PREFIX) for name in found.names]
        if by == "module":
            return Groups(found.of, names)
        return _joined(found.of, [_INSTANCE.sub("", name) for name in names])
    calls = operator_calls(rank_trace)
    if by == "shapes":
        return _shaped(calls, rank_trace)
    if by == "call_path":
        paths = call_paths(rank_trace)
        code, used = _codes(paths.around[calls.rows])
        return Groups(
            code, [paths.leaves[path] for path in used], {"call_path": [paths.texts[path] for path in used]}
        )
    found = _named(calls, rank_trace)
    if by == "name":
        return found
    return _joined(found.of, [category_of(name) for name in found.names])


def _joined(of: Int64, names: list[str]) -> Groups:
    """The groups that have one name made one."""
    joined = sorted({*names})
    number = np.array([joined.index(name) for name in names], np.int64)
    return Groups(number[of], joined)


def _codes(values: npt.NDArray[np.integer]) -> tuple[Int64, list[int]]:
    code, used = pd.factorize(values)
    return code.astype(np.int64, copy=False), used.tolist()


def _named(calls: Calls, rank_trace: RankTrace) -> Groups:
    code, used = _codes(rank_trace.name[calls.rows])
    return Groups(code, [rank_trace.names[name] for name in used])


def _shaped(calls: Calls, rank_trace: RankTrace) -> Groups:
    """By name, shapes and types; texts that mean the same shapes are one group."""
    dims = rank_trace.argument_codes("input_dims")[calls.rows].astype(np.int64)
    types = rank_trace.argument_codes("input_type")[calls.rows].astype(np.int64)
    inputs, used = _codes((dims + 1) * (len(rank_trace.table.dictionary("input_type")) + 1) + types + 1)
    known: dict[tuple[str, str], int] = {}
    texts = [
        _input_texts(rank_trace, *divmod(each, len(rank_trace.table.dictionary("input_type")) + 1))
        for each in used
    ]
    number = np.array([known.setdefault(text, len(known)) for text in texts], np.int64)
    kinds = list(known)
    code, pairs = _codes(rank_trace.name[calls.rows].astype(np.int64) * len(kinds) + number[inputs])
    which = [divmod(pair, max(len(kinds), 1)) for pair in pairs]
    return Groups(
        code,
        [rank_trace.names[name] for name, _ in which],
        {
            "input_shapes": [kinds[kind][0] for _, kind in which],
            "input_types": [kinds[kind][1] for _, kind in which],
        },
    )


def _input_texts(rank_trace: RankTrace, dims: int, types: int) -> tuple[str, str]:
    """The words for codes that are one more than theirs; 0: nothing was recorded."""
    table = rank_trace.table
    kinds = parse_types(table.dictionary("input_type")[types - 1]) if types else ()
    shapes = parse_shapes(table.dictionary("input_dims")[dims - 1], kinds) if dims else ()
    return text_of(shapes), ", ".join(kinds)
