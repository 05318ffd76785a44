"""The names of the events of a comparison line, to find them in a timeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hta_widgets.analysis.compare.call_lines import NOWHERE
from hta_widgets.analysis.compare.entries import Entries, Line
from hta_widgets.analysis.compare.lines import By, entries_of, named
from hta_widgets.analysis.compare.sampling import Scopes, Steps, check_runs, sample, scope_of

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace


def event_names(
    runs: Mapping[str, Trace], by: By, kind: str, line: str, scope: Scopes = None
) -> dict[str, tuple[str, ...]]:
    """What are the names of the events on a line of `diff`?

    By kernel: the kernel. By collective: its kernels. By operator and call path: the operator, and the device
    work that it launches itself. By module: the call of the innermost one. By phase: the calls that begin it
    (see `call_lines.phase_lines`).

    Args:
        runs, by, scope: as for `diff`.

    Returns:
        run -> names as recorded, an operator's or module's own first, then those that take most time; none in
        a run that lacks the line, or where nothing marks its events ("other" of the phases).

    Raises:
        MissingDataError: as `diff`.
        ValueError: an unknown `by`.
    """
    check_runs(runs, least=1)
    found = {}
    for run, steps in sample(runs, scope).items():
        own = list[str]()
        times = Counter[str]()
        for entries in entries_of(runs[run], steps, scope_of(scope, run), by, "device"):
            for place, candidate in enumerate(entries.lines):
                if (candidate.kind, candidate.name) == (kind, line):
                    own += _own(by, candidate)
                    times.update(_others(by, entries, place, steps))
        others = sorted(times, key=lambda name: (-times[name], name))
        found[run] = tuple(dict.fromkeys([*own, *others]))
    return found


def _own(by: By, line: Line) -> list[str]:
    """The name of the line's own calls or kernels."""
    if line.leaf:
        return [line.leaf]
    return [line.name] if by == "kernel" or (by == "op" and line.name != NOWHERE["op"]) else []


def _others(by: By, entries: Entries, place: int, steps: Steps) -> dict[str, int]:
    """The names of the line's other events, and how long they take."""
    events = entries.calls if by == "phase" else None if by == "module" else entries.work
    return {name: ns for at, name, ns in named(events, steps) if at == place}
