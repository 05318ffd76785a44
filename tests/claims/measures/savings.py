"""What changes save: bounds that hold for any replay, and what has to be so for it to be worth a word.

That a replay is right is held by the planted programs of `tests/replay`, whose time under a change is known
because the changed program is simulated again; here only what the recording itself shows is recomputed.
"""

from __future__ import annotations

from tests.claims.job import Job
from tests.claims.registry import Stated, check


@check("saving")
def saving(job: Job, stated: Stated) -> str:
    """No change saves more than all of the time."""
    share = float(stated.value)
    return "" if -100.0 <= share <= 100.0 else f"{share} % is more than there is"


@check("cost")
def cost(job: Job, stated: Stated) -> str:
    """A cost is a part of the judged time."""
    return "" if 0.0 <= float(stated.value) <= 100.0 else f"{stated.value} % is no part"
