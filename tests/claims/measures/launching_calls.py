"""What calls of the host take, and what is launched in them."""

from __future__ import annotations

import re
from statistics import median
from typing import Any

from tests.claims.job import Job, PlainRank, Record, Window, overlap, union
from tests.claims.measures.idle import RUNTIME, STEP, SYNCHRONISING, at_most, the_rank
from tests.claims.registry import Stated, check, close, time_of
from tests.verdicts.plain_reader import subtract


def calls_named(rank: PlainRank, names: list[str]) -> list[Record]:
    """The host's calls of these names."""
    return [each for thread in rank.all_threads.values() for each in thread if each.name in names]


def launched_in(rank: PlainRank, calls: list[Record]) -> list[Record]:
    """Device work whose launch begins in one of these calls, on its thread."""
    spans: dict[Any, list[Window]] = {}
    for call in calls:
        spans.setdefault((call.process, call.thread), []).append(call.window)
    whole = {thread: union(windows) for thread, windows in spans.items()}
    found = []
    for work in rank.work:
        launch = rank.launch(work)
        if launch is not None:
            inside = whole.get((launch.process, launch.thread), [])
            if overlap(inside, (launch.start, launch.start + 1)):
                found.append(work)
    return found


@time_of("time_in_calls")
def time_in_calls(rank: PlainRank, about: dict[str, Any]) -> int:
    """One of these calls is open."""
    return rank.within([each.window for each in calls_named(rank, about["calls"])])


@time_of("launched_in_calls")
def launched_in_calls(rank: PlainRank, about: dict[str, Any]) -> int:
    """What is launched in these calls runs."""
    return rank.within([each.window for each in launched_in(rank, calls_named(rank, about["calls"]))])


@check("idle_in_calls")
def idle_in_calls(job: Job, stated: Stated) -> str:
    """One of these calls is open, and nothing runs; start-up may be left out."""
    ranks, idle = job.of(stated.ranks), 0
    for rank in ranks:
        open_ = union(each.window for each in calls_named(rank, stated.about["calls"]))
        idle += rank.within(subtract(open_, rank.busy["any"]))
    return at_most(stated, 100.0 * idle / sum(rank.judged_ns for rank in ranks), 0.1)


@check("lost_in_calls")
def lost_in_calls(job: Job, stated: Stated) -> str:
    """Nothing runs, or what these calls launch does."""
    ranks, lost = job.of(stated.ranks), 0
    for rank in ranks:
        work = [each.window for each in launched_in(rank, calls_named(rank, stated.about["calls"]))]
        lost += rank.within([*subtract(rank.windows, rank.busy["any"]), *work])
    return close(stated, 100.0 * lost / sum(rank.judged_ns for rank in ranks), 0.02, 0.2)


@check("per_step")
def per_step(job: Job, stated: Stated) -> str:
    """Calls, or launches in them, in the median of the judged steps."""
    rank = the_rank(job, stated)
    calls = calls_named(rank, stated.about["calls"])
    counted = calls
    if stated.about["what"] != "calls":
        launches = {id(call): call for work in launched_in(rank, calls) if (call := rank.launch(work))}
        counted = list(launches.values())
    steps = [
        each
        for thread in rank.all_threads.values()
        for each in thread
        if (match := STEP.match(each.name)) and int(match[1]) in rank.judged_steps
    ]
    if len(steps) < len(rank.judged_steps):  # marked by something else
        return at_most(stated, len(counted), 0.0)
    counts = [sum(step.start <= each.start < step.end for each in counted) for step in steps]
    return close(stated, median(counts), 0.0, 1.0)


@check("longest_calls")
def longest_calls(job: Job, stated: Stated) -> str:
    """Of these calls, those of the first name take longest, and those of the others are a tenth or more."""
    rank, names = the_rank(job, stated), stated.about["calls"]
    judged = rank.judged(calls_named(rank, names))
    times = {name: sum(each.dur for each in judged if each.name == name) for name in names}
    first, *others = stated.value
    if times[first] < 0.9 * max(times.values()):
        return f"most of the time is that of {max(times, key=lambda name: times[name])}"
    few = [name for name in others if len(rank.named(name, judged)) < 0.09 * len(judged)]
    return f"few are {few}" if few else ""


# Modules


def modules(rank: PlainRank, name: str) -> tuple[list[Record], list[Record]]:
    """The modules of a class, and those of others right inside them."""
    of_class = re.compile(re.escape(name) + r"(?:_\d+)?$")
    threads = rank.all_threads.values()
    every = [each for thread in threads for each in thread if each.name.startswith("nn.Module: ")]
    mine = [each for each in every if of_class.match(each.name)]
    numbers = {each.number for each in mine}
    inner = []
    for each in every:
        if not of_class.match(each.name):
            outer = next((one for one in rank.around(each) if one.name.startswith("nn.Module: ")), None)
            if outer is not None and outer.number in numbers:
                inner.append(each)
    return mine, inner


def own_time(rank: PlainRank, name: str) -> list[Window]:
    """When such a module is open, modules of others in it and waits for the device aside."""
    mine, inner = modules(rank, name)
    waits = [
        each.window for each in rank.events if each.category in RUNTIME and SYNCHRONISING.match(each.name)
    ]
    own = subtract(union(each.window for each in mine), union(each.window for each in inner))
    return subtract(own, union(waits))


@check("idle_in_modules")
def idle_in_modules(job: Job, stated: Stated) -> str:
    """The device is idle in the own time of such modules; pauses may be left out."""
    rank = the_rank(job, stated)
    idle = rank.within(subtract(own_time(rank, stated.about["module"]), rank.busy["any"]))
    if stated.unit == "%":
        return at_most(stated, 100.0 * idle / rank.judged_ns, 0.1)
    return at_most(stated, idle / (max(len(job.steps), 1) if stated.unit == "ns/step" else 1))


@check("own_time_per_launch")
def own_time_per_launch(job: Job, stated: Stated) -> str:
    """The own time of such modules by what is launched in them; pauses may be left out."""
    rank, name = the_rank(job, stated), stated.about["module"]
    mine, _ = modules(rank, name)
    numbers = {each.number for each in mine}
    launches = {}
    for work in rank.work:
        call = rank.launch(work)
        if call is not None and overlap(rank.windows, (call.start, call.end)):
            outer = next((one for one in rank.around(call) if one.name.startswith("nn.Module: ")), None)
            if outer is not None and outer.number in numbers:
                launches[id(call)] = call
    own = rank.within(own_time(rank, name))
    # a launch belongs to the step that it is in, also where its step ends later on the device
    return at_most(stated, own / max(len(launches), 1), 0.1 * float(stated.value))


@check("idle_in_module_class")
def idle_in_module_class(job: Job, stated: Stated) -> str:
    """Such modules are recorded."""
    return "" if modules(the_rank(job, stated), str(stated.value))[0] else "no such module"


@check("assumed_to_be_left")
def assumed_to_be_left(job: Job, stated: Stated) -> str:
    """A part: what the replay assumes, which is no measurement."""
    return "" if 0.0 < float(stated.value) < 100.0 else "it is no part"


TRAINS = {
    "aten::batch_norm": re.compile(
        r"bn_fw_tr_|batch_norm_collect_statistics|BatchNormFwdTrain|aten::_?batch_norm_(?:with_update|stats)"
    ),
    "aten::dropout": re.compile(r"fused_dropout_kernel|^aten::native_dropout$"),
}


@check("calls_in_training")
@check("calls_in_evaluation")
def calls_in_mode(job: Job, stated: Stated) -> str:
    """Calls that say so, or else what runs in training alone; the mode is the sixth input, or the third."""
    rank, name = the_rank(job, stated), stated.about["name"]
    events = [each for thread in rank.all_threads.values() for each in thread]
    calls = [each for each in events if each.name == name and "Concrete Inputs" in each.args]
    wanted = "True" if stated.measure == "calls_in_training" else "False"
    place = 5 if name == "aten::batch_norm" else 2
    counted = sum(each.args["Concrete Inputs"][place] == wanted for each in calls)
    if not any("Concrete Inputs" in each.args for each in events):
        counted = sum(bool(TRAINS[name].search(each.name)) for each in [*events, *rank.work])
    return close(stated, counted, 0.0, 0.0)


# Jobs without a device
