"""What a recording holds, and how long its steps take."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from math import prod
from statistics import median
from typing import Any

from hta_widgets.kernel_names import short_kernel_name
from tests.claims.job import Job, PlainRank, Record, Window, length, overlap, union
from tests.claims.measures.copies import slope
from tests.claims.measures.host import STEP, is_operator, main_thread, parts
from tests.claims.measures.idle import RUNTIME, SYNCHRONISING, at_most, the_rank
from tests.claims.measures.kernels import stated_by
from tests.claims.measures.serving import labelled
from tests.claims.plain_kernels import dims, operator_of, shapes
from tests.claims.registry import Stated, check, close, time_of
from tests.verdicts.plain_reader import subtract

PRODUCT = re.compile(r"aten::(addmm|mm|bmm|baddbmm|convolution|_?scaled_dot_product)")
LAUNCH = re.compile(r"(?:cuda|hip|cu|musa)\w*Launch\w*")


@time_of("not_computing")
def not_computing(rank: PlainRank, about: dict[str, Any]) -> int:
    """No compute kernel runs."""
    return rank.judged_ns - rank.within([each.window for each in rank.kernels])


def kernel_times(job: Job, ranks: tuple[int, ...]) -> dict[str, int]:
    """By short name of compute kernels, what those take that run in the judged time."""
    found: dict[str, int] = {}
    for rank in job.of(ranks):
        for each in rank.judged(rank.kernels):
            name = short_kernel_name(each.name)
            found[name] = found.get(name, 0) + each.dur
    return found


@check("kernel_time")
def kernel_time(job: Job, stated: Stated) -> str:
    """Kernels of a name, of the time of all."""
    times = kernel_times(job, stated.ranks)
    share = 100.0 * times.get(stated.about["short_name"], 0) / max(sum(times.values()), 1)
    # a kernel belongs to the step that launches it, also where it runs in another one
    return close(stated, share, 0.02, 1.0)


@check("kernel_with_most_time")
def kernel_with_most_time(job: Job, stated: Stated) -> str:
    """The first, second or third of them by time."""
    times = kernel_times(job, stated.ranks)
    longest = sorted(times, key=lambda name: -times[name])
    nth = longest[stated.about["nth"]]
    return "" if times.get(str(stated.value), 0) >= 0.95 * times[nth] else f"it is {nth}"


@check("longest_suspect")
@check("stream_of_suspect")
@check("rank_of_suspect")
@check("suspect")
@check("why_suspect")
def suspect(job: Job, stated: Stated) -> str:
    """Work of this name takes as long, on this stream of this rank; why it is suspected is said of it."""
    if stated.measure == "why_suspect":
        return "" if stated.value else "no reason is given"
    name = stated.about.get("name", stated.value)
    found = [
        (rank.number, work)
        for rank in job.ranks.values()
        for work in rank.work
        if work.name == name and (not stated.ranks or rank.number in stated.ranks)
    ]
    if stated.measure == "rank_of_suspect":
        return "" if stated.value[0] in {number for number, _ in found} else "it has no such work"
    if stated.measure == "stream_of_suspect":
        return "" if str(stated.value) in {str(work.stream) for _, work in found} else "it has no such work"
    if stated.measure == "longest_suspect":
        return at_most(stated, sum(work.dur for _, work in found))
    return "" if found else "there is no such work"


@check("without_launch")
def without_launch(job: Job, stated: Stated) -> str:
    """Of the judged device work, by count, no call is recorded that launched it."""
    judged = [(rank, work) for rank in job.of(stated.ranks) for work in rank.judged(rank.work)]
    missing = sum(rank.launch(work) is None for rank, work in judged)
    return close(stated, 100.0 * missing / max(len(judged), 1), 0.05, 2.0)


@check("several_jobs")
def several_jobs(job: Job, stated: Stated) -> str:
    """There are several ranks."""
    return "" if len(job.trace.ranks) > 1 else "there is one rank"


@check("least_kept")
def least_kept(job: Job, stated: Stated) -> str:
    """Operators have numbers: of those from the first to the last so many are in the file."""
    shares = []
    for rank in job.of(stated.ranks):
        numbers = {
            int(each.args["Record function id"])
            for each in rank.events
            if int(each.args.get("Record function id", 0) or 0) > 0
        } or {
            int(each.args["External id"])
            for each in rank.events
            if each.category in ("cpu_op", "operator") and int(each.args.get("External id", 0) or 0) > 0
        }
        if numbers:
            shares.append(100.0 * len(numbers) / (max(numbers) - min(numbers) + 1))
    return close(stated, min(shares, default=100.0), 0.1, 0.5)


@check("device_events")
def device_events(job: Job, stated: Stated) -> str:
    """No rank has more pieces of device work."""
    return close(stated, max((len(rank.work) for rank in job.ranks.values()), default=0), 0.0, 0.0)


@check("launches")
@check("launches_without_work")
def launches(job: Job, stated: Stated) -> str:
    """Calls that launch kernels, and those without device work."""
    number = 0
    for rank in job.of(stated.ranks):
        answered = {work.correlation for work in rank.work}
        calls = [each for each in rank.events if each.category in RUNTIME and LAUNCH.match(each.name)]
        number += sum(stated.measure == "launches" or call.correlation not in answered for call in calls)
    return close(stated, number, 0.02, 2.0)


@check("unread_files")
def unread_files(job: Job, stated: Stated) -> str:
    """Files for which a reason is given."""
    return close(stated, len(job.trace.failed), 0.0, 0.0)


@check("read_ranks")
def read_ranks(job: Job, stated: Stated) -> str:
    """The ranks of the files that were read."""
    value = stated.value if stated.unit == "ranks" else int(stated.value)
    truth = tuple(job.trace.ranks) if stated.unit == "ranks" else len(job.trace.ranks)
    return "" if value == truth else f"they are {truth}"


# Start-up, and what ran before the recording


@time_of("start_up_at_most")
def start_up_at_most(rank: PlainRank, about: dict[str, Any]) -> int:
    """Nothing runs."""
    return rank.judged_ns - rank.within([each.window for each in rank.work])


@check("start_up")
def start_up(job: Job, stated: Stated) -> str:
    """Idle time, and no more than all of it."""
    ranks = job.of(stated.ranks)
    if stated.about.get("whole"):  # before what is judged
        spans = [(rank, (min(begun(rank)), rank.windows[0][0])) for rank in ranks]
        idle = sum(length(subtract([own], rank.busy["any"])) for rank, own in spans)
        return at_most(stated, idle / len(ranks))
    idle = sum(start_up_at_most(rank, {}) for rank in ranks)
    if stated.unit == "%":
        return at_most(stated, 100.0 * idle / sum(rank.judged_ns for rank in ranks), 0.1)
    return at_most(stated, idle / len(ranks))


def begun(rank: PlainRank) -> list[int]:
    """When what is recorded of the work may begin: with its first piece, or a long call before."""
    threads = rank.all_threads.values()
    long = [each.start for thread in threads for each in thread if each.dur >= 1_000_000]
    return [rank.extent[0], *(start for start in long if start < rank.extent[0])]


@check("start_up_until")
@check("recorded_work")
def recorded_work(job: Job, stated: Stated) -> str:
    """From there to what is judged, or to the end."""
    ranks = job.of(stated.ranks)
    ends = [rank.windows[0][0] if stated.measure == "start_up_until" else rank.extent[1] for rank in ranks]
    if stated.unit == "%" or len(ranks) > 1:
        longest = sum(end - min(begun(rank)) for rank, end in zip(ranks, ends, strict=True))
        return at_most(stated, 100.0 if stated.unit == "%" else longest / len(ranks))
    times = [close(stated, ends[0] - begin, 0.001) for begin in begun(ranks[0])]
    return "" if "" in times else times[0]


def host_calls(job: Job, stated: Stated, names: Iterable[str]) -> list[Record]:
    rank, wanted = the_rank(job, stated), set(names)
    called = [each for thread in rank.all_threads.values() for each in thread if each.name in wanted]
    return called or [each for each in rank.events if each.category == "overhead" and each.name in wanted]


@check("start_up_call_time")
def start_up_call_time(job: Job, stated: Stated) -> str:
    """As long as some calls of these names of the host are together."""
    times = [call.dur for call in host_calls(job, stated, stated.about["calls"])]
    return at_most(stated, sum(times)) if times else "they are never called"


@check("start_up_on")
def start_up_on(job: Job, stated: Stated) -> str:
    """A rank that makes such calls; their time, which stands beside it, is of that rank."""
    (rank,) = stated.value
    threads = job.ranks[rank].all_threads.values()
    there = any(each.name in stated.about["calls"] for thread in threads for each in thread)
    return "" if there else "they are never called there"


@check("cold_call")
def cold_call(job: Job, stated: Stated) -> str:
    """The device is idle in a part of the longest call of this name."""
    calls = host_calls(job, stated, [str(stated.value)])
    if not calls:
        return "it is never called"
    longest = max(calls, key=lambda call: call.dur)
    idle = subtract([longest.window], the_rank(job, stated).busy["any"])
    return "" if 10 * length(idle) >= longest.dur else f"the device is idle for {length(idle)} ns of it"


@check("compiled")
def compiled(job: Job, stated: Stated) -> str:
    """A kernel of this short name runs, or a call of this name asks for it."""
    rank = the_rank(job, stated)
    names = {short_kernel_name(each.name) for each in rank.kernels} | {each.name for each in rank.events}
    return "" if stated.value in names else "there is no such kernel and no such call"


@check("start_up_in")
def start_up_in(job: Job, stated: Stated) -> str:
    """Marked steps that are not judged."""
    marked = set(job.trace.iterations["iteration"].tolist())
    wrong = [step for step in stated.value if step not in marked or step in job.steps]
    return f"{wrong} are judged, or none" if wrong else ""


@check("left_out_step")
def left_out_step(job: Job, stated: Stated) -> str:
    return start_up_in(job, stated)  # type: ignore[no-any-return]


@check("earliest_step")
def earliest_step(job: Job, stated: Stated) -> str:
    """No other step of the rank begins before."""
    frame = job.trace.iterations[job.trace.iterations["rank"] == stated.ranks[0]]
    first = int(frame.loc[frame["start_ns"].idxmin(), "iteration"])
    return "" if stated.value == (first,) else f"it is {first}"


@check("waits_for_earlier_work")
@check("waits_in")
@check("wait_for_earlier_work")
def wait_for_earlier_work(job: Job, stated: Stated) -> str:
    """A synchronising call of the rank is as long."""
    rank = job.ranks[stated.value[0]] if stated.unit == "ranks" else the_rank(job, stated)
    calls = [each for each in rank.events if SYNCHRONISING.match(each.name)]
    if stated.unit == "name":
        return "" if any(call.name == stated.value for call in calls) else "no such call synchronises"
    if stated.unit == "ns":
        return at_most(stated, max((call.dur for call in calls), default=0))
    return "" if calls else "it never waits"


# What is recorded outside of the judged time


def outside_of(rank: PlainRank, stated: Stated) -> list[Window]:
    """What is recorded before and after what is judged, or, where that follows start-up, the work with it."""
    whole = (min(each.start for each in rank.events), max(each.end for each in rank.events))
    begins = [rank.windows[0][0]]
    if rank.work and not rank.judged_steps:
        begins += [begin for begin in begun(rank) if begin < begins[0]]
    found = [subtract([whole], [(begin, rank.windows[-1][1])]) for begin in begins]
    claims = json.loads(stated.row["claims"])
    apart = next(claim["value"] for claim in claims if claim["measure"] == "apart")
    return min(found, key=lambda windows: abs(length(windows) - apart))


@check("recorded")
def recorded(job: Job, stated: Stated) -> str:
    """From the first event to the end of the last."""
    events = the_rank(job, stated).events
    return close(stated, max(each.end for each in events) - min(each.start for each in events), 0.001)


@check("apart")
@check("apart_side")
@check("apart_calls")
@check("apart_in_call")
@check("apart_most_in")
def outside(job: Job, stated: Stated) -> str:
    """Recorded time that is not judged: all, before, without a call of the program, in a call."""
    rank = the_rank(job, stated)
    apart = outside_of(rank, stated)
    if stated.measure == "apart_side":
        begin, whole = min(each.start for each in rank.events), length(apart)
        before = length(apart[:1]) if apart[0][0] == begin else 0
        side = "before" if before >= 0.89 * whole else "after" if before <= 0.11 * whole else "around"
        return "" if stated.value == side else f"{before} of {whole} ns lie before"
    if stated.measure == "apart":
        return close(stated, length(apart), 0.01)
    if stated.measure == "apart_calls":
        own = [each for each in rank.events if each.category != "trace"]
        calls = [(min(each.start for each in own), max(each.end for each in own))]
        return close(stated, length(subtract(apart, calls)), 0.01)
    name = str(stated.about.get("call", stated.value))
    open_ = union(each.window for each in rank.named(name))
    inside = sum(length(overlap(open_, window)) for window in apart)
    if stated.unit == "name":
        return "" if 2 * inside >= length(apart) else f"it is open for {inside} ns"
    return at_most(stated, inside)


@check("judged_time")
def judged_time(job: Job, stated: Stated) -> str:
    """The longest of the ranks."""
    return close(stated, max(rank.judged_ns for rank in job.ranks.values()), 0.01)


# Ranks that are recorded differently


def begins(job: Job) -> dict[int, int]:
    """When each rank begins to record."""
    return {
        number: min(each.start for each in rank.events if each.category != "trace")
        for number, rank in job.recorded.items()
    }


def entries(job: Job, step: int) -> dict[int, int]:
    """When the host of each rank begins a step."""
    frame = job.trace.iterations[job.trace.iterations["iteration"] == step]
    return dict(zip(frame["rank"].tolist(), frame["host_start_ns"].tolist(), strict=True))


@check("recorded_late")
@check("recorded_later")
def late_beginning(job: Job, stated: Stated) -> str:
    """Later than the first: these ranks most of all."""
    begin = entries(job, stated.about["step"]) if "step" in stated.about else begins(job)
    later = {rank: at - min(begin.values()) for rank, at in begin.items()}
    if stated.unit == "ns":
        return close(stated, max(later[rank] for rank in stated.ranks), 0.001, 2_000.0)
    others = max((ns for rank, ns in later.items() if rank not in stated.value), default=0)
    wrong = [rank for rank in stated.value if later[rank] < max(others, 1)]
    return f"{wrong} begin no later than others" if wrong else ""


def own_time(job: Job, rank: int) -> int:
    """How long the median judged step of a rank is; without any, its device work from first to last."""
    if not job.announced:
        begin, end = job.recorded[rank].extent
        return end - begin
    spans = [span for (of, step), span in step_times(job).items() if of == rank and step in job.steps]
    return round(median(end - begin for begin, end in spans))


@check("not_judged_ranks")
def not_judged_ranks(job: Job, stated: Stated) -> str:
    others = tuple(sorted(set(job.recorded) - set(job.ranks)))
    return "" if stated.value == others else f"ranks {others} are not judged"


@check("unlike_ranks")
def unlike_ranks(job: Job, stated: Stated) -> str:
    """Their times and those of the longest are apart by half and more."""
    both = [[own_time(job, rank) for rank in ranks] for ranks in (stated.value, stated.about["others"])]
    least, most = sorted(both, key=max)
    return "" if 1.5 * max(least) <= 1.001 * max(most) else f"they take {both} ns"


@check("longest_time")
def longest_time(job: Job, stated: Stated) -> str:
    return close(stated, max(own_time(job, rank) for rank in stated.ranks), 0.01)


@check("shortest_work")
@check("longest_work")
def span_of_work(job: Job, stated: Stated) -> str:
    spans = [own_time(job, rank) for rank in job.recorded]
    return close(stated, min(spans) if stated.measure == "shortest_work" else max(spans), 0.001)


# Steps


def step_times(job: Job, rank: int | None = None) -> dict[tuple[int, int], tuple[int, int]]:
    """(rank, iteration) -> start and end of the steps that are complete."""
    frame = job.trace.iterations
    frame = frame[~frame["partial"]]
    if rank is not None:
        frame = frame[frame["rank"] == rank]
    columns = ("rank", "iteration", "start_ns", "end_ns")
    return {(each[0], each[1]): (each[2], each[3]) for each in zip(*(frame[c] for c in columns), strict=True)}


def alike(job: Job) -> dict[tuple[int, int], list[int]]:
    """How long the steps take that do what each step does: of a server, what its label states."""
    frame, times = job.trace.iterations, step_times(job)
    labels = zip(frame["rank"], frame["iteration"], frame["label"], strict=True)
    does = {(rank, step): labelled(str(label)) for rank, step, label in labels}
    by_work: dict[Any, list[int]] = {}
    for key, (start, end) in times.items():
        by_work.setdefault(does[key], []).append(end - start)
    return {key: by_work[does[key]] for key in times}


@check("step_time")
def step_time(job: Job, stated: Stated) -> str:
    """From its start to its end."""
    start, end = step_times(job)[stated.ranks[0], stated.about["iteration"]]
    return close(stated, end - start, 0.0, 1_000.0)


@check("usual_step_time")
def usual_step_time(job: Job, stated: Stated) -> str:
    """What half of the steps take no longer than, start-up aside."""
    times = sorted(alike(job)[stated.ranks[0], stated.about["iteration"]])
    low, high = times[len(times) // 4], times[-1 - len(times) // 4]
    return "" if low <= float(stated.value) <= high else f"most take {low} to {high} ns"


@check("without_backward")
def without_backward(job: Job, stated: Stated) -> str:
    """In these of the judged steps no node of autograd begins, in each of the others one does."""
    rank = the_rank(job, stated)
    nodes = [each for each in rank.events if each.name.startswith("autograd::engine::evaluate_function")]
    alone = set(rank.judged_steps)
    for each in rank.events:
        match = STEP.match(each.name)
        if match and any(each.start <= node.start < each.end for node in nodes):
            alone.discard(int(match[1]))
    return "" if alone == set(stated.value) else f"steps {sorted(alone)} have none"


@check("slow_steps")
@check("steps")
def number_of_steps(job: Job, stated: Stated) -> str:
    """Complete steps; of those that are slow, some take longer than a tenth above what is usual."""
    steps = {step for _, step in step_times(job)}
    if stated.measure == "steps":
        return at_most(stated, len(steps), 0.0)
    others = alike(job)
    slow = {
        key[1] for key, (start, end) in step_times(job).items() if end - start > 1.09 * median(others[key])
    }
    return at_most(stated, len(slow), 0.0)


@check("slowest_step")
@check("slowest_step_on")
def slowest_step(job: Job, stated: Stated) -> str:
    """It takes longer than is usual."""
    rank, step = (stated.ranks or stated.value)[0], stated.about.get("iteration", stated.value[0])
    times = {key: end - start for key, (start, end) in step_times(job).items()}
    return "" if times[rank, step] > 1.09 * median(alike(job)[rank, step]) else "it is as long as usual"


@check("beyond_usual")
def beyond_usual(job: Job, stated: Stated) -> str:
    """No more than what these steps take beyond three quarters of a median step."""
    times = {key: end - start for key, (start, end) in step_times(job).items() if key[0] in stated.ranks}
    usual, steps = {key: median(others) for key, others in alike(job).items()}, stated.about["steps"]
    beyond = sum(time - 0.75 * usual[key] for key, time in times.items() if key[1] in steps)
    whole = sum(  # others that are as long hold start-up: they are not judged
        time for key, time in times.items() if time < 1.1 * usual[key] or key[1] in steps
    )
    return at_most(stated, 100.0 * beyond / whole, 0.1)


@check("longer_than_usual")
def longer_than_usual(job: Job, stated: Stated) -> str:
    """No more than the whole step is longer, and a tenth of it; of a host alone, what it does then."""
    part = stated.about["part"]
    if part in ("loading", "compiling", "operators"):
        rank = the_rank(job, stated)
        when = parts(rank)[part]
        windows = {step: window for (_, step), window in step_times(job, rank.number).items()}
        spent = {step: length(overlap(when, window)) for step, window in windows.items()}
        own = spent.pop(stated.about["iteration"])
        low, high = own - max(spent.values()), own - min(spent.values())
        return "" if low <= float(stated.value) <= high else f"it is between {low} and {high} ns"
    if part in ("outside", "collectives", "elsewhere"):  # of the silence, or calls of communication
        found = parts(the_rank(job, stated))
        window = step_times(job, stated.ranks[0])[stated.ranks[0], stated.about["iteration"]]
        return at_most(stated, sum(length(overlap(found[name], window)) for name in ("silent", "calls")))
    times = {key: end - start for key, (start, end) in step_times(job, stated.ranks[0]).items()}
    own = times[stated.ranks[0], stated.about["iteration"]]
    return at_most(stated, own - median(others_of(stated, times)) + 0.1 * own)


@check("region_beyond_usual")
def region_beyond_usual(job: Job, stated: Stated) -> str:
    """Spans of this name are open for half of what the step takes longer than the median of all."""
    rank, step = the_rank(job, stated), stated.about["iteration"]
    windows = {number: window for (_, number), window in step_times(job, rank.number).items()}
    named = union(
        each.window
        for each in rank.events
        if each.category == "user_annotation" and each.name == stated.value
    )
    times = {number: end - start for number, (start, end) in windows.items()}
    inside = {number: length(overlap(named, window)) for number, window in windows.items()}
    longer, excess = (of[step] - median(of.values()) for of in (inside, times))
    return "" if longer >= 0.45 * excess else f"{longer} of {excess} ns lie in it"


def others_of(stated: Stated, values: dict[Any, int]) -> list[int]:
    """Those of the steps that a step is compared with; by step, or by rank and step."""
    chosen = stated.about.get("others")
    steps = {key: key[1] if isinstance(key, tuple) else key for key in values}
    return [value for key, value in values.items() if chosen is None or steps[key] in chosen]


@check("more_kernels_than_usual")
@check("more_operators_than_usual")
def more_kernels_than_usual(job: Job, stated: Stated) -> str:
    """Kernels, or operators of the thread of the steps, in the step, beyond the median of the steps."""
    rank, counts = the_rank(job, stated), {}
    of_host = stated.measure == "more_operators_than_usual"
    events = [each for each in main_thread(rank) if is_operator(each)] if of_host else rank.kernels
    for (_, step), window in step_times(job, stated.ranks[0]).items():
        counts[step] = sum(bool(overlap([window], each.window)) for each in events)
    usual = median(others_of(stated, counts))
    return close(stated, counts[stated.about["iteration"]] - usual, 0.1, 0.02 * usual + 2.0)


@check("inputs_beyond_usual")
def inputs_beyond_usual(job: Job, stated: Stated) -> str:
    """How many numbers products take that are launched in the step, against the median of the steps."""
    rank, sums = the_rank(job, stated), Counter[int]()
    frame = job.trace.iterations
    frame = frame[frame["rank"] == rank.number].sort_values("host_start_ns")
    begins, steps = frame["host_start_ns"].tolist(), frame["iteration"].tolist()
    for each in rank.events:
        at = bisect_right(begins, each.start) - 1
        if PRODUCT.match(each.name) and at >= 0:
            sums[steps[at]] += sum(prod(shape) for shape, _ in shapes(each))
    usual = median(others_of(stated, {step: sums[step] for _, step in step_times(job, rank.number)}))
    return close(stated, sums[stated.about["iteration"]] / usual, 0.01, 0.0)


def times_in(job: Job, number: int, stated: Stated) -> list[int]:
    windows = step_times(job, number)
    return [end - start for start, end in (windows[number, step] for step in stated.about["steps"])]


def amount_in(job: Job, stated: Stated, step: int) -> int:
    """What is counted of the work that begins in a step: kernels, their blocks or inputs, or operators."""
    rank, unit = the_rank(job, stated), stated.about["unit"]
    start, end = step_times(job, rank.number)[rank.number, step]
    operators = [each for each in main_thread(rank) if is_operator(each)] if unit == "operator" else []
    inside = [each for each in (operators or rank.kernels) if start <= each.start < end]
    if unit == "input element":
        found = [operator_of(rank, each) for each in inside]
        return sum(prod(map(int, shape)) for each in found if each for shape in _flat(dims(each)))
    return sum(prod(each.args["grid"]) if unit == "thread block" else 1 for each in inside)


def _flat(listed: Iterable[Any]) -> Iterator[tuple[int, ...]]:
    """The shapes of tensors; those of a list of tensors one by one."""
    for each in listed:
        if each and all(isinstance(inner, tuple) for inner in each):
            yield from _flat(each)
        elif each:
            yield each


@check("work_of_first_step")
def work_of_first_step(job: Job, stated: Stated) -> str:
    return close(stated, amount_in(job, stated, stated.about["steps"][0]), 0.0, 0.0)


@check("work_of_last_step")
def work_of_last_step(job: Job, stated: Stated) -> str:
    """And it grows from step to step."""
    amounts = [amount_in(job, stated, step) for step in stated.about["steps"]]
    if slope(amounts) <= 0:
        return f"it does not grow: {amounts}"
    return close(stated, amounts[-1], 0.0, 0.0)


@check("growing_step_count")
def growing_step_count(job: Job, stated: Stated) -> str:
    return close(stated, len(times_in(job, the_rank(job, stated).number, stated)), 0.0, 0.0)


@check("growing_step_time")
def growing_step_time(job: Job, stated: Stated) -> str:
    """How much longer the last step is than the first, along the slope."""
    times = times_in(job, the_rank(job, stated).number, stated)
    first = median(time - slope(times) * at for at, time in enumerate(times))
    return close(stated, 100.0 * slope(times) * (len(times) - 1) / first, 0.001, 1e-6)


@check("beyond_first_step")
def beyond_first_step(job: Job, stated: Stated) -> str:
    """What they take beyond the first, along the slope."""
    of_rank = [times_in(job, rank.number, stated) for rank in job.of(stated.ranks)]
    beyond = sum(slope(times) * len(times) * (len(times) - 1) / 2 for times in of_rank)
    return close(stated, stated_by(job, stated, beyond), 0.001, 1e-3 if stated.unit == "%" else 10.0)


@check("growing_on")
def growing_on(job: Job, stated: Stated) -> str:
    """Steps get longer on these ranks."""
    level = [rank for rank in stated.value if slope(list(_by_step(job, rank))) <= 0]
    return f"they do not on {level}" if level else ""


def _by_step(job: Job, number: int) -> Iterable[int]:
    windows = step_times(job, number)
    return (windows[key][1] - windows[key][0] for key in sorted(windows) if key[1] in job.steps)


@check("steps_of_two_lengths")
@check("complete_steps")
@check("long_steps")
@check("long_step_time")
@check("short_step_time")
@check("beyond_short_steps")
@check("longest_step")
@check("long_since")
def steps_of_two_lengths(job: Job, stated: Stated) -> str:
    """Steps that take as long as a limit or longer, and the others: how many, how long, how much longer."""
    (rank,) = stated.ranks
    times = {step: end - start for (_, step), (start, end) in step_times(job, rank).items()}
    if stated.measure == "longest_step":
        return at_most(Stated("", max(times.values()), "ns"), times[stated.value[0]] * 1.0001)
    if stated.measure == "complete_steps":
        return at_most(stated, len(times), 0.0)
    limit = stated.about["limit_ns"]
    if stated.measure == "steps_of_two_lengths":  # the same steps are long on each of the ranks
        long_steps = {step for step, time in times.items() if time >= limit}
        own = {each: {step: end - start for (_, step), (start, end) in step_times(job, each).items()}
               for each in stated.value}  # fmt: skip
        other = [each for each, of_rank in own.items()
                 if min(of_rank[step] for step in long_steps)
                 <= max(time for step, time in of_rank.items() if step not in long_steps)]  # fmt: skip
        return f"others are long on {other}" if other else ""
    long = [time for time in times.values() if time >= limit]
    short = [time for time in times.values() if time < limit]
    if stated.measure == "long_since":
        early = [step for step, time in times.items() if (time < limit) == (step >= stated.value[0])]
        return f"{early} are on the other side" if early else ""
    if stated.measure == "long_steps":
        return close(stated, len(long), 0.0, 1.0)
    if stated.measure == "beyond_short_steps":
        beyond = sum(time - median(short) for time in long)
        return at_most(stated, 100.0 * beyond / sum(times.values()), 0.5)
    return close(stated, median(long if stated.measure == "long_step_time" else short), 0.01)
