"""Who causes device work: the operator that launches most of it, in which module, at which source line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.idle.places import short_place
from hta_widgets.formatting import brief, percent
from hta_widgets.trace.classify import EventClass

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]

__all__ = ["MODULE", "around_in_words", "callers_in_words", "most_frequent_line", "nearest"]

# Operators that only carry out what the operator around them asks for.
_PRIMITIVE = re.compile(r"^aten::(?:copy_|_to_copy|clone|fill_|zero_)$")
MODULE = re.compile(r"^nn\.Module: ")
_OWN_LINE = re.compile(r"\.py\(\d+\): ")
_LIBRARY = re.compile(r"(?:^|/)(?:torch|site-packages|dist-packages|lib/python[\d.]+)/")


def callers_in_words(rank_trace: RankTrace, rows: Int64) -> str:
    """`, most of it by aten::cat (54 %) in nn.Module: Norm_0 at train.py(12): step`; empty if unknown."""
    launch = rank_trace.launch[rows].astype(np.int64)
    time, whole = rank_trace.dur[rows], int(rank_trace.dur[rows].sum())
    operator = nearest(
        rank_trace, launch, rank_trace.event_class == EventClass.HOST_OP, _PRIMITIVE, matches=False
    )
    found = operator >= 0
    if not found.any() or not whole:
        return ""
    by_name = np.bincount(rank_trace.name[operator[found]], time[found])
    code = int(by_name.argmax())
    share = 100.0 * float(by_name[code]) / whole
    said = f", most of it by {brief(rank_trace.names[code])} ({percent(share)})"
    chosen = launch[found & (rank_trace.name[operator] == code)]
    python = rank_trace.event_class == EventClass.PYTHON
    for words, place in (
        ("in", _most_frequent(rank_trace, nearest(rank_trace, chosen, python, MODULE))),
        ("at", most_frequent_line(rank_trace, chosen)),
    ):
        said += f" {words} {brief(place)}" if place else ""
    return said


def around_in_words(name: str, wider: Iterable[str]) -> str:
    """` in nn.Module: Norm_0 at train.py(12): step`: the narrowest of these around a call of that name."""
    said = ""
    for words, pattern in (("in", MODULE), ("at", _OWN_LINE)):
        found = (each for each in wider if pattern.search(each) and not _LIBRARY.search(each))
        place = "" if pattern.search(name) else next(found, "")
        said += f" {words} {brief(short_place(place))}" if place else ""
    return said


def most_frequent_line(rank_trace: RankTrace, calls: Int64) -> str:
    """`train.py(12): step`: where most of these calls come from in the program, libraries aside, or ""."""
    python = rank_trace.event_class == EventClass.PYTHON
    found = nearest(rank_trace, calls, python, _OWN_LINE)
    own = [row >= 0 and not _LIBRARY.search(rank_trace.names[rank_trace.name[row]]) for row in found.tolist()]
    return _most_frequent(rank_trace, found[np.array(own, np.bool_)])


def _most_frequent(rank_trace: RankTrace, rows: Int64) -> str:
    names = [rank_trace.names[code] for code in rank_trace.name[rows[rows >= 0]].tolist()]
    return short_place(max(sorted(set(names)), key=names.count)) if names else ""


def nearest(
    rank_trace: RankTrace,
    rows: Int64,
    of_class: npt.NDArray[np.bool_],
    pattern: re.Pattern[str],
    matches: bool = True,
) -> Int64:
    """For each row the innermost call of a class around it whose name matches, or does not; -1: none."""
    fits = [bool(pattern.search(name)) == matches for name in rank_trace.names]
    named = np.array(fits or [False], np.bool_)
    wanted = of_class & named[rank_trace.name]
    found, call = np.full(len(rows), -1, np.int64), rows.copy()
    while ((call >= 0) & (found < 0)).any():
        here = (call >= 0) & (found < 0) & wanted[call]
        found[here] = call[here]
        call = np.where((call >= 0) & (found < 0), rank_trace.parent[call], -1)
    return found
