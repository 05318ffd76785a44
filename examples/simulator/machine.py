"""What the host, its calls and the device of a machine take: one table each.

The bundled examples are of the first, which was made up before any was measured: tests, pages, notebooks and
pictures state what they show. The second is the H100 whose recordings are bundled, under the profiler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Spread = tuple[int, ...]
"""ns: the ends of parts that are equally likely; one number is that number."""


@dataclass(frozen=True)
class Machine:
    """Times in ns, rates in bytes per ns.

    Attributes:
        operator, annotation, frame: what a call of the host costs, before, after and behind its body.
        calls: of each runtime call.
        latency: from the end of a launch to the start of its work on an idle stream.
        gap, graph_gap: from work to work of a stream; of a graph.
        sync_return: from the end of what a call waits for to its return.
        bus, memory, fill: copies from and to the host, traffic of the device's memory, and fills.
        kernels: part of the name of a kernel, and thousandths of what the cost model says; the first counts.
    """

    operator: Spread
    annotation: Spread
    frame: Spread
    calls: Mapping[str, Spread]
    latency: Spread
    gap: Spread
    graph_gap: Spread
    sync_return: Spread
    bus: int
    memory: int
    fill: int
    kernels: tuple[tuple[str, int], ...]


_EXAMPLE = Machine(
    operator=(1_800,),
    annotation=(2_400,),
    frame=(800,),
    calls={
        "cudaLaunchKernel": (2_600, 4_200),
        "cudaLaunchKernelExC": (4_200, 6_800),
        "cudaGraphLaunch": (38_000, 52_000),
        "cudaMemcpyAsync": (3_400, 5_600),
        "cudaMemsetAsync": (2_400, 3_800),
        "cudaEventRecordWithFlags": (500, 900),
        "cudaStreamWaitEvent": (500, 900),
        "cudaStreamSynchronize": (1_200, 2_000),
    },
    latency=(700, 1_600),
    gap=(450, 1_100),
    graph_gap=(450, 1_100),
    sync_return=(2_500, 5_000),
    bus=24,
    memory=2_300,
    fill=2_300,
    kernels=(("", 1_000),),
)

# Percentiles 5, 25, 50, 75 and 95, of h100_gpt2 where it has them; rates by examples/recording/constants.py.
# Python frames, annotations and waits between streams were not measured.
_H100 = Machine(
    operator=(420, 1_140, 2_710, 5_500, 21_800),  # of the time between what an operator calls, times 8/9
    annotation=(2_400,),
    frame=(800,),
    calls={
        "cudaLaunchKernel": (4_970, 6_250, 7_760, 10_740, 19_110),
        "cudaLaunchKernelExC": (5_100, 6_150, 7_410, 8_820, 13_000),  # h100_gpt2_fp32
        "cudaGraphLaunch": (202_200, 207_800, 216_200, 229_700, 238_200),  # h100_decode_cuda_graphs
        "cudaMemcpyAsync": (7_740, 9_620, 23_840, 38_610, 39_520),
        "cudaMemsetAsync": (1_870, 2_850, 4_620, 9_550, 13_710),
        "cudaEventRecordWithFlags": (1_110, 1_280, 5_720, 8_000, 14_040),
        "cudaStreamWaitEvent": (500, 900),
        "cudaStreamSynchronize": (4_380, 4_830, 5_230, 5_540, 7_040),  # h100_decode_cuda_graphs
    },
    latency=(180, 950, 1_270, 1_510, 1_810),  # h100_gpt2_small_batch
    gap=(900, 1_090, 1_470, 1_820, 2_240),
    graph_gap=(384, 416, 448, 575, 1_377),  # h100_decode_cuda_graphs
    sync_return=(2_500, 5_000),
    bus=54,
    memory=3_010,
    fill=3_191,
    kernels=(("gemm", 560), ("flash", 1_000), ("", 764)),  # products at 750 TFLOP/s; traffic at 3,010 GB/s
)

MACHINES = {"example": _EXAMPLE, "h100": _H100}
