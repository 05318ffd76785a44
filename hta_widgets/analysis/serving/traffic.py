"""What the kernels of a server's steps read and compute: weights from shapes of products, keys and values.

Weights come from the shapes of matrix products, recorded when the graph was captured or by the operator that
ran; never from names. Keys and values follow from the lengths of the sequences, which engines write in their
annotations, and the shape of what a layer writes to the cache. Of experts two ends are given (`experts`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.classes.record import UNIT_OF_TYPE
from hta_widgets.analysis.kernels.units import Unit
from hta_widgets.analysis.operators.calls import operator_calls
from hta_widgets.analysis.serving.experts import (
    Experts,
    Inputs,
    experts_of,
    inputs_within,
    texts_of,
)
from hta_widgets.analysis.serving.parts import PRODUCT
from hta_widgets.analysis.serving.roles import Roles, roles_of
from hta_widgets.analysis.serving.table import steps_of
from hta_widgets.arrays import Bool, Int64

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

COVERED: Final = 0.5
"""Of a step's device time so much must be of kernels whose traffic is known, for a share of the peak."""

# The place of the left matrix and of the weights among the inputs.
_MATRICES: Final = {
    "aten::mm": (0, 1), "aten::addmm": (1, 2), "aten::linear": (0, 1), "aten::matmul": (0, 1),
    "aten::_scaled_mm": (0, 1),
}  # fmt: skip
_SIZES: Final = {
    "c10::BFloat16": 2, "c10::Half": 2, "float": 4, "double": 8, "signed char": 1, "unsigned char": 1,
    "c10::Float8_e4m3fn": 1, "c10::Float8_e4m3fnuz": 1, "c10::Float8_e5m2": 1, "c10::Float8_e5m2fnuz": 1,
}  # fmt: skip
_UNITS: Final = {
    "c10::BFloat16": "bf16", "c10::Half": "fp16", "float": "fp32", "signed char": "int8",
    "c10::Float8_e4m3fn": "e4m3", "c10::Float8_e4m3fnuz": "e4m3", "c10::Float8_e5m2": "e5m2",
}  # fmt: skip


@dataclass(frozen=True)
class Traffic:
    """Of each row of `roles_of`: bytes of weights, all bytes that it must move, operations; 0: unknown."""

    weight_bytes: Int64
    weight_least_bytes: Int64  # with as few experts as the tokens may choose
    moved_bytes: Int64
    flops: Int64
    # of attention, with all layers reading whole sequences; a layer's stand at its first kernel
    kv_bytes: Int64
    kv_least_bytes: Int64  # the same without layers that may read a window of them only
    known: Bool  # what is known of the row's traffic
    counted: Bool  # and of its operations
    unit: Unit | None  # what multiplies; None where no product is known


@dataclass(frozen=True)
class _Call:
    """An operator's inputs: which call, its name, their shapes and types."""

    key: object
    operator: str
    dims: list[Any]
    types: list[Any]


@memoize_per_rank(last=2)
def traffic_of(rank_trace: RankTrace, sliding_window: int | None = None) -> Traffic:
    """The traffic of a rank's steps.

    Args:
        sliding_window: tokens that layers with a window read at most; those are the layers with the faster
            of two kinds of attention.
    """
    roles = roles_of(rank_trace)
    size = len(roles.rows)
    weights, moved, flops = np.zeros((3, size), np.int64)
    known = np.zeros(size, np.bool_)
    calls = _calls(rank_trace, roles)
    types: dict[str, int] = {}
    seen: set[object] = set()
    for at, call in enumerate(calls):
        if call is None or (found := _product(call)) is None:
            continue
        known[at] = True
        key = (int(roles.step[at]), int(rank_trace.launch[roles.rows[at]]), call.key)
        if key in seen:  # a product of several kernels, such as a sum that is split
            continue
        seen.add(key)
        weights[at], moved[at], flops[at] = found.weights, found.moved, found.flops
        types[found.type] = types.get(found.type, 0) + found.flops
    least = weights.copy()
    attention = roles.role == "attention"
    counted = known | attention
    for rows, experts in _layers_of_experts(rank_trace, roles, calls):
        first = rows[0]
        weights[first], least[first], flops[first] = experts.most, experts.least, experts.flops
        moved[first] = experts.least
        known[rows], counted[rows] = True, experts.flops > 0
        types[experts.type] = types.get(experts.type, 0) + experts.flops
    for at in np.flatnonzero(roles.role == "communication").tolist():
        if (call := calls[at]) is not None:
            moved[at] = _message(call)
    kv, kv_least = _cache(rank_trace, roles, calls, sliding_window)
    known |= attention & np.isin(roles.step, np.unique(roles.step[kv > 0]))
    most = max(types, key=lambda name: types[name], default="")
    unit = UNIT_OF_TYPE.get(_UNITS.get(most, ""))
    return Traffic(weights, least, moved + kv, flops, kv, kv_least, known, counted, unit)


def _layers_of_experts(
    rank_trace: RankTrace, roles: Roles, calls: list[_Call | None]
) -> Iterator[tuple[Int64, Experts]]:
    """The rows of each layer's experts in each step, and what they read."""
    operators, within = operator_calls(rank_trace), cache(inputs_within(rank_trace))
    launch = rank_trace.launch[roles.rows]
    owner = operators.around[launch] if len(operators.rows) else np.full(len(launch), -1)
    keys: dict[tuple[int, ...], list[int]] = {}
    routed: dict[tuple[int, int], int] = {}
    other: set[int] = set()  # operators that run more than experts
    for at, role in enumerate(roles.role.tolist()):
        layer, captured = (int(roles.step[at]), int(roles.layer[at])), roles.captured[at]
        call = captured.call if captured else int(owner[at])
        if role == "experts":
            keys.setdefault(layer if layer[1] >= 0 else (*layer, call), []).append(at)
        elif role == "router" and (read := calls[at]) and (product := _product(read)):
            routed[layer] = product.columns
        elif role in ("attention", "norm", "cache", "rope"):
            other.add(call)
    for key, rows in keys.items():
        inputs: dict[Inputs, None] = {}
        for at in rows:
            captured = roles.captured[at]
            call = captured.call if captured else int(owner[at])
            if call >= 0 and call not in other:
                inputs |= dict.fromkeys(captured.within if captured else within(call))
        if experts := experts_of(inputs, routed.get((key[0], key[1]), 0)):
            yield np.array(rows, np.int64), experts


def _calls(rank_trace: RankTrace, roles: Roles) -> list[_Call | None]:
    """The operator of each row of `roles` that may tell something."""
    wanted = np.isin(
        roles.role,
        ("qkv", "o_proj", "gate_up", "down", "router", "lm_head", PRODUCT, "cache", "communication"),
    )
    operators = operator_calls(rank_trace)
    launch = rank_trace.launch[roles.rows]
    owner = operators.around[launch] if len(operators.rows) else np.full(len(launch), -1)
    dims, types = (texts_of(rank_trace, name) for name in ("input_dims", "input_type"))
    found: list[_Call | None] = [None] * len(roles.rows)
    for at in np.flatnonzero(wanted).tolist():
        captured = roles.captured[at]
        if captured is not None:
            found[at] = _read(captured.call, captured.operator, captured.dims, captured.types)
        elif not roles.replayed[at] and launch[at] >= 0 and owner[at] >= 0:
            row = int(operators.rows[owner[at]])
            name = rank_trace.names[int(rank_trace.name[row])]
            found[at] = _read(row, name, dims(row), types(row))
    return found


def _read(key: object, operator: str, dims: str, types: str) -> _Call | None:
    try:
        shapes, kinds = (json.loads(text) if text else None for text in (dims, types))
    except ValueError:
        return None
    if not isinstance(shapes, list) or not isinstance(kinds, list):
        return None
    return _Call(key, operator, shapes, kinds)


class _Product(NamedTuple):
    """Bytes of the weights, all bytes, operations; of the weights the type, and how many columns."""

    weights: int
    moved: int
    flops: int
    type: str
    columns: int


def _product(call: _Call) -> _Product | None:
    """What a matrix product computes; None for other operators, and where shapes are not recorded."""
    if call.operator not in _MATRICES:
        return None
    left, right = _MATRICES[call.operator]
    if len(call.dims) <= right or len(call.types) <= right:
        return None
    a, b = call.dims[left], call.dims[right]
    type_, of_left = str(call.types[right]), str(call.types[left])
    if not (_is_shape(a) and _is_shape(b) and len(b) == 2) or type_ not in _SIZES or of_left not in _SIZES:
        return None
    inner = a[-1]
    if inner not in b:
        return None
    columns = prod(b) // inner if inner else 0
    rows = prod(a[:-1])
    weights = prod(b) * _SIZES[type_]
    moved = weights + prod(a) * _SIZES[of_left] + rows * columns * _SIZES[of_left]
    return _Product(weights, moved, 2 * rows * inner * columns, type_, columns)


def _message(call: _Call) -> int:
    """Bytes of what a collective is given; 0: unknown. Graphs replay it without arguments of its own."""
    for shape, type_ in zip(call.dims, call.types, strict=False):
        if _is_shape(shape) and (size := _SIZES.get(str(type_))):
            return int(prod(shape) * size)
    return 0


def _is_shape(value: Any) -> bool:
    return (
        isinstance(value, list) and len(value) >= 2 and all(type(each) is int and each > 0 for each in value)
    )


def _cache(
    rank_trace: RankTrace, roles: Roles, calls: list[_Call | None], window: int | None
) -> tuple[Int64, Int64]:
    """Keys and values that attention reads in each layer: at most, and without layers that may read less."""
    most, least = np.zeros((2, len(roles.rows)), np.int64)
    steps = steps_of(rank_trace)
    lengths = steps["kv_tokens"].to_numpy(np.int64, na_value=0)
    requests = steps["requests"].to_numpy(np.int64, na_value=0)
    edges = np.searchsorted(roles.step, np.arange(len(steps) + 1))
    for step, (first, last) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
        writes = (calls[at] for at in range(first, last) if roles.role[at] == "cache")
        token = _token_bytes(call for call in writes if call is not None)
        if not token or not lengths[step]:
            continue
        layers = _attention(rank_trace, roles, first, last)
        windowed = _windowed(layers)
        for at, kind, _ in layers:
            whole = int(lengths[step]) * token
            short = min(int(lengths[step]), int(requests[step]) * window) * token if window else 0
            in_window = kind in windowed
            most[at] = short if in_window and window else whole
            least[at] = short if in_window else whole
    return most, least


def _token_bytes(calls: Iterable[_Call]) -> int:
    """Bytes of the keys and values of a token in one layer: what is written to the cache for each."""
    for call in calls:
        if len(call.dims) < 2 or len(call.types) < 2:
            continue
        keys, values = call.dims[:2]
        size = _SIZES.get(str(call.types[0]))
        latent = "mla" in call.operator  # both are of one latent, of which the second part carries positions
        if _is_shape(keys) and _is_shape(values) and (keys == values or latent) and size:
            return int((prod(keys[1:]) + prod(values[1:])) * size)
    return 0


_Layer = tuple[int, tuple[str, ...], int]


def _attention(rank_trace: RankTrace, roles: Roles, first: int, last: int) -> list[_Layer]:
    """Of each layer of a step: the row of its first kernel of attention, their names, and their time."""
    found: dict[int, list[int]] = {}
    for at in range(first, last):
        if roles.role[at] == "attention" and roles.layer[at] >= 0:
            found.setdefault(int(roles.layer[at]), []).append(at)
    return [
        (
            rows[0],
            tuple(sorted(rank_trace.names[int(rank_trace.name[roles.rows[at]])] for at in rows)),
            int(rank_trace.dur[roles.rows[rows]].sum()),
        )
        for rows in found.values()
    ]


def _windowed(layers: list[_Layer]) -> set[tuple[str, ...]]:
    """The kinds of attention that may read a window only: of two kinds the faster one."""
    times = pd.DataFrame(layers, columns=["at", "kind", "time"]).groupby("kind")["time"].median()
    return set(times.nsmallest(len(times) - 1).index) if len(times) > 1 else set()
