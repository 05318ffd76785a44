"""Is a single difference between stragglers what its row says? Judged as in `checks.py`."""

from __future__ import annotations

from statistics import stdev
from typing import Any

from tests.parity.compare import Difference
from tests.parity.compared_job import ComparedJob, steps
from tests.parity.hta_defects import Events, correlation, is_call, is_device

Kernels = dict[str, dict[str, Any]]  # rank -> kernel
LONG = 0.01  # of a step: what HTA takes for a long kernel
NOISE_US, NOISE = 10, 0.01  # what analysis.stragglers takes for chance


def latest_of_kernels_that_never_met(difference: Difference, job: ComparedJob) -> bool:
    """HTA charges the rank that started the last long kernel of its stream later; these two ran one after the
    other, so they are no collective.
    """
    compared = max(_last_long(job), key=lambda kernels: stdev(each["dur"] for each in kernels.values()))
    return str(difference.hta) == max(compared, key=lambda rank: compared[rank]["ts"]) and not _met(compared)


def nobody_is_late(difference: Difference, job: ComparedJob) -> bool:
    """Of kernels that did run together none is noticeably shorter, and of equals the first is named."""
    durations = [[each["dur"] for each in kernels.values()] for kernels in _last_long(job) if _met(kernels)]
    even = [max(each) - min(each) <= max(NOISE_US, NOISE * min(each)) for each in durations]
    return all(even) and bool(even) and str(difference.ours) == min(job.files, key=int)


def _last_long(job: ComparedJob) -> list[Kernels]:
    """By stream and name: the last long communication kernel of each rank in the steps that HTA keeps."""
    found: dict[tuple[int, str], Kernels] = {}
    for rank in job.files:
        events = job.events_of(rank)
        step = min(steps(events), key=lambda step: step["ts"])  # of two
        launched = {
            correlation(event)
            for event in events
            if is_call(event) and step["ts"] <= event["ts"] < step["ts"] + step["dur"]
        }
        for event in _communication(events):
            if correlation(event) in launched and event["dur"] >= LONG * step["dur"]:
                found.setdefault((event["args"]["stream"], event["name"]), {})[rank] = event
    return list(found.values())


def _communication(events: Events) -> Events:
    return [
        event
        for event in events
        if is_device(event) and event["name"].startswith("ncclKernel") and event["args"]["stream"] > 0
    ]


def _met(kernels: Kernels) -> bool:
    """All ran at one time."""
    ends = [event["ts"] + event["dur"] for event in kernels.values()]
    return max(event["ts"] for event in kernels.values()) < min(ends)
