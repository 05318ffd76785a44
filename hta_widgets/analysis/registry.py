"""The analyses that a panel can show, each described once.

A panel, a report and the command line need the same facts about an analysis: what it computes, how to draw
it, how to say the answer in a sentence. They read them here and hold no table of their own.
"""

from __future__ import annotations

from hta_widgets.analysis.catalogue.device import KERNELS, TIME
from hta_widgets.analysis.catalogue.host import HOST
from hta_widgets.analysis.catalogue.job import COMMUNICATION, CRITICAL_PATH, MEMORY
from hta_widgets.analysis.catalogue.overview import OVERVIEW
from hta_widgets.analysis.charts import (
    Bars,
    Chart,
    Flame,
    Heat,
    Histogram,
    Lines,
    Series,
    Spread,
    Stack,
    Waterfall,
)
from hta_widgets.analysis.entry import Analysis, Option

__all__ = [
    "ANALYSES",
    "Analysis",
    "Bars",
    "Chart",
    "Flame",
    "Heat",
    "Histogram",
    "Lines",
    "Option",
    "Series",
    "Spread",
    "Stack",
    "Waterfall",
]

ANALYSES: dict[str, Analysis] = {
    analysis.kind: analysis
    for analysis in (*OVERVIEW, *TIME, *KERNELS, *HOST, *COMMUNICATION, *MEMORY, *CRITICAL_PATH)
}
