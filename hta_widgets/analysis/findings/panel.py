"""The overview as panels and the command line show it: the first screen's headline over its findings."""

from __future__ import annotations

import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.story import story
from hta_widgets.charts.spec import Bars
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope


def _first(frame: pd.DataFrame) -> str:
    return str(next(iter(frame["text"]), "Nothing stands out."))


def _headline(frame: pd.DataFrame, trace: Trace, scope: Scope | None) -> str:
    return f"{story(trace, scope, frame).headline}."


ANALYSIS = Analysis(
    label="Overview",
    group="Time",
    title="What stands out",
    function=overview,
    sentence=_first,
    chart=None,
    requires=(),
    chart_from="step_times",
    pictured=Bars("share_pct", ("topic",), "host", combine="max", measure="Share of the time"),
    headline=_headline,
)
