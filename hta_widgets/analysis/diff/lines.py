"""What a run is compared by: every event of the sample, on the line that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.call_paths import sums
from hta_widgets.analysis.collectives import collectives
from hta_widgets.analysis.diff.call_lines import module_lines, operator_lines, phase_lines
from hta_widgets.analysis.diff.entries import Entries, Line
from hta_widgets.analysis.diff.sampling import Steps
from hta_widgets.analysis.kernels import device_work
from hta_widgets.engine import checkpoint
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

__all__ = ["By", "Table", "Time", "occurs", "tables"]

Int64 = npt.NDArray[np.int64]
_CLASSES = {int(one): one.label for one in EventClass}
By = Literal["kernel", "op", "phase", "collective", "module"]
Time = Literal["device", "host"]


@dataclass(frozen=True, eq=False)
class Table:
    """A run as numbers: int64[steps, lines], summed over its ranks."""

    count: Int64
    total: Int64
    exclusive: Int64


def occurs(table: Table) -> npt.NDArray[np.bool_]:
    """The lines that the run has."""
    found: npt.NDArray[np.bool_] = ((table.count != 0) | (table.exclusive != 0)).any(axis=0)
    return found


def tables(
    runs: Mapping[str, Trace], samples: Mapping[str, Steps], scopes: Mapping[str, Scope], by: By, time: Time
) -> tuple[list[Line], dict[str, Table]]:
    """All lines of all runs, and each run's table with these lines as columns."""
    numbers: dict[Line, int] = {}
    found: dict[str, list[tuple[Entries, Int64]]] = {}
    for run, trace in runs.items():
        found[run] = []
        for entries in _entries(trace, samples[run], scopes[run], by, time):
            checkpoint()
            place = [numbers.setdefault(line, len(numbers)) for line in entries.lines]
            found[run].append((entries, np.array(place, np.int64)))
    lines = list(numbers)
    return lines, {run: _table(parts, samples[run], len(lines)) for run, parts in found.items()}


def _entries(trace: Trace, steps: Steps, scope: Scope, by: By, time: Time) -> Iterator[Entries]:
    # Steps say which time is meant; a step's device work may run on beyond it.
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
    "op": operator_lines, "phase": phase_lines, "module": module_lines,
}  # fmt: skip


def _kernels(trace: Trace, scope: Scope) -> Iterator[Entries]:
    for _, one, work in device_work(trace, scope):
        rows = work.rows[one.belong(work.rows, scope)]
        names = zip(work.event_class.tolist(), work.name.tolist(), strict=True)
        lines = [Line(_CLASSES[code], one.names[name]) for code, name in names]
        dur = one.dur[rows]
        yield Entries(
            lines, work.group[rows].astype(np.int64), one.iteration[rows], np.ones_like(dur), dur, dur
        )


def _collectives(trace: Trace, scope: Scope) -> Entries:
    frame = collectives(trace, scope)
    said = frame["collective"].astype("str")
    for column, words in (
        ("dtype", " of {}"),
        ("process_group", " in group {}"),
        ("group_size", " of {} ranks"),
    ):
        known = frame[column].notna()
        said = said + frame[column].astype("str").map(words.format).where(known, "")
    code, texts = pd.factorize(said)
    dur = frame["dur_ns"].to_numpy(np.int64)
    iteration = frame["iteration"].fillna(-1).to_numpy(np.int64)
    lines = [Line("communication", str(text)) for text in texts]
    return Entries(lines, code.astype(np.int64), iteration, np.ones_like(dur), dur, dur)


def _table(parts: list[tuple[Entries, Int64]], steps: Steps, lines: int) -> Table:
    table = Table(*(np.zeros((len(steps), lines), np.int64) for _ in range(3)))
    for entries, place in parts:
        if not len(place):
            continue
        step = steps.position(entries.iteration)
        kept = step >= 0
        cell = (step[kept] * lines + place[entries.line[kept]]).astype(np.int32)
        for name in ("count", "total", "exclusive"):
            values = getattr(entries, name)[kept]
            getattr(table, name)[...] += sums(cell, values, len(steps) * lines).reshape(len(steps), lines)
    return table
