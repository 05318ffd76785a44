"""Where the judged time goes."""

from __future__ import annotations

from typing import Any

from tests.claims.job import PlainRank
from tests.claims.registry import time_of


@time_of("computing")
def computing(rank: PlainRank, about: dict[str, Any]) -> int:
    """Compute kernels run."""
    return rank.within([each.window for each in rank.kernels])


@time_of("idle")
def idle(rank: PlainRank, about: dict[str, Any]) -> int:
    """Nothing runs on the device."""
    return rank.judged_ns - rank.within([each.window for each in rank.work])
