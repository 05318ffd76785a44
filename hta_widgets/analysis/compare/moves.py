"""Moved lines: work that both runs do, but in different places."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import replace
from typing import Literal

import numpy as np

from hta_widgets.analysis.communication.operations import collective_of
from hta_widgets.analysis.compare.entries import Line
from hta_widgets.analysis.compare.lines import Table, occurs
from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.classify import EventClass, classify

Rule = Literal["kernels and calls", "kernels", "calls"]
_RULES: tuple[Rule, ...] = ("kernels and calls", "kernels", "calls")
_DECIMALS = 6  # to which numbers of calls per step are equal


def origins(lines: list[Line], old: Table, old_units: int, new: Table, units: int) -> Int64:
    """Which line of the first run each line of another run is compared with.

    That is itself, unless it has moved: of the paths that only the first run has, and those that only the
    other one has, two are a move if they end with the same operator (or module) and, by the first of these
    rules that finds a partner,

    1. launch kernels of the same names and are called equally often per step and rank,
    2. launch kernels of the same names, and not none,
    3. are called equally often per step and rank, and do the same collectives, if any.

    Under each rule the lines pair up one to one, in the order in which they first run.

    Args:
        lines: the lines of the tables' columns.
        old, new: the runs; old_units, units: the steps times ranks that their sums are of.

    Returns:
        int64 per line: the place of the line it is compared with, -1 for a line that was moved away.
    """
    had, has = occurs(old), occurs(new)
    origin = np.arange(len(lines))
    gone, here = _in_order(lines, had & ~has, old), _in_order(lines, has & ~had, new)
    for rule in _RULES:
        if not (gone and here):
            break
        waiting = defaultdict[tuple[str, ...], deque[int]](deque)
        for place, key in zip(gone, _keys(rule, lines, gone, old, old_units), strict=True):
            waiting[key].append(place)
        for place, key in zip(here, _keys(rule, lines, here, new, units), strict=True):
            if key and waiting[key]:
                origin[place] = waiting[key].popleft()
                origin[origin[place]] = -1
        gone = [place for place in gone if origin[place] == place]
        here = [place for place in here if origin[place] == place]
    return origin


def at(table: Table, origin: Int64) -> Table:
    """The first run's numbers, on the lines that they are compared with."""
    if (origin == np.arange(len(origin))).all():
        return table
    count, total, own = (
        np.where(origin >= 0, values[:, origin], 0) for values in (table.count, table.total, table.exclusive)
    )
    return replace(table, count=count, total=total, exclusive=own)


def _in_order(lines: list[Line], chosen: Bool, table: Table) -> list[int]:
    places = np.flatnonzero(chosen)
    places = places[np.argsort(table.begin[places], kind="stable")]
    return [place for place in places.tolist() if lines[place].leaf]


def _keys(
    rule: Rule, lines: list[Line], places: list[int], table: Table, units: int
) -> list[tuple[str, ...]]:
    """What lines must have in common under a rule; () for nothing."""
    calls = (table.count.sum(axis=0)[places] / units).round(_DECIMALS).tolist()
    keys = list[tuple[str, ...]]()
    for place, often in zip(places, calls, strict=True):
        kernels, leaf = sorted(table.kernels[place]), lines[place].leaf
        if rule == "kernels":
            keys.append((leaf, *kernels) if kernels else ())
        elif rule == "calls":
            keys.append((leaf, str(often), *_exchanges(kernels)))
        else:
            keys.append((leaf, str(often), *kernels))
    return keys


def _exchanges(kernels: list[str]) -> list[str]:
    """The collectives among kernels: `record_param_comms` is what they all are launched by."""
    collectives = (name for name in kernels if classify("kernel", name)[0] == EventClass.COMMUNICATION)
    return sorted({collective_of(name) for name in collectives})
