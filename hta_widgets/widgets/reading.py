"""How an explorer reads the trace that it has loaded: which clock times the iterations."""

from __future__ import annotations

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.trace.model import IterationClock, Trace

__all__ = ["read"]

_READINGS = 3  # a trace keeps those that were chosen last, with their answers


def read(loaded: Trace, clock: IterationClock) -> Trace:
    """The loaded trace by a clock: for the same arguments the same object, which remembers its answers."""
    return loaded if clock == loaded.iteration_clock else _timed(loaded, clock)


@memoize_per_rank(last=_READINGS)
def _timed(trace: Trace, clock: IterationClock) -> Trace:
    return trace.timed_by(clock)
