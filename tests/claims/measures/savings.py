"""What changes save: bounds that hold for any replay, and what has to be so for it to be worth a word.

That a replay is right is held by the planted programs of `tests/replay`, whose time under a change is known
because the changed program is simulated again; here only what the recording itself shows is recomputed.
"""

from __future__ import annotations

from tests.claims.job import Job
from tests.claims.measures.idle import CALLS, SYNCHRONISING, launching, of_threads, the_rank
from tests.claims.registry import Stated, check


@check("saving")
def saving(job: Job, stated: Stated) -> str:
    """No change saves more than all of the time."""
    share = float(stated.value)
    return "" if -100.0 <= share <= 100.0 else f"{share} % is more than there is"


@check("saving_without_cpu")
def saving_without_cpu(job: Job, stated: Stated) -> str:
    """More than with the CPU, which is not blocked for most of the time that the change leaves."""
    rank, saved = the_rank(job, stated), float(stated.row["saving_pct"])
    if not saved < float(stated.value) <= 100.0:
        return f"with the CPU it saves {saved} %"
    blocked = of_threads(rank, lambda each: each.category in CALLS and SYNCHRONISING.match(each.name))
    working = max(rank.judged_ns - rank.within(blocked[thread]) for thread in launching(rank))
    left = (1.0 - saved / 100.0) * rank.judged_ns
    return "" if 2 * working >= left else f"the CPU works for {working} of {left:.0f} ns"


@check("cost")
def cost(job: Job, stated: Stated) -> str:
    """A cost is a part of the judged time."""
    return "" if 0.0 <= float(stated.value) <= 100.0 else f"{stated.value} % is no part"
