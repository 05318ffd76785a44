"""Copies: those that run alone, large ones between host and device; kernels that grow longer from step to
step."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from statistics import median
from typing import Any

from tests.claims.job import Job, PlainRank, Record, length, overlap, union
from tests.claims.measures.activity import copying_alone
from tests.claims.measures.kernels import stated_by
from tests.claims.plain_kernels import Launch, launch_as, limits_of
from tests.claims.registry import Stated, check, close, time_of
from tests.verdicts.plain_reader import subtract

# What copies of pinned memory reach on 16 lanes, GB/s, and the devices in such slots.
LINKS = {
    "PCIe 3": (12.0, ("V100", "T4")),
    "PCIe 4": (24.0, ("A100", "A10", "A30", "A40", "L4", "L40", "MI210", "MI250")),
    "PCIe 5": (53.0, ("H100", "H800", "H20", "H200", "B200", "MI300", "MI325", "MI350", "MI355")),
}


def copies_of(rank: PlainRank, name: str) -> list[Record]:
    """Copies of that name and of more than 1 MB in the judged time."""
    named = [each for each in rank.named(name, rank.work) if int(each.args.get("bytes", 0)) > 1_000_000]
    return rank.judged(named)


def bandwidth(copies: list[Record]) -> float:
    """GB/s of the median copy."""
    return median(int(copy.args["bytes"]) / max(copy.dur, 1) for copy in copies)


@check("name_of_copies")
def name_of_copies(job: Job, stated: Stated) -> str:
    """Large copies of that name are in the judged time."""
    (rank,) = job.of(stated.ranks)
    return "" if copies_of(rank, stated.value) else f"rank {rank.number} has none of these"


@check("copied_bytes")
def copied_bytes(job: Job, stated: Stated) -> str:
    """What all of them copy in a step."""
    (rank,) = job.of(stated.ranks)
    size = sum(int(copy.args["bytes"]) for copy in copies_of(rank, stated.about["name"]))
    return close(stated, size / max(len(job.steps), 1), 1e-6, 0.0)


@check("median_bandwidth")
def median_bandwidth(job: Job, stated: Stated) -> str:
    """What the median copy reaches."""
    (rank,) = job.of(stated.ranks)
    return close(stated, bandwidth(copies_of(rank, stated.about["name"])), 1e-4, 0.0)


@check("beyond_bandwidth")
def beyond_bandwidth(job: Job, stated: Stated) -> str:
    """How much longer they take than at a bandwidth."""
    (rank,) = job.of(stated.ranks)
    copies = copies_of(rank, stated.about["name"])
    beyond = sum(max(copy.dur - int(copy.args["bytes"]) / stated.about["gbps"], 0) for copy in copies)
    return close(stated, stated_by(job, stated, beyond), 0.001, 0.01 if stated.unit == "%" else 10.0)


@check("usual_bandwidth")
def usual_bandwidth(job: Job, stated: Stated) -> str:
    """What the link of the device carries, or other copies of the same direction reach from pinned memory."""
    way = "HtoD" if "HtoD" in stated.about["name"] else "DtoH"
    device = str(limits_of(job, stated.ranks[0]).get("name", ""))
    by_link = [gbps for gbps, devices in LINKS.values() if any(each in device for each in devices)]
    names = {each.name for rank in job.ranks.values() for each in rank.work}
    pinned = [
        bandwidth(copies)
        for rank in job.ranks.values()
        for name in sorted(names)
        if way in name and "Pinned" in name and (copies := copies_of(rank, name))
    ]
    if stated.about["known_by"].startswith("as others"):
        return close(stated, max(pinned, default=0.0), 1e-4, 0.0)
    link = stated.about["known_by"].removeprefix("by ")
    if link and link not in LINKS:
        return f"{link} is no link"
    allowed = by_link if link or not pinned else [*by_link, max(pinned)]
    return "" if any(abs(stated.value - each) < 1e-4 * each for each in allowed) else f"usual are {allowed}"


# -- kernels from step to step ---------------------------------------------------------------------


def equal_kernels(rank: PlainRank) -> dict[Launch, list[int]]:
    """The time in each judged step of kernels that every step launches alike, and as often."""
    time: dict[Launch, list[int]] = {}
    count: dict[Launch, list[int]] = {}
    for kernel in rank.kernels:
        launch = launch_as(rank, kernel)
        for step, (start, end) in enumerate(rank.windows):
            if start <= kernel.start < end:
                time.setdefault(launch, [0] * len(rank.windows))[step] += kernel.dur
                count.setdefault(launch, [0] * len(rank.windows))[step] += 1
    return {launch: each for launch, each in time.items() if len(set(count[launch])) == 1}


def slope(values: list[int] | list[float]) -> float:
    """The median of the slopes between all pairs (Theil and Sen)."""
    return median((b - a) / (j - i) for (i, a), (j, b) in combinations(enumerate(values), 2))


def whole(rank: PlainRank) -> list[int]:
    return [sum(step) for step in zip(*equal_kernels(rank).values(), strict=True)]


@check("judged_steps")
def judged_steps(job: Job, stated: Stated) -> str:
    """So many steps are judged."""
    return close(stated, len(job.steps), 0.0, 0.0)


@check("drift")
def drift(job: Job, stated: Stated) -> str:
    """What equal kernels take beyond the first step, along their slope."""
    (rank,) = job.of(stated.ranks)
    time = whole(rank)
    return close(stated, stated_by(job, stated, slope(time) * len(time) * (len(time) - 1) / 2), 0.001, 1e-3)


@check("rise")
def rise(job: Job, stated: Stated) -> str:
    """How much longer they take in the last step than in the first, along their slope."""
    (rank,) = job.of(stated.ranks)
    time = whole(rank)
    first = median(each - slope(time) * step for step, each in enumerate(time))
    return close(stated, 100.0 * slope(time) * (len(time) - 1) / first, 0.001, 1e-6)


@check("rising_kernels")
def rising_kernels(job: Job, stated: Stated) -> str:
    """How much of their time is of kernels that take longer and longer themselves."""
    (rank,) = job.of(stated.ranks)
    equal = equal_kernels(rank).values()
    rising = sum(sum(time) for time in equal if slope(time) > 0)
    return close(stated, 100.0 * rising / sum(map(sum, equal)), 0.001, 1e-6)


@check("drifting_rank")
def drifting_rank(job: Job, stated: Stated) -> str:
    """No rank loses more to that."""
    cost = {number: slope(whole(rank)) for number, rank in job.ranks.items() if len(whole(rank)) > 1}
    return "" if (max(cost, key=cost.__getitem__),) == tuple(stated.value) else f"{cost} ns per step"


@time_of("copying_alone")
def copying_alone_time(rank: PlainRank, about: dict[str, Any]) -> int:
    """Copies and fills run, and nothing else."""
    return rank.within(copying_alone(rank))


def copies_by_name(job: Job, ranks: tuple[int, ...]) -> Counter[str]:
    times: Counter[str] = Counter()
    for rank in job.of(ranks):
        others = union(each.window for each in rank.work if each.kind != "copying")
        for each in rank.work:
            if each.kind == "copying":
                parts = subtract([each.window], others)
                times[each.name] += sum(length(overlap(parts, window)) for window in rank.windows)
    return times


@check("longest_copy_alone")
def longest_copy_alone(job: Job, stated: Stated) -> str:
    times = copies_by_name(job, stated.ranks)
    name, most = times.most_common(1)[0]
    return "" if times[stated.value] >= 0.99 * most else f"{name} takes longer"


@check("copying_alone_by_name")
def copying_alone_by_name(job: Job, stated: Stated) -> str:
    times = copies_by_name(job, stated.ranks)
    return close(stated, 100.0 * times[stated.about["name"]] / max(times.total(), 1), 0.01, 0.5)


@check("copying_most")
def copying_most(job: Job, stated: Stated) -> str:
    shares = {
        number: rank.within(copying_alone(rank)) / rank.judged_ns
        for number, rank in job.ranks.items()
        if rank.judged_ns
    }
    most = max(shares, key=lambda rank: shares[rank])
    return "" if stated.value == (most,) else f"rank {most} copies longer"
