"""Collectives: each rank's kernel starts when that rank arrives, all end together when the data is there.

The ranks run the same program, so the n-th collective of one rank meets the n-th of every other.
Resolving plays each device up to its next collective, lets the ranks meet, and goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from examples.simulator.device import Device, Work, begin
from examples.simulator.seeded_rng import SeededRng

# Ranks leave a collective within this time of each other.
END_JITTER_NS = 300


@dataclass(frozen=True)
class Collective:
    """Ground truth of one collective: when each rank's kernel started and ended, and what it moved.

    `nbytes` is the size of the whole: of the sum, or of all shards together.
    """

    sequence: int
    operation: str
    nbytes: int
    start_ns: tuple[int, ...]
    end_ns: tuple[int, ...]

    @property
    def sent_bytes(self) -> int:
        """What each rank sends around the ring: (n-1)/n of the whole, twice for an all-reduce."""
        ranks = len(self.start_ns)
        return _rounds(self.operation) * (ranks - 1) * self.nbytes // ranks


def collective_ns(operation: str, nbytes: int, ranks: int, bus_gbps: int) -> int:
    """Time on a ring: latency, plus (n-1)/n of the data per round at NCCL's "bus bandwidth"."""
    rounds = _rounds(operation)
    return rounds * (4_500 * (ranks - 1)) + rounds * (ranks - 1) * nbytes // (ranks * bus_gbps)


def _rounds(operation: str) -> int:
    """An all-reduce is a reduce-scatter and an all-gather."""
    return 2 if operation == "allreduce" else 1


def resolve(devices: Sequence[Device], rng: SeededRng) -> list[Collective]:
    """Give all submitted work of all ranks its times; the collectives met on the way, in order."""
    met: list[Collective] = []
    while True:
        waiting = [_run_to_collective(device) for device in devices]
        arrived = [work for work in waiting if work is not None]
        if not arrived:
            return met
        if len(arrived) != len(devices) or len({work.collective for work in arrived}) != 1:
            raise ValueError("the ranks do not run the same sequence of collectives")
        met.append(_meet(arrived, rng))


def _run_to_collective(device: Device) -> Work | None:
    """Resolve work up to the next unmet collective, which is started but not ended."""
    while device.resolved < len(device.work):
        work = device.work[device.resolved]
        device.resolved += 1
        begin(work)
        if work.collective is not None:
            return work
        work.end_ns = work.start_ns + work.duration_ns
    return None


def _meet(arrived: Sequence[Work], rng: SeededRng) -> Collective:
    done = max(work.start_ns for work in arrived) + arrived[0].duration_ns
    for work in arrived:
        work.end_ns = done + rng.between(0, END_JITTER_NS)
    first = arrived[0]
    assert first.collective is not None
    return Collective(
        first.collective,
        first.args["Collective name"],
        2 * max(first.args["In msg nelems"], first.args["Out msg nelems"]),
        tuple(work.start_ns for work in arrived),
        tuple(work.end_ns for work in arrived),
    )
