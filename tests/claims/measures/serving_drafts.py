"""Drafts of a server: the turns in which they are verified, what they take, and when they pay."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, NamedTuple

from tests.claims.job import Job, PlainRank, Window, length, overlap, union
from tests.claims.measures.idle import CALLS, the_rank
from tests.claims.measures.serving import MARKS, Step, emitted, is_drafted, nothing_in, resting, steps
from tests.claims.registry import Stated, check, close, time_of


class Turn(NamedTuple):
    """A turn in which drafts are verified: its step, its time, and that without drafting; its tokens."""

    step: Step
    time: int
    without: int
    tokens: int


def turns(rank: PlainRank) -> list[Turn]:
    """Those whose accepted tokens show."""
    every, new = [step for step in steps(rank) if step.phase != "draft"], emitted(rank)
    found = []
    for one, after in pairwise(every):
        if one in new and one not in resting(rank):
            window = (one.start, after.start)
            inside = [step for step in steps(rank) if window[0] < step.start < window[1]]
            ends = [step.end for step in (one, *inside)]
            starts = [*(step.start for step in inside), after.start]
            idle = sum(length(nothing_in(rank, gap)) for gap in zip(ends, starts, strict=True))
            found.append(Turn(one, window[1] - window[0], one.end - one.start + idle, new[one]))
    return found


@check("tokens_per_turn")
def tokens_per_turn(job: Job, stated: Stated) -> str:
    """What a request gets in a turn."""
    found = turns(the_rank(job, stated))
    return close(
        stated, sum(each.tokens for each in found) / sum(each.step.requests for each in found), 0.01, 0.01
    )


@check("drafting")
def drafting(job: Job, stated: Stated) -> str:
    """What is neither verifying nor waiting."""
    found = turns(the_rank(job, stated))
    whole = sum(each.time for each in found)
    return close(stated, 100.0 * (whole - sum(each.without for each in found)) / whole, 0.02, 0.2)


@check("token_with_drafts")
def token_with_drafts(job: Job, stated: Stated) -> str:
    """The time of all turns by the tokens of a request."""
    found = turns(the_rank(job, stated))
    each = sum(turn.tokens for turn in found) / sum(turn.step.requests for turn in found)
    return close(stated, sum(turn.time for turn in found) / len(found) / each, 0.02, 1_000.0)


@check("token_without_drafts")
def token_without_drafts(job: Job, stated: Stated) -> str:
    """A token per turn, which then is so much shorter."""
    found = turns(the_rank(job, stated))
    return close(stated, sum(turn.without for turn in found) / len(found), 0.02, 1_000.0)


_DRAFTING = re.compile(
    r"spec_decode/\w+\.py\(\d+\): propose$|: propose_draft_token_ids$|eagle_.*worker.*: draft$"
    r"|model_runner: draft$"
)


def drafts(rank: PlainRank) -> list[Window]:
    """Steps of the model that drafts, and from the first to the last work of each call that drafts."""
    found = [(step.start, step.end) for step in steps(rank) if step.phase == "draft"]
    calls = [each for each in rank.events if each.category in CALLS and _DRAFTING.search(each.name)]
    calls += [each for each in rank.events if each.category in MARKS and _DRAFTING.search(each.name)]
    for call in calls:
        launched = [
            each for each in rank.work
            if (one := rank.launch(each)) and call.start <= one.start and one.end <= call.end
        ]  # fmt: skip
        if launched:
            found.append((min(each.start for each in launched), max(each.end for each in launched)))
    return union(found)


@time_of("drafting_named", rel=0.02)
def drafting_named(rank: PlainRank, about: dict[str, Any]) -> int:
    """The device drafts."""
    return rank.within(drafts(rank))


@check("tokens_that_pay")
def tokens_that_pay(job: Job, stated: Stated) -> str:
    """A turn by what is left of it without drafting."""
    rank = the_rank(job, stated)
    every = [step for step in steps(rank) if step.phase != "draft"]
    windows = union(
        (one.start, after.start)
        for one, after in pairwise(every)
        if is_drafted(one) and one not in resting(rank)
    )
    inside = sum(length(overlap(drafts(rank), window)) for window in windows)
    return close(stated, length(windows) / (length(windows) - inside), 0.01)
