"""What ranks do, and how a measure that is only bounded is registered."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.claims.job import Job, PlainRank, Record, Window, union
from tests.claims.registry import Stated, check
from tests.verdicts.plain_reader import subtract

IN_PAIRS = re.compile(r"send|recv|p2p", re.IGNORECASE)


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


def step_of(rank: PlainRank, event: Record) -> int | None:
    """In which of the judged windows an event begins."""
    for number, (start, end) in enumerate(rank.windows):
        if start <= event.start < end:
            return number
    return None
