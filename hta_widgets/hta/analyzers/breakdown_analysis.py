"""HTA's `hta.analyzers.breakdown_analysis`: the class behind the breakdowns of `TraceAnalysis`.

Arguments and returned frames are documented at the methods of `TraceAnalysis` that have the same names; two
defaults differ between HTA's class and its `TraceAnalysis`, and so they do here.
"""

from __future__ import annotations

import pandas as pd

from hta_widgets.hta.common.trace import Trace
from hta_widgets.hta.methods import annotations as user_annotations
from hta_widgets.hta.methods import breakdowns, idle, kernels
from hta_widgets.hta.methods.conventions import of_trace


class BreakdownAnalysis:
    """Where the device's time goes, of a loaded `common.trace.Trace`."""

    @classmethod
    def get_gpu_kernel_breakdown(
        cls,
        t: Trace,
        visualize: bool = True,
        duration_ratio: float = 0.8,
        num_kernels: int = 10,
        include_memory_kernels: bool = False,
        image_renderer: str = "notebook",
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """As `TraceAnalysis.get_gpu_kernel_breakdown`, by default without copies and fills."""
        return kernels.gpu_kernel_breakdown(
            t.job, visualize, duration_ratio, num_kernels, include_memory_kernels, image_renderer
        )

    get_gpu_kernels_with_user_annotations = staticmethod(user_annotations.gpu_kernels_with_user_annotations)
    get_gpu_user_annotation_breakdown = staticmethod(of_trace(user_annotations.gpu_user_annotation_breakdown))
    get_temporal_breakdown = staticmethod(of_trace(breakdowns.temporal_breakdown))

    @classmethod
    def get_idle_time_breakdown(
        cls,
        t: Trace,
        consecutive_kernel_delay: int,
        rank: int = 0,
        streams: list[int] | None = None,
        visualize: bool = True,
        visualize_pctg: bool = True,
        show_idle_interval_stats: bool = False,
    ) -> tuple[pd.DataFrame, pd.DataFrame | None]:
        """As `TraceAnalysis.get_idle_time_breakdown`, of one rank; `consecutive_kernel_delay` is in us."""
        return idle.idle_time_breakdown(
            t.job,
            [rank],
            streams,
            visualize,
            visualize_pctg,
            show_idle_interval_stats,
            consecutive_kernel_delay,
        )
