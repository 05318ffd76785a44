"""The entries to begin with: what stands out, and how long the steps take."""

from __future__ import annotations

from hta_widgets.analysis import findings
from hta_widgets.analysis.charts import Heat
from hta_widgets.analysis.device_time import steps
from hta_widgets.analysis.entry import Analysis

__all__ = ["OVERVIEW"]

# Where a step is to be judged among others, or a rank among ranks, choosing one must not leave it alone.
_PLACES = ("ranks", "iterations")

OVERVIEW = (
    Analysis(
        kind="overview",
        label="Overview",
        group="Time",
        title="What stands out",
        function=findings.overview,
        sentence=findings.sentence,
        chart=None,
        requires=(),
        picture="step_times",
        own=_PLACES,
    ),
    Analysis(
        kind="step_times",
        label="Step times",
        group="Time",
        title="How long each step takes on each rank",
        function=steps.step_times,
        sentence=steps.sentence,
        chart=Heat("iteration", "rank", "dur_ns", "host", "Step time", contrast=True, ring="outlier"),
        requires=(),
        own=_PLACES,
    ),
)
