"""What a job does that has no device."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import Counter
from math import prod
from statistics import median
from typing import Any

from hta_widgets.analysis.core.memoize import memoize_per_rank
from tests.claims.job import Job, PlainRank, Record, Window, length, overlap, union
from tests.claims.measures.idle import LOADING, STEP, at_most, interrupted, is_operator, the_rank
from tests.claims.plain_kernels import LOOK_UPS, dims
from tests.claims.registry import Stated, check, close, time_of
from tests.verdicts.plain_reader import subtract

MAKES_DENSE = ("aten::embedding_dense_backward", "aten::_embedding_bag_dense_backward")
COPIES = ("to", "_to_copy", "copy_")
NODE = "autograd::engine::evaluate_function"
CHECKS = {"aten::isnan", "aten::_is_any_true", "aten::item"}
COLLECTIVE = re.compile(r"(?:gloo|mpi|ucc):")
# What is in these does nothing else: calls of communication, and copies for it.
CALL = re.compile(
    r"(?:gloo|mpi|ucc|c10d|_?c10d_functional|fsdp|FSDP|torch\.distributed\.ddp\.reducer"
    r"|torch::distributed::reducer):|record_param_comms$"
)
COMPILES = re.compile(r"\(dynamo_timed\)$")


@memoize_per_rank()
def main_thread(rank: PlainRank) -> list[Record]:
    """What the thread does that marks the steps, or else is longest in operators."""
    threads = list(rank.all_threads.values())
    marked = [
        thread
        for thread in threads
        if any(STEP.match(each.name) and each.category == "user_annotation" for each in thread)
    ]
    return max(
        marked or threads,
        key=lambda thread: rank.within([each.window for each in thread if is_operator(each)]),
    )


def both(windows: list[Window], others: list[Window]) -> int:
    """How long two unions overlap."""
    return sum(length(overlap(windows, window)) for window in others)


def checks(rank: PlainRank, each: Record) -> bool:
    """It looks for NaN right inside of a node of autograd."""
    node = rank.parents.get(each.number)
    if each.name not in CHECKS or node is None or not node.name.startswith(f"{NODE}: "):
        return False
    return any(other.name == "aten::_is_any_true" for other in rank.children[node.number])


def runs_again(rank: PlainRank, each: Record) -> bool:
    """It is the outermost operator in a node of autograd that makes nodes itself, or what it calls does."""
    around = rank.around(each)
    outer = all(other.name.startswith(NODE) or "::" not in other.name for other in around)
    inside = any(other.name.startswith(NODE) for other in around)
    return is_operator(each) and "::" in each.name and outer and inside and makes_nodes(rank, each)


def makes_nodes(rank: PlainRank, each: Record) -> bool:
    if "Sequence number" in each.args and not int(each.args.get("Fwd thread id", 0)):
        return True
    return any(makes_nodes(rank, other) for other in rank.children[each.number])


@memoize_per_rank()
def tables_of(rank: PlainRank) -> set[Any]:
    """The shapes of tables of which a tenth or less is looked up."""
    looked = [shape for each in rank.events if each.name in LOOK_UPS and (shape := dims(each))]
    return {table for table, indices, *_ in looked if 10 * prod(indices) <= table[0]}


def is_dense(rank: PlainRank, each: Record) -> bool:
    """It makes the gradient of a table of which a tenth or less is looked up, or updates one."""
    tables = tables_of(rank)
    first = (dims(each) or [()])[0]
    if each.name in MAKES_DENSE:
        filled = sum(other.dur for other in within(rank, each) if other.name == "aten::zero_")
        return any(first[-1] == table[1] for table in tables) if first else 2 * filled >= each.dur
    optimizes = any(other.name.startswith("Optimizer.step#") for other in rank.around(each))
    return is_operator(each) and optimizes and first in tables


def within(rank: PlainRank, each: Record) -> list[Record]:
    """All that is called in it."""
    return [found for other in rank.children[each.number] for found in (other, *within(rank, other))]


def takes_doubles(each: Record) -> bool:
    """A tensor of doubles is among its inputs, and it does more than convert it."""
    dims, types = each.args.get("Input Dims", []), each.args.get("Input type", [])
    found = any(kind == "double" and shape for kind, shape in zip(types, dims, strict=False))
    return found and each.name.startswith("aten::") and each.name.rpartition("::")[2] not in COPIES


def converts(each: Record) -> bool:
    """It copies a tensor to one of another type."""
    types = each.args.get("Input type", each.args.get("Input Type", []))
    return each.name == "aten::copy_" and len(types) > 1 and types[0] != types[1]


@memoize_per_rank()
def parts(rank: PlainRank) -> dict[str, list[Window]]:
    """When the thread of the steps loads data, compiles, is in operators, or is in none."""
    thread = main_thread(rank)
    loading = union(each.window for each in thread if LOADING.search(each.name))
    compiling = subtract(union(each.window for each in thread if COMPILES.search(each.name)), loading)
    calls = union(each.window for each in thread if CALL.match(each.name))
    calls = subtract(calls, union([*loading, *compiling]))
    apart = union([*loading, *compiling, *calls])
    operators = subtract(union(each.window for each in thread if is_operator(each)), apart)
    silent = subtract(union(rank.windows), union([*apart, *operators]))
    threads = rank.all_threads.values()
    others = union(
        each.window for other in threads if other is not thread for each in other if is_operator(each)
    )
    events = rank.events
    collectives = union(each.window for each in events if COLLECTIVE.match(each.name))
    optimizer = union(each.window for each in thread if each.name.startswith("Optimizer.step#"))
    return {
        "loading": loading,
        "compiling": compiling,
        "calls": calls,
        "operators": operators,
        "silent": silent,
        "elsewhere": others,
        "collecting": collectives,
        "optimizer": optimizer,
        **{
            part: [
                window for each in union(each.window for each in calls) for window in overlap(operators, each)
            ]
            for part, calls in called(rank).items()
        },
    }


@memoize_per_rank()
def called(rank: PlainRank) -> dict[str, list[Record]]:
    """The calls of the thread of the steps that rules are about."""
    thread = main_thread(rank)
    return {
        "growing": growing(thread),
        "converting": [each for each in thread if converts(each)],
        "checking": [each for each in thread if checks(rank, each)],
        "dense": [each for each in thread if is_dense(rank, each)],
        "doubles": [each for each in thread if takes_doubles(each)],
        "recomputed": [each for each in thread if runs_again(rank, each)],
        "stalled": stalled(rank, thread),
    }


def stalled(rank: PlainRank, thread: list[Record]) -> list[Record]:
    """All of `interrupted`, if they are most of the time of the thread's operators."""
    found, part = interrupted(rank, thread)
    return found if 10 * part >= 6 else []


@check("computes_between_collectives")
@check("host_time")
def host_time(job: Job, stated: Stated) -> str:
    """A part of the time of the thread of the steps, without any device work.

    Waiting for collectives is a part of the silence in which one runs; what is outside is no more than the
    silence, and no less than what of it no other thread is in an operator or a collective.
    """
    ranks = job.of(stated.ranks)
    if any(rank.work for rank in job.ranks.values()):
        return "there is device work"
    part, low, high = stated.about["part"], 0.0, 0.0
    waiting = (
        waiting_for_last(job)
        if part.startswith("waiting") or "is not part of it" in stated.row["text"]
        else []
    )
    if part == "waiting_for_late":
        late = next(claim for claim in json.loads(stated.row["claims"]) if claim["measure"] == "joins_last")
        waiting = [each for each in waiting if each[0] in late["value"]]
    before = {
        rank.number: union(window for _, waits in waiting for window in waits[rank.number]) for rank in ranks
    }
    for rank in ranks:
        found = parts(rank)
        silent = rank.within(found["silent"])
        if part in ("loading", "compiling", "operators", "optimizer", *called(rank)):
            time = rank.within(found[part]) / (2 if part == "doubles" else 1)
            low, high = low + time, high + time
        elif part == "outside":
            busy = union([*found["elsewhere"], *found["collecting"]])
            low, high = low + rank.within(subtract(found["silent"], busy)), high + silent
        elif part == "elsewhere":
            low += both(subtract(found["silent"], found["collecting"]), found["elsewhere"])
            high += both(found["silent"], found["elsewhere"])
        elif part == "collectives":
            calls = rank.within(found["calls"])
            waits = before[rank.number]
            low += calls - both(found["calls"], waits)
            high += calls + both(found["collecting"], subtract(found["silent"], waits))
        else:
            high += length(before[rank.number])
    value, whole = float(stated.value), sum(rank.judged_ns for rank in ranks)
    if stated.unit == "%":
        value = value / 100.0 * whole
    else:
        value *= len(ranks) * (max(len(job.steps), 1) if stated.unit == "ns/step" else 1)
    if 0.99 * low - 1e-3 * whole <= value <= 1.01 * high + 1e-3 * whole:
        return ""
    return f"it is between {low} and {high} of {whole} ns"


@check("operator_time")
def operator_time(job: Job, stated: Stated) -> str:
    """Operators of a name, those inside them aside."""
    own = sum(own_times(rank).get(stated.about["name"], 0) for rank in job.of(stated.ranks))
    whole = sum(rank.judged_ns for rank in job.of(stated.ranks))
    return close(stated, 100.0 * own / whole, 0.01, 0.2)


@memoize_per_rank()
def own_times(rank: PlainRank) -> dict[str, int]:
    """By name of the operators of the thread of the steps, how long they are open, inner ones aside."""
    found: dict[str, int] = {}
    found_parts = parts(rank)
    apart = union([*found_parts["loading"], *found_parts["compiling"], *found_parts["calls"]])

    def own(each: Record) -> int:
        judged = [part for window in rank.windows for part in overlap([each.window], window)]
        return length(subtract(judged, apart))

    for each in main_thread(rank):
        if is_operator(each):
            found[each.name] = found.get(each.name, 0) + own(each)
            outer = next((one for one in rank.around(each) if is_operator(one)), None)
            if outer is not None:
                found[outer.name] = found.get(outer.name, 0) - own(each)
    return found


@check("longest_operator")
def longest_operator(job: Job, stated: Stated) -> str:
    """The first, second or third by own time."""
    times: dict[str, int] = {}
    for rank in job.of(stated.ranks):
        for name, time in own_times(rank).items():
            times[name] = times.get(name, 0) + time
    longest = sorted(times, key=lambda name: -times[name])
    nth = longest[stated.about["nth"]]
    return "" if times.get(stated.value, 0) >= 0.99 * times[nth] else f"it is {nth}"


def regions(rank: PlainRank) -> dict[str, int]:
    """Annotations of the thread of the steps that lie in no other, by name, and how long they are open."""
    found: dict[str, int] = {}
    for each in main_thread(rank):
        if is_region(each) and not any(map(is_region, rank.around(each))):
            found[each.name] = found.get(each.name, 0) + rank.within([each.window])
    return found


def is_region(each: Record) -> bool:
    return each.category == "user_annotation" and not STEP.match(each.name)


@time_of("region_time")
def region_time(rank: PlainRank, about: dict[str, Any]) -> int:
    """Outermost annotations of a name."""
    return regions(rank).get(about["name"], 0)


@check("longest_region")
def longest_region(job: Job, stated: Stated) -> str:
    """The first, second or third by time."""
    times = Counter[str]()
    for rank in job.of(stated.ranks):
        times.update(regions(rank))
    nth = sorted(times.values(), reverse=True)[stated.about["nth"]]
    return "" if times[str(stated.value)] >= 0.99 * nth else f"the times are {times}"


@time_of("collectives_open")
def collectives_open(rank: PlainRank, about: dict[str, Any]) -> int:
    """A collective of the host is open on any thread."""
    return rank.within([each.window for each in rank.events if COLLECTIVE.match(each.name)])


@check("recorded_operators")
def recorded_operators(job: Job, stated: Stated) -> str:
    """Of all ranks, and no device works."""
    if any(rank.work for rank in job.ranks.values()):
        return "there is device work"
    number = sum(is_operator(each) for rank in job.of(stated.ranks) for each in rank.events)
    return close(stated, number, 0.0, 0.0)


@check("device_shown_by_name")
@check("device_shown_by_reads")
def device_shown_by_name(job: Job, stated: Stated) -> str:
    """There are such events, and no device works; reading values takes long."""
    rank = the_rank(job, stated)
    found = [each.dur for each in rank.events if each.name == stated.value]
    if rank.work or not found:
        return "there is device work" if rank.work else "there is no such event"
    if stated.measure == "device_shown_by_reads":
        return "" if max(found) > 20_000 else "it takes no time"
    return "" if re.search("nccl|rccl|xccl|hccl|mccl|mps|npu", str(stated.value)) else "it is of no device"


@check("device_shown_by_device")
def device_shown_by_device(job: Job, stated: Stated) -> str:
    """The file lists such a device."""
    (rank,) = stated.ranks
    devices = job.headers[rank]["deviceProperties"]
    return "" if stated.value in [each["name"] for each in devices] else f"they are {devices}"


def short_in(rank: PlainRank) -> list[int]:
    """What each operator of the thread of the steps takes, inner ones aside, where that is less than 5 us."""
    thread = rank.judged(main_thread(rank))
    own = {id(each): each.dur for each in thread if is_operator(each)}
    for each in thread:
        outer = next((one for one in rank.around(each) if is_operator(one)), None)
        if is_operator(each) and outer is not None and id(outer) in own:
            own[id(outer)] -= each.dur
    return [ns for ns in own.values() if 0 < ns < 5_000]


@check("short_operators")
def short_operators(job: Job, stated: Stated) -> str:
    """How many there are, for each rank and step."""
    ranks = job.of(stated.ranks)
    per = len(ranks) * max(len(job.steps), 1) if stated.about["per_step"] else 1
    return close(stated, sum(len(short_in(rank)) for rank in ranks) / per, 0.05, 1.0)


@time_of("in_short_operators", 0.02)
def in_short_operators(rank: PlainRank, about: dict[str, Any]) -> int:
    return sum(short_in(rank))


@check("short_operator")
def short_operator(job: Job, stated: Stated) -> str:
    return close(stated, 5_000, 0.0)


@check("host_stands_out")
def host_stands_out(job: Job, stated: Stated) -> str:
    """A rank of the job, which has others."""
    return "" if len(job.ranks) > 1 and set(stated.value) <= set(job.ranks) else "there is no such rank"


@check("joins_last")
def joins_last(job: Job, stated: Stated) -> str:
    """The others wait longer for each of these ranks than for any other."""
    caused = caused_waiting(job)
    least = min(caused.get(rank, 0) for rank in stated.value)
    most = max((ns for rank, ns in caused.items() if rank not in stated.value), default=0)
    return "" if least and least >= most else f"the ranks cause {caused}"


@check("host_causes_most_waiting")
def host_causes_most_waiting(job: Job, stated: Stated) -> str:
    """No other rank is waited for longer."""
    caused = caused_waiting(job)
    most = max(caused.values(), default=0)
    return "" if most and caused[next(iter(stated.value))] >= 0.95 * most else f"the ranks cause {caused}"


@check("host_caused_waiting")
def host_caused_waiting(job: Job, stated: Stated) -> str:
    """How much of the waiting is for a rank."""
    caused = caused_waiting(job)
    return close(stated, 100.0 * caused[stated.ranks[0]] / max(sum(caused.values()), 1), 0.05, 2.0)


@check("host_time_beyond_others")
def host_time_beyond_others(job: Job, stated: Stated) -> str:
    """How much longer the thread is in a part than on the other ranks, on average.

    What is outside is no more than the silence, and no less than what of it no collective runs in.
    """
    part = stated.about["part"]
    steps = len(job.steps) if stated.unit == "ns/step" else 1
    found = {number: parts(rank) for number, rank in job.ranks.items()}
    most = {
        number: job.ranks[number].within(each[part.replace("outside", "silent")])
        for number, each in found.items()
    }
    least = most
    if part == "outside":
        least = {
            number: job.ranks[number].within(subtract(each["silent"], each["collecting"]))
            for number, each in found.items()
        }
    (late,) = stated.ranks
    others = [number for number in found if number != late]
    low = (least[late] - sum(most[other] for other in others) / len(others)) / steps
    high = (most[late] - sum(least[other] for other in others) / len(others)) / steps
    spread = 0.02 * most[late] + 0.05 * abs(high)
    return "" if low - spread <= float(stated.value) <= high + spread else f"it is {low} to {high}"


@check("longest_collective")
def longest_collective(job: Job, stated: Stated) -> str:
    """No other collectives, sends or receives take longer in sum, inner ones and waiting for a rank aside."""
    times: dict[str, int] = {}
    waiting = waiting_for_last(job) if "is not part of it" in stated.row["text"] else []
    for rank in job.of(stated.ranks):
        apart = union(window for _, waits in waiting for window in waits[rank.number])
        judged = subtract(union(rank.windows), apart)
        for thread in exchanges(rank):
            for each in thread:
                inner = [other.window for other in thread if is_inside(other, each)]
                own = subtract([each.window], union(inner))
                times[each.name] = times.get(each.name, 0) + sum(
                    length(overlap(own, window)) for window in judged
                )
    most = max(times.values(), default=0)
    return "" if most and times.get(str(stated.value), 0) >= 0.95 * most else f"the times are {times}"


def exchanges(rank: PlainRank) -> list[list[Record]]:
    """The collectives, sends and receives, by thread."""
    threads: dict[Any, list[Record]] = {}
    for each in rank.events:
        if COLLECTIVE.match(each.name):
            threads.setdefault((each.process, each.thread), []).append(each)
    return list(threads.values())


def is_inside(inner: Record, outer: Record) -> bool:
    """Of equal times the first is the outer one."""
    if inner is outer or inner.start < outer.start or inner.end > outer.end:
        return False
    return inner.window != outer.window or inner.number > outer.number


@memoize_per_rank()
def waiting_for_last(job: Job) -> list[tuple[int, dict[int, list[Window]]]]:
    """For each collective the rank that begins it last, and when each rank waits for that in no operator.

    No rank waits longer than it is in the collective beyond the rank that is in it for the shortest time.
    Empty where ranks are in other collectives.
    """
    ranks = list(job.ranks.values())
    of_rank = [
        sorted((each for thread in exchanges(rank) for each in thread), key=lambda each: each.start)
        for rank in ranks
    ]
    if len(ranks) < 2 or len({tuple(each.name for each in found) for found in of_rank}) > 1:
        return []
    idle = {rank.number: quiet(rank) for rank in ranks}
    found = []
    for same in zip(*of_rank, strict=True):
        if ":send" in same[0].name or ":recv" in same[0].name:
            continue
        last, joins = max(zip(ranks, same, strict=True), key=lambda pair: pair[1].start)
        shortest = min(each.dur for each in same)
        waits = {
            rank.number: overlap(
                idle[rank.number],
                (each.start, max(each.start, min(joins.start, each.end - shortest))),
            )
            for rank, each in zip(ranks, same, strict=True)
        }
        found.append((last.number, waits))
    return found


@memoize_per_rank()
def quiet(rank: PlainRank) -> list[Window]:
    """When the thread of the steps is in no operator but collectives, and loads nothing."""
    thread = main_thread(rank)
    working = [each.window for each in thread if is_operator(each) and not COLLECTIVE.match(each.name)]
    loading = [each.window for each in thread if LOADING.search(each.name)]
    return subtract(union(rank.windows), union([*working, *loading]))


def caused_waiting(job: Job) -> dict[int, int]:
    """By rank, how long all ranks wait for it."""
    caused = dict.fromkeys(job.ranks, 0)
    for last, waits in waiting_for_last(job):
        caused[last] += sum(length(windows) for windows in waits.values())
    return caused


def begun(rank: PlainRank, name: str) -> list[int]:
    """When calls of this name begin in the judged time, on any thread of the host."""
    return sorted(
        each.start
        for each in rank.named(name)
        if each.category in ("cpu_op", "user_annotation")
        and overlap(rank.windows, (each.start, each.start + 1))
    )


@check("forward_passes")
@check("reductions")
@check("reductions_once")
def reductions(job: Job, stated: Stated) -> str:
    """Forward passes of DDP and reductions of gradients in a step; each pass is followed by some."""
    rank, steps = the_rank(job, stated), max(len(job.steps), 1)
    passes, calls = begun(rank, "DistributedDataParallel.forward"), begun(rank, "c10d::allreduce_")
    for start, end in zip(passes, [*passes[1:], 1 << 62], strict=True):
        if not any(start <= call < end for call in calls):
            return f"nothing is reduced after the pass at {start}"
    per_step = {"forward_passes": len(passes), "reductions": len(calls)}.get(stated.measure)
    expected = len(calls) / len(passes) if per_step is None else per_step / steps
    return close(stated, expected, 0.0, 1.0)


@check("longest_in_operators")
def longest_in_operators(job: Job, stated: Stated) -> str:
    """No other rank's thread is longer in operators."""
    times = {number: rank.within(parts(rank)["operators"]) for number, rank in job.ranks.items()}
    return "" if times[next(iter(stated.value))] == max(times.values()) else f"the times are {times}"


@check("region_of_one_rank")
def region_of_one_rank(job: Job, stated: Stated) -> str:
    """One rank runs a region of this name, and no other."""
    running = {
        rank.number for rank in job.ranks.values() if any(each.name == stated.value for each in rank.events)
    }
    return "" if running == {*stated.ranks} else f"ranks {running} run it"


@check("operator_beyond_others")
@check("operator_time_beyond_others")
def operator_beyond_others(job: Job, stated: Stated) -> str:
    """How much longer the thread is in operators of a name than on the other ranks, in the median."""
    name = str(stated.about.get("name", stated.value))
    times = {number: own_times(rank).get(name, 0) for number, rank in job.ranks.items()}
    more = times.pop(stated.ranks[0]) - median(times.values())
    if stated.unit == "name":
        return "" if more > 0 else "it takes no longer"
    return close(stated, more / (max(len(job.steps), 1) if stated.unit == "ns/step" else 1), 0.05)


def growing(thread: list[Record]) -> list[Record]:
    """Calls that join something to a tensor ten times as large, and are links of a chain of these."""
    joins = []
    for each in sorted(thread, key=lambda each: each.start):
        shapes = each.args.get("Input Dims", [[]])[0] if each.name == "aten::cat" else []
        sizes = [prod(shape) for shape in shapes]
        if len(sizes) > 1 and 0 < 10 * sum(sizes[1:]) <= sizes[0]:
            joins.append((each, sizes[0], sum(sizes)))
    links = [
        (each, first)
        for at, (each, first, size) in enumerate(joins)
        if any(other == size for _, other, _ in joins[at + 1 :])
        or any(other == first for _, _, other in joins[:at])
    ]
    return [each for each, _ in links] if len({first for _, first in links}) > 2 else []


@check("called_most")
def called_most(job: Job, stated: Stated) -> str:
    """Of the calls that a part of the time is made of, those of this name take longest."""
    rank, times = the_rank(job, stated), Counter[str]()
    for each in called(rank)[stated.about["part"]]:
        times[each.name] += each.dur
    most = max(times.values(), default=0)
    return "" if 0 < most == times[stated.value] else f"{times} are longest"


@check("longest_elsewhere")
def longest_elsewhere(job: Job, stated: Stated) -> str:
    """Of the operators of other threads, the one that is open longest meanwhile, those inside it aside."""
    rank = the_rank(job, stated)
    found = parts(rank)
    time, own = subtract(found["silent"], found["collecting"]), Counter[str]()
    for thread in rank.all_threads.values():
        if thread is main_thread(rank):
            continue
        inside = {each.number: both([each.window], time) for each in thread if is_operator(each)}
        for each in thread:
            if each.number in inside:
                within = [other for other in rank.children[each.number] if other.number in inside]
                own[each.name] += inside[each.number] - sum(inside[other.number] for other in within)
    most = max(own.values(), default=0)
    return "" if own[stated.value] >= 0.9 * most else f"{own.most_common(1)} is longer"


@check("steps_that_compile")
def steps_that_compile(job: Job, stated: Stated) -> str:
    """Steps in which the thread is in torch.compile."""
    (rank,) = job.of(stated.ranks)
    compiles = parts(rank)["compiling"]
    return close(stated, sum(bool(overlap(compiles, window)) for window in rank.windows), 0.0, 0.0)


@check("longest_outside")
def longest_outside(job: Job, stated: Stated) -> str:
    """No silence is longer, and it is no shorter than the mean of all."""
    silent = [end - start for start, end in parts(the_rank(job, stated))["silent"]]
    return at_most(stated, max(silent, default=0))


def lost_between(job: Job, stated: Stated) -> dict[int, tuple[int, int]]:
    """By step, how much of a part of the time of its thread lies in it: at least, and at most."""
    rank = the_rank(job, stated)
    found = parts(rank)
    least = most = found["silent" if stated.about["part"] == "outside" else stated.about["part"]]
    if stated.about["part"] == "outside":
        least = subtract(most, union([*found["elsewhere"], *found["collecting"]]))
    steps = {
        int(match[1]): each.window
        for each in main_thread(rank)
        if (match := STEP.match(each.name)) and each.category == "user_annotation"
    }
    return {
        step: (length(overlap(least, window)), length(overlap(most, window)))
        for step, window in steps.items()
        if step in rank.judged_steps
    }


@check("lost_in_steps")
def lost_in_steps(job: Job, stated: Stated) -> str:
    """What of it lies in these steps; a step goes on until the next one begins."""
    by_step = lost_between(job, stated)
    inside = [by_step[step] for step in stated.about["steps"]]
    least = 100.0 * sum(low for low, _ in inside) / sum(high for _, high in by_step.values())
    most = 100.0 * sum(high for _, high in inside) / max(sum(low for low, _ in by_step.values()), 1)
    return "" if least - 2.0 <= float(stated.value) <= most + 2.0 else f"it is {least:.1f} to {most:.1f} %"


@check("steps_with_most_lost")
def steps_with_most_lost(job: Job, stated: Stated) -> str:
    """In no other step more of it lies."""
    by_step = lost_between(job, stated)
    others = [low for step, (low, _) in by_step.items() if step not in stated.value]
    least = min(by_step[step][1] for step in stated.value)
    return "" if least >= 0.98 * max(others, default=0) else f"by step it is {by_step}"


@check("outside_in")
def outside_in(job: Job, stated: Stated) -> str:
    """Such a call is open where the thread is in no operator."""
    _, inclusive = outside_in_call_of(job, stated, str(stated.value))
    return "" if inclusive > 0 else "it is not open then"


@check("outside_in_call")
def outside_in_call(job: Job, stated: Stated) -> str:
    """How much of the silence it is open for: all of it, or what no call inside it is open for."""
    least, most = outside_in_call_of(job, stated, str(stated.about["call"]))
    return "" if least - 3.0 <= float(stated.value) <= most + 3.0 else f"it is {least:.1f} to {most:.1f} %"


def outside_in_call_of(job: Job, stated: Stated, name: str) -> tuple[float, float]:
    rank = the_rank(job, stated)
    found, thread = parts(rank), sorted(main_thread(rank), key=lambda each: each.start)
    silent = found["silent"]
    certain = subtract(silent, union([*found["elsewhere"], *found["collecting"]]))
    calls = union(each.window for each in thread if each.name == name)
    starts = [each.start for each in thread]
    inner = [
        each.window
        for start, end in calls
        for each in thread[bisect_left(starts, start) : bisect_left(starts, end)]
        if each.name != name and each.end <= end and each.dur < end - start
    ]
    inclusive = both(silent, calls)
    own = inclusive - both(silent, union(inner))
    return 100.0 * own / max(rank.within(silent), 1), 100.0 * inclusive / max(rank.within(certain), 1)


@check("updates")
def updates(job: Job, stated: Stated) -> str:
    """Operators that begin in steps of the optimizer, for each step."""
    rank = the_rank(job, stated)
    optimizer = parts(rank)["optimizer"]
    during = [part for window in rank.windows for part in overlap(optimizer, window)]
    number = sum(
        is_operator(each) and bool(overlap(during, (each.start, each.start + 1)))
        for each in main_thread(rank)
    )
    return close(stated, number / max(len(job.steps), 1), 0.05, 1.0)


# A full launch queue, and several devices
