"""How many launches a queue holds, and calls that wait while it is full."""

from __future__ import annotations

from tests.claims.job import Job, PlainRank, Record
from tests.claims.measures.idle import at_most, the_rank
from tests.claims.registry import Stated, check, close


@check("blocked_on_full_queue")
def blocked_on_full_queue(job: Job, stated: Stated) -> str:
    """No longer than calls of the runtime are open that launch work of the stream."""
    rank = the_rank(job, stated)
    calls = [call for work in _of_stream(rank, stated) if (call := rank.launch(work))]
    time = rank.within([call.window for call in calls])
    if stated.unit == "%":
        return at_most(stated, 100.0 * time / rank.judged_ns, 0.1)
    return at_most(stated, time / (max(len(job.steps), 1) if stated.unit == "ns/step" else 1))


def _of_stream(rank: PlainRank, stated: Stated) -> list[Record]:
    return [work for work in rank.work if str(work.stream) == str(stated.about["stream"])]


@check("queue_limit")
def queue_limit(job: Job, stated: Stated) -> str:
    """So many launches of the stream have begun at once whose work has not, and never many more."""
    rank, changes = the_rank(job, stated), []
    for work in _of_stream(rank, stated):
        if (call := rank.launch(work)) is not None:
            changes += [(call.start, 1), (max(work.start, call.start), -1)]
    ahead = most = 0
    for _, change in sorted(changes):
        ahead += change
        most = max(most, ahead)
    return close(stated, most, 0.05, 2.0)


@check("calls_at_limit")
def calls_at_limit(job: Job, stated: Stated) -> str:
    """No more than launch the work of the stream."""
    return at_most(stated, len(_of_stream(the_rank(job, stated), stated)), 0.0)


@check("full_queue")
@check("longest_blocked")
def full_queue(job: Job, stated: Stated) -> str:
    """The stream does work; the rank is one of the job."""
    if stated.unit == "ranks":
        return "" if set(stated.value) <= set(job.ranks) else "there is no such rank"
    streams = {str(work.stream) for work in the_rank(job, stated).work}
    return "" if str(stated.value) in streams else f"the streams are {streams}"
