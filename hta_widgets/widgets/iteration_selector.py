"""The selector of iterations: the time of every step as a bar."""

from __future__ import annotations

from typing import ClassVar

import pandas as pd
import traitlets as t

from hta_widgets.analysis.device_time.step_times import slowest_steps
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.computed import Computed
from hta_widgets.widgets.selection import Integers
from hta_widgets.widgets.table_codec import Table, encode

NO_ITERATIONS = "No iterations found. Call profiler.step() after each step to mark them."


class IterationSelector(Computed):
    """The steps of a job, each as a bar of its time on the slowest selected rank.

    Args:
        trace: an open `Trace`, or anything `Trace.open` takes.
        selection: the `Selection` to share with other parts.
    """

    _view = t.Unicode("iterations").tag(sync=True)
    _depends: ClassVar = ("ranks",)
    _ignores = ("iterations", "window")

    ranks = Integers(help="ranks the bars are about; () means all")
    iterations = Integers(help="selected iterations; () means all").tag(sync=True)

    source = t.Unicode(help="what marks an iteration in this trace").tag(sync=True)
    table = Table(help="the bars").tag(sync=True)

    def _compute(self, scope: Scope) -> tuple[pd.DataFrame, str]:
        iterations = self.trace.iterations
        if scope.ranks:
            iterations = iterations[iterations["rank"].isin(scope.ranks)]
        return slowest_steps(iterations), ", ".join(sorted(iterations["source"].astype(str).unique()))

    def _show(self, result: tuple[pd.DataFrame, str]) -> None:
        frame, self.source = result
        self.table = encode(frame)
        if frame.empty:
            self.status, self.message = "empty", NO_ITERATIONS
