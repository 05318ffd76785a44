"""HTA's `hta.analyzers.communication_analysis`: the class behind `TraceAnalysis.get_comm_comp_overlap`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from hta_widgets.hta.methods import breakdowns

if TYPE_CHECKING:
    from hta_widgets.hta.common.trace import Trace


class CommunicationAnalysis:
    """How communication and computation overlap, of a loaded `common.trace.Trace`."""

    @classmethod
    def get_comm_comp_overlap(cls, t: Trace, visualize: bool = True) -> pd.DataFrame:
        """As `TraceAnalysis.get_comm_comp_overlap`."""
        return breakdowns.comm_comp_overlap(t.job, visualize)
