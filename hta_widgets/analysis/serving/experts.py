"""What a layer of experts reads: the weights of those that its tokens choose, which no recording tells.

The weights are three-dimensional inputs, a matrix per expert, of the operator that runs the experts or of one
inside it; how many each token chooses shows in the pair of its choices and their weights, [tokens, chosen].
All tokens may choose the same experts, or each of them others: both ends are given.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.operators.calls import operator_calls
from hta_widgets.trace.rank_trace import RankTrace

Inputs = tuple[str, str]
"""JSON of the shapes and of the types of an operator's inputs."""

WEIGHT_BYTES: Final = {
    "c10::BFloat16": 2, "c10::Half": 2, "float": 4, "double": 8, "int": 4, "signed char": 1,
    "unsigned char": 1, "c10::Float8_e4m3fn": 1, "c10::Float8_e4m3fnuz": 1, "c10::Float8_e5m2": 1,
    "c10::Float8_e5m2fnuz": 1, "c10::Float4_e2m1fn_x2": 1, "c10::Float8_e8m0fnu": 1,
}  # fmt: skip
"""Bytes of an element as it is stored: of packed weights several numbers are in one."""

_PACKED: Final = ("int", "unsigned char", "c10::Float4_e2m1fn_x2", "c10::Float8_e8m0fnu")


@dataclass(frozen=True)
class Experts:
    """What one layer reads of its experts' weights, in bytes, and computes."""

    # if the tokens choose as many experts as they can, or as few
    most: int
    least: int
    flops: int  # 0 where the numbers are packed, so that their count is not known
    type: str  # of the weights


@memoize_per_rank()
def _inside(rank_trace: RankTrace) -> dict[int, list[int]]:
    """The operators that each one of `operator_calls` calls."""
    found: dict[int, list[int]] = {}
    for at, parent in enumerate(operator_calls(rank_trace).parent.tolist()):
        found.setdefault(parent, []).append(at)
    return found


def inputs_within(rank_trace: RankTrace) -> Callable[[int], tuple[Inputs, ...]]:
    """The inputs of an operator (by its place in `operator_calls`) and of those that it calls, each once."""
    operators, inside = operator_calls(rank_trace), _inside(rank_trace)
    texts = [texts_of(rank_trace, name) for name in ("input_dims", "input_type")]

    def read(at: int) -> tuple[Inputs, ...]:
        found: dict[Inputs, None] = {}
        left = [at]
        while left:
            each = left.pop()
            dims, types = (text(int(operators.rows[each])) for text in texts)
            if dims:
                found[dims, types] = None
            left += inside.get(each, [])
        return tuple(found)

    return read


def texts_of(rank_trace: RankTrace, name: str) -> Callable[[int], str]:
    """An argument of a row as it was recorded, "" where it was not."""
    if not rank_trace.table.has(name):
        return lambda row: ""
    codes, texts = rank_trace.argument_codes(name), [*rank_trace.table.dictionary(name), ""]
    return lambda row: str(texts[int(codes[row])])


def experts_of(inputs: Iterable[Inputs], routed: int) -> Experts | None:
    """What a layer reads of its experts' weights; None where their shapes are not recorded.

    Args:
        inputs: those of the operators that run the experts.
        routed: among how many experts the router chooses, 0 where that is not known.
    """
    read = [_typed(*each) for each in inputs]
    stacked = _matrices(read, routed)
    if not stacked:
        return None
    experts = next(iter(stacked))[0][0]
    tokens, chosen = _choices(read, experts)
    stacked = Counter({key: many for key, many in stacked.items() if key[0][:2] != (tokens, chosen)})
    if not stacked:
        return None
    each = sum(many * prod(shape[1:]) * WEIGHT_BYTES[type_] for (shape, type_), many in stacked.items())
    most = min(experts, tokens * chosen) if chosen else experts
    # experts on other ranks may get all tokens
    least = 0 if routed and routed != experts else min(max(chosen, 1), experts)
    types = Counter({type_: many * prod(shape) for (shape, type_), many in stacked.items()})
    main = types.most_common(1)[0][0]
    packed = any(type_ in _PACKED for type_ in types)
    numbers = 0 if packed else sum(many * prod(shape[1:]) for (shape, _), many in stacked.items())
    return Experts(most * each, least * each, 2 * tokens * chosen * numbers, main)


_Typed = list[tuple[tuple[int, ...], str]]


def _typed(dims: str, types: str) -> _Typed:
    """The shape and type of each input that is a tensor."""
    try:
        shapes, kinds = json.loads(dims), json.loads(types)
    except ValueError:
        return []
    if not isinstance(shapes, list) or not isinstance(kinds, list):
        return []
    return [(tuple(shape), str(kind)) for shape, kind in zip(shapes, kinds, strict=False) if _is_shape(shape)]


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(each) is int and each > 0 for each in value)


def _matrices(read: list[_Typed], routed: int) -> Counter[tuple[tuple[int, ...], str]]:
    """The weights: inputs with a matrix for each expert, and how often one operator has each of them."""
    found: Counter[tuple[tuple[int, ...], str]] = Counter()
    for tensors in read:
        found |= Counter(
            each for each in tensors if len(each[0]) == 3 and min(each[0]) > 1 and each[1] in WEIGHT_BYTES
        )
    sizes = Counter(shape[0] for shape, _ in found)
    experts = routed if sizes[routed] else max((size for size in sizes if sizes[size] > 1), default=0)
    return Counter({each: many for each, many in found.items() if each[0][0] == experts})


def _choices(read: list[_Typed], experts: int) -> tuple[int, int]:
    """Tokens, and how many experts each chooses: of a shape that one operator has twice. 0: unknown."""
    pairs = [
        shape
        for tensors in read
        for shape, many in Counter(shape for shape, _ in tensors).items()
        if many > 1 and len(shape) == 2 and shape[1] <= experts
    ]
    if not pairs:
        return 0, 0
    tokens, chosen = min(pairs, key=lambda shape: (shape[1], shape[0]))
    return tokens, chosen
