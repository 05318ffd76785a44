"""How a measure is registered: a function that recomputes it, found by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.claims.job import Job, PlainRank

__all__ = ["MEASURES", "Stated", "check", "close", "time_of"]


@dataclass(frozen=True)
class Stated:
    """A claim as `overview` prints it, and the row of the frame that states it."""

    measure: str
    value: Any
    unit: str
    of: str = ""
    ranks: tuple[int, ...] = ()
    about: dict[str, Any] = field(default_factory=dict)
    shown: str = ""
    row: dict[str, Any] = field(default_factory=dict, compare=False, hash=False)


Check = Callable[[Job, Stated], str]
"""What is true instead of what is stated; "" if it is true."""

MEASURES: dict[str, Check] = {}


def check(name: str) -> Callable[[Check], Check]:
    """Register a function `(job, stated) -> what is true instead, or ""`."""

    def register(function: Check) -> Check:
        assert name not in MEASURES, f"two readers of {name!r}"
        MEASURES[name] = function
        return function

    return register


def time_of(
    name: str, rel: float = 0.01, points: float = 0.1
) -> Callable[[Callable[[PlainRank, dict[str, Any]], int]], object]:
    """Register a function `(rank, about) -> ns of its judged time`, stated as a share, a mean or per step."""

    def register(function: Callable[[PlainRank, dict[str, Any]], int]) -> object:
        @check(name)
        def judge(job: Job, stated: Stated) -> str:
            ranks = job.of(stated.ranks)
            times = [function(rank, stated.about) for rank in ranks]
            if stated.unit == "%":
                whole = sum(rank.judged_ns for rank in ranks)
                return close(stated, 100.0 * sum(times) / max(whole, 1), rel, points)
            mean = sum(times) / max(len(times), 1)
            if stated.unit == "ns/step":
                mean *= len(ranks) / max(sum(len(rank.judged_steps) for rank in ranks), 1)
            return close(stated, mean, rel, 2_000.0)

        return function

    return register


def close(stated: Stated, truth: float, rel: float = 0.01, least: float = 0.1) -> str:
    """What is true, where it is farther from what is stated than `rel` of it, and than `least`."""
    far = abs(float(stated.value) - truth) > max(rel * abs(truth), least)
    return f"{stated.measure} is {truth:,.4g} {stated.unit}, not {stated.value:,.4g}" if far else ""
