"""What the first screen says over its bar and beneath it."""

import pandas as pd

from hta_widgets.analysis.findings.story import story
from hta_widgets.trace import Trace


def first_lines(trace: Trace, frame: pd.DataFrame | None = None) -> str:
    """The headline and the line beneath it; `frame`: the overview, if that is there."""
    told = story(trace, frame=frame)
    return f"{told.headline}. {told.limits}".strip()
