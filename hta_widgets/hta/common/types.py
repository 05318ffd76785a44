"""Kinds of devices, copies and events, and the name patterns that HTA groups symbols by."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, Flag, auto

import pandas as pd


class DeviceType(Enum):
    """Where events run."""

    UNKNOWN = 0
    CPU = 1
    GPU = 2
    ALL = 3


class MemcpyType(Enum):
    """Direction of a copy."""

    DTOD = 0
    DTOH = 1
    HTOD = 2
    UNKNOWN = 3


class TimeSeriesTypes(Flag):
    """What `generate_trace_with_counters` adds."""

    QUEUE_LENGTH = auto()
    MEMCPY_BANDWIDTH = auto()


MEMCPY_TYPE_TO_STR: dict[MemcpyType, str] = {
    MemcpyType.DTOD: "memcpy_dtod",
    MemcpyType.DTOH: "memcpy_dtoh",
    MemcpyType.HTOD: "memcpy_htod",
    MemcpyType.UNKNOWN: "memcpy_type_unknown",
}


def infer_device_type(df: pd.DataFrame) -> DeviceType:
    """The device of events that all ran on one thread or stream.

    Args:
        df: events as `Trace.get_trace` gives them. Stream 0 is a stream (AMD's default one).
    """
    if "stream" not in df.columns or df.empty:
        return DeviceType.UNKNOWN
    on_stream = df["stream"].ge(0)
    if on_stream.all():
        return DeviceType.GPU
    return DeviceType.UNKNOWN if on_stream.any() else DeviceType.CPU


@dataclass(frozen=True)
class GroupingPattern:
    """Symbols that match a pattern from their start; with `inverse_match` those that do not."""

    pattern: re.Pattern[str]
    inverse_match: bool = False
    group_name: str = ""

    def match(self, name: str) -> bool:
        return (self.pattern.match(name) is not None) != self.inverse_match


def to_grouping_pattern(
    pattern: str | list[str] | re.Pattern[str] | GroupingPattern,
    group_name: str | None = None,
    inverse_match: bool | None = None,
) -> GroupingPattern:
    """A `GroupingPattern` from a regular expression, from alternatives, or one already made.

    Raises:
        ValueError: the pattern is none of these.
    """
    if isinstance(pattern, GroupingPattern):
        return pattern
    if isinstance(pattern, list):
        pattern = "|".join(f"({part})" for part in pattern)
    if isinstance(pattern, str | re.Pattern):
        return GroupingPattern(re.compile(pattern), bool(inverse_match), group_name or "")
    raise ValueError(f"a pattern is a text, a list of texts or a compiled one, not {type(pattern).__name__}")


def _grouping(group_name: str, pattern: str, inverse_match: bool = False) -> GroupingPattern:
    return GroupingPattern(re.compile(pattern), inverse_match, group_name)


# The patterns are part of HTA's interface. Our analyses classify by category first (`trace.classify`).
ProfilerStepGroupingPattern = _grouping("Profiler Step", r"^ProfilerStep#(\d+)")
MemoryKernelGroupingPattern = _grouping("Memory", r"(^(hip)?Memcpy)|(^(hip)?Memset)|(^dma)")
MTIAMemoryKernelGroupingPattern = _grouping("MTIA Memory", r"(^dma)")
CommunicateKernelGroupingPattern = _grouping("Communicate", r"(^nccl.*)|(^hip)|(^hccl)|(.*ncclKernel.*)")
ComputeKernelGroupingPattern = _grouping(
    "Compute",
    r"(^nccl)|(.*Memcpy)|(.*Memset)|(.*dma)|(^.*Sync)|(^Stream Wait Event)|(cuda.*LaunchKernel)"
    r"|(^runFunction)|(^hip)|(^job_exe)|(^packet)|(^pe_exe)|(^cpum_exe_subgraph)|(^hccl)|(^collective_subgraph_execution)",
    inverse_match=True,
)
KERNEL_CATEGORY_PATTERN = _grouping("GPU Kernels", r"(kernel)|(gpu_mem.+)|(mtia_ccp_events)")
KERNEL_LAUNCH_CATEGORY_PATTERN = _grouping(
    "Kernel Launch", r"(cuda.*LaunchKernel)|(cuLaunchKernel)|(^runFunction)"
)
CPU_OP_CATEGORY_PATTERN = _grouping("CPU Ops", r"(cpu_op)|(user_annotation)")
DEVICE_RUNTIME_CATEGORY_PATTERN = _grouping("Device Runtimes", r"(cuda_runtime)|(mtia_runtime)")
MEMORY_CATEGORY_PATTERN = _grouping("Memory", r"(gpu_mem.+)|(mtia_ccp_events)")
GPU_EVENT_CATEGORY_PATTERN = _grouping("GPU Events", r"(.*kernel)|(^gpu_mem)|(^mtia_ccp_events)|(^cuda_sync)")
CPU_EVENTS_CATEGORY_PATTERN = _grouping("CPU Events", r"(cpu_op)|(user_annotation)|(^(.+)_runtime)")
CPU_AND_GPU_EVENTS_CATEGORY_PATTERN = _grouping(
    "CPU/GPU Events",
    r"(cpu_op)|(user_annotation)|(cuda_runtime)|(.*kernel)|(^gpu_mem)|(^mtia_ccp_events)|(^cuda_sync)",
)
PYTHON_FUNCTION_PATTERN = _grouping("Python Functions", r"(python_function)")
ALL_CATEGORY_PATTERN = _grouping("All", r".*")
CUDA_SYNC_PATTERN = _grouping("CUDA Sync", r"(cuda_sync)")

common_grouping_patterns: dict[str, GroupingPattern] = {
    "memory_kernels": MemoryKernelGroupingPattern,
    "compute_kernels": ComputeKernelGroupingPattern,
    "communicate_kernels": CommunicateKernelGroupingPattern,
}
