"""What the allocator held, from the plain `[memory]` events of a whole recording."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from tests.claims.job import Job
from tests.claims.plain_kernels import document
from tests.claims.registry import Stated, check, close
from tests.verdicts.plain_reader import nanoseconds


@dataclass(frozen=True)
class Change:
    """A block that is allocated or, of negative bytes, freed; what is allocated and reserved then."""

    time: int
    bytes: int
    address: int
    allocated: int
    reserved: int


def changes_of(job: Job, stated: Stated) -> list[Change]:
    """Those of the device that a claim is about, in order of time."""
    kind, _, number = stated.about["device"].partition(":")
    events = document(str(job.trace.rank(stated.ranks[0]).path))["traceEvents"]
    found = []
    for event in events:
        args = event.get("args", {})
        if event.get("name") == "[memory]" and {"cpu": 0, "cuda": 1}.get(kind) == args.get("Device Type"):
            if number and int(number) != args.get("Device Id"):
                continue
            time = nanoseconds(event["ts"]) - job.trace.clock.offset_ns.get(stated.ranks[0], 0)
            totals = args.get("Total Allocated", 0), args.get("Total Reserved", 0)
            found.append(Change(time, args["Bytes"], args.get("Addr", 0), *totals))
    return sorted(found, key=lambda change: change.time)


def peak(job: Job, stated: Stated) -> Change:
    return max(changes_of(job, stated), key=lambda change: change.allocated)


def device_bytes(job: Job, stated: Stated) -> int:
    properties = job.headers[stated.ranks[0]].get("deviceProperties", [])
    number = int(stated.about["device"].partition(":")[2])
    return next((each.get("totalGlobalMem", 0) for each in properties if each["id"] == number), 0)


def levels(job: Job, stated: Stated) -> list[int]:
    """The lowest level of each complete step."""
    changes = changes_of(job, stated)
    steps = job.trace.iterations
    steps = steps[(steps["rank"] == stated.ranks[0]) & ~steps["partial"]]
    found = []
    for start, end in zip(steps["host_start_ns"], steps["host_end_ns"], strict=True):
        before = [change.allocated for change in changes if change.time < start]
        first = before[-1] if before else changes[0].allocated - changes[0].bytes
        found.append(min([first, *(change.allocated for change in changes if start <= change.time < end)]))
    return found


def slope(values: list[int]) -> float:
    """The median of the slopes between all pairs."""
    return median((b - a) / (j - i) for (i, a), (j, b) in combinations(enumerate(values), 2))


@check("device_with_memory")
def device_with_memory(job: Job, stated: Stated) -> str:
    """The rank allocates on that device."""
    about = Stated("", "", "", ranks=stated.ranks, about={"device": stated.value})
    return "" if changes_of(job, about) else f"rank {stated.ranks[0]} has no {stated.value}"


@check("rank_with_memory")
def rank_with_memory(job: Job, stated: Stated) -> str:
    """The rank of the recording that the finding selects."""
    numbers = re.findall(r"\d+", stated.shown)
    fits = list(stated.value) == [stated.row["rank"]] == list(map(int, numbers))
    return "" if fits and stated.value[0] in job.ranks else f"the finding is about rank {stated.row['rank']}"


@check("leak_per_step")
def leak_per_step(job: Job, stated: Stated) -> str:
    """The lowest levels of steps rise by so much."""
    return close(stated, slope(levels(job, stated)), 0.001, 1.0)


@check("steps_of_memory")
def steps_of_memory(job: Job, stated: Stated) -> str:
    """So many complete steps."""
    return close(stated, len(levels(job, stated)), 0.0, 0.0)


@check("steps_left")
def steps_left(job: Job, stated: Stated) -> str:
    """What is free, in parts of what a step leaves."""
    free = device_bytes(job, stated) - peak(job, stated).allocated
    return close(stated, free / round(slope(levels(job, stated))), 0.001, 1.0)


@check("memory_full")
def memory_full(job: Job, stated: Stated) -> str:
    """The most that is allocated, of what the device has."""
    return close(stated, 100.0 * peak(job, stated).allocated / device_bytes(job, stated), 0.0, 1e-6)


@check("most_allocated")
def most_allocated(job: Job, stated: Stated) -> str:
    """The most that is allocated at a time."""
    return close(stated, peak(job, stated).allocated, 0.0, 0.0)


@check("reserved_at_peak")
def reserved_at_peak(job: Job, stated: Stated) -> str:
    """What the allocator holds then."""
    return close(stated, peak(job, stated).reserved, 0.0, 0.0)


@check("slack_at_peak")
def slack_at_peak(job: Job, stated: Stated) -> str:
    """What of that is not allocated."""
    most = peak(job, stated)
    return close(stated, most.reserved - most.allocated, 0.0, 0.0)


def before_recording_pct(job: Job, stated: Stated) -> float:
    """How much of the most was allocated before the recording."""
    most, live = peak(job, stated), dict[int, int]()
    for change in changes_of(job, stated):
        if change.bytes > 0:
            live[change.address] = change.bytes
        else:
            live.pop(change.address, None)
        if change is most or change == most:
            break
    return 100.0 * (1 - sum(live.values()) / most.allocated)


@check("memory_of_owner")
def memory_of_owner(job: Job, stated: Stated) -> str:
    """What was allocated before the recording is counted; what blocks are for has the rest as a bound."""
    before = before_recording_pct(job, stated)
    if stated.about["owner"] == "before the recording":
        return close(stated, before, 0.001, 0.001)
    return "" if before <= stated.value <= 100.0 - before else f"{before:.3g} % are from before"


@check("largest_owner")
def largest_owner(job: Job, stated: Stated) -> str:
    """None takes more; of what is from before the recording that is certain from half on."""
    before = before_recording_pct(job, stated)
    kinds = {
        "parameter", "optimizer state", "gradient", "activation", "temporary", "communication", "unknown",
        "before the recording",
    }  # fmt: skip
    if stated.value not in kinds:
        return f"{stated.value!r} is no owner"
    if before > 50.0 and stated.value != "before the recording":
        return "most was allocated before the recording"
    return "more is from the recording" if before < 10.0 and stated.value == "before the recording" else ""
