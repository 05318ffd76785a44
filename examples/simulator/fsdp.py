"""FullyShardedDataParallel: each rank keeps a shard of all parameters, gradients and optimizer state.

A unit's parameters lie in one flat tensor, padded so that every rank holds an equal shard. An all-gather on
the NCCL stream makes the tensor whole before the unit's forward. FULL_SHARD drops it after forward and
gathers it again for backward, one unit ahead; SHARD_GRAD_OP keeps it until backward. After backward a
reduce-scatter leaves the shard of the gradient that the rank's optimizer needs. As in PyTorch the root unit,
whose backward begins at once, is never gathered twice.

The rate limiter, which lets the host wait until at most two units are whole, is played by the NCCL stream:
an all-gather waits until the device is done with the unit before the last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from examples.simulator import kernels
from examples.simulator.autograd import Backward, Gradient, Tape
from examples.simulator.device import COMPUTE_STREAM, NCCL_STREAM, POST_BACKWARD_STREAM
from examples.simulator.host import HostThread
from examples.simulator.memory import Block
from examples.simulator.nccl import ProcessGroup
from examples.simulator.rank import CudaEvent, Rank
from examples.simulator.tensor import Tensor

ROOT = 0
_UNITS_IN_FLIGHT = 2


class FullyShardedDataParallel:
    """Unit `ROOT` is the model around the others, which are its blocks in the order of forward.

    Attributes:
        shards: what this rank keeps of each unit's parameters.
    """

    def __init__(
        self, rank: Rank, group: ProcessGroup, units: Sequence[Sequence[Tensor]], reshard_after_forward: bool
    ) -> None:
        sizes = [-(-sum(weight.numel for weight in unit) // group.size) for unit in units]
        self.shards = [Tensor((size,)) for size in sizes]
        self._flat = [Tensor((size * group.size,)) for size in sizes]
        self._rank = rank
        self._group = group
        self._reshard_after_forward = reshard_after_forward
        self._whole: dict[int, Block] = {}
        self._gathered: dict[int, CudaEvent] = {}
        self._dropped: deque[CudaEvent] = deque()

    @contextmanager
    def unit(self, tape: Tape, index: int) -> Iterator[None]:
        """Forward of one unit, hooks included."""
        rank, thread = self._rank, self._rank.main
        with (
            thread.frame(f"nn.Module: FullyShardedDataParallel_{index}", 1_000 + index),
            thread.annotation("FullyShardedDataParallel.forward"),
        ):
            if index == ROOT:
                with thread.annotation("FullyShardedDataParallel._root_pre_forward"):
                    # The optimizer must have written the shards.
                    rank.wait_event(thread, NCCL_STREAM, rank.record_event(thread, COMPUTE_STREAM))
            with thread.annotation("FullyShardedDataParallel._pre_forward"):
                thread.spend(18_000, 30_000)
                self._unshard(thread, index)
                self._wait_for(thread, index)
            flat = self._flat[index]
            joined = Gradient("aten::cat", (flat, 0), (kernels.cat(flat),))
            views = Backward("SplitWithSizesBackward0", (joined,), (flat,))
            with tape.forward("aten::split_with_sizes", (flat, None, 0), None, views):
                thread.spend(4_000, 7_000)
            yield
            with thread.annotation("FullyShardedDataParallel._post_forward"):
                thread.spend(9_000, 15_000)
                if self._reshard_after_forward and index != ROOT:
                    self._reshard(thread, index)
                tape.before_backward(partial(self._pre_backward, index))

    def gradient_ready(self, parameter: Tensor, gradient: Block) -> Block:
        """The gradient of a whole unit is there: drop its parameters, keep a shard of the gradient."""
        rank, thread = self._rank, self._rank.autograd
        index = next(at for at, flat in enumerate(self._flat) if flat is parameter)
        with thread.annotation("FullyShardedDataParallel._post_backward_hook"):
            self._reshard(thread, index)
            rank.wait_event(thread, POST_BACKWARD_STREAM, rank.record_event(thread, COMPUTE_STREAM))
            with thread.op("aten::div_", (parameter, self._group.size)):
                rank.launch(thread, kernels.elementwise(kernels.DIVISION, parameter, 2), POST_BACKWARD_STREAM)
            shard = rank.memory.allocate(thread, self.shards[index].nbytes)
            self._group.reduce_scatter(thread, self.shards[index].numel, after=POST_BACKWARD_STREAM)
            rank.memory.free(thread, gradient)
        return shard

    def finalize_backward(self) -> None:
        """The optimizer waits for the last reduce-scatter; the host does not."""
        rank, thread = self._rank, self._rank.autograd
        with thread.annotation("FullyShardedDataParallel._post_backward_final_callback"):
            rank.wait_event(thread, COMPUTE_STREAM, rank.record_event(thread, NCCL_STREAM))

    def _pre_backward(self, index: int) -> None:
        """Have the unit's parameters, and send for those of the unit whose backward comes next."""
        thread = self._rank.autograd
        with thread.annotation("FullyShardedDataParallel._pre_backward_hook"):
            thread.spend(10_000, 18_000)
            self._unshard(thread, index)
            self._wait_for(thread, index)
            following = len(self._flat) - 1 if index == ROOT else index - 1
            if following != ROOT:
                with thread.annotation("FullyShardedDataParallel._pre_backward_prefetch"):
                    self._unshard(thread, following)

    def _unshard(self, thread: HostThread, index: int) -> None:
        """All-gather the unit's parameters, unless they are whole."""
        if index in self._whole:
            return
        rank = self._rank
        with thread.annotation("FullyShardedDataParallel.rate_limiter"):
            if len(self._dropped) >= _UNITS_IN_FLIGHT:
                rank.wait_event(thread, NCCL_STREAM, self._dropped.popleft())
        self._whole[index] = rank.memory.allocate(thread, self._flat[index].nbytes)
        self._group.all_gather(thread, self.shards[index].numel, after=None)
        self._gathered[index] = rank.record_event(thread, NCCL_STREAM)

    def _wait_for(self, thread: HostThread, index: int) -> None:
        """The unit's kernels need its parameters."""
        if index in self._gathered:
            self._rank.wait_event(thread, COMPUTE_STREAM, self._gathered.pop(index))

    def _reshard(self, thread: HostThread, index: int) -> None:
        """Drop the whole parameters; the shard stays."""
        self._rank.memory.free(thread, self._whole.pop(index))
        self._dropped.append(self._rank.record_event(thread, COMPUTE_STREAM))
