"""The captures of graphs: which operator of which module launched each kernel that a replay runs.

When a graph is captured, its launches are recorded with the operator around them, and nothing runs. Replays
run the same kernels in the same order, without an operator. The two are laid side by side; where they do not
match, nothing is taken over.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from hta_widgets.analysis.idle.causes import named
from hta_widgets.analysis.operators.calls import module_calls, module_texts, operator_calls
from hta_widgets.analysis.serving.experts import Inputs, inputs_within
from hta_widgets.arrays import Int64
from hta_widgets.errors import HtaWidgetsError
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.cache import load

ENOUGH: Final = 0.99
"""Of the kernels of a replay, and of their time, so much must be found in a capture."""

_BEGINS = re.compile(r"(?:cuda|hip|cu)StreamBeginCapture")
_ENDS = re.compile(r"(?:cuda|hip|cu)StreamEndCapture")
_LAUNCHES = re.compile(
    r"^(?:cuda|hip|cu)(?:Ext)?(?:Module)?Launch(?:Cooperative)?Kernel|^(?:cuda|hip|cu)Mem(?:cpy|set)\w*Async"
)
_SIZE = re.compile(r"^capture_(\d+)")
_MOVES = re.compile(r"^Mem(cpy|set)")


@dataclass(frozen=True)
class Captured:
    """A captured launch: the kernel ("" where the recorder does not name it), and what launched it."""

    kernel: str
    operator: str
    module: str  # the innermost module; modules: with those around it, as `module_texts` names them
    # JSON of the operator's inputs, "" where they were not recorded
    dims: str
    types: str
    call: int = -1  # a number of the operator's call, -1 for none
    within: tuple[Inputs, ...] = ()  # the inputs of the operator and of those that it calls, each once
    modules: str = ""


@dataclass(frozen=True)
class Graph:
    """A captured graph: its launches in order, and the batch it is for (0: unknown)."""

    launches: tuple[Captured, ...]
    batch: int

    @property
    def is_named(self) -> bool:
        """Whether the recorder wrote which kernel each launch starts: ROCm's does."""
        return all(each.kernel for each in self.launches)


@lru_cache(maxsize=16)
def graphs_in(path: str) -> tuple[Graph, ...]:
    """The graphs whose capture a file records, in order; none where it cannot be read."""
    if not Path(path).is_file():
        return ()
    try:
        rank_trace = RankTrace(load(path, extra_args=("kernel",)), 0)
    except (HtaWidgetsError, OSError):
        return ()
    runtime = rank_trace.event_class == EventClass.RUNTIME
    begins, ends = (
        np.sort(rank_trace.start[runtime & named(rank_trace, pattern.search)]) for pattern in (_BEGINS, _ENDS)
    )
    calls = np.flatnonzero(runtime & named(rank_trace, _LAUNCHES.match))
    calls = calls[np.argsort(rank_trace.start[calls], kind="stable")]
    sizes = _sizes(rank_trace)
    found = []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=False):
        inside = calls[(rank_trace.start[calls] >= begin) & (rank_trace.start[calls] < end)]
        if len(inside):
            batch = next((size for size, first, last in sizes if first <= begin < last), 0)
            found.append(Graph(_captured(rank_trace, inside), batch))
    return tuple(found)


def _sizes(rank_trace: RankTrace) -> list[tuple[int, int, int]]:
    """The batch that an annotation around a capture names, and when it is open."""
    rows = np.flatnonzero(
        (rank_trace.event_class == EventClass.ANNOTATION)
        & named(rank_trace, _SIZE.match)
        & rank_trace.on_host
    )
    found = []
    for row in rows.tolist():
        match = _SIZE.match(rank_trace.names[rank_trace.name[row]])
        if match:
            found.append((int(match[1]), int(rank_trace.start[row]), int(rank_trace.end[row])))
    return found


def _captured(rank_trace: RankTrace, calls: Int64) -> tuple[Captured, ...]:
    kernels = rank_trace.argument_codes("kernel") if rank_trace.table.has("kernel") else None
    texts = rank_trace.table.dictionary("kernel") if kernels is not None else []
    operators = operator_calls(rank_trace)
    owner = operators.around[calls]
    of, modules = module_calls(rank_trace)[1], module_texts(rank_trace)
    dims, types = (_argument(rank_trace, name) for name in ("input_dims", "input_type"))
    within = cache(inputs_within(rank_trace))
    found = []
    for call, at in zip(calls.tolist(), owner.tolist(), strict=True):
        row = int(operators.rows[at]) if at >= 0 else -1
        path = modules[of[at]] if at >= 0 and of[at] >= 0 else ""
        name = rank_trace.names[rank_trace.name[call]]
        kernel = json.loads(texts[kernels[call]]) if kernels is not None and kernels[call] >= 0 else ""
        if "Memcpy" in name or "Memset" in name:
            kernel = "Memcpy" if "Memcpy" in name else "Memset"
        found.append(
            Captured(
                str(kernel),
                rank_trace.names[rank_trace.name[row]] if row >= 0 else "",
                path.rpartition(".")[2],
                dims[row] if row >= 0 else "",
                types[row] if row >= 0 else "",
                row,
                within(at) if at >= 0 else (),
                path,
            )
        )
    return tuple(found)


def _argument(rank_trace: RankTrace, name: str) -> list[str]:
    """The JSON of an argument of each row, "" where absent, and last."""
    if not rank_trace.table.has(name):
        return [""] * (rank_trace.n + 1)
    texts = [*rank_trace.table.dictionary(name), ""]
    return [texts[code] for code in rank_trace.argument_codes(name).tolist()] + [""]


def aligned(
    kernels: Sequence[str], time_ns: Int64, nodes: Int64, graphs: Sequence[Graph], batch: int = 0
) -> tuple[list[Captured | None], str]:
    """What each kernel of a replay was launched by, None where that is not known; or why nothing is.

    Args:
        kernels: their names, in the order in which they run.
        time_ns: how long each takes.
        nodes: the number of each in its graph, where recorded; 0 elsewhere.
        graphs: those that were captured.
        batch: of the step.
    """
    mine = [_moved(name) for name in kernels]
    counts = Counter(mine)
    equal = [
        graph
        for graph in graphs
        if graph.is_named and Counter(_moved(each.kernel) for each in graph.launches) == counts
    ]
    if equal:
        return _in_order(mine, time_ns, _nearest(equal, batch))
    unnamed = [graph for graph in graphs if not graph.is_named and len(graph.launches) == len(mine)]
    if unnamed and (nodes > 0).all() and len(np.unique(nodes)) == len(nodes):
        order = np.argsort(nodes)
        found: list[Captured | None] = [None] * len(mine)
        for place, at in enumerate(order.tolist()):
            found[at] = _nearest(unnamed, batch).launches[place]
        return found, ""
    best: tuple[list[Captured | None], str] = ([None] * len(mine), "")
    refused = ""
    for graph in (graph for graph in graphs if graph.is_named):
        found, refused = _in_order(mine, time_ns, graph)
        if not refused:
            best = (found, "")
            break
    if any(best[0]):
        return best
    sizes = ", ".join(map(str, sorted({len(graph.launches) for graph in graphs})))
    return best[
        0
    ], refused or f"{len(mine)} kernels run, {sizes} were captured, and it is unknown which is which"


def _moved(name: str) -> str:
    """A name to compare: of copies and fills only that they are."""
    move = _MOVES.match(name)
    return f"Mem{move[1]}" if move else name


def _nearest(graphs: Sequence[Graph], batch: int) -> Graph:
    """The graph that was captured for a batch: the smallest that it fits into."""
    fitting = [graph for graph in graphs if graph.batch >= batch]
    return min(fitting, key=lambda graph: graph.batch) if fitting else graphs[0]


def _in_order(mine: Sequence[str], time_ns: Int64, graph: Graph) -> tuple[list[Captured | None], str]:
    """The kernels that stand in both in the same order."""
    captured = [_moved(each.kernel) for each in graph.launches]
    found: list[Captured | None] = [None] * len(mine)
    if captured == list(mine):
        return list(graph.launches), ""
    for first, second, size in SequenceMatcher(None, mine, captured, autojunk=False).get_matching_blocks():
        found[first : first + size] = graph.launches[second : second + size]
    known = np.array([each is not None for each in found], np.bool_)
    whole = max(len(mine), len(captured))
    if known.sum() < ENOUGH * whole or time_ns[known].sum() < ENOUGH * time_ns.sum():
        reason = f"{int(known.sum()):,} of {len(mine):,} kernels stand in the capture of {len(captured):,}"
        return [None] * len(mine), reason
    return found, ""
