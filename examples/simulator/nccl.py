"""A process group: collectives as c10d dispatches, NCCL runs and the profiler describes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from examples.simulator import kernels
from examples.simulator.collective import collective_ns
from examples.simulator.device import NCCL_STREAM
from examples.simulator.host import HostThread
from examples.simulator.rank import Rank
from examples.simulator.tensor import Input, Tensor

GROUP = {"name": "0", "description": "default_pg"}
_ITEM_BYTES = 2  # bfloat16


@dataclass(frozen=True)
class _Operation:
    """One kind of collective: its operator, its annotation, and its name in `record_param_comms`."""

    op: str
    annotation: str
    recorded: str
    kernel: str


_ALL_REDUCE = _Operation("c10d::allreduce_", "nccl:all_reduce", "allreduce", "AllReduce_Sum_bf16")
_ALL_GATHER = _Operation("c10d::_allgather_base_", "nccl:_all_gather_base", "_allgather_base", "AllGather")
_REDUCE_SCATTER = _Operation(
    "c10d::_reduce_scatter_base_",
    "nccl:_reduce_scatter_base",
    "_reduce_scatter_base",
    "ReduceScatter_Sum_bf16",
)


class ProcessGroup:
    """All ranks of the job, from the view of one. Collectives run in order on a stream of their own."""

    def __init__(self, rank: Rank, size: int, bus_gbps: int) -> None:
        self.size = size
        self._rank = rank
        self._bus_gbps = bus_gbps
        self._sequence = 0

    def all_reduce(self, thread: HostThread, nelems: int, after: int) -> None:
        """Sum `nelems` numbers that are ready when stream `after` gets here."""
        inputs = (Tensor((nelems,)), None, None, None, True, -1)
        self._run(thread, _ALL_REDUCE, inputs, nelems, nelems, after)

    def all_gather(self, thread: HostThread, shard: int, after: int | None) -> None:
        """Every rank gets all shards; each holds one of `shard` elements."""
        whole = shard * self.size
        inputs = (Tensor((whole,)), Tensor((shard,)), None, True, -1)
        self._run(thread, _ALL_GATHER, inputs, shard, whole, after)

    def reduce_scatter(self, thread: HostThread, shard: int, after: int) -> None:
        """Sum `shard * size` numbers over the ranks; each rank keeps a shard of the sum."""
        whole = shard * self.size
        inputs = (Tensor((shard,)), Tensor((whole,)), None, None, True, -1)
        self._run(thread, _REDUCE_SCATTER, inputs, whole, shard, after)

    def _run(
        self,
        thread: HostThread,
        operation: _Operation,
        inputs: tuple[Input, ...],
        nelems_in: int,
        nelems_out: int,
        after: int | None,
    ) -> None:
        self._sequence += 1
        rank = self._rank
        nbytes = _ITEM_BYTES * max(nelems_in, nelems_out)
        kernel = kernels.nccl(
            operation.kernel, collective_ns(operation.recorded, nbytes, self.size, self._bus_gbps)
        )
        args = self._arguments(operation, nelems_in, nelems_out)
        with (
            thread.op(operation.op, inputs),
            thread.op("record_param_comms", args={**args, "Global rank start": 0, "Global rank stride": 1}),
        ):
            if after is not None:
                rank.wait_event(thread, NCCL_STREAM, rank.record_event(thread, after))
            with thread.annotation(operation.annotation):
                rank.launch_collective(thread, kernel, NCCL_STREAM, self._sequence, args)

    def _arguments(self, operation: _Operation, nelems_in: int, nelems_out: int) -> dict[str, Any]:
        """What NCCL's profiler hook adds to operator and kernel."""
        return {
            "Collective name": operation.recorded,
            "In msg nelems": nelems_in,
            "Out msg nelems": nelems_out,
            "Group size": self.size,
            "dtype": "BFloat16",
            "In split size": "[]",
            "Out split size": "[]",
            "Process Group Name": GROUP["name"],
            "Process Group Description": GROUP["description"],
            "Process Group Ranks": str(list(range(self.size))),
            "Rank": self._rank.index,
            "Seq": self._sequence,
            "Comms Id": 7_000_000_000 + self._sequence,
        }
