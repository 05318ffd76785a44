"""Communication that computing does not hide: how long, which, how large, and what it slows down."""

from __future__ import annotations

import re
from statistics import mean, median
from typing import Any

from tests.claims.job import Job, PlainRank, Record, length, overlap, union
from tests.claims.measures.activity import (
    IN_PAIRS,
    at_most,
    between,
    communication,
    exposed,
    no_more_than,
    recorded,
    share_of,
    step_of,
)
from tests.claims.measures.ranks import waits
from tests.claims.registry import Stated, check, close, time_of


@time_of("exposed_communication")
def exposed_communication(rank: PlainRank, about: dict[str, Any]) -> int:
    """Communication without compute."""
    return rank.within(exposed(rank))


@check("exposed_transfers")
def exposed_transfers(job: Job, stated: Stated) -> str:
    """The same without waiting for other ranks."""
    waited = waits(job)

    def time(rank: PlainRank) -> float:
        own = sum(each.ns for each in waited or [] if each.rank == rank.number)
        return max(rank.within(exposed(rank)) - own, 0)

    truth = share_of(job, stated, time)
    return (
        at_most(stated, truth)
        if waited is None
        else close(stated, truth, 0.05, 0.5 if stated.unit == "%" else 2e4)
    )


@time_of("communicating")
def communicating(rank: PlainRank, about: dict[str, Any]) -> int:
    """Communication runs, whatever else does."""
    return rank.within([each.window for each in communication(rank)])


@check("hidden_communication")
def hidden_communication(job: Job, stated: Stated) -> str:
    ranks = job.of(stated.ranks)
    whole = sum(rank.within([each.window for each in communication(rank)]) for rank in ranks)
    alone = sum(rank.within(exposed(rank)) for rank in ranks)
    return close(stated, 100.0 - 100.0 * alone / max(whole, 1))


_KINDS = {
    "all_to_all": re.compile(r"all_?to_?all|SendRecv", re.IGNORECASE),
    "dispatch": re.compile(r"dispatch", re.IGNORECASE),
    "combine": re.compile(r"combine", re.IGNORECASE),
}


@check("most_exposed_operation")
def most_exposed_operation(job: Job, stated: Stated) -> str:
    """Kernels of such names have half of the exposed time that the finding is about."""
    lost = own = 0.0
    for rank in job.ranks.values():
        lost += stated.row["share_pct"] / 100 * rank.judged_ns
        chosen = [
            each
            for each in communication(rank)
            for kind in stated.value
            if _KINDS.get(kind, IN_PAIRS).search(f"{each.args.get('Collective name', '')} {each.name}")
        ]
        own += rank.within(exposed(rank, chosen))
    return "" if own >= 0.45 * lost else f"they have {own:,.0f} of {lost:,.0f} ns"


@no_more_than("late_communication")
def late_communication(rank: PlainRank, about: dict[str, Any]) -> int:
    """Time in which the device computes."""
    return rank.within([each.window for each in rank.kernels])


@check("late_communications")
def late_communications(job: Job, stated: Stated) -> str:
    return at_most(stated, len(communication(job.ranks[stated.ranks[0]])), 0.0, 0.0)


@check("longest_delay")
def longest_delay(job: Job, stated: Stated) -> str:
    """Before the event that is shown, its stream is free for so long."""
    rank = job.ranks[stated.ranks[0]]
    event = rank.by_number[int(stated.row["event_id"])]
    gap = event.start - int(stated.value) + 1_000, event.start
    busy = union(each.window for each in rank.work if each.stream == event.stream and each is not event)
    return "its stream is busy then" if overlap(busy, gap) else ""


@no_more_than("exposed_small_messages")
def exposed_small_messages(rank: PlainRank, about: dict[str, Any]) -> int:
    return rank.within(exposed(rank, messages(rank, about)))


def messages(rank: PlainRank, about: dict[str, Any]) -> list[Record]:
    """Kernels of an operation and group."""
    operation = about["operation"].replace("_", "").lower()
    return [
        each
        for each in communication(rank)
        if operation in str(each.args.get("Collective name", "")).replace("_", "").lower()
        and each.args.get("Group size", about.get("group_size")) == about.get("group_size")
    ]


@check("small_messages")
def small_messages(job: Job, stated: Stated) -> str:
    """No more than there are of the operation."""
    counts = [len(rank.judged(messages(rank, stated.about))) for rank in job.of(stated.ranks)]
    return at_most(stated, mean(counts) / max(len(job.steps), 1), 0.0, 1.0)


@check("small_operation")
def small_operation(job: Job, stated: Stated) -> str:
    found = [messages(rank, {"operation": stated.value}) for rank in job.of(stated.ranks)]
    alike = [each for rank in job.of(stated.ranks) for each in communication(rank)]
    return "" if any(found) or alike else f"nothing is named {stated.value}"


@check("group_size")
def group_size(job: Job, stated: Stated) -> str:
    sizes = {each.args.get("Group size") for rank in job.ranks.values() for each in communication(rank)}
    return "" if stated.value in sizes else f"the groups have {sizes} ranks"


@check("largest_small_message")
def largest_small_message(job: Job, stated: Stated) -> str:
    """A message is as large as one of its sides: elements of up to 16 bytes."""
    counts = {
        int(each.args.get(side, 0))
        for rank in job.of(stated.ranks)
        for each in communication(rank)
        for side in ("In msg nelems", "Out msg nelems")
    }
    return (
        ""
        if any(stated.value == count * size for count in counts for size in (1, 2, 4, 8, 16))
        else "none has it"
    )


def large_messages(rank: PlainRank, about: dict[str, Any]) -> list[tuple[Record, int, int]]:
    """Judged ones of an operation with no fewer bytes; their bytes, and of how many ranks."""
    found, operation = [], about["operation"].replace("_", "")
    for each in rank.judged(communication(rank)):
        counts = [int(each.args.get(side, 0)) for side in ("In msg nelems", "Out msg nelems")]
        size = max(counts) * {"Float": 4, "BFloat16": 2, "Half": 2}.get(str(each.args.get("dtype")), 1)
        alike = operation in str(each.args.get("Collective name", "")).replace("_", "").lower()
        if alike and size >= about["least_bytes"]:
            found.append((each, size, int(each.args.get("Group size", 1))))
    return sorted(found, key=lambda message: message[0].start)


@check("large_operation")
def large_operation(job: Job, stated: Stated) -> str:
    return small_operation(job, stated)


@check("least_large_message")
def least_large_message(job: Job, stated: Stated) -> str:
    sizes = [size for rank in job.of(stated.ranks) for _, size, _ in large_messages(rank, stated.about)]
    return "" if sizes and min(sizes) == stated.value else f"the smallest is {min(sizes, default=0)}"


@check("large_messages_bus")
def large_messages_bus(job: Job, stated: Stated) -> str:
    """Of several ranks that send equally many, those in turn are one; the last to come does not wait."""
    of_rank = [large_messages(rank, stated.about) for rank in job.of(stated.ranks)]
    reached = []
    for together in zip(*of_rank, strict=True):
        _, size, ranks = together[0]
        crossings = (2 if stated.about["operation"] == "allreduce" else 1) * (ranks - 1) / ranks
        reached.append(crossings * size / min(each.dur for each, _, _ in together))
    return close(stated, median(reached), 0.05, 0.0)


@check("latency_of_each")
def latency_of_each(job: Job, stated: Stated) -> str:
    """No longer than the shortest of them by more than their spread."""
    times = [each.dur for rank in job.of(stated.ranks) for each in messages(rank, stated.about)]
    return at_most(stated, median(times))


@no_more_than("exposed_gathers")
def exposed_gathers(rank: PlainRank, about: dict[str, Any]) -> int:
    return rank.within(exposed(rank, gathers(rank)))


def gathers(rank: PlainRank) -> list[Record]:
    pattern = re.compile(r"all_?gather", re.IGNORECASE)
    return [each for each in communication(rank) if pattern.search(each.name)]


@check("exposed_of_each_gather")
def exposed_of_each_gather(job: Job, stated: Stated) -> str:
    return at_most(stated, max(each.dur for rank in job.of(stated.ranks) for each in gathers(rank)))


@check("units_gathered_late")
def units_gathered_late(job: Job, stated: Stated) -> str:
    """FSDP's ranges name them; those of the wrapper are only numbered."""
    names = {each.name for rank in job.ranks.values() for each in rank.events if "FSDP" in each.name}
    lacking = [
        unit
        for unit in stated.value
        if not unit.startswith("unit ") and not any(unit in name for name in names)
    ]
    return f"no range names {lacking}" if lacking else ""


@check("late_gathers_in")
def late_gathers_in(job: Job, stated: Stated) -> str:
    return "" if set(stated.value) <= {"forward", "backward"} else f"{stated.value} are no passes"


@no_more_than("broadcasting_buffers")
def broadcasting_buffers(rank: PlainRank, about: dict[str, Any]) -> int:
    return rank.within([each.window for each in broadcasts(rank)])


def broadcasts(rank: PlainRank) -> list[Record]:
    """Communication launched inside an operator that broadcasts."""
    calls = rank.named("c10d::broadcast_")
    found = []
    for each in communication(rank):
        launch = rank.launch(each)
        if launch and any(call.start <= launch.start < call.end for call in calls):
            found.append(each)
    return found


@check("steps_with_broadcasts")
def steps_with_broadcasts(job: Job, stated: Stated) -> str:
    rank = job.ranks[stated.ranks[0]]
    return close(stated, len({step_of(rank, each) for each in rank.judged(broadcasts(rank))}), 0.0, 0.5)


@check("step_count")
def step_count(job: Job, stated: Stated) -> str:
    return close(stated, len(job.steps), 0.0, 0.0)


def beside_communication(rank: PlainRank) -> list[Record]:
    runs = union(each.window for each in communication(rank))
    return [each for each in rank.kernels if length(overlap(runs, each.window)) == each.dur > 0]


@no_more_than("slowed_beside_communication")
def slowed_beside_communication(rank: PlainRank, about: dict[str, Any]) -> int:
    return rank.within([each.window for each in beside_communication(rank)])


@check("slowed_kernels")
def slowed_kernels(job: Job, stated: Stated) -> str:
    rank = job.ranks[stated.ranks[0]]
    return at_most(stated, len(rank.judged(beside_communication(rank))), 0.0, 0.0)


@check("slowed_by")
def slowed_by(job: Job, stated: Stated) -> str:
    """Kernels of the name that is shown take longer beside communication."""
    rank = job.ranks[stated.ranks[0]]
    beside = beside_communication(rank)
    own = [each for each in beside if each.name == stated.row["name"]]
    alone = [each for each in rank.named(stated.row["name"], rank.kernels) if each not in beside]
    if float(stated.value) < 1.1 or not own or not alone:
        return "no kernels to compare"
    return (
        "" if median(each.dur for each in own) > min(each.dur for each in alone) else "they are as fast alone"
    )


recorded("latest_communication", "most_slowed_rank")
between(0, 100, "on_critical_path", "latency")
between(1, 10_000, "more_units")
