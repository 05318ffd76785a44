"""Who causes device work: the operator that launches most of it, in which module, at which source line.

Names are claims; they are shown as short as they stay telling.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, Text, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.libraries import LIBRARY
from hta_widgets.analysis.idle.causes import named, rows_named
from hta_widgets.analysis.idle.places import INDUCTOR_FILE, short_place
from hta_widgets.arrays import Bool, Int64
from hta_widgets.formatting import brief
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

# Operators that only carry out what the operator around them asks for.
_PRIMITIVE = re.compile(r"^aten::(?:copy_|_to_copy|clone|fill_|zero_)$")
MODULE = re.compile(r"^nn\.Module: ")
_NUMBER = re.compile(r"_\d+$")  # of a module, among those of its class
_OWN_LINE = re.compile(r"\.py\(\d+\): ")


def callers_text(rank_trace: RankTrace, rows: Int64, **work: Any) -> Text:
    """` Most of it (54 %) comes from aten::cat in nn.Module: Norm_0 at train.py(12): step.`, or empty.

    Args:
        rank_trace: of the work.
        rows: device work of one kind.
        work: what kind it is, for `Claim.about`.
    """
    launch = rank_trace.issuer[rows].astype(np.int64)
    time, whole = rank_trace.dur[rows], int(rank_trace.dur[rows].sum())
    is_operator = rank_trace.event_class == EventClass.HOST_OP
    operator = nearest(rank_trace, launch, is_operator, lambda name: not _PRIMITIVE.search(name))
    found = operator >= 0
    if not found.any() or not whole:
        return NOTHING_SAID
    by_name = np.bincount(rank_trace.name[operator[found]], time[found])
    code = int(by_name.argmax())
    name, share = rank_trace.names[code], 100.0 * float(by_name[code]) / whole
    chosen = launch[found & (rank_trace.name[operator] == code)]
    python = rank_trace.event_class == EventClass.PYTHON
    modules = nearest(rank_trace, chosen, python, MODULE.search)
    module = _mostly(rank_trace, modules) or _mostly(rank_trace, modules, module_class)
    ranks, about = (rank_trace.rank,), {"operator": name, **work}
    return say(
        " {most} ({share}) comes from {operator}{module}{line}.",
        most="Most of it" if share >= 50.0 else "The largest part of it",
        operator=Claim("largest_launcher", name, "name", ranks=ranks, about=dict(work)),
        share=Claim("launched_by", share, "%", "these kernels", ranks, {**about, "whole_ns": whole}),
        module=at_place("in", place_claim("launching_module", module, rank_trace.rank, **about)),
        line=at_place("at", line_claim(rank_trace, chosen, **about)),
    )


def around_text(rank: int, name: str, wider: Iterable[str]) -> Text:
    """` in nn.Module: Norm_0 at train.py(12): step`: the narrowest of these around a call of that name."""
    said, wider = NOTHING_SAID, tuple(wider)
    for word, pattern in (("in", MODULE), ("at", _OWN_LINE)):
        found = (each for each in wider if pattern.search(each) and not LIBRARY.search(each))
        told = pattern.search(name) or INDUCTOR_FILE.search(name)  # that is named by its module
        place = "" if told else next(found, "")
        said += at_place(word, place_claim("around", place, rank, call=name, kind=word))
    return said


def place_claim(measure: str, name: str, rank: int, /, within: tuple[str, ...] = (), **about: Any) -> Claim:
    """A call of the host, named as short as it stays telling; `within`: wider calls around it."""
    return Claim(measure, name, "name", ranks=(rank,), about=about, shown=brief(short_place(name, within)))


def line_claim(rank_trace: RankTrace, calls: Int64, through: bool = False, **about: Any) -> Claim:
    """`train.py(12): step`: where most of these calls come from in the program, libraries aside, or "".

    through: also where libraries are in between.
    """
    python = rank_trace.event_class == EventClass.PYTHON
    found = nearest(rank_trace, calls, python, _is_own if through else _OWN_LINE.search)
    own = [row >= 0 and _is_own(rank_trace.names[rank_trace.name[row]]) for row in found.tolist()]
    line = _mostly(rank_trace, np.where(own, found, -1))
    return place_claim("launching_line", line, rank_trace.rank, **about)


def open_in(rank_trace: RankTrace, span: tuple[int, int], is_wanted: Callable[[str], object]) -> int:
    """The host event of such a name that is open longest in a span, the innermost; -1 if none is."""
    rows = rows_named(rank_trace, is_wanted)
    rows = rows[rank_trace.on_host[rows]]
    start, end = rank_trace.start[rows], rank_trace.end[rows]
    inside = np.minimum(end, span[1]) - np.maximum(start, span[0])
    if not len(rows) or inside.max() <= 0:
        return -1
    return int(rows[np.lexsort((end - start, -inside))[0]])


def _is_own(name: str) -> bool:
    """Whether a call is of a function of the program."""
    return bool(_OWN_LINE.search(name)) and not LIBRARY.search(name)


def at_place(word: str, claim: Claim) -> Text:
    """` in train.py(12): step`, or nothing where the place is not known."""
    if not claim.value:
        return NOTHING_SAID
    return say(f" {word} {{place}}", place=claim)


def _mostly(rank_trace: RankTrace, rows: Int64, named_as: Callable[[str], str] = str) -> str:
    """The name of most of these rows, those that are none (-1) counted, too; "" if no name is."""
    names = Counter(named_as(rank_trace.names[code]) for code in rank_trace.name[rows[rows >= 0]].tolist())
    return next((name for name, count in names.most_common(1) if 2 * count > len(rows)), "")


def module_class(name: str) -> str:
    """`nn.Module: Linear` of its instance `nn.Module: Linear_3`."""
    return _NUMBER.sub("", name)


def nearest(rank_trace: RankTrace, rows: Int64, of_class: Bool, is_wanted: Callable[[str], object]) -> Int64:
    """For each row the innermost call of a class and of such a name around it; -1: none."""
    wanted = of_class & named(rank_trace, is_wanted)
    found, call = np.full(len(rows), -1, np.int64), rows.copy()
    while ((call >= 0) & (found < 0)).any():
        here = (call >= 0) & (found < 0) & wanted[call]
        found[here] = call[here]
        call = np.where((call >= 0) & (found < 0), rank_trace.parent[call], -1)
    return found


def begins_in(rank_trace: RankTrace, rows: Int64, calls: Int64) -> Bool:
    """Whether each row begins in one of these calls, on its thread."""
    inside = np.zeros(len(rows), np.bool_)
    if not len(calls):
        return inside
    for thread in np.unique(rank_trace.thread[calls]).tolist():
        mine = calls[rank_trace.thread[calls] == thread]
        spans = Intervals.union(rank_trace.start[mine], rank_trace.end[mine])
        there = np.flatnonzero(rank_trace.thread[rows] == thread)
        inside[there] = spans.holds(rank_trace.start[rows[there]])
    return inside
