"""The kinds of points and dependencies that a dependency graph consists of."""

from __future__ import annotations

# What a point (node) is.
START, CALL_BEGINS, CALL_ENDS, MARK, EVENT_STARTS, EVENT_ENDS = range(6)

KINDS = (
    "origin",  # a fixed offset from the first point: the recording does not show what it depends on
    "host",  # the host between two calls of a thread
    "call",  # a call's own time
    "waiting_call",  # the own time of a call that also waits: at least that long, whatever it waits for
    "handoff",  # another thread lets this one go on
    "launch",  # a call begins -> the device event that it launched starts
    "launch_first",  # the same for the first event of a stream, whose delay is taken as it was
    "stream",  # the event before on the stream ends -> the event starts
    "orphan",  # the same for an event without a recorded launch: the gap is taken as it was
    "wait",  # a recorded wait of a stream for an event of another one
    "collective",  # a collective waits for work of other streams, or that for a collective
    "late",  # an unexplained start just after work on another stream ended
    "device",  # a device event starts -> it ends
    "sync",  # the awaited device event ends -> the synchronising call returns
    "copy",  # a copy ends -> the blocking call that ordered it returns
    "queue",  # the launch queue is full: an earlier launch is done -> the call returns
)
(
    ORIGIN, HOST, CALL, WAITING_CALL, HANDOFF, LAUNCH, LAUNCH_FIRST, STREAM, ORPHAN, WAIT, COLLECTIVE, LATE,
    DEVICE, SYNC, COPY, QUEUE,
) = range(len(KINDS))  # fmt: skip

INFERRED = (HANDOFF, ORPHAN, COLLECTIVE, LATE, COPY, QUEUE)
"""Dependencies that no event records; of the kind SYNC, some are recorded (see `Graph.inferred`)."""

ON_HOST = (HOST, CALL, WAITING_CALL, HANDOFF)
"""Time of a host thread."""
