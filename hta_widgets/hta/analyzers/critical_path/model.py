"""Nodes and edges of the critical path graph, as HTA names them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from hta_widgets.arrays import Bool, Float64, Int64


class CPEdgeType(Enum):
    """What the time of an edge is, or why its end waits for its begin."""

    OPERATOR_KERNEL = "critical_path_operator"
    DEPENDENCY = "critical_path_dependency"
    KERNEL_LAUNCH_DELAY = "critical_path_kernel_launch_delay"
    KERNEL_KERNEL_DELAY = "critical_path_kernel_kernel_delay"
    SYNC_DEPENDENCY = "critical_path_sync_dependency"


class BoundType(Enum):
    """What limits the speed of an edge of the path."""

    GPU_KERNEL_KERNEL_OVERHEAD = "gpu_kernel_kernel_overhead"
    GPU_KERNEL_LAUNCH_OVERHEAD = "gpu_kernel_launch_overhead"
    DATA_LOADING = "data_loading"
    CPU_BOUND = "cpu_bound"
    GPU_COMPUTE_BOUND = "gpu_compute_bound"
    GPU_COMMUNICATION_BOUND = "gpu_communication_bound"


TYPES = tuple(CPEdgeType)
# What an edge is attributed to, if not to an event: nothing, or the thread itself.
NO_EVENT, ROOT = -2, -1
OPERATOR_KERNEL, DEPENDENCY, LAUNCH_DELAY, KERNEL_KERNEL, SYNC = range(len(TYPES))


@dataclass
class CPNode:
    """The start or the end of an event."""

    idx: int = -1  # node number; ev_idx: event id; ts: us since the job's start
    ev_idx: int = -1
    ts: float = 0
    is_start: bool = False
    is_blocking: bool = False  # the event is a call that waits for the device


@dataclass(frozen=True)
class CPEdge:
    """From one node to a later one. `weight` is in us."""

    begin: int
    end: int
    type: CPEdgeType
    weight: float = 0


@dataclass(frozen=True)
class Nodes:
    """All nodes, by (time, event id), starts before ends; a node's number is its position.

    Attributes (one per node): event (id), time (ns), is_start, is_blocking.
    """

    event: Int64
    time: Int64
    is_start: Bool
    is_blocking: Bool


@dataclass(frozen=True)
class Edges:
    """All edges, in order of construction, one per pair of nodes.

    Attributes (one per edge): begin, end (nodes), type (position in `TYPES`), weight (float64 us), event (id
    of the event the time is attributed to; NO_EVENT where time is not attributed).
    """

    begin: Int64
    end: Int64
    type: Int64
    weight: Float64
    event: Int64

    def edge(self, at: int) -> CPEdge:
        """The edge at a position as an object."""
        return CPEdge(
            int(self.begin[at]), int(self.end[at]), TYPES[int(self.type[at])], float(self.weight[at])
        )
