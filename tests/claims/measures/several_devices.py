"""What the devices of one process do at once."""

from __future__ import annotations

from typing import Any

from tests.claims.job import Job, PlainRank, Window, union
from tests.claims.registry import Stated, check, close, time_of


def by_device(rank: PlainRank) -> dict[Any, list[Window]]:
    """When each device works that computes for a twentieth of the time or more."""
    found = {}
    for device in {work.args.get("device", work.process) for work in rank.work}:
        mine = [work for work in rank.work if work.args.get("device", work.process) == device]
        computing = [work.window for work in mine if work.kind == "computing"]
        if 20 * rank.within(computing) >= rank.judged_ns:
            found[device] = union(work.window for work in mine)
    return found


@check("devices")
@check("several_devices")
def devices(job: Job, stated: Stated) -> str:
    """How many compute."""
    ranks = job.of(stated.ranks or stated.value)
    most = max(len(by_device(rank)) for rank in ranks)
    if stated.unit == "ranks":
        return "" if most > 1 else "it has one device"
    return close(stated, most, 0.0, 0.0)


@time_of("any_device_works")
def any_device_works(rank: PlainRank, about: dict[str, Any]) -> int:
    """At least one of them."""
    return rank.within([window for windows in by_device(rank).values() for window in windows])


@time_of("each_device_works")
def each_device_works(rank: PlainRank, about: dict[str, Any]) -> int:
    """On average."""
    found = by_device(rank)
    return sum(rank.within(windows) for windows in found.values()) // max(len(found), 1)


@time_of("devices_in_turn")
def devices_in_turn(rank: PlainRank, about: dict[str, Any]) -> int:
    """One is idle while another works."""
    found = by_device(rank)
    mean = sum(rank.within(windows) for windows in found.values()) // max(len(found), 1)
    return rank.within([window for windows in found.values() for window in windows]) - mean
