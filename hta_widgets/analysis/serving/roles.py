"""What each kernel of a server's step does: its layer, its role, and how that is known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.operators.calls import module_calls, module_texts, operator_calls
from hta_widgets.analysis.serving.captures import Captured, aligned, graphs_in
from hta_widgets.analysis.serving.layers import placed
from hta_widgets.analysis.serving.parts import (
    LIGHT,
    PRODUCT,
    UNKNOWN,
    part_of_kernel,
    part_of_module,
    part_of_operator,
    role_of_part,
)
from hta_widgets.analysis.serving.table import is_server, own_work
from hta_widgets.arrays import Int32, Int64
from hta_widgets.trace.graph_replays import GRAPH_LAUNCH

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

MARK: Final = "[graph] "
"""How the name of a role begins where it stands among names of operators and calls."""

REMEDY: Final = "open the trace of the graphs' capture with it: capture="
"""What tells roles that are not known."""

_LAYER = re.compile(r"(?:layers?|blocks?|(?:^|\.)h)[._](\d+)", re.IGNORECASE)
_PRODUCTS: Final = ("qkv", "o_proj", "gate_up", "down", "router", "experts", "lm_head")


@dataclass(frozen=True)
class Roles:
    """The device work of a server's steps.

    Attributes:
        rows: of the rank, by step and start. step: the place of each one's step in `steps_of`.
        role, known_by, module: of each; "" where unknown. layer: -1 outside of layers.
        captured: what launched it when its graph was captured, where that is known.
        replayed: whether a graph launched it.
        refused: why roles are not known where they are not, each reason once.
    """

    rows: Int64
    step: Int64
    role: npt.NDArray[np.object_]
    layer: Int64
    known_by: npt.NDArray[np.object_]
    module: npt.NDArray[np.object_]
    captured: list[Captured | None]
    replayed: npt.NDArray[np.bool_]
    refused: tuple[str, ...]


@memoize_per_rank()
def roles_of(rank_trace: RankTrace) -> Roles:
    """The roles of the device work of a rank's steps; without rows where it is no server."""
    frame = rank_trace.iterations if is_server(rank_trace) else rank_trace.iterations.iloc[:0]
    rows, step = own_work(rank_trace)
    order = np.lexsort((rank_trace.start[rows], step))
    rows, step = rows[order], step[order]
    launching = np.array([bool(GRAPH_LAUNCH.match(name)) for name in rank_trace.names], np.bool_)
    replayed = launching[rank_trace.name[rank_trace.launch[rows]]] if len(rows) else np.zeros(0, np.bool_)
    role = np.full(len(rows), "", object)
    known_by, layer = role.copy(), np.full(len(rows), -1, np.int64)
    captured, refused = _captured(rank_trace, rows, replayed, frame, step)
    annotated = _annotated(rank_trace, rows)
    modules = _modules(rank_trace, rows, replayed, captured)
    operators = operators_of(rank_trace, rows, replayed)
    known: dict[tuple[object, ...], tuple[list[str], list[int], list[str], str]] = {}
    edges = np.searchsorted(step, np.arange(len(frame) + 1))
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        own = slice(first, last)
        launched = captured[own]
        key = (
            rank_trace.name[rows[own]].tobytes(), replayed[own].tobytes(), tuple(map(id, launched)),
            tuple(annotated[own]), tuple(modules[own]), tuple(operators[own]),
        )  # fmt: skip
        if key not in known:
            known[key] = _of_step(
                rank_trace, rows[own], replayed[own], launched, annotated[own], modules[own], operators[own]
            )
        role[own], layer[own], known_by[own], why = known[key]
        if why:
            refused[why] = None
    pairs = zip(annotated, captured, strict=True)
    module = np.array([name or (launched.module if launched else "") for name, launched in pairs], object)
    return Roles(rows, step, role, layer, known_by, module, captured, replayed, tuple(refused))


@memoize_per_rank()
def replayed_roles(rank_trace: RankTrace) -> tuple[Int32, tuple[str, ...]]:
    """Of each row of a rank, the place of its label, "[graph] qkv"; -1 for what no graph of a server replays.

    And the labels. Kernels whose role is not known have none; without labels there are no places either.
    """
    if not is_server(rank_trace):
        return np.empty(0, np.int32), ()
    code = np.full(rank_trace.n, -1, np.int32)
    known = roles_of(rank_trace)
    labelled = known.replayed & (known.role != "")
    found, at = np.unique(known.role[labelled].astype("str"), return_inverse=True)
    code[known.rows[labelled]] = at
    return code, tuple(f"{MARK}{role}" for role in found.tolist())


def _captured(
    rank_trace: RankTrace, rows: Int64, replayed: npt.NDArray[np.bool_], frame: pd.DataFrame, step: Int64
) -> tuple[list[Captured | None], dict[str, None]]:
    """What was captured for each kernel of a replay, and why nothing is known of others."""
    captured: list[Captured | None] = [None] * len(rows)
    refused: dict[str, None] = {}
    graphs = [graph for path in rank_trace.captures for graph in graphs_in(str(path))]
    if not graphs:
        return captured, refused
    batches = frame["batch_size"].fillna(0).to_numpy(np.int64)
    launch = rank_trace.launch[rows]
    nodes = np.maximum(rank_trace.argument("graph_node_id")[rows], 0)
    known: dict[tuple[object, ...], list[Captured | None]] = {}
    for call in np.unique(launch[replayed]).tolist():
        at = np.flatnonzero(launch == call)
        batch = int(batches[step[at[0]]])
        key = (rank_trace.name[rows[at]].tobytes(), nodes[at].tobytes(), batch)
        if key not in known:
            names = [rank_trace.names[code] for code in rank_trace.name[rows[at]].tolist()]
            known[key], why = aligned(names, rank_trace.dur[rows[at]], nodes[at], graphs, batch)
            if why:
                refused[f"the capture does not match: {why}"] = None
        for place, each in zip(at.tolist(), known[key], strict=True):
            captured[place] = each
    return captured, refused


def _annotated(rank_trace: RankTrace, rows: Int64) -> list[str]:
    """The full name of the module that annotates each kernel of a graph, "" for none."""
    if not rank_trace.table.has("module_fqn"):
        return [""] * len(rows)
    texts = [*rank_trace.table.dictionary("module_fqn"), ""]
    return [texts[code] for code in rank_trace.argument_codes_of("module_fqn", rows).tolist()]


def _modules(
    rank_trace: RankTrace,
    rows: Int64,
    replayed: npt.NDArray[np.bool_],
    captured: Sequence[Captured | None],
) -> list[str]:
    """The modules around what launched each kernel, of a replay around its capture; "" for none."""
    if not len(rows):
        return []
    texts = [*module_texts(rank_trace), ""]
    launch = rank_trace.launch[rows]
    calls, of = module_calls(rank_trace)
    operator = operator_calls(rank_trace).around[launch]
    at = np.where(operator >= 0, np.append(of, -1)[operator], calls.around[launch])
    at = np.where((launch >= 0) & ~replayed, at, -1)
    return [
        launched.modules if launched else texts[module]
        for launched, module in zip(captured, at.tolist(), strict=True)
    ]


def operators_of(rank_trace: RankTrace, rows: Int64, replayed: npt.NDArray[np.bool_]) -> list[str]:
    """The innermost operator that launched each kernel, "" for none and for replays."""
    if not len(rows):
        return []
    operators, launch = operator_calls(rank_trace), rank_trace.launch[rows]
    at = np.where((launch >= 0) & ~replayed, operators.around[launch], -1)
    names = [*(rank_trace.names[code] for code in rank_trace.name[operators.rows].tolist()), ""]
    return [names[place] for place in at.tolist()]


def _of_step(
    rank_trace: RankTrace,
    rows: Int64,
    replayed: npt.NDArray[np.bool_],
    captured: Sequence[Captured | None],
    annotated: Sequence[str],
    modules: Sequence[str],
    operators: Sequence[str],
) -> tuple[list[str], list[int], list[str], str]:
    """Role, layer and how they are known of the work of one step; and why some are not."""
    names = [rank_trace.names[code] for code in rank_trace.name[rows].tolist()]
    parts = [_part(name, launched) for name, launched in zip(names, captured, strict=True)]
    known_by = [
        "capture" if launched else "structure" if graph else "operator"
        for launched, graph in zip(captured, replayed.tolist(), strict=True)
    ]
    found = placed(parts, rank_trace.dur[rows].tolist(), operators)
    roles, layers = list(found.roles), list(found.layers)
    if found.refused:
        # which product is which is not known, all else is what its operator says
        has_operator = [launched or not graph for launched, graph in zip(captured, replayed, strict=True)]
        roles = [role_of_part(part) if known else "" for part, known in zip(parts, has_operator, strict=True)]
        layers = [-1] * len(rows)
    for at, (name, path) in enumerate(zip(annotated, modules, strict=True)):
        # classes of modules tell less than what repeats around attention, but more than nothing
        module = name or (path if found.refused else "")
        if layer := _LAYER.search(module):
            layers[at] = int(layer[1])
        if module and (role := _in_module(parts[at], roles[at], module)):
            roles[at] = role
            known_by[at] = "annotation" if name else known_by[at]
    known_by = [how if role else "" for how, role in zip(known_by, roles, strict=True)]
    return roles, layers, known_by, found.refused if "" in roles else ""


def _in_module(part: str, placed_as: str, module: str) -> str:
    """The role of a kernel in a module: what it is itself counts first; "" where neither tells.

    Args:
        part: what its name tells. placed_as: its role by its place, "" for none.
        module: the full name, or the classes of the modules around it.
    """
    role = part_of_module(module)
    if not role:
        return ""
    if part == PRODUCT:
        return role if role in _PRODUCTS else placed_as
    # modules of attention have more than attention in them
    if part in (UNKNOWN, "elementwise", "gather") and role != "attention":
        return role
    return placed_as if part == UNKNOWN else role_of_part(part)


def _part(name: str, launched: Captured | None) -> str:
    """What a kernel is, by its own name; by its operator's where that tells more."""
    part = part_of_kernel(name)
    if launched is None or part not in (UNKNOWN, *LIGHT):
        return part
    of_operator = part_of_operator(launched.operator)
    return part if of_operator == UNKNOWN else of_operator
