"""A rule about a full launch queue: the host is far ahead, and has the time that it waits there to spare."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.core.claim import Claim, say
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.core.step_function import time_with
from hta_widgets.analysis.findings.finding import NOTE_PCT, Evidence, Finding, severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Rule, never
from hta_widgets.analysis.launches.queue import blocked_on_full_queue
from hta_widgets.analysis.launches.stream_queues import SHORTEST_LIMIT
from hta_widgets.trace.rank_trace import RankTrace


def queue_full(inputs: Inputs) -> Finding | None:
    """Launch calls that wait for a place in a full queue: long calls that cost nothing.

    That a queue is full is told by launches that take much longer at its greatest length, again and again; a
    queue that only grows long is not full.
    """
    if not any(inputs.of(rank, _may_be_full) for rank in inputs.temporal["rank"].tolist()):
        return None
    frame = inputs.by_rank(blocked_on_full_queue)
    frame = frame[(frame["limit_source"] == "plateau") & (frame["blocked_ns"] > 0)]
    if frame.empty:
        return None
    most = frame.iloc[int(frame["blocked_ns"].to_numpy(np.int64).argmax())]
    waited, share = int(most["blocked_ns"]), float(most["blocked_pct"])
    if not severity_of(share):
        return None
    rank, about = int(most["rank"]), {"stream": int(most["stream"])}
    among = len(inputs.temporal) > 1
    text = say(
        "The host{of_rank} waits {lost} in launch calls because the launch queue of stream {stream} is full. "
        "With {limit} launches ahead of the device, each of {calls} calls waits until one of them starts. "
        "These calls are long, but launching is not slow: that is what the host has to spare.",
        of_rank=say(" of {rank}", rank=Claim("longest_blocked", (rank,), "ranks")) if among else "",
        lost=inputs.time_lost("blocked_on_full_queue", share, waited, (rank,), **about),
        stream=Claim("full_queue", str(most["stream"]), "name", ranks=(rank,)),
        limit=Claim("queue_limit", int(most["limit"]), "count", ranks=(rank,), about=about),
        calls=Claim("calls_at_limit", int(most["calls_at_limit"]), "count", ranks=(rank,), about=about),
    )
    return Finding(
        waited,
        share,
        text,
        "Nothing to do about these calls. More work on the host, up to that time, costs nothing; only less "
        "work for the device makes the steps shorter.",
        "blocked_on_full_queue",
        Evidence(rank=rank if among else None),
        nothing_saved="Faster launches or a faster host save nothing: the device decides the time.",
        severity="note",
    )


def _may_be_full(inputs: Inputs, rank: int) -> bool:
    """Whether a queue can have been full for long enough; that is quicker to tell than how long each was.

    All streams together are at least as long as each, and no queue that is full is short. What has no
    launches is asked, and says so.
    """
    rank_trace = inputs.trace.rank(rank)
    long_ns = _long_ns(rank_trace)
    windows = rank_trace.windows(inputs.scope)
    return long_ns is None or 100.0 * long_ns >= NOTE_PCT * int((windows[:, 1] - windows[:, 0]).sum())


@memoize_per_rank()
def _long_ns(rank_trace: RankTrace) -> int | None:
    """How long all streams of a rank together have a long queue; None where launches are not recorded."""
    rows = rank_trace.launched
    if not len(rows):
        return None
    came = rank_trace.start[rank_trace.launch[rows]]
    return time_with(came, np.maximum(rank_trace.start[rows], came), SHORTEST_LIMIT)


RULE = Rule(
    topic="queue_full",
    question="how far the host is ahead",
    title="A full launch queue",
    label="Full launch queue",
    cause="a full launch queue",
    lost_as="idle",
    judge=queue_full,
    role="aside",
    applies=never,
    wrong_if="The launch calls wait for another reason, such as a lock of the driver.",
)
