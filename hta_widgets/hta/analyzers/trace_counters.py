"""HTA's `hta.analyzers.trace_counters`: the class behind the time series of `TraceAnalysis`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from hta_widgets.hta.methods import counters

if TYPE_CHECKING:
    from hta_widgets.hta.common.trace import Trace


class TraceCounters:
    """Queue length and memory bandwidth over time, of a loaded `common.trace.Trace`.

    Returned frames are documented at the methods of `TraceAnalysis` that have the same names.
    """

    @classmethod
    def get_queue_length_time_series(
        cls, t: Trace, ranks: list[int] | None = None
    ) -> dict[int, pd.DataFrame]:
        """As `TraceAnalysis.get_queue_length_time_series`."""
        return counters.queue_length_time_series(t.job, ranks)

    @classmethod
    def get_queue_length_summary_from_time_series(
        cls, queue_length_dict: dict[int, pd.DataFrame]
    ) -> pd.DataFrame | None:
        """As `TraceAnalysis.get_queue_length_summary_from_time_series`."""
        return counters.queue_length_summary_from_time_series(queue_length_dict)

    @classmethod
    def get_queue_length_summary(cls, t: Trace, ranks: list[int] | None = None) -> pd.DataFrame | None:
        """As `TraceAnalysis.get_queue_length_summary`."""
        return counters.queue_length_summary(t.job, ranks)

    @classmethod
    def get_time_spent_blocked_on_full_queue(
        cls, t: Trace, queue_length_dict: dict[int, pd.DataFrame], max_queue_length: int
    ) -> pd.DataFrame | None:
        """As `TraceAnalysis.get_time_spent_blocked_on_full_queue`."""
        return counters.time_spent_blocked_on_full_queue(t.job, queue_length_dict, max_queue_length)

    @classmethod
    def get_memory_bw_time_series(cls, t: Trace, ranks: list[int] | None = None) -> dict[int, pd.DataFrame]:
        """As `TraceAnalysis.get_memory_bw_time_series`."""
        return counters.memory_bw_time_series(t.job, ranks)

    @classmethod
    def get_memory_bw_summary(cls, t: Trace, ranks: list[int] | None = None) -> pd.DataFrame | None:
        """As `TraceAnalysis.get_memory_bw_summary`."""
        return counters.memory_bw_summary(t.job, ranks)
