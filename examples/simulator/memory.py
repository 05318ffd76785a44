"""PyTorch's caching allocator, as far as its `[memory]` events show it.

A freed block is kept and handed out again to the next request of the same size; `Total Reserved` grows only
when no kept block fits.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from examples.simulator.host import HostThread
from examples.simulator.records import Instant

_ROUND_BYTES = 512
_SEGMENT_BYTES = 2 * 1024 * 1024
_FIRST_ADDRESS = 0x7F00_0000_0000
_DEVICE_TYPE_CUDA = 1


@dataclass(frozen=True, slots=True)
class Block:
    address: int
    nbytes: int


@dataclass(slots=True)
class CachingAllocator:
    device: int
    allocated: int = 0
    reserved: int = 0
    _kept: dict[int, list[Block]] = field(default_factory=dict)
    _segment_left: int = 0
    _next_address: int = _FIRST_ADDRESS

    def hold(self, nbytes: int) -> None:
        """Memory that was taken before the profiler started: it shows in the totals only."""
        self._carve(nbytes)
        self.allocated += nbytes

    def allocate(self, thread: HostThread, nbytes: int) -> Block:
        size = -(-nbytes // _ROUND_BYTES) * _ROUND_BYTES
        kept = self._kept.get(size)
        block = kept.pop() if kept else self._carve(size)
        self._record(thread, block, size)
        return block

    def free(self, thread: HostThread, block: Block) -> None:
        self._kept.setdefault(block.nbytes, []).append(block)
        self._record(thread, block, -block.nbytes)

    def _carve(self, size: int) -> Block:
        if size > self._segment_left:
            segment = -(-size // _SEGMENT_BYTES) * _SEGMENT_BYTES
            self.reserved += segment
            self._next_address += self._segment_left
            self._segment_left = segment
        block = Block(self._next_address, size)
        self._next_address += size
        self._segment_left -= size
        return block

    def _record(self, thread: HostThread, block: Block, change: int) -> None:
        self.allocated += change
        args = {
            "Total Reserved": self.reserved,
            "Total Allocated": self.allocated,
            "Bytes": change,
            "Addr": block.address,
            "Device Id": self.device,
            "Device Type": _DEVICE_TYPE_CUDA,
            "Ev Idx": thread.recorder.number("event") - 1,
        }
        thread.recorder.instants.append(
            Instant("cpu_instant_event", "[memory]", thread.pid, thread.tid, thread.now_ns, args)
        )
