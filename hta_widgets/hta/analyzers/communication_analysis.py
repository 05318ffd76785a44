"""HTA's `hta.analyzers.communication_analysis`: the class behind `TraceAnalysis.get_comm_comp_overlap`."""

from hta_widgets.hta.methods import breakdowns
from hta_widgets.hta.methods.conventions import of_trace


class CommunicationAnalysis:
    """How communication and computation overlap, of a loaded `common.trace.Trace`."""

    get_comm_comp_overlap = staticmethod(of_trace(breakdowns.comm_comp_overlap))
