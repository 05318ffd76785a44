"""Is a single difference between critical paths what its row says? Judged as in `checks.py`."""

from __future__ import annotations

from tests.parity.compare import Difference
from tests.parity.compared_job import ComparedJob
from tests.parity.hta_defects import correlation, is_call


def delay_at_one_time(difference: Difference, job: ComparedJob) -> bool:
    """A kernel waits for its launch or for the kernel before it, as the queue says when it is launched and
    when it starts; at one of these times another kernel comes or goes, and HTA takes either first.
    """
    _, _, row, is_start, kind, _ = difference.hta or difference.ours
    kernel, first = job.events[row], job.hta["trace_facts"]["answer"]["min_ts"]
    launches = [event for event in job.events if is_call(event) and correlation(event) == correlation(kernel)]
    times = {event["ts"] - first for event in (kernel, *launches)}
    points = [job.points["queue_series", kernel["args"]["stream"], time] for time in times]
    return is_start and kind.endswith("_delay") and max(points) > 1
