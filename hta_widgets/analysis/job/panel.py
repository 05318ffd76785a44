"""The panel of `slowdown`: its answer in a sentence, and as bars sorted by cost."""

from __future__ import annotations

from typing import get_args

import pandas as pd

from hta_widgets.analysis.core.entry import Analysis, Option
from hta_widgets.analysis.job.slowdown import NONE, By, slowdown
from hta_widgets.charts.spec import Bars
from hta_widgets.formatting import capitalised, duration, percent

# A range that is as wide as the least slowdown that is told (`culprits.LEAST`) is told, too.
_TELLING = 0.02


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `slowdown` in words."""
    if frame.empty:
        return "No step of several ranks lies in the selection."
    job = frame[frame["scope"] == "job"].iloc[0]
    if job["cause"] == NONE:
        return f"No straggler: {job['evidence']}."
    share = percent(100.0 * job["cost_ns"] / job["time_ns"])
    less = f"{duration(job['cost_ns'])} ({share}) less" if job["cost_ns"] > 0 else "as long"
    cause, low, high = job["cause"], job["slowdown_low"], job["slowdown_high"]
    open_end = ""
    if high - low >= _TELLING:
        open_end = (
            f" The slowdown is {job['slowdown']:.2f}. According to the recording, it may be anything "
            f"from {low:.2f} to {high:.2f}."
        )
    return (
        f"A step takes {duration(job['time_ns'])}. With all operations at the times that are usual on all "
        f"ranks, it would take {less}. {capitalised(cause)}: {job['evidence']}.{open_end}"
    )


ANALYSIS = Analysis(
    label="Slowdown",
    group="Communication",
    title="What slow ranks cost the job",
    function=slowdown,
    sentence=sentence,
    chart=Bars("cost_ns", ("scope", "key"), "communication", note="cause", measure="Cost per step"),
    requires=(
        "device events",
        "second rank",
        "step that all ranks recorded",
        "collective",
        "order of operations",
    ),
    options=(Option("by", "One bar per", get_args(By), "all"),),
)
