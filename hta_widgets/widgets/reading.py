"""How an explorer reads the trace that it has loaded: by which clock, and what it counts as communication."""

from __future__ import annotations

from collections.abc import Iterable

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.trace.class_rules import function_pattern
from hta_widgets.trace.model import IterationClock, Trace

_READINGS = 3  # a trace keeps those that were chosen last, with their answers


def read(loaded: Trace, clock: IterationClock, communication: tuple[str, ...]) -> Trace:
    """The loaded trace read another way: the same object for the same arguments, as it remembers answers.

    Args:
        loaded: the trace as it was opened.
        clock: what times the iterations.
        communication: names of device work that counts as communication.
    """
    counted = _counted(loaded, communication) if communication else loaded
    return counted if clock == counted.iteration_clock else _timed(counted, clock)


def communication_rules(names: Iterable[str]) -> dict[str, str]:
    """The rules that make device work of these names communication, whatever its template arguments."""
    return {function_pattern(name): "communication" for name in names}


@memoize_per_rank(last=_READINGS)
def _counted(trace: Trace, names: tuple[str, ...]) -> Trace:
    return trace.with_classes(communication_rules(names))


@memoize_per_rank(last=_READINGS)
def _timed(trace: Trace, clock: IterationClock) -> Trace:
    return trace.timed_by(clock)
