"""A run as a table of numbers per step and line: every event of the sample on its line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import pandas as pd

from hta_widgets.analysis.calls.paths import sums
from hta_widgets.analysis.communication.collectives import collectives
from hta_widgets.analysis.compare.call_lines import module_lines, operator_lines, path_lines, phase_lines
from hta_widgets.analysis.compare.entries import Entries, Line, Named
from hta_widgets.analysis.compare.noise import Difference, difference
from hta_widgets.analysis.compare.sampling import Steps
from hta_widgets.analysis.kernels.breakdown import device_work
from hta_widgets.arrays import Bool, Int64
from hta_widgets.engine import checkpoint
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

_NEVER = np.iinfo(np.int64).max
_MICROSECOND = 1_000
_CLASSES = {int(event_class): event_class.label for event_class in EventClass}
By = Literal["kernel", "op", "call_path", "phase", "collective", "module"]
Time = Literal["device", "host"]


@dataclass(frozen=True, eq=False)
class Table:
    """A run as numbers."""

    # int64[steps, lines], summed over its ranks
    count: Int64
    total: Int64
    exclusive: Int64
    kernels: list[tuple[str, ...]]  # of each line, the names of the device work that it owns, most time first
    begin: Int64  # int64[lines] ns at which it first runs; where lines have no place, 0


def occurs(table: Table) -> Bool:
    """The lines that the run has."""
    return ((table.count != 0) | (table.exclusive != 0)).any(axis=0)


def most_changed(rows: pd.DataFrame) -> pd.Series:
    """The row whose time changed most, longer or shorter."""
    return rows.iloc[int(rows["change_ns"].abs().to_numpy().argmax())]


def compared(old: Table, old_steps: Steps, new: Table, new_steps: Steps) -> tuple[Difference, Bool]:
    """The difference of exclusive time per step and rank, and which lines are called more or less often."""
    old_ranks, ranks = len(old_steps.ranks), len(new_steps.ranks)
    calls = np.maximum(old.count.sum(axis=0) / old_steps.units, new.count.sum(axis=0) / new_steps.units)
    coarse = not (old.exclusive % _MICROSECOND).any() and not (new.exclusive % _MICROSECOND).any()
    # Begin and end are rounded, in both runs: four errors per call, each uniform over a microsecond.
    rounding = _MICROSECOND * np.sqrt(4 / 12 * calls) if coarse else 0.0
    time = difference(old.exclusive / old_ranks, new.exclusive / ranks, rounding)
    number = difference(old.count / old_ranks, new.count / ranks).significant
    # Where calls were added or removed, a different time is no surprise: its own interval decides.
    expected = number & time.enough & ((time.low > 0) | (time.high < 0))
    return replace(time, significant=time.significant | expected), number


def tables(
    runs: Mapping[str, Trace], samples: Mapping[str, Steps], scopes: Mapping[str, Scope], by: By, time: Time
) -> tuple[list[Line], dict[str, Table]]:
    """All lines of all runs, and each run's table with these lines as columns."""
    numbers: dict[Line, int] = {}
    found: dict[str, list[tuple[Entries, Int64]]] = {}
    for run, trace in runs.items():
        found[run] = []
        for entries in entries_of(trace, samples[run], scopes[run], by, time):
            checkpoint()
            place = [numbers.setdefault(line, len(numbers)) for line in entries.lines]
            found[run].append((entries, np.array(place, np.int64)))
    lines = list(numbers)
    return lines, {run: _table(parts, samples[run], len(lines)) for run, parts in found.items()}


def entries_of(trace: Trace, steps: Steps, scope: Scope, by: By, time: Time) -> Iterator[Entries]:
    """What a run spends its time on, in all its steps, on the ranks of `steps`."""
    # The steps decide the time; a step's device work may run on beyond the step's end.
    filters = Scope(ranks=steps.ranks, streams=scope.streams, names=scope.names)
    if by == "kernel":
        yield from _kernels(trace, filters)
    elif by == "collective":
        yield _collectives(trace, filters)
    elif by in _OF_CALLS:
        for rank in steps.ranks:
            yield _OF_CALLS[by](trace.rank(rank), filters, time)
    else:
        raise ValueError(f"by is one of {', '.join(get_args(By))}, not {by!r}")


_OF_CALLS: dict[str, Callable[..., Entries]] = {
    "op": operator_lines, "call_path": path_lines, "phase": phase_lines, "module": module_lines,
}  # fmt: skip


def _kernels(trace: Trace, scope: Scope) -> Iterator[Entries]:
    for _, rank_trace, work in device_work(trace, scope):
        rows = work.rows[rank_trace.belong(work.rows, scope)]
        names = zip(work.event_class.tolist(), work.name.tolist(), strict=True)
        lines = [Line(_CLASSES[code], rank_trace.names[name]) for code, name in names]
        dur = rank_trace.dur[rows]
        yield Entries(
            lines, work.group[rows].astype(np.int64), rank_trace.iteration[rows], np.ones_like(dur), dur, dur
        )


def _collectives(trace: Trace, scope: Scope) -> Entries:
    frame = collectives(trace, scope)
    label = frame["collective"].astype("str")
    for column, words in (
        ("dtype", " of {}"),
        ("process_group", " in group {}"),
        ("group_size", " of {} ranks"),
    ):
        known = frame[column].notna()
        label = label + frame[column].astype("str").map(words.format).where(known, "")
    code, texts = pd.factorize(label)
    dur = frame["dur_ns"].to_numpy(np.int64)
    iteration = frame["iteration"].fillna(-1).to_numpy(np.int64)
    lines = [Line("communication", str(text)) for text in texts]
    line = code.astype(np.int64)
    name, names = pd.factorize(frame["name"])
    work = Named(line, iteration, name, dur, [str(text) for text in names])
    return Entries(lines, line, iteration, np.ones_like(dur), dur, dur, work)


def _table(parts: list[tuple[Entries, Int64]], steps: Steps, lines: int) -> Table:
    count, total, own = (np.zeros((len(steps), lines), np.int64) for _ in range(3))
    begin = np.full(lines, _NEVER, np.int64)
    names: list[Counter[str]] = [Counter() for _ in range(lines)]
    for entries, place in parts:
        if not len(place):
            continue
        step = steps.position(entries.iteration)
        kept = step >= 0
        cell = (step[kept] * lines + place[entries.line[kept]]).astype(np.int32)
        for sum_of, values in ((count, entries.count), (total, entries.total), (own, entries.exclusive)):
            sum_of += sums(cell, values[kept], sum_of.size).reshape(sum_of.shape)
        begin[place] = np.minimum(begin[place], 0 if entries.begin is None else entries.begin)
        for line, name, ns in named(entries.work, steps):
            names[place[line]][name] += ns
    kernels = [tuple(sorted(of_line, key=lambda name: (-of_line[name], name))) for of_line in names]
    return Table(count, total, own, kernels, begin)


def named(work: Named | None, steps: Steps) -> Iterator[tuple[int, str, int]]:
    """(line, name, ns) of the events in the steps that count, added up by line and name."""
    if work is None:
        return
    kept = steps.position(work.iteration) >= 0
    code, pairs = pd.factorize(work.line[kept] * len(work.names) + work.name[kept])
    times = sums(code.astype(np.int32), work.ns[kept], len(pairs))
    for pair, ns in zip(pairs.tolist(), times.tolist(), strict=True):
        line, name = divmod(pair, len(work.names))
        yield line, work.names[name], ns
