"""The device side: why each event started when it did (its stream, its launch, or another stream)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.replay.device_events import device_rows
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.waits import stream_waits

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

__all__ = ["ALL", "PROMPT_NS", "Device", "device_rows", "device_side", "group_of"]

ALL = 0
# Where waits between streams are not recorded: an event that waited longer than a launch or the switch to the
# next kernel ever takes (both stay below 10 us on every trace at hand), and that started within that time of
# the end of work on another stream, waited for that work.
PROMPT_NS = 10_000


class Device(NamedTuple):
    """The device side of a rank: its work by (end, start, row), called positions.

    Attributes (int64 unless said otherwise):
        row, start, end: the event.
        previous: position of the last event on the same stream that ended before it started, -1 for none.
        source: position of an event on another stream that it waited for, -1 for none.
        inferred: bool, `source` is concluded from the times, not recorded.
        handed: when its launch handed it over at the latest: the end of the call, or its own start if that
            came first; NULL without a launch.
        called: when it may have been handed over: as `handed`, but the start of a call that was still open
            (a copy that returns when it is done): work that ended since then is the better explanation.
        thread: thread index of the launch, -1 without one.
        group_key: (device, stream) of each group; group 0 is all work, then whole devices (stream NULL), then
            streams.
        group_offset, group_items: the positions of each group, ascending.
    """

    row: Int64
    start: Int64
    end: Int64
    previous: Int64
    source: Int64
    inferred: Bool
    handed: Int64
    called: Int64
    thread: Int64
    group_key: Int64
    group_offset: Int64
    group_items: Int64


def device_side(rank_trace: RankTrace, thread: Int64, threads: Int64) -> Device:
    """The device side of one rank.

    Args:
        thread: thread number of each row; ``threads``: thread number of each thread index, ascending.
    """
    row = device_rows(rank_trace)
    row = row[np.lexsort((row, rank_trace.start[row], rank_trace.end[row]))]
    start, end = rank_trace.start[row], rank_trace.end[row]
    keys, offset, items = _groups(rank_trace.device[row], rank_trace.stream[row])
    previous = np.full(len(row), -1, np.int64)
    for group in np.flatnonzero(keys[:, 1] != NULL).tolist():
        on_stream = items[offset[group] : offset[group + 1]]
        before = np.searchsorted(end[on_stream], start[on_stream], side="right") - 1
        # Work of zero length ends when it starts, but never precedes itself.
        before = np.minimum(before, np.arange(len(on_stream)) - 1)
        previous[on_stream] = np.where(before >= 0, on_stream[before], -1)
    launch = rank_trace.launch[row].astype(np.int64)
    launched = launch >= 0
    handed = np.where(launched, np.minimum(rank_trace.end[launch], start), NULL)
    called = np.where(launched & (rank_trace.end[launch] > start), rank_trace.start[launch], handed)
    called = np.minimum(called, handed)
    source, inferred = _sources(rank_trace, row, start, end, previous, called)
    return Device(
        row=row,
        start=start,
        end=end,
        previous=previous,
        source=source,
        inferred=inferred,
        handed=handed,
        called=called,
        thread=np.where(launched, np.searchsorted(threads, thread[launch]), -1).astype(np.int64),
        group_key=keys,
        group_offset=offset,
        group_items=items,
    )


def group_of(device: Device, gpu: int, stream: int) -> int:
    """The group of a stream (NULL: of the whole device); an unknown device means all of them."""
    found = np.flatnonzero((device.group_key[:, 0] == gpu) & (device.group_key[:, 1] == stream))
    if not len(found) and stream != NULL:
        found = np.flatnonzero(device.group_key[:, 1] == stream)
    return int(found[0]) if len(found) else ALL


def _groups(gpu: Int64, stream: Int64) -> tuple[Int64, Int64, Int64]:
    """Keys, offsets and positions of: everything, each device, each stream."""
    keys, members = [(NULL, NULL)], [np.arange(len(gpu))]
    for gpu_id in np.unique(gpu).tolist():
        keys.append((gpu_id, NULL))
        members.append(np.flatnonzero(gpu == gpu_id))
    for gpu_id in np.unique(gpu).tolist():
        for number in np.unique(stream[gpu == gpu_id]).tolist():
            keys.append((gpu_id, number))
            members.append(np.flatnonzero((gpu == gpu_id) & (stream == number)))
    offset = np.cumsum([0, *(len(member) for member in members)]).astype(np.int64)
    return np.array(keys, np.int64), offset, np.concatenate(members).astype(np.int64)


def _sources(
    rank_trace: RankTrace, row: Int64, start: Int64, end: Int64, previous: Int64, called: Int64
) -> tuple[Int64, Bool]:
    """Position of the work on another stream that each event waited for, and whether that is inferred."""
    source = np.full(len(row), -1, np.int64)
    at = np.arange(len(row))
    if (rank_trace.event_class == EventClass.SYNC).any():
        position = np.full(rank_trace.n, -1, np.int64)
        position[row] = at
        effect, cause = stream_waits(rank_trace)
        effect, cause = position[effect], position[cause]
        # Work that ended after the event started is not its cause. Of several causes, the last to end counts.
        sound = (effect >= 0) & (cause >= 0) & (cause < effect)
        sound[sound] = end[cause[sound]] <= start[effect[sound]]
        np.maximum.at(source, effect[sound], cause[sound])
        return source, np.zeros(len(row), np.bool_)
    arrived = np.maximum(np.where(previous >= 0, end[previous], NULL), called)
    before = np.minimum(np.searchsorted(end, start, side="right") - 1, at - 1)
    known = (before >= 0) & (arrived != NULL)
    late = known & (start - np.where(known, arrived, start) > PROMPT_NS)
    prompt = late & (start - end[before] <= PROMPT_NS) & (end[before] > arrived)
    prompt &= rank_trace.device[row[before]] == rank_trace.device[row]
    return np.where(prompt, before, source), prompt
