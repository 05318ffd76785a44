"""How long the steps of a recording take, and what grows in them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from math import prod
from statistics import median
from typing import Any

from tests.claims.job import Job, length, overlap, union
from tests.claims.measures.copies import slope
from tests.claims.measures.host import STEP, is_operator, main_thread, parts
from tests.claims.measures.idle import at_most, the_rank
from tests.claims.measures.kernels import stated_by
from tests.claims.measures.serving import labelled
from tests.claims.plain_kernels import dims, operator_of, shapes
from tests.claims.registry import Stated, check, close

PRODUCT = re.compile(r"aten::(addmm|mm|bmm|baddbmm|convolution|_?scaled_dot_product)")


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


@check("unusual_steps")
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
