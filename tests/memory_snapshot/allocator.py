"""A caching allocator like PyTorch's, which records the snapshot and the truth about it.

Blocks are rounded to 512 bytes and split; freed neighbours are joined; segments are of 2 MB (for up to 1 MB),
20 MB (for up to 10 MB) or of the size, in multiples of 2 MB; or they expand. A request that fits nowhere
makes it give back what is free, then fail.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KB, MB = 1 << 10, 1 << 20
SMALL, LARGE = 1 * MB, 10 * MB


@dataclass
class Block:
    address: int
    size: int
    requested: int = 0
    state: str = "inactive"
    frames: list[dict[str, Any]] = field(default_factory=list)
    annotation: str | None = None


@dataclass
class Segment:
    address: int
    size: int
    stream: int
    small: bool
    expandable: bool
    blocks: list[Block]


def frames(*names: str) -> list[dict[str, Any]]:
    """A stack, innermost first: "file.py:3:function"."""
    found = []
    for name in names:
        file, line, function = name.split(":", 2)
        found.append({"filename": file, "line": int(line), "name": function})
    return found


class OutOfMemoryError(Exception):
    """The device has too little memory."""


class Allocator:
    """The allocator of one device."""

    def __init__(
        self, capacity: int, expandable: bool = False, device: int = 0, max_entries: int = 10**9
    ) -> None:
        self.capacity, self.expandable, self.device = capacity, expandable, device
        self.max_entries = max_entries
        self.segments: list[Segment] = []
        self.events: list[dict[str, Any]] = []
        self.live: dict[int, Block] = {}
        self.ranges: list[dict[str, Any]] = []
        self.now = 1_000_000
        self.next_address = 0x7F00_0000_0000 + (device << 40)
        self.allocated: list[int] = [0]
        self.peak = 0
        self.at_peak: list[tuple[int, list[dict[str, Any]]]] = []

    @property
    def reserved(self) -> int:
        return sum(segment.size for segment in self.segments)

    def _record(self, action: str, address: int, size: int, stack: list[dict[str, Any]], **more: Any) -> None:
        self.now += 7
        where = {"device_free": address} if action == "oom" else {"addr": address}
        event = {
            "action": action,
            **where,
            "size": size,
            "stream": 0,
            "time_us": self.now,
            "frames": stack,
            **more,
        }
        self.events.append(event)

    def alloc(self, size: int, *stack: str, annotation: str | None = None, stream: int = 0) -> int:
        called = frames(*stack)
        rounded = -(-size // 512) * 512
        more = {"user_metadata": annotation} if annotation else {}
        block = self._find(rounded, stream) or self._grow(rounded, stream, called)
        if block is None:
            self._release()
            block = self._grow(rounded, stream, called)
        if block is None:
            self._record("oom", self.capacity - self.reserved, size, called)
            raise OutOfMemoryError
        self._split(block, rounded)
        block.requested, block.state, block.frames, block.annotation = (
            size,
            "active_allocated",
            called,
            annotation,
        )
        self.live[block.address] = block
        self._record("alloc", block.address, size, called, **more)
        self.allocated.append(sum(found.requested for found in self.live.values()))
        if self.allocated[-1] > self.peak:
            self.peak = self.allocated[-1]
            self.at_peak = [(found.requested, found.frames) for found in self.live.values()]
        return block.address

    @contextmanager
    def range(self, name: str) -> Iterator[None]:
        """As torch.profiler.record_function."""
        self._enter("START", name)
        yield
        self._enter("END", name)

    def _enter(self, stage: str, name: str) -> None:
        self.now += 7
        self.ranges.append({"stage": stage, "name": name, "device": self.device, "time_us": self.now})

    def free(self, address: int, completed: bool = True) -> None:
        block = self.live.pop(address)
        self.allocated.append(sum(found.requested for found in self.live.values()))
        self._record("free_requested", address, block.requested, [])
        if completed:
            self.complete(block)
        else:
            block.state = "active_awaiting_free"

    def complete(self, block: Block) -> None:
        self._record("free_completed", block.address, block.requested, [])
        block.state, block.frames, block.annotation = "inactive", [], None
        segment = next(found for found in self.segments if block in found.blocks)
        at = segment.blocks.index(block)
        for other in (at + 1, at - 1):
            if 0 <= other < len(segment.blocks) and segment.blocks[other].state == "inactive":
                neighbour = segment.blocks[other]
                block.address = min(block.address, neighbour.address)
                block.size += neighbour.size
                segment.blocks.remove(neighbour)

    def _find(self, size: int, stream: int) -> Block | None:
        small = size <= SMALL
        free = [
            block
            for segment in self.segments
            if segment.small == small and segment.stream == stream
            for block in segment.blocks
            if block.state == "inactive" and block.size >= size
        ]
        return min(free, key=lambda block: (block.size, block.address), default=None)

    def _grow(self, size: int, stream: int, stack: list[dict[str, Any]]) -> Block | None:
        small = size <= SMALL
        wanted = 2 * MB if small else 20 * MB if size < LARGE else -(-size // (2 * MB)) * 2 * MB
        if self.expandable:
            return self._expand(size, stream, small, stack)
        if self.reserved + wanted > self.capacity:
            return None
        block = Block(self.next_address, wanted)
        self.next_address += wanted + 64 * MB
        self.segments.append(Segment(block.address, wanted, stream, small, False, [block]))
        self._record("segment_alloc", block.address, wanted, stack)
        return block

    def _expand(self, size: int, stream: int, small: bool, stack: list[dict[str, Any]]) -> Block | None:
        page = 2 * MB if small else 20 * MB
        segment = next((s for s in self.segments if s.small == small and s.stream == stream), None)
        tail = segment.blocks[-1] if segment else None
        free = tail.size if tail is not None and tail.state == "inactive" else 0
        more = -(-(size - free) // page) * page
        if self.reserved + more > self.capacity:
            return None
        if segment is None:
            segment = Segment(self.next_address, 0, stream, small, True, [])
            self.next_address += 1 << 38
            self.segments.append(segment)
        self._record("segment_map", segment.address + segment.size, more, stack)
        if free:
            assert tail is not None
            tail.size += more
        else:
            tail = Block(segment.address + segment.size, more)
            segment.blocks.append(tail)
        segment.size += more
        return tail

    def _split(self, block: Block, size: int) -> None:
        segment = next(found for found in self.segments if block in found.blocks)
        rest = block.size - size
        if rest >= (512 if segment.small or segment.expandable else SMALL):
            block.size = size
            segment.blocks.insert(segment.blocks.index(block) + 1, Block(block.address + size, rest))

    def _release(self) -> None:
        """Give back segments without a block in use."""
        for segment in list(self.segments):
            if all(block.state == "inactive" for block in segment.blocks) and not segment.expandable:
                self.segments.remove(segment)
                self._record("segment_free", segment.address, segment.size, [])

    def segments_as_dicts(self) -> list[dict[str, Any]]:
        return [
            {
                "device": self.device,
                "address": segment.address,
                "total_size": segment.size,
                "allocated_size": sum(b.size for b in segment.blocks if b.state == "active_allocated"),
                "active_size": sum(b.size for b in segment.blocks if b.state != "inactive"),
                "requested_size": sum(b.requested for b in segment.blocks if b.state == "active_allocated"),
                "stream": segment.stream,
                "segment_type": "small" if segment.small else "large",
                "segment_pool_id": (0, 0),
                "is_expandable": segment.expandable,
                "frames": [],
                "blocks": [
                    {
                        "address": block.address,
                        "size": block.size,
                        "requested_size": block.requested,
                        "state": block.state,
                        "frames": block.frames,
                        **({"user_metadata": block.annotation} if block.annotation else {}),
                    }
                    for block in segment.blocks
                ],
            }
            for segment in self.segments
        ]


def snapshot(*allocators: Allocator) -> dict[str, Any]:
    """As torch.cuda.memory._snapshot returns it (2.11, with the ranges of record_function)."""
    return {
        "segments": [found for allocator in allocators for found in allocator.segments_as_dicts()],
        "device_traces": [allocator.events[-allocator.max_entries :] for allocator in allocators],
        "external_annotations": [found for allocator in allocators for found in allocator.ranges],
        "allocator_settings": {
            "PYTORCH_CUDA_ALLOC_CONF": "",
            "max_split_size": -1,
            "garbage_collection_threshold": 0.0,
            "expandable_segments": any(allocator.expandable for allocator in allocators),
            "roundup_power2_divisions": {"1": 0},
        },
    }


def write(path: Path, *allocators: Allocator, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(snapshot(*allocators), protocol))
    return path
