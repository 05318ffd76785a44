"""HTA's `hta.analyzers.cuda_kernel_analysis`: the class behind what `TraceAnalysis` tells of launches."""

from __future__ import annotations

import pandas as pd

from hta_widgets.hta.common.trace import Trace
from hta_widgets.hta.methods import launches, sequences
from hta_widgets.hta.methods.conventions import of_trace, show


class CudaKernelAnalysis:
    """Kernels, and the calls that launch them, of a loaded `common.trace.Trace`.

    Arguments and returned frames are documented at `TraceAnalysis`.
    """

    @classmethod
    def get_frequent_cuda_kernel_sequences(
        cls,
        t: Trace,
        operator_name: str,
        output_dir: str,
        min_pattern_len: int = 3,
        rank: int = 0,
        top_k: int = 5,
        visualize: bool = True,
        compress_other_kernels: bool = True,
    ) -> pd.DataFrame:
        """As `TraceAnalysis.get_frequent_cuda_kernel_sequences`, by default with its figure."""
        return sequences.frequent_cuda_kernel_sequences(
            t.job, operator_name, output_dir, min_pattern_len, rank, top_k, visualize, compress_other_kernels
        )

    @classmethod
    def get_aten_op_kernels_and_delay(
        cls, trace: Trace, ranks: list[int] | None = None, sort_by: list[str] | None = None
    ) -> dict[int, pd.DataFrame]:
        """As `TraceAnalysis.get_aten_op_kernels_and_delay`."""
        return launches.aten_op_kernels_and_delay(trace.job, ranks, sort_by)

    cuda_kernel_launch_stats = staticmethod(of_trace(launches.cuda_kernel_launch_stats))

    @classmethod
    def visualize_aten_op_kernels_and_overhead(cls, rank: int, df: pd.DataFrame) -> None:
        """Show a rank's frame of `get_aten_op_kernels_and_delay` as a table."""
        show([launches.operator_table(df, rank)])

    @classmethod
    def visualize_cuda_launch_kernel_info(
        cls, rank: int, df: pd.DataFrame, runtime_cutoff: int, launch_delay_cutoff: int
    ) -> None:
        """Show histograms of a rank's frame of `cuda_kernel_launch_stats`; cutoffs in us."""
        show(launches.launch_figures(df, rank, runtime_cutoff, launch_delay_cutoff))
