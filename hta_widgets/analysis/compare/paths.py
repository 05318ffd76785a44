"""The distinct call paths of some of a rank's calls, from the outermost."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import numpy as np

from hta_widgets.analysis.calls.stacks import PREFIX, stacks
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.operators.calls import is_module
from hta_widgets.arrays import Bool, Int32, Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

LONGEST: Final = 400
"""Characters of a path's text at most; of longer ones the middle is left out."""

_WITHIN = " / "
_INSTANCE = re.compile(r"_\d+$")


@dataclass(frozen=True, eq=False)
class Paths:
    """The paths of the chosen calls of a rank.

    A call within another one of the same name has the path of that one, so recursion makes no new paths.
    """

    chosen: Bool  # bool[rows] the calls that have a place
    # int32[rows] path of the innermost chosen call around each row, itself included; -1 for none
    around: Int32
    # each path in words, unique also where shortened; ``leaves``: the name that it ends with
    texts: list[str]
    leaves: list[str]
    # each path from the innermost module on, without the number of the instance: the same for what is the
    # same in every layer, and in a model that is wrapped or has modules more
    kinds: list[str]
    begin: Int64  # ns at which each path first runs


@memoize_per_rank()
def call_paths(rank_trace: RankTrace) -> Paths:
    """The paths of operators and, where they were recorded, the `nn.Module` instances around them."""
    return _paths(rank_trace, (rank_trace.event_class == EventClass.HOST_OP) | is_module(rank_trace))


@memoize_per_rank()
def module_paths(rank_trace: RankTrace) -> Paths:
    """The paths of `nn.Module` instances."""
    return _paths(rank_trace, is_module(rank_trace))


def _paths(rank_trace: RankTrace, chosen: Bool) -> Paths:
    tree = stacks(rank_trace)
    chosen = chosen & (tree.depth >= 0)
    calls = int(chosen.sum())
    around = np.full(rank_trace.n, -1, np.int32)
    above, name, begin = np.empty(calls, np.int32), np.empty(calls, np.int32), np.empty(calls, np.int64)
    table = 1 << (2 * calls + 1).bit_length()
    seen, place = np.full(table, -1, np.int64), np.empty(table, np.int32)
    made = _walk(
        tree.order, tree.parent, rank_trace.name, rank_trace.start, chosen, len(rank_trace.names),
        around, above, name, begin, seen, place,
    )  # fmt: skip
    leaves = [rank_trace.names[code] for code in name[:made].tolist()]
    texts, kinds = list[str](), list[str]()
    for caller, leaf in zip(above[:made].tolist(), leaves, strict=True):
        own = leaf.removeprefix(PREFIX)
        texts.append(f"{texts[caller]}{_WITHIN}{own}" if caller >= 0 else own)
        if leaf.startswith(PREFIX):
            kinds.append(_INSTANCE.sub("", own))
        else:
            kinds.append(f"{kinds[caller]}{_WITHIN}{own}" if caller >= 0 else own)
    return Paths(chosen, around, [_shortened(text) for text in texts], leaves, kinds, begin[:made].copy())


def _shortened(text: str) -> str:
    """The text in at most `LONGEST` characters; different texts stay different."""
    if len(text) <= LONGEST:
        return text
    mark = f" ... {blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=6).hexdigest()} ... "
    half = (LONGEST - len(mark)) // 2
    return text[:half] + mark + text[-half:]


@kernel
def _walk(
    order: Int64, parent: Int32, names: Int32, start: Int64, chosen: Bool, texts: int,
    around: Int32, above: Int32, name: Int32, begin: Int64, seen: Int64, place: Int32,
) -> int:  # fmt: skip
    """Number the paths; `seen` and `place` are a hash table of (path of the caller, name) -> path."""
    made, mask = 0, len(seen) - 1
    for i in range(len(order)):
        row = order[i]
        caller = parent[row]
        outer = around[caller] if caller >= 0 else -1
        if not chosen[row]:
            around[row] = outer
            continue
        key = (outer + 1) * texts + names[row]
        at = ((key ^ (key >> 17)) * 0x9E3779B1) & mask
        while seen[at] >= 0 and seen[at] != key:
            at = (at + 1) & mask
        if seen[at] < 0:
            path = outer
            while path >= 0 and name[path] != names[row]:
                path = above[path]
            if path < 0:
                path = made
                above[path], name[path], begin[path] = outer, names[row], start[row]
                made += 1
            seen[at], place[at] = key, path
        path = place[at]
        around[row] = path
        begin[path] = min(begin[path], start[row])
    return made
