"""Ranks that wait for each other, communicate, copy, or run kernels slower than the others.

Who waits how long is recomputed where all ranks take part in every exchange, so that the one with the
shortest kernel is the one that the others wait for. Elsewhere waits pass through other ranks; then bounds are
checked: no rank waits longer than it communicates without computing, and the late ones wait less.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

import pandas as pd

from tests.claims.job import Job, PlainRank, Record, Window, length, overlap, union
from tests.claims.measures.idle import CALLS, of_threads
from tests.claims.registry import Stated, check, close, time_of
from tests.verdicts.plain_reader import subtract

NOISE_NS = 10_000
TO_ONE = re.compile(
    r"broadcast|(?<!all_)(?<!all)reduce(?!_?scatter)|(?<!all_)(?<!all)gather|scatter", re.IGNORECASE
)
IN_PAIRS = re.compile(r"send|recv|p2p", re.IGNORECASE)


# --- what ranks do ---


def communication(rank: PlainRank) -> list[Record]:
    return [each for each in rank.work if each.kind == "communicating"]


def exposed(rank: PlainRank, kernels: list[Record] | None = None) -> list[Window]:
    """When these communicate, default all, and nothing computes."""
    runs = union(each.window for each in (communication(rank) if kernels is None else kernels))
    return subtract(runs, union(each.window for each in rank.kernels))


def copying_alone(rank: PlainRank, copies: list[Record] | None = None) -> list[Window]:
    """When these copies run, default all, and nothing computes or communicates."""
    chosen = [each for each in rank.work if each.kind == "copying"] if copies is None else copies
    others = union(each.window for each in rank.work if each.kind != "copying")
    return subtract(union(each.window for each in chosen), others)


def share_of(job: Job, stated: Stated, function: Callable[[PlainRank], float]) -> float:
    """The value that a claim about time should have, in its unit."""
    ranks = job.of(stated.ranks)
    times = [function(rank) for rank in ranks]
    if stated.unit == "%":
        return 100.0 * sum(times) / max(sum(rank.judged_ns for rank in ranks), 1)
    steps = max(len(job.steps), 1) if stated.unit == "ns/step" else 1
    return sum(times) / max(len(times), 1) / steps


def at_most(stated: Stated, limit: float, rel: float = 0.01, least: float = 0.1) -> str:
    value = float(stated.value)
    far = value < -least or value > limit + max(rel * abs(limit), least)
    return f"{stated.measure} is at most {limit:,.4g} {stated.unit}, not {value:,.4g}" if far else ""


def no_more_than(name: str) -> Callable[[Callable[[PlainRank, dict[str, Any]], int]], object]:
    """Register the time of a rank that a measure is a part of."""

    def register(function: Callable[[PlainRank, dict[str, Any]], int]) -> object:
        @check(name)
        def judge(job: Job, stated: Stated) -> str:
            return at_most(stated, share_of(job, stated, lambda rank: function(rank, stated.about)))

        return judge

    return register


def recorded(*names: str) -> None:
    """Register measures whose ranks are known to stand out by another claim: here, that they have work."""
    for name in names:

        @check(name)
        def judge(job: Job, stated: Stated) -> str:
            lacking = [rank for rank in stated.value if rank not in job.ranks or not job.ranks[rank].work]
            return f"no device work of ranks {lacking}" if lacking else ""


def between(low: float, high: float, *names: str) -> None:
    """Register measures of which only the possible range is recomputed."""
    for name in names:

        @check(name)
        def judge(job: Job, stated: Stated) -> str:
            inside = low - 1e-6 <= float(stated.value) <= high + 1e-6
            return "" if inside else f"{stated.value} is not between {low} and {high}"


# --- who waits for whom ---


class Wait(NamedTuple):
    rank: int
    last: int
    ns: float
    step: int


def waits(job: Job) -> list[Wait] | None:
    """What ranks wait at exchanges, by the durations of their kernels; None unless all take part in each."""
    found: dict[tuple[str, str, int], dict[int, Record]] = defaultdict(dict)
    counts = []
    for rank in job.ranks.values():
        numbers: Counter[tuple[str, str]] = Counter()
        for each in communication(rank):
            kind = str(each.args.get("Collective name") or each.name)
            if IN_PAIRS.search(kind) or (IN_PAIRS.search(each.name) and "Collective name" not in each.args):
                return None
            key = (str(each.args.get("Process Group Name", "")), kind)
            found[*key, numbers[key]][rank.number] = each
            numbers[key] += 1
        counts.append(numbers)
    if len(job.ranks) < 2 or any(each != counts[0] for each in counts):
        return None
    waited = []
    for (_, kind, _), kernels in found.items():
        if max(each.start for each in kernels.values()) >= min(each.end for each in kernels.values()):
            return None  # not the same exchange
        shortest = min(each.dur for each in kernels.values())
        if TO_ONE.search(kind) or max(each.dur for each in kernels.values()) - shortest <= max(
            NOISE_NS, shortest / 100
        ):
            continue
        lasts = [rank for rank, each in kernels.items() if each.dur <= shortest + NOISE_NS]
        lowest = job.ranks[min(kernels)]
        step = step_of(lowest, kernels[lowest.number])
        if step is not None:  # of ranks that are as late, each is to blame for its part
            waited += [
                Wait(rank, last, (each.dur - shortest) / len(lasts), step)
                for rank, each in kernels.items()
                for last in lasts
            ]
    return [each for each in waited if each.ns]


def step_of(rank: PlainRank, event: Record) -> int | None:
    """In which of the judged windows an event begins."""
    for number, (start, end) in enumerate(rank.windows):
        if start <= event.start < end:
            return number
    return None


def caused(waited: list[Wait], ranks: tuple[int, ...]) -> float:
    """How much (%) of all waiting is for these ranks."""
    return (
        100.0
        * sum(each.ns for each in waited if each.last in ranks)
        / max(sum(each.ns for each in waited), 1)
    )


@check("late_ranks")
def late_ranks(job: Job, stated: Stated) -> str:
    """None of the others causes more of the waiting: who only waits is a victim."""
    waited, ranks = waits(job), set(stated.value)
    if not ranks <= set(job.ranks) or ranks == set(job.ranks):
        return f"{sorted(ranks)} are not some of the ranks {sorted(job.ranks)}"
    if waited is None:
        return ""
    of_each = {rank: caused(waited, (rank,)) for rank in job.ranks}
    worst = max((rank for rank in job.ranks if rank not in ranks), key=lambda rank: of_each[rank])
    less = [rank for rank in ranks if of_each[rank] < of_each[worst] - 5.0]
    return f"rank {worst} causes more waiting than ranks {less}" if less else ""


@check("late_by_replay")
def late_by_replay(job: Job, stated: Stated) -> str:
    return late_ranks(job, stated)  # type: ignore[no-any-return]


@check("waiting_ranks")
def waiting_ranks(job: Job, stated: Stated) -> str:
    """They are no late ones, and wait for these."""
    late, waited = tuple(stated.about["late"]), waits(job)
    if set(late) & set(stated.value):
        return f"ranks {late} are late"
    if waited is None:
        return ""
    idle = [
        rank for rank in stated.value if not any(each.rank == rank and each.last in late for each in waited)
    ]
    return f"ranks {idle} wait for none of {late}" if idle else ""


@check("waiting_for")
def waiting_for(job: Job, stated: Stated) -> str:
    """Waiting for the late ranks, at most the communication that nothing hides."""
    late, waited = tuple(stated.about["late"]), waits(job)

    def time(rank: PlainRank) -> float:
        limit = rank.within(exposed(rank))
        own = [each.ns for each in waited or [] if each.rank == rank.number and each.last in late]
        return min(sum(own), limit) if waited is not None else limit

    truth = share_of(job, stated, time)
    return (
        at_most(stated, truth)
        if waited is None
        else close(stated, truth, 0.05, 0.5 if stated.unit == "%" else 2e4)
    )


@check("waiting_for_each_other")
def waiting_for_each_other(job: Job, stated: Stated) -> str:
    """All waiting, at most the communication that nothing hides; the bubble of a pipeline may be left out."""
    waited = waits(job)

    def time(rank: PlainRank) -> float:
        own = sum(each.ns for each in waited or [] if each.rank == rank.number)
        limit = rank.within(exposed(rank))
        return min(own, limit) if waited is not None else limit

    return at_most(stated, share_of(job, stated, time), 0.05, 0.5)


@check("caused_waiting")
def caused_waiting(job: Job, stated: Stated) -> str:
    """How much of the waiting is for these ranks."""
    waited = waits(job)
    if waited is None:
        return at_most(stated, 100.0)
    return close(stated, caused(waited, stated.ranks), 0.0, 5.0)


@check("causes_most_waiting")
def causes_most_waiting(job: Job, stated: Stated) -> str:
    waited = waits(job)
    if waited is None:
        return ""
    most = max(job.ranks, key=lambda rank: caused(waited, (rank,)))
    far = caused(waited, (most,)) - caused(waited, tuple(stated.value)) > 5.0
    return f"rank {most} causes more of the waiting" if far else ""


@check("ranks_with_nearly_all_waiting")
def ranks_with_nearly_all_waiting(job: Job, stated: Stated) -> str:
    waited = waits(job)
    if waited is None:
        return ""
    share = caused(waited, tuple(stated.value))
    return "" if share >= 85 else f"only {share:.1f} % of the waiting is for them"


@check("steps_with_nearly_all_waiting")
def steps_with_nearly_all_waiting(job: Job, stated: Stated) -> str:
    waited = waits(job)
    if not set(stated.value) <= set(job.steps):
        return f"{stated.value} are not among the judged steps"
    lowest = job.ranks[min(job.ranks)]
    if waited is None or len(lowest.windows) != len(lowest.judged_steps):
        return ""
    own = [each for each in waited if each.last in stated.ranks]
    there = sum(each.ns for each in own if lowest.judged_steps[each.step] in stated.value)
    share = 100.0 * there / max(sum(each.ns for each in own), 1)
    return "" if share >= 85 else f"only {share:.1f} % of the waiting is in these steps"


def slowest_by_step(waited: list[Wait]) -> dict[int, int]:
    """The rank that causes more than half of the waiting of a step."""
    steps: dict[int, Counter[int]] = defaultdict(Counter)
    for each in waited:
        steps[each.step][each.last] += each.ns
    most = {step: by_rank.most_common(1)[0] for step, by_rank in steps.items()}
    return {step: rank for step, (rank, ns) in most.items() if 2 * ns > steps[step].total()}


@check("slowest_in_most_waiting")
def slowest_in_most_waiting(job: Job, stated: Stated) -> str:
    waited = waits(job)
    return (
        "" if waited is None or stated.value[0] in slowest_by_step(waited).values() else "never the slowest"
    )


@check("steps_as_slowest")
def steps_as_slowest(job: Job, stated: Stated) -> str:
    waited = waits(job)
    if waited is None:
        return at_most(stated, max(len(job.steps), 1))
    return close(stated, list(slowest_by_step(waited).values()).count(stated.ranks[0]), 0.0, 0.5)


@check("waiting_in_steps_as_slowest")
def waiting_in_steps_as_slowest(job: Job, stated: Stated) -> str:
    waited = waits(job)
    if waited is None:
        return at_most(stated, 100.0)
    slowest = slowest_by_step(waited)
    own = sum(each.ns for each in waited if slowest.get(each.step) == stated.ranks[0])
    return close(stated, 100.0 * own / max(sum(each.ns for each in waited), 1), 0.0, 5.0)


@check("steps_with_exchanges")
def steps_with_exchanges(job: Job, stated: Stated) -> str:
    return at_most(stated, max(len(job.steps), 1), 0.0, 0.5)


@check("waiting_indirectly")
def waiting_indirectly(job: Job, stated: Stated) -> str:
    """They communicate, and are not late themselves."""
    late = [
        rank for rank in stated.value if rank in stated.about["late"] or not communication(job.ranks[rank])
    ]
    return f"ranks {late} do not wait" if late else ""


@check("waited_through")
def waited_through(job: Job, stated: Stated) -> str:
    return waiting_indirectly(job, stated)  # type: ignore[no-any-return]


@check("begins_later")
def begins_later(job: Job, stated: Stated) -> str:
    first = {number: rank.work[0].start for number, rank in job.ranks.items() if rank.work}
    others = [start for rank, start in first.items() if rank not in stated.ranks]
    return close(stated, min(first[rank] for rank in stated.ranks) - median(others), 0.01, 2_000.0)


@check("enters_later")
def enters_later(job: Job, stated: Stated) -> str:
    """By how much the host begins the first judged step later than on the others."""
    first = {
        number: each.start
        for number, rank in job.ranks.items()
        for thread in rank.all_threads.values()
        for each in thread
        if each.name == f"ProfilerStep#{min(rank.judged_steps)}"
    }
    others = [start for rank, start in first.items() if rank not in stated.ranks]
    return close(stated, min(first[rank] for rank in stated.ranks) - median(others), 0.01, 2_000.0)


@check("longer")
def longer(job: Job, stated: Stated) -> str:
    """Beyond the median of the others, on average."""

    def time(rank: PlainRank) -> int:
        if stated.about["activity"] == "idle":
            return rank.judged_ns - rank.within([each.window for each in rank.work])
        alone = stated.about["activity"] == "copying"
        return rank.within(copying_alone(rank) if alone else [each.window for each in rank.kernels])

    times = {number: time(rank) for number, rank in job.ranks.items() if rank.judged_ns}
    others = median(ns for rank, ns in times.items() if rank not in stated.ranks)
    steps = max(len(job.steps), 1) if stated.unit == "ns/step" else 1
    return close(stated, (mean(times[rank] for rank in stated.ranks) - others) / steps, 0.02, 5_000.0)


@no_more_than("transferring_meanwhile")
def transferring_meanwhile(rank: PlainRank, about: dict[str, Any]) -> int:
    return rank.within([each.window for each in communication(rank)])


def documents(job: Job) -> list[dict[str, Any]]:
    """The head of each rank's file."""
    files = [Path(str(job.trace.rank(rank).path)).read_bytes() for rank in job.ranks]
    return [json.loads(gzip.decompress(each) if each[:2] == b"\x1f\x8b" else each) for each in files]


@check("recorded_ranks")
def recorded_ranks(job: Job, stated: Stated) -> str:
    return close(stated, len(job.trace.ranks), 0.0, 0.0)


@check("world_size")
def world_size(job: Job, stated: Stated) -> str:
    """By the files themselves."""
    sizes = {each.get("distributedInfo", {}).get("world_size") for each in documents(job)}
    return "" if stated.value in sizes else f"the files state {sorted(map(str, sizes))}"


# --- the same work on other ranks ---

Launch = tuple[str, str, str]


def launches(rank: PlainRank) -> dict[Launch, list[Record]]:
    """Compute kernels of the judged time, by name, grid and block."""
    found: dict[Launch, list[Record]] = defaultdict(list)
    for each in rank.kernels:
        if step_of(rank, each) is not None:
            found[each.name, str(each.args.get("grid", "")), str(each.args.get("block", ""))].append(each)
    return found


class Equal(NamedTuple):
    own: list[Record]
    usual_ns: float


def equal_work(job: Job, number: int) -> dict[Launch, Equal]:
    """Kernels that others launch as often, with the median of their mean times."""
    of_rank = {rank: launches(plain) for rank, plain in job.ranks.items()}
    found = {}
    for launch, own in of_rank[number].items():
        others = [
            of[launch]
            for rank, of in of_rank.items()
            if rank != number and len(of.get(launch, [])) == len(own)
        ]
        if others:
            found[launch] = Equal(own, median(mean(each.dur for each in other) for other in others))
    return found


def excess(job: Job, number: int) -> dict[Launch, float]:
    """By how much equal kernels take longer than on the others, where that is over 5 %."""
    return {
        launch: sum(each.dur for each in equal.own) - equal.usual_ns * len(equal.own)
        for launch, equal in equal_work(job, number).items()
        if mean(each.dur for each in equal.own) > 1.05 * equal.usual_ns
    }


@check("slower_kernels")
def slower_kernels(job: Job, stated: Stated) -> str:
    truth = share_of(job, stated, lambda rank: sum(excess(job, rank.number).values()))
    return close(stated, truth, 0.03, 0.2 if stated.unit == "%" else 5_000.0)


@check("rank_with_slowest_kernels")
def rank_with_slowest_kernels(job: Job, stated: Stated) -> str:
    lost = {rank: sum(excess(job, rank).values()) for rank in job.ranks}
    most = max(lost, key=lambda rank: lost[rank])
    return "" if lost[stated.value[0]] >= 0.97 * lost[most] else f"rank {most} loses more"


@check("also_slower")
def also_slower(job: Job, stated: Stated) -> str:
    most = sum(excess(job, stated.about["rank"]).values())
    fast = [rank for rank in stated.value if sum(excess(job, rank).values()) < 0.45 * most]
    return f"ranks {fast} lose less than half of it" if fast else ""


@check("slowest_kernel")
def slowest_kernel(job: Job, stated: Stated) -> str:
    lost = excess(job, stated.ranks[0])
    most = max(lost, key=lambda launch: lost[launch])
    own = max(ns for launch, ns in lost.items() if launch[0] == stated.value)
    return "" if own >= 0.97 * lost[most] else f"{most[0]} loses more"


@check("times_as_long")
def times_as_long(job: Job, stated: Stated) -> str:
    lost, equal = excess(job, stated.ranks[0]), equal_work(job, stated.ranks[0])
    most = max(
        (launch for launch in lost if launch[0] == stated.about["name"]), key=lambda launch: lost[launch]
    )
    return close(stated, mean(each.dur for each in equal[most].own) / equal[most].usual_ns, 0.02, 0.01)


@check("slower_kernels_part")
def slower_kernels_part(job: Job, stated: Stated) -> str:
    slow, equal = excess(job, stated.ranks[0]), equal_work(job, stated.ranks[0])
    usual = {launch: each.usual_ns * len(each.own) for launch, each in equal.items()}
    return close(stated, 100.0 * sum(usual[launch] for launch in slow) / sum(usual.values()), 0.02, 0.5)


def all_work(rank: PlainRank) -> int:
    return sum(each.dur for own in launches(rank).values() for each in own)


@check("more_work")
def more_work(job: Job, stated: Stated) -> str:
    """No more than the rank computes beyond the median of the others."""

    def time(rank: PlainRank) -> float:
        return all_work(rank) - median(all_work(other) for other in job.ranks.values() if other is not rank)

    return at_most(stated, share_of(job, stated, time), 0.05, 0.5)


@check("rank_with_more_work")
def rank_with_more_work(job: Job, stated: Stated) -> str:
    own = all_work(job.ranks[stated.value[0]])
    others = [all_work(rank) for number, rank in job.ranks.items() if number not in stated.value]
    return "" if own > 1.02 * median(others) else "it computes no longer than the others"


@check("computes_longer")
def computes_longer(job: Job, stated: Stated) -> str:
    own = all_work(job.ranks[stated.ranks[0]])
    others = median(all_work(rank) for number, rank in job.ranks.items() if number not in stated.ranks)
    return close(stated, 100.0 * (own / others - 1), 0.03, 0.5)


@check("more_launches")
def more_launches(job: Job, stated: Stated) -> str:
    counts = {number: sum(map(len, launches(rank).values())) for number, rank in job.ranks.items()}
    others = median(count for number, count in counts.items() if number not in stated.ranks)
    return close(stated, (counts[stated.ranks[0]] - others) / max(len(job.steps), 1), 0.02, 1.0)


# --- communication ---


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


# --- copies ---


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


# --- pipelines ---


@no_more_than("waiting_in_bubble")
def waiting_in_bubble(rank: PlainRank, about: dict[str, Any]) -> int:
    return rank.within(exposed(rank))


@check("pipeline_stages")
def pipeline_stages(job: Job, stated: Stated) -> str:
    world = max(len(job.trace.ranks), *(rank.number + 1 for rank in job.ranks.values()))
    return "" if 2 <= stated.value <= world else f"{world} ranks have no {stated.value} stages"


@check("schedule")
def schedule(job: Job, stated: Stated) -> str:
    known = {"GPipe", "1F1B", "interleaved 1F1B", "ZB-H1"}
    return "" if set(stated.value) <= known else f"{stated.value} are no schedules"


@check("kernels_of_stage_longer")
def kernels_of_stage_longer(job: Job, stated: Stated) -> str:
    times = {
        number: [each.dur for own in launches(rank).values() for each in own]
        for number, rank in job.ranks.items()
    }
    own = [dur for rank in stated.ranks for dur in times[rank]]
    others = [dur for rank, of in times.items() if rank not in stated.ranks for dur in of]
    return close(stated, mean(own) / mean(others), 0.05, 0.01)


@check("kernels_of_stage_more")
def kernels_of_stage_more(job: Job, stated: Stated) -> str:
    counts = {number: sum(map(len, launches(rank).values())) for number, rank in job.ranks.items()}
    own = mean(counts[rank] for rank in stated.ranks)
    others = mean(count for rank, count in counts.items() if rank not in stated.ranks)
    return close(stated, (own - others) / max(len(job.steps), 1), 0.02, 1.0)


# --- replays: see `savings` for what is checked of them ---


@check("job_saving")
def job_saving(job: Job, stated: Stated) -> str:
    """A part of a step."""
    if stated.unit == "%":
        return at_most(stated, 100.0)
    longest = max(rank.judged_ns for rank in job.ranks.values()) / max(len(job.steps), 1)
    return at_most(stated, longest, 0.05)


@check("job_evidence")
def job_evidence(job: Job, stated: Stated) -> str:
    """What the late ranks are said to do, they do more than the others; how much, for slower kernels."""
    late = next(
        tuple(claim["value"])
        for claim in json.loads(stated.row["claims"])
        if claim["measure"] == "late_by_replay"
    )
    others = [rank for rank in job.ranks if rank not in late]
    if ratio := re.search(r"the same operations take ([\d.]+) times", stated.value):
        lost = [equal_work(job, rank) for rank in late]
        own = sum(each.dur for of in lost for equal in of.values() for each in equal.own)
        usual = sum(equal.usual_ns * len(equal.own) for of in lost for equal in of.values())
        return "" if abs(own / usual - float(ratio[1])) < 0.1 * own / usual else f"{own / usual:.2f} times"
    if "host called" in stated.value:
        idle = {
            number: rank.judged_ns - rank.within([each.window for each in rank.work])
            for number, rank in job.ranks.items()
        }
        less = mean(idle[rank] for rank in late) < min(idle[rank] for rank in others)
        return "they are idle less than the others" if less else ""
    return ""


@check("replayed_rank")
def replayed_rank(job: Job, stated: Stated) -> str:
    """One that the saving says, and that has work."""
    (rank,) = stated.value
    if pd.notna(stated.row["saving_rank"]) and stated.row["saving_rank"] != rank:
        return f"rank {stated.row['saving_rank']} was replayed"
    return "" if job.ranks[rank].work else "it has no device work"


@check("untrusted_replay")
def untrusted_replay(job: Job, stated: Stated) -> str:
    """A share in the reason is a share; a thread is that long in the call that is named, and in none."""
    rank = job.ranks[stated.ranks[0]]
    if "no device work" in stated.value:
        return "it has device work" if rank.work else ""
    named = re.match(r"for ([\d.]+) % of its time the host .* in one call \((.+?)…?\)", stated.value)
    silent = re.search(r"for ([\d.]+) % (?:of its time )?nothing is recorded", stated.value)
    threads = of_threads(rank, lambda each: each.category in CALLS).values()
    calls = [each for each in rank.events if named and named[2] in each.name]
    faults = []
    for whole in _recorded(rank):
        ns = whole[1] - whole[0]
        inside = max((length(overlap([each.window], whole)) for each in calls), default=0)
        without = sum(ns - length(overlap(each, whole)) for each in threads)
        if named and float(named[1]) > 101.0 * inside / ns:
            faults.append(f"no call of {named[2]} is that long")
        elif silent and float(silent[1]) > 101.0 * without / ns:
            faults.append(f"the threads are in no call for {100.0 * without / ns:.3g} %")
        else:
            break
    else:
        return faults[0]
    shares = [float(share) for share in re.findall(r"([\d.]+) %", stated.value)]
    return "" if all(share >= 0 for share in shares) else f"{stated.value} is no reason"


def _recorded(rank: PlainRank) -> list[Window]:
    """From the first event on, or from the first that puts work on the device."""
    launches = [call for work in rank.work if (call := rank.launch(work)) is not None]
    until = max(each.end for each in [*rank.work, *(each for each in rank.events if each.category in CALLS)])
    begins = {min(each.start for each in some) for some in (rank.events, launches) if some}
    return [(begin, until) for begin in sorted(begins)]


recorded("latest_communication", "most_slowed_rank")
between(0, 100, "on_critical_path", "latency", "bubble", "bubble_part")
between(1, 10_000, "microbatches", "pipeline_chunks", "more_units", "changes")
between(1, 1_000, "work_of_stage")
between(0, 10_000, "slowest_stage")
