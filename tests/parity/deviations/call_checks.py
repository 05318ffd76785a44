"""Is a single difference between call graphs what its row says? Judged as in `checks.py`."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tests.parity.compare import Difference
from tests.parity.compared_job import ComparedJob
from tests.parity.hta_defects import is_device

# HTA keeps a caller in eight bits, which tell rows apart that are not further from each other.
EIGHT_BITS = 256


def narrowed(difference: Difference, job: ComparedJob) -> bool:
    """HTA's number is ours after it was cut to 8 or 16 bits."""
    return difference.hta != difference.ours and any(
        -(2 ** (bits - 1)) <= difference.hta < 2 ** (bits - 1)
        and (difference.hta - difference.ours) % 2**bits == 0
        for bits in (8, 16)
    )


def is_a_wait(difference: Difference, job: ComparedJob) -> bool:
    """HTA gave a wait a caller, cut to 8 bits."""
    return job.event(difference)["cat"] == "cuda_sync" and difference.ours == -1


def both_roots(difference: Difference, job: ComparedJob) -> bool:
    """Different names for the same: no caller."""
    return bool(difference.hta < 0 and difference.ours < 0)


def contained(difference: Difference, job: ComparedJob) -> bool:
    """Our caller contains the call in time; what the other columns count follows from the callers."""
    if difference.column != "parent":
        return True
    if difference.ours < 0:
        return True
    call, caller = job.event(difference), job.events[difference.ours]
    return bool(caller["ts"] <= call["ts"] and call["ts"] + call["dur"] <= caller["ts"] + caller["dur"])


def torn_at_an_instant(difference: Difference, job: ComparedJob) -> bool:
    """Where a call without length is made between one that ends and one that begins, HTA hangs what begins
    below what has ended, or the short call below what begins; depths and heights follow from HTA's callers.
    It may also take our caller for ended, and whom it sorts first differs from machine to machine.
    """
    callers = dict(zip(*_columns(job.ours, "index", "parent"), strict=True))
    for index, low in zip(*_columns(job.hta, "index", "parent"), strict=True):
        if is_device(job.events[index]) or callers.get(index, -1) < 0:
            continue
        if (low - callers[index]) % EIGHT_BITS:
            callers[index] = _nearest(index, low)
    at = int(difference.key[0])
    if difference.column == "parent":
        return _torn(job.events, at, callers[at]) or _torn_since(job.events, at, difference.ours)
    return bool(
        difference.hta
        == (_depth(at, callers) if difference.column == "depth" else _height(at, callers, job.events))
    )


def _nearest(row: int, low: int) -> int:
    """The row with these eight bits that is the nearest to another."""
    half = EIGHT_BITS // 2
    return row + (low - row + half) % EIGHT_BITS - half


def _columns(side: dict[str, Any], *names: str) -> list[list[Any]]:
    frame = side["call_graph"]["answer"]
    return [frame["data"][frame["columns"].index(name)] for name in names]


def _torn(events: list[dict[str, Any]], call: int, caller: int) -> bool:
    """The caller had ended when the call began, or the call without length stands before it in the file; and
    that is such an instant.
    """
    thread, made = events[call]["tid"], events[call]["ts"]
    if not events[call]["dur"] and events[caller]["ts"] == made and call < caller:
        instant = made
    else:
        instant = events[caller]["ts"] + events[caller]["dur"]
    return events[caller]["tid"] == thread and instant <= made and instant in _instants(events, thread)


def _torn_since(events: list[dict[str, Any]], call: int, caller: int) -> bool:
    """There was such an instant since our caller began."""
    begun, made = events[caller]["ts"], events[call]["ts"]
    return any(begun <= instant <= made for instant in _instants(events, events[call]["tid"]))


def _instants(events: list[dict[str, Any]], thread: Any) -> set[Any]:
    """When one call of a thread ends, one without length is made and one begins."""
    calls = [
        event
        for event in events
        if event.get("ph") == "X" and event["tid"] == thread and not is_device(event)
    ]
    lasting = [event for event in calls if event["dur"]]
    return (
        {event["ts"] for event in calls if not event["dur"]}
        & {event["ts"] for event in lasting}
        & {event["ts"] + event["dur"] for event in lasting}
    )


def _depth(at: int, callers: dict[int, int]) -> int:
    depth = 0
    while callers[at] >= 0:
        at, depth = callers[at], depth + 1
    return depth


def _height(at: int, callers: dict[int, int], events: list[dict[str, Any]]) -> int:
    callees = defaultdict(list)
    for callee, caller in callers.items():
        callees[caller].append(callee)

    def height(row: int) -> int:
        if is_device(events[row]):
            return 0
        return max([1, *(height(callee) + 1 for callee in callees[row])])

    return height(at)
