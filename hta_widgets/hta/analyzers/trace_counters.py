"""HTA's `hta.analyzers.trace_counters`: the class behind the time series of `TraceAnalysis`."""

from hta_widgets.hta.methods import counters
from hta_widgets.hta.methods.conventions import of_trace


class TraceCounters:
    """Queue length and memory bandwidth over time, of a loaded `common.trace.Trace`.

    Returned frames are documented at the methods of `TraceAnalysis` that have the same names.
    """

    get_queue_length_time_series = staticmethod(of_trace(counters.queue_length_time_series))
    get_queue_length_summary_from_time_series = staticmethod(counters.queue_length_summary_from_time_series)
    get_queue_length_summary = staticmethod(of_trace(counters.queue_length_summary))
    get_time_spent_blocked_on_full_queue = staticmethod(of_trace(counters.time_spent_blocked_on_full_queue))
    get_memory_bw_time_series = staticmethod(of_trace(counters.memory_bw_time_series))
    get_memory_bw_summary = staticmethod(of_trace(counters.memory_bw_summary))
