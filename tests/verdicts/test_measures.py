"""The package measures what the plain reader counts, to the nanosecond, on every real recording."""

from collections import Counter

import pytest

from hta_widgets.analysis import idle_breakdown, temporal_breakdown
from hta_widgets.errors import MissingDataError
from tests.verdicts.plain_reader import Rank
from tests.verdicts.recordings import RECORDINGS, SEVERAL_JOBS, opened, recording

# Files of unrelated jobs are read one by one.
JOBS = [name for name in RECORDINGS if name != SEVERAL_JOBS]


def counted(rank: Rank) -> dict[str, int]:
    """What the package's two breakdowns measure, from the first to the last device work."""
    busy = rank.shares([rank.extent])
    idle = Counter[str]()
    for piece in rank.idle(rank.extent):
        idle[piece.why] += piece.end - piece.start
    return {
        "compute_ns": busy["computing"],
        "exposed_communication_ns": busy["communicating"],
        "exposed_memory_ns": busy["copying"],
        "data_stall_ns": idle["loading"],
        "host_wait_ns": sum(idle[why] for why in ("synchronising", "loading", "running", "nothing_recorded")),
        "launched_ns": idle["launching"] + idle["queued"],
    }


@pytest.mark.parametrize("name", JOBS)
def test_time_is_split_as_counted_by_hand(name: str) -> None:
    ranks = [rank for rank in recording(name) if rank.work]
    trace = opened(name)
    if not ranks:
        with pytest.raises(MissingDataError):
            temporal_breakdown(trace)
        return
    idle = idle_breakdown(trace)
    idle["launched_ns"] = idle["launch_latency_ns"] + idle["kernel_wait_ns"] + idle["device_wait_ns"]
    measured = temporal_breakdown(trace).merge(idle, on="rank")
    wanted = [counted(rank) for rank in ranks]
    assert measured[list(wanted[0])].to_dict("records") == wanted
