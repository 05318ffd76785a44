"""DistributedDataParallel: gradients leave in buckets while backward still computes.

A bucket's all-reduce is launched on the NCCL stream as soon as its last gradient is ready, so it overlaps
with what is left of backward. Nothing is left to hide the last bucket: it is the exposed one.
"""

from __future__ import annotations

from examples.simulator.device import COMPUTE_STREAM, NCCL_STREAM
from examples.simulator.memory import Block
from examples.simulator.nccl import ProcessGroup
from examples.simulator.rank import Rank
from examples.simulator.tensor import Tensor


class DistributedDataParallel:
    def __init__(self, rank: Rank, group: ProcessGroup, bucket_mb: int) -> None:
        self._rank = rank
        self._group = group
        self._bucket_bytes = bucket_mb * 1024 * 1024
        self._bucket_nelems = 0

    def gradient_ready(self, parameter: Tensor, gradient: Block) -> Block:
        self._bucket_nelems += parameter.numel
        if 2 * self._bucket_nelems >= self._bucket_bytes:
            self._all_reduce()
        return gradient

    def finalize_backward(self) -> None:
        """Send what is left and let the compute stream, not the host, wait for all buckets."""
        if self._bucket_nelems:
            self._all_reduce()
        thread = self._rank.autograd
        self._rank.wait_event(thread, COMPUTE_STREAM, self._rank.record_event(thread, NCCL_STREAM))

    def _all_reduce(self) -> None:
        nelems, self._bucket_nelems = self._bucket_nelems, 0
        self._group.all_reduce(self._rank.autograd, nelems, after=COMPUTE_STREAM)
