"""What a server's steps compute: parts of the model, padding and denoising; and how its cache moves."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from hta_widgets.analysis.core.memoize import memoize_per_rank
from tests.claims.job import Job, PlainRank, Window, union
from tests.claims.measures.idle import CALLS, the_rank
from tests.claims.measures.serving import ATOM, judged_steps, labelled, part_of, steps, work_of
from tests.claims.registry import Stated, check, close, time_of
from tests.verdicts.plain_reader import subtract


def transfers(rank: PlainRank) -> tuple[list[Window], list[Window]]:
    """When kernels or copies run that are named after transfers of keys and values, or launched in such a
    call; and when anything else runs."""
    word = re.compile(
        r"nixl|mooncake|lmcache|kv_?(?:cache_)?transfer|kv_?connector|transfer_kv|kv_offload|swap_blocks|hicache",
        re.IGNORECASE,
    )
    begins = [
        each.start for each in rank.events if each.category == "user_annotation" and labelled(each.name)
    ]
    calls = [
        each for each in rank.events
        if each.category in CALLS and word.search(each.name)
        and not any(each.start <= begin < each.end for begin in begins)
    ]  # fmt: skip
    mine, others = [], []
    for each in rank.work:
        call = rank.launch(each)
        inside = call is not None and any(
            one.thread == call.thread and one.start <= call.start and call.end <= one.end for one in calls
        )
        (mine if inside or word.search(each.name) else others).append(each.window)
    return union(mine), union(others)


@time_of("kv_moved")
def kv_moved(rank: PlainRank, about: dict[str, Any]) -> int:
    """Keys and values move."""
    return rank.within(transfers(rank)[0])


@time_of("kv_moved_alone")
def kv_moved_alone(rank: PlainRank, about: dict[str, Any]) -> int:
    """They move, and nothing else runs."""
    mine, others = transfers(rank)
    return rank.within([part for window in mine for part in subtract([window], others)])


@check("serving_part")
def serving_part(job: Job, stated: Stated) -> str:
    """What a part of the model takes of the device's work in the steps of a phase."""
    rank = the_rank(job, stated)
    mine = [step for step in steps(rank) if step.phase == stated.about["phase"]]
    work = [each for step in mine for each in work_of(rank, step)]
    mine = among_experts(rank)
    part = sum(
        each.dur
        for each in work
        if ("experts" if each.number in mine else part_of(each)) == stated.about["part"]
    )
    return close(stated, 100.0 * part / sum(each.dur for each in work), 0.02, 0.1)


@memoize_per_rank()
def among_experts(rank: PlainRank) -> set[int]:
    """Numbers of the kernels of experts: named so, or after tokens were sent and before they come back.

    Tokens are sent by a dispatch; on a server by an all-gather, or by the first of two all-to-alls. Where
    attention runs meanwhile, something else was sent.
    """
    server, inside, attention = bool(steps(rank)), set(), False
    work = sorted((each for each in rank.work if each.category == "kernel"), key=lambda each: each.start)
    names = " ".join({each.name for each in work if each.kind == "communicating"})
    words = ("dispatch", "combine") if "dispatch" in names else ("AllGather", "ReduceScatter")
    one_word = server and "dispatch" not in names and "ReduceScatter" not in names
    sent, since = False, []
    for each in work:
        if each.kind == "communicating":
            back = sent if one_word and "SendRecv" in each.name else words[1] in each.name
            there = (one_word and "SendRecv" in each.name and not sent) or words[0] in each.name
            if back and sent:
                attention |= any(part_of(one) == "attention" for one in since)
                inside |= {one.number for one in since}
            if back or there:
                sent, since = there and not back, []
        elif sent:
            since.append(each)
    known = "dispatch" in names or (server and any(part_of(each) == "attention" for each in work))
    between = inside if known and not attention else set()
    return between | {each.number for each in work if part_of(each) == "experts"}


def padded(rank: PlainRank) -> dict[str, tuple[int, int]]:
    """Requests that annotations such as decode[bs=117/128 ...] state, and to how many they are padded."""
    names = {each.name for each in rank.events if each.category == "user_annotation"}
    found = {name: ATOM.match(name) for name in names}
    return {name: (int(each[2]), int(each[3])) for name, each in found.items() if each and each[3]}


@check("computed_requests")
def computed_requests(job: Job, stated: Stated) -> str:
    """Some step is padded to as many."""
    sizes = {size for _, size in padded(the_rank(job, stated)).values()}
    return "" if stated.value in sizes else f"steps are padded to {sorted(sizes)}"


@check("real_requests")
def real_requests(job: Job, stated: Stated) -> str:
    """And has so many."""
    sizes = {size for size, _ in padded(the_rank(job, stated)).values()}
    return "" if stated.value in sizes else f"steps have {sorted(sizes)}"


@time_of("padding")
def padding(rank: PlainRank, about: dict[str, Any]) -> int:
    """The share of each step that its padding is of its batch."""
    sizes = dict(padded(rank).values())
    mine = [step for step in judged_steps(rank) if step.phase == "decode" and step.requests in sizes]
    return sum(
        (step.end - step.start) * (sizes[step.requests] - step.requests) // sizes[step.requests]
        for step in mine
    )


def denoising(rank: PlainRank, module: str) -> list[int]:
    """How often a module begins between each call of a scheduler's step and the next."""
    scheduled = [
        each.start for each in rank.events if re.search(r"/scheduling_\w+\.py\(\d+\): step$", each.name)
    ]
    begins = [each.start for each in rank.named(module)]
    return [sum(one < begin < after for begin in begins) for one, after in pairwise(scheduled)]


@check("module_in_passes")
def module_in_passes(job: Job, stated: Stated) -> str:
    """It runs in each denoising step."""
    return "" if all(denoising(the_rank(job, stated), str(stated.value))) else "not in each step"


@check("passes_of_step")
def passes_of_step(job: Job, stated: Stated) -> str:
    """So often."""
    found = set(denoising(the_rank(job, stated), stated.about["module"]))
    return "" if found == {stated.value} else f"it runs {sorted(found)} times"
