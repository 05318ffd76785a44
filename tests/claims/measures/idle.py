"""Why devices are idle, and where the host is then: gap by gap, as a person would go through them."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from hta_widgets.analysis.core.memoize import memoize_per_rank
from tests.claims.job import HOST, Job, PlainRank, Record, Window, length, overlap, union
from tests.claims.plain_kernels import launch_as
from tests.claims.registry import Stated, check, close, time_of
from tests.verdicts.plain_reader import subtract

STEP = re.compile(r"ProfilerStep#(\d+)$")
COMPILER = re.compile(r"\(dynamo_timed\)$|CompileProgram|/_?(?:dynamo|inductor)/.*compile")
SYNCHRONISING = re.compile(
    r"(?:cuda|hip|cu|musa|hpu)\w*Synchronize|(?:cuda|hip|cu|musa)Memcpy(?!\w*Async)|(?:cuda|hip|musa)Free$"
    r"|(?:AscendCL@)?aclrt(?:Synchronize\w+|Memcpy)$|ur(?:QueueFinish|EventWait)$|ze\w+Synchronize$"
    r"|cnrt(?:QueueSync|SyncDevice|WaitNotifier|Memcpy)$|aten::(?:item|_local_scalar_dense)$"
)
LOADING = re.compile("dataloader.*next", re.IGNORECASE)
QUEUED_NS = 30_000
"""Queued work that starts within this of its launch, or of the work before it, did not wait for anything."""

OPERATORS = {"cpu_op", "operator"}
RUNTIME = {"cuda_runtime", "cuda_driver", "mtia_runtime", "mlu_runtime", "runtime", "xpu_runtime", "hpu_op"}
CALLS = OPERATORS | RUNTIME | {"python_function"}
Thread = tuple[object, object]


class Piece(NamedTuple):
    """Idle time of one cause, before work that is launched on a thread."""

    cause: str
    start: int
    end: int
    thread: Thread | None
    gap: int


def of_threads(rank: PlainRank, wanted: Callable[[Record], object]) -> dict[Thread, list[Window]]:
    """When events of a kind are open, by thread of the host."""
    return {
        thread: union(each.window for each in events if wanted(each))
        for thread, events in rank.all_threads.items()
    }


@memoize_per_rank()
def launching(rank: PlainRank) -> set[Thread]:
    """The threads that launch device work."""
    calls = [rank.launch(work) for work in rank.work]
    return {(call.process, call.thread) for call in calls if call is not None}


@memoize_per_rank()
def pieces(rank: PlainRank) -> list[Piece]:
    """The idle time before the first and between any two pieces of work, by cause."""
    blocked = of_threads(rank, lambda each: each.category in CALLS and SYNCHRONISING.match(each.name))
    loading = of_threads(rank, lambda each: LOADING.search(each.name))
    threads = launching(rank)
    if len(threads) > 1:  # one that has nothing to do waits for the others
        open_ = of_threads(rank, lambda each: each.category in CALLS)
        for doing in (blocked, loading):
            anywhere = union(window for thread in threads for window in doing[thread])
            for thread in threads:
                doing[thread] = union([*doing[thread], *subtract(anywhere, open_[thread])])
    timed = [work for work in rank.work if work.end > work.start]
    first: dict[int, Record] = {}
    for work in sorted(timed, key=lambda work: _called(rank, work)):
        first.setdefault(work.start, work)
    found: list[Piece] = []
    begin = min(each.start for each in rank.events)
    for start, end in rank.busy["any"]:
        if begin < start:
            found += _explained(rank, begin, start, first[start], blocked, loading, not found)
        begin = end
    return found


def _called(rank: PlainRank, work: Record) -> int:
    call = rank.launch(work)
    return 1 << 62 if call is None else call.start


def _explained(
    rank: PlainRank,
    start: int,
    end: int,
    work: Record,
    blocked: dict[Thread, list[Window]],
    loading: dict[Thread, list[Window]],
    is_first: bool,
) -> Iterable[Piece]:
    call = rank.launch(work)
    if call is None:
        yield Piece("unknown", start, end, None, start)
        return
    thread = (call.process, call.thread)
    called = min(max(call.start, start), end)
    returned = min(max(call.end, called), end)
    synchronising = overlap(blocked.get(thread, []), (start, called))
    waiting = subtract(overlap(loading.get(thread, []), (start, called)), synchronising)
    rest = subtract([(start, called)], union([*synchronising, *waiting]))
    for cause, windows in (("host_sync", synchronising), ("data_stall", waiting), ("host_busy", rest)):
        yield from (Piece(cause, *window, thread, start) for window in windows if window[1] > window[0])
    short = end - returned < QUEUED_NS
    arrived = end if short and (returned > start or is_first) else returned
    if called < arrived:
        yield Piece("launch_latency", called, arrived, thread, start)
    if arrived < end:
        yield Piece("kernel_wait" if short else "device_wait", arrived, end, thread, start)


def idle_of(rank: PlainRank, cause: str) -> list[Piece]:
    """The judged idle time of a cause."""
    if cause == "edge":
        first, last = min(each.start for each in rank.events), rank.busy["any"][-1][1]
        outside = [(-(1 << 62), first), (last, 1 << 62)]
        return [
            Piece(cause, *part, None, part[0])
            for window in rank.windows
            for part in overlap(outside, window)
            if part[1] > part[0]
        ]
    return [
        piece._replace(start=start, end=end)
        for piece in pieces(rank)
        if piece.cause == cause
        for start, end in overlap(rank.windows, (piece.start, piece.end))
        if end > start
    ]


def windows_of(found: Iterable[Piece]) -> list[Window]:
    return union((piece.start, piece.end) for piece in found)


def apart(stated: Stated) -> int:
    """How much of the cause the row leaves to start-up and to pauses."""
    claims = json.loads(stated.row["claims"])
    return sum(
        ns
        for claim in claims
        if claim["measure"] == "idle_by_cause" and claim["about"]["cause"] == stated.about["cause"]
        for ns in claim["about"]["apart_ns"].values()
    )


def the_rank(job: Job, stated: Stated) -> PlainRank:
    (number,) = stated.ranks
    return job.ranks[number]


def at_most(stated: Stated, truth: float, least: float = 2_000.0) -> str:
    """What is true, where it is less than what is stated."""
    return close(stated, truth, 0.01, least) if float(stated.value) > truth else ""


@time_of("idle_by_cause")
def idle_by_cause(rank: PlainRank, about: dict[str, Any]) -> int:
    """Idle time of a cause, but for what the row says is start-up or pauses."""
    return length(windows_of(idle_of(rank, about["cause"]))) - about["apart_ns"].get(str(rank.number), 0)


@time_of("late_host")
def late_host(rank: PlainRank, about: dict[str, Any]) -> int:
    return late_for(rank, about["part"])


def late_for(rank: PlainRank, part: str) -> int:
    """The device is idle since the host is late: while it compiles, is interrupted, or at any time."""
    late = windows_of(
        piece for cause in ("host_busy", "host_sync", "launch_latency") for piece in idle_of(rank, cause)
    )
    if part == "blocking":
        return length(late)
    compiling = [each for each in rank.events if COMPILER.search(each.name)]
    calls = union(each.window for each in (interrupted_in(rank) if part == "interrupted" else compiling))
    return sum(length(overlap(late, window)) for window in calls)


def interrupted(rank: PlainRank, thread: list[Record]) -> tuple[list[Record], float]:
    """Operators of 1 ms that take, inner ones aside, ten times as long as the same one of other steps."""
    own = {id(each): each.dur for each in thread if is_operator(each)}
    for each in thread:
        outer = next((one for one in rank.around(each) if is_operator(one)), None)
        if is_operator(each) and outer is not None:
            own[id(outer)] -= each.dur
    in_steps: list[dict[str, list[Record]]] = []
    for step in (each for each in rank.events if STEP.match(each.name) and each.category in HOST):
        inside = [each for each in thread if is_operator(each) and step.start <= each.start < step.end]
        in_steps.append({})
        for each in sorted(inside, key=lambda each: (each.start, -each.end)):
            in_steps[-1].setdefault(each.name, []).append(each)
    alike: dict[tuple[str, int, int, str], list[tuple[int, Record]]] = {}
    for step, calls in enumerate(in_steps):
        for name, named in calls.items():
            for place, each in enumerate(named):
                shapes = json.dumps(each.args.get("Input Dims"))
                alike.setdefault((name, len(named), place, shapes), []).append((step, each))
    compared = [same for same in alike.values() if len(same) >= 4]
    found: list[tuple[int, Record]] = []
    for same in compared:
        usual = sorted(own[id(each)] for _, each in same)[(len(same) - 1) // 4]
        found += [(step, each) for step, each in same if own[id(each)] >= max(1_000_000, 10 * usual)]
    # of one thread all count or none: only if chance explains them, and they are most of its operators' time
    hit = {(step, each.name) for step, each in found}
    by_chance = (
        len({name for _, name in hit}) >= 3
        and 2 * len({step for step, _ in hit}) > len({step for same in compared for step, _ in same})
        and 4 * len(found) <= sum(map(len, compared))
        and 2 * len(found) <= sum(len(in_steps[step][name]) for step, name in hit)
    )
    of_steps = sum(own[id(each)] for calls in in_steps for named in calls.values() for each in named)
    part = sum(own[id(each)] for _, each in found) / max(of_steps, 1)
    return ([each for _, each in found], part) if by_chance else ([], 0.0)


def is_operator(each: Record) -> bool:
    return each.category in OPERATORS and not STEP.match(each.name)


def interrupted_in(rank: PlainRank) -> list[Record]:
    return [call for thread in rank.all_threads.values() for call in interrupted(rank, thread)[0]]


@check("longest_interrupted")
def longest_interrupted(job: Job, stated: Stated) -> str:
    found = interrupted_in(the_rank(job, stated))
    longest = max(each.dur for each in found)
    return "" if any(each.name == stated.value and each.dur == longest for each in found) else "another is"


@check("steps_that_wait")
def steps_that_wait(job: Job, stated: Stated) -> str:
    """Steps in which something is compiled while the device is idle, at most those that compile."""
    rank = the_rank(job, stated)
    compiling = [each.window for each in rank.events if COMPILER.search(each.name)]
    found = [window for window in rank.windows if overlap(union(compiling), window)]
    return "" if 0 < stated.value <= len(found) else f"{len(found)} steps compile"


@check("longest_compiler")
def longest_compiler(job: Job, stated: Stated) -> str:
    rank = the_rank(job, stated)
    found = [each for each in rank.events if COMPILER.search(each.name)]
    longest = max(each.dur for each in found)
    return (
        ""
        if any(each.name == stated.value and each.dur == longest for each in found)
        else "others are longer"
    )


@check("launches_that_block")
def launches_that_block(job: Job, stated: Stated) -> str:
    """Of the launches of kernels of 10 us or more, those that return when the kernel has ended."""
    rank = the_rank(job, stated)
    pairs = [(each, rank.launch(each)) for each in rank.judged(rank.kernels) if each.dur >= 10_000]
    ends = [call.end >= each.end for each, call in pairs if call]
    return close(stated, 100.0 * sum(ends) / len(ends), 0.0, 1.0)


@check("most_idle")
def most_idle(job: Job, stated: Stated) -> str:
    """No rank is idle for longer for this cause."""
    part, cause = (stated.about.get(name) for name in ("part", "cause"))
    times = {
        number: late_for(rank, part) if part else length(windows_of(idle_of(rank, cause)))
        for number, rank in job.ranks.items()
        if rank.work
    }
    most = max(times, key=lambda number: times[number])
    return "" if (most,) == stated.value or (cause and apart(stated)) else f"it is rank {most}"


@time_of("without_work_in")
def without_work_in(rank: PlainRank, about: dict[str, Any]) -> int:
    """The device runs no kernel, but may copy, while the host is in one of these calls."""
    kernels = union(each.window for each in rank.work if each.kind in ("computing", "communicating"))
    calls = union(each.window for each in rank.events if each.name in about["names"])
    left = [piece for window in rank.windows for piece in subtract(overlap(calls, window), kernels)]
    return length(left)


@check("most_without_work_in")
def most_without_work_in(job: Job, stated: Stated) -> str:
    times = {number: without_work_in(rank, stated.about) for number, rank in job.ranks.items()}
    return "" if times[stated.value[0]] == max(times.values()) else f"not the most of {times}"


@check("longest_of_calls")
def longest_of_calls(job: Job, stated: Stated) -> str:
    rank = the_rank(job, stated)
    return close(stated, max(each.dur for each in rank.events if each.name in stated.about["names"]), 0.001)


@check("idle_mostly_on")
def idle_mostly_on(job: Job, stated: Stated) -> str:
    """The other ranks are idle for it for a tenth of the time at most, and these for much each."""
    cause = stated.about["cause"]
    times = {number: length(windows_of(idle_of(rank, cause))) for number, rank in job.ranks.items()}
    here = [times[rank] for rank in stated.value]
    much = 9 * (sum(times.values()) - sum(here)) <= 1.1 * sum(here) and 2.2 * min(here) >= max(here)
    return "" if much or apart(stated) else f"it is {times}"


@check("idle_most_on")
def idle_most_on(job: Job, stated: Stated) -> str:
    """No other rank is idle for it longer."""
    times = {
        number: length(windows_of(idle_of(rank, stated.about["cause"]))) for number, rank in job.ranks.items()
    }
    here = times[stated.value[0]]
    return "" if apart(stated) or here >= 0.99 * max(times.values()) else f"it is {times}"


@check("longest_idle")
def longest_idle(job: Job, stated: Stated) -> str:
    """The longest piece; without start-up and pauses it may be a shorter one."""
    lengths = [
        end - start for start, end in windows_of(idle_of(the_rank(job, stated), stated.about["cause"]))
    ]
    if apart(stated):
        return at_most(stated, max(lengths, default=0))
    return close(stated, max(lengths, default=0), 0.001, 1_000.0) or _is_shown(job, stated)


def _is_shown(job: Job, stated: Stated) -> str:
    """Whether the row's time is a piece of the cause, as long as it says."""
    row = stated.row
    shown = (int(row["start_ns"]), int(row["end_ns"]))
    inside = overlap(windows_of(idle_of(the_rank(job, stated), stated.about["cause"])), shown)
    if length(inside) < 0.99 * (shown[1] - shown[0]) or shown[1] - shown[0] < 0.99 * float(stated.value):
        return f"what is shown is idle for that reason for {length(inside)} of {shown[1] - shown[0]} ns"
    return ""


def _open_on(rank: PlainRank, cause: str, wanted: Callable[[Record], object]) -> float:
    """For how much (%) of the idle time of a cause the thread that launches next has such an event open.

    While it has no call open, any other thread that launches may have one.
    """
    found, open_ = idle_of(rank, cause), of_threads(rank, wanted)
    calls = of_threads(rank, lambda each: each.category in CALLS)
    anywhere = union(window for thread in launching(rank) for window in open_[thread])
    seen = {thread: union([*open_[thread], *subtract(anywhere, calls[thread])]) for thread in launching(rank)}
    inside = sum(
        length(overlap(seen[piece.thread], (piece.start, piece.end)))
        for piece in found
        if piece.thread in seen
    )
    return 100.0 * inside / max(sum(piece.end - piece.start for piece in found), 1)


@check("idle_in_call")
def idle_in_call(job: Job, stated: Stated) -> str:
    """A call of this name is open."""
    share = _open_on(
        the_rank(job, stated), stated.about["cause"], lambda each: each.name == stated.about["call"]
    )
    if apart(stated):
        return "" if share else "no call of this name is open then"
    return close(stated, share, 0.01, 0.5)


@check("idle_in_region")
@check("region_of_idle")
def idle_in_region(job: Job, stated: Stated) -> str:
    """An annotation of this name is open on a thread that launches, nearly all of the time."""
    rank, name = the_rank(job, stated), stated.about.get("region", stated.value)
    opened = (each for thread in launching(rank) for each in rank.all_threads[thread] if each.name == name)
    inside = union(each.window for each in opened)
    idle = windows_of(idle_of(rank, stated.about["cause"]))
    share = 100.0 * sum(length(overlap(idle, window)) for window in inside) / max(length(idle), 1)
    if stated.measure == "region_of_idle" or apart(stated):
        return "" if share >= 89.0 or apart(stated) else f"it is open for {share:.3g} % of the time"
    return close(stated, share, 0.01, 0.5)


@check("idle_in")
@check("most_idle_in")
def idle_in(job: Job, stated: Stated) -> str:
    """A call of this name is open for a tenth of the time; for half of it where it is the only one."""
    share = _open_on(the_rank(job, stated), stated.about["cause"], lambda each: each.name == stated.value)
    least = 0.1 if apart(stated) else 49.9 if stated.measure == "most_idle_in" else 9.9
    return "" if share >= least else f"it is open for {share:.3g} % of the time"


@check("around")
def around(job: Job, stated: Stated) -> str:
    """It is open around a call of that name."""
    rank = the_rank(job, stated)
    outer = rank.named(str(stated.value))
    for call in rank.named(stated.about["call"]):
        if any(each.start <= call.start and call.end <= each.end for each in outer):
            return ""
    return f"no {stated.about['call']} lies in it"


@check("idle_unrecorded")
def idle_unrecorded(job: Job, stated: Stated) -> str:
    """The thread that launches next has no call open, nor an annotation that holds none."""
    rank = the_rank(job, stated)
    share = 100.0 - _open_on(rank, stated.about["cause"], lambda each: tells(rank, each))
    return "" if apart(stated) else close(stated, share, 0.01, 0.5)


def tells(rank: PlainRank, each: Record) -> bool:
    """Whether an event says what a thread does: a call, or an annotation with none inside."""
    if each.category in CALLS:
        return True
    if each.category != "user_annotation" or each.name.startswith("ProfilerStep#"):
        return False
    return bool(LOADING.search(each.name)) or not _holds_call(rank, each)


def _holds_call(rank: PlainRank, outer: Record) -> bool:
    inside = rank.children.get(outer.number, [])
    return any(each.category in OPERATORS | RUNTIME or _holds_call(rank, each) for each in inside)


@check("idle_drained")
def idle_drained(job: Job, stated: Stated) -> str:
    """The gap begins while a thread that launches is in a synchronising call."""
    rank = the_rank(job, stated)
    return _drained(rank, stated, lambda each: bool(SYNCHRONISING.match(each.name)))


@check("drained_by")
def drained_by(job: Job, stated: Stated) -> str:
    """The call synchronises, and is one in which gaps begin."""
    if not SYNCHRONISING.match(str(stated.value)):
        return f"{stated.value} does not synchronise"
    rank = the_rank(job, stated)
    waits = union(each.window for each in rank.named(str(stated.value)))
    begins = [piece.gap for piece in idle_of(rank, stated.about["cause"])]
    return "" if any(overlap(waits, (gap - 1, gap + 1)) for gap in begins) else "no gap begins in it"


def _drained(rank: PlainRank, stated: Stated, wanted: Callable[[Record], bool]) -> str:
    found = idle_of(rank, stated.about["cause"])
    by_thread = of_threads(rank, lambda each: each.category in CALLS and wanted(each))
    blocked = union(window for thread in launching(rank) for window in by_thread[thread])
    after = sum(
        piece.end - piece.start for piece in found if overlap(blocked, (piece.gap - 1, piece.gap + 1))
    )
    share = 100.0 * after / max(sum(piece.end - piece.start for piece in found), 1)
    # a thread without any call open counts as blocked, too, while another one is
    return close(stated, share, 0.02, 1.0) if share > float(stated.value) and not apart(stated) else ""


# Pauses of the host


@memoize_per_rank()
def pauses(rank: PlainRank) -> list[tuple[Window, Record]]:
    """Where no thread that launches has an operator or a call open for a millisecond, and what ends that."""
    ours = [
        each
        for thread in launching(rank)
        for each in rank.all_threads[thread]
        if each.category in OPERATORS | RUNTIME or (each.category != "python_function" and tells(rank, each))
        or (each.category == "python_function" and LOADING.search(each.name))
    ]  # fmt: skip
    recorded = union(each.window for each in ours)
    begins = [
        each.start
        for thread in launching(rank)
        for each in rank.all_threads[thread]
        if each.category == "user_annotation" and each.start < recorded[0][0] < each.end
    ] if recorded else []  # fmt: skip
    found = []
    for (_, start), (end, _) in pairwise([*[(0, begin) for begin in sorted(begins)[:1]], *recorded]):
        if end - start >= 1_000_000:
            ends = [each for each in ours if each.start == end]
            found.append(((start, end), max(ends, key=lambda each: (each.dur, each.category in OPERATORS))))
    return found


def collecting(rank: PlainRank) -> list[Window]:
    """When Python's garbage collector runs on a thread that launches."""
    by_thread = of_threads(rank, lambda each: each.name == "Python GC" and each.category == "python_function")
    return union(window for thread in launching(rank) for window in by_thread[thread])


@time_of("paused")
def paused(rank: PlainRank, about: dict[str, Any]) -> int:
    """The host would be late anyway, pauses, and goes on with one of these calls; or garbage is collected."""
    chosen = [
        window
        for window, call in pauses(rank)
        if call.name in about["before"] and window[1] - window[0] >= about["least_ns"]
    ]
    idle, garbage = windows_of(idle_of(rank, "host_busy")), collecting(rank)
    chosen = union([*chosen, *garbage]) if about["collected"] else subtract(union(chosen), garbage)
    return sum(length(overlap(idle, window)) for window in chosen)


@check("paused_too")
def paused_too(job: Job, stated: Stated) -> str:
    """Pauses of that kind, whatever ends them, cost these ranks about half as much."""
    times = {}
    for number, rank in job.ranks.items():
        before = {call.name for _, call in pauses(rank)} if stated.about["kind"] != "collected" else set()
        about = {"before": before, "collected": stated.about["kind"] == "collected", **stated.about}
        times[number] = paused(rank, about)
    most = times[stated.about["most"]]
    return "" if all(times[rank] >= 0.4 * most for rank in stated.value) else f"it is {times}"


@check("pauses")
def number_of_pauses(job: Job, stated: Stated) -> str:
    """There are no more pieces of idle time of a late host."""
    number = len(windows_of(idle_of(the_rank(job, stated), "host_busy")))
    return (
        "" if 0 < int(stated.value) <= 2 * number + len(pauses(the_rank(job, stated))) else f"only {number}"
    )


@check("longest_pause")
def longest_pause(job: Job, stated: Stated) -> str:
    """The time that is shown is idle of a late host, and as long."""
    return _is_shown(job, Stated(**{**vars(stated), "about": {"cause": "host_busy"}}))


@check("pause_threshold")
def pause_threshold(job: Job, stated: Stated) -> str:
    """Such a pause is there."""
    lengths = [end - start for rank in job.ranks.values() for (start, end), _ in pauses(rank)]
    return "" if max(lengths, default=0) >= int(stated.value) else "no pause is so long"


@check("idle_in_garbage_collection")
def idle_in_garbage_collection(job: Job, stated: Stated) -> str:
    """Python collects garbage for half of the time or more."""
    rank = the_rank(job, stated)
    idle = sum(length(overlap(windows_of(idle_of(rank, "host_busy")), window)) for window in collecting(rank))
    return "" if idle and 50.0 <= float(stated.value) <= 100.0 else f"the device idles {idle} ns then"


@check("most_paused")
@check("paused_in")
@check("ends_pauses")
def of_pauses(job: Job, stated: Stated) -> str:
    """The rank pauses; the call ends a pause, or is open in one."""
    if stated.unit == "ranks":
        rank = job.ranks[stated.value[0]]
        return "" if pauses(rank) or collecting(rank) else "it never pauses"
    found = pauses(the_rank(job, stated))
    if stated.measure == "ends_pauses":
        return "" if any(call.name == stated.value for _, call in found) else "it ends no pause"
    named = the_rank(job, stated).named(str(stated.value))
    within = any(overlap([window], each.window) for window, _ in found for each in named)
    return "" if within or str(stated.value) == "Python GC" else "it is open in no pause"


# Replays of graphs


@check("idle_inside_replays")
@check("idle_between_replays")
def idle_of_replays(job: Job, stated: Stated) -> str:
    """What ends the gap is launched by a graph, and is not the first, or the first, of that replay."""
    rank, share = the_rank(job, stated), 0
    found = idle_of(rank, stated.about["cause"])
    timed = [work for work in rank.work if work.end > work.start]
    timed.sort(key=lambda work: (work.start, _called(rank, work)))
    first: dict[int | None, int] = {}
    for work in rank.work:  # in order of time
        first.setdefault(work.correlation, work.start)
    for piece in found:
        work = timed[bisect_left(timed, piece.end, key=lambda work: work.start)]
        call = rank.launch(work)
        if call is not None and "GraphLaunch" in call.name:
            inside = first[work.correlation] < work.start
            share += (piece.end - piece.start) * (inside == (stated.measure == "idle_inside_replays"))
    whole = sum(piece.end - piece.start for piece in found)
    return "" if apart(stated) else close(stated, 100.0 * share / max(whole, 1), 0.02, 1.0)


# Holes of one length


@check("holes_on")
@check("holes")
@check("hole_length")
def holes(job: Job, stated: Stated) -> str:
    """So many pieces in which queued work does not start are about as long as the median of the long ones."""
    rank = job.ranks[stated.value[0]] if stated.unit == "ranks" else the_rank(job, stated)
    lengths = sorted(end - start for start, end in windows_of(idle_of(rank, "device_wait")))
    long = [each for each in lengths if each >= 300_000]
    if len(long) < 6:
        return f"only {len(long)} are long"
    middle = median(long)
    if stated.measure == "hole_length":
        return close(stated, middle, 0.02)
    equal = [each for each in long if 0.75 * middle <= each <= 1.25 * middle]
    if 3 * sum(equal) < 1.99 * sum(lengths):
        return "most of the time is not in such holes"
    return close(stated, len(equal), 0.0, 0.0) if stated.measure == "holes" else ""


@check("unequal_launches")
@check("shortest_launch")
@check("longest_launch")
def unequal_launches(job: Job, stated: Stated) -> str:
    """Kernels of the name, launched alike, take as short and as long."""
    rank = the_rank(job, stated)
    if stated.measure == "unequal_launches":
        return "" if rank.named(str(stated.value), rank.kernels) else "there is no such kernel"
    wanted = [
        each
        for each in rank.named(stated.about["name"], rank.kernels)
        if [_numbers(text) for text in launch_as(rank, each)[1:]]
        == [_numbers(stated.about[key]) for key in ("grid", "block", "inputs")]
    ]
    times = [each.dur for each in wanted]
    return close(stated, min(times) if stated.measure == "shortest_launch" else max(times), 0.001)


def _numbers(said: Any) -> list[str]:
    return re.findall(r"\d+", str(said or ""))
