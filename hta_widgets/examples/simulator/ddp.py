"""DistributedDataParallel: gradients leave in buckets while backward still computes.

A bucket's all-reduce is launched on the NCCL stream as soon as its last gradient is ready, so it overlaps
with what is left of backward. Nothing is left to hide the last bucket: it is the exposed one.
"""

from __future__ import annotations

from typing import Any

from hta_widgets.examples.simulator import kernels
from hta_widgets.examples.simulator.collective import all_reduce_ns
from hta_widgets.examples.simulator.device import COMPUTE_STREAM, NCCL_STREAM
from hta_widgets.examples.simulator.rank import Rank
from hta_widgets.examples.simulator.tensor import Tensor

_BUCKET_BYTES = 25 * 1024 * 1024  # PyTorch's default `bucket_cap_mb`
_BUS_GBPS = 160
GROUP = {"name": "0", "description": "default_pg"}


class DistributedDataParallel:
    def __init__(self, rank: Rank, world_size: int) -> None:
        self._rank = rank
        self._world_size = world_size
        self._bucket_nelems = 0
        self._sequence = 0

    def gradient_ready(self, parameter: Tensor) -> None:
        self._bucket_nelems += parameter.numel
        if 2 * self._bucket_nelems >= _BUCKET_BYTES:
            self._all_reduce()

    def finalize_backward(self) -> None:
        """Send what is left and let the compute stream, not the host, wait for all buckets."""
        if self._bucket_nelems:
            self._all_reduce()
        thread = self._rank.autograd
        self._rank.wait_event(thread, COMPUTE_STREAM, self._rank.record_event(thread, NCCL_STREAM))

    def _all_reduce(self) -> None:
        nelems, self._bucket_nelems = self._bucket_nelems, 0
        self._sequence += 1
        rank, thread = self._rank, self._rank.autograd
        duration = all_reduce_ns(2 * nelems, self._world_size, _BUS_GBPS)
        facts = self._facts(nelems)
        kernel = kernels.all_reduce(duration)
        with (
            thread.op("c10d::allreduce_", (Tensor((nelems,)), None, None, None, True, -1)),
            thread.op("record_param_comms", args={**facts, "Global rank start": 0, "Global rank stride": 1}),
        ):
            rank.wait_event(thread, NCCL_STREAM, rank.record_event(thread, COMPUTE_STREAM))
            with thread.annotation("nccl:all_reduce"):
                rank.launch_collective(thread, kernel, NCCL_STREAM, self._sequence, facts)

    def _facts(self, nelems: int) -> dict[str, Any]:
        """What NCCL's profiler hook adds to operator and kernel."""
        return {
            "Collective name": "allreduce",
            "In msg nelems": nelems,
            "Out msg nelems": nelems,
            "Group size": self._world_size,
            "dtype": "BFloat16",
            "In split size": "[]",
            "Out split size": "[]",
            "Process Group Name": GROUP["name"],
            "Process Group Description": GROUP["description"],
            "Process Group Ranks": str(list(range(self._world_size))),
            "Rank": self._rank.index,
            "Seq": self._sequence,
            "Comms Id": 7_000_000_000 + self._sequence,
        }
