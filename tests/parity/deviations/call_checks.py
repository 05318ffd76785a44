"""Is a single difference between call graphs what its row says? Judged as in `checks.py`."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tests.parity.compare import Difference
from tests.parity.faults import is_device
from tests.parity.told import Told

# HTA keeps a caller in eight bits, which tell rows apart that are not further from each other.
EIGHT_BITS = 256


def narrowed(one: Difference, told: Told) -> bool:
    """HTA's number is ours after it was cut to 8 or 16 bits."""
    return one.hta != one.ours and any(
        -(2 ** (bits - 1)) <= one.hta < 2 ** (bits - 1) and (one.hta - one.ours) % 2**bits == 0
        for bits in (8, 16)
    )


def is_a_wait(one: Difference, told: Told) -> bool:
    """HTA gave a wait a caller, cut to 8 bits."""
    return told.event(one)["cat"] == "cuda_sync" and one.ours == -1


def both_roots(one: Difference, told: Told) -> bool:
    """Different names for the same: no caller."""
    return bool(one.hta < 0 and one.ours < 0)


def contained(one: Difference, told: Told) -> bool:
    """Our caller contains the call in time; what the other columns count follows from the callers."""
    if one.column != "parent":
        return True
    if one.ours < 0:
        return True
    call, caller = told.event(one), told.events[one.ours]
    return bool(caller["ts"] <= call["ts"] and call["ts"] + call["dur"] <= caller["ts"] + caller["dur"])


def torn_at_an_instant(one: Difference, told: Told) -> bool:
    """Where a call without length is made between one that ends and one that begins, HTA hangs what begins
    below what has ended, or the short call below what begins; depths and heights follow from HTA's callers.
    """
    callers = dict(zip(*_columns(told.ours, "index", "parent"), strict=True))
    for index, low in zip(*_columns(told.hta, "index", "parent"), strict=True):
        if is_device(told.events[index]) or callers.get(index, -1) < 0:
            continue
        if (low - callers[index]) % EIGHT_BITS:
            callers[index] = _nearest(index, low)
    at = int(one.key[0])
    if one.column == "parent":
        return _torn(told.events, at, callers[at])
    return bool(
        one.hta == (_depth(at, callers) if one.column == "depth" else _height(at, callers, told.events))
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
    at that instant one call ends, one without length is made and one begins.
    """
    thread, made = events[call]["tid"], events[call]["ts"]
    if not events[call]["dur"] and events[caller]["ts"] == made and call < caller:
        instant = made
    else:
        instant = events[caller]["ts"] + events[caller]["dur"]
    calls = [
        event
        for event in events
        if event.get("ph") == "X" and event["tid"] == thread and not is_device(event)
    ]
    lasting = [event for event in calls if event["dur"]]
    return (
        events[caller]["tid"] == thread
        and instant <= made
        and any(event["ts"] == instant for event in calls if not event["dur"])
        and any(event["ts"] == instant for event in lasting)
        and any(event["ts"] + event["dur"] == instant for event in lasting)
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
