"""Links between events: device work to its launch, host calls to callers, backward calls to forward ones.

All links are row positions within one rank, -1 for none. Nothing is guessed: a device event whose launching
call was not recorded has no launch and is counted in the trace's health.
"""

import numpy as np
import pandas as pd

from hta_widgets.arrays import Bool, Int16, Int32, Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.ordering import order_of_nesting
from hta_widgets.trace.reader.schema import NULL


def launches(
    correlation: Int64, start: Int64, is_device: Bool, is_call: Bool, is_launch: Bool | None = None
) -> Int32:
    """For each device row the host call that launched it: the call with the same correlation id.

    One call may launch many rows (CUDA and HIP graphs). The ids 0 and null mean "none".

    Args:
        is_launch: calls that put work on a queue, which come first where several share an id; None: all.
    """
    launch = np.full(len(start), -1, np.int32)
    usable = (correlation != NULL) & (correlation != 0)
    device = np.flatnonzero(is_device & usable)
    calls = np.flatnonzero(is_call & usable)
    is_launch = is_call if is_launch is None else is_launch
    found = first_calls(correlation[device], correlation[calls], start[calls], is_launch[calls])
    launch[device] = np.append(calls, -1)[found]
    return launch


def launches_by_operator(
    launch: Int32, external_id: Int64, start: Int64, untied: Bool, is_call: Bool
) -> None:
    """Complete `launches` for device rows without a correlation, as ROCm writes them for communication.

    An operator with one such row and one launch that nothing else answers made it by that launch; where it
    has several of either, which made which is unknown.

    Args:
        launch: what is completed.
        external_id: the operator of each row, NULL or 0 for none.
        untied: the device rows without a correlation.
        is_call: the launching calls that launched nothing else.
    """
    known = (external_id != NULL) & (external_id != 0)
    sides = []
    for rows in (np.flatnonzero(untied & known), np.flatnonzero(is_call & known)):
        ids, first, count = np.unique(external_id[rows], return_index=True, return_counts=True)
        sides.append((ids[count == 1], rows[first[count == 1]]))
    (device_ids, device), (call_ids, call) = sides
    _, at_device, at_call = np.intersect1d(device_ids, call_ids, assume_unique=True, return_indices=True)
    device, call = device[at_device], call[at_call]
    after = start[call] <= start[device]
    launch[device[after]] = call[after]


def first_calls(wanted: Int64, correlation: Int64, start: Int64, is_launch: Bool) -> Int64:
    """Position of the call that launched work with each wanted correlation id, -1 for none.

    Several calls may carry an id: a runtime call and the driver call inside it, or a launch and the query
    beside it. The first to start is taken among those that launch, else among all. The calls have an id.
    """
    if not len(wanted) or not len(correlation):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(correlation, kind="stable")  # quick: ids rise with time
    ids = correlation[order]
    shared = np.zeros(len(ids) + 1, np.bool_)
    shared[1:-1] = ids[1:] == ids[:-1]
    places = np.flatnonzero(shared[1:] | shared[:-1])
    rows = order[places]
    order[places] = rows[np.lexsort((start[rows], ~is_launch[rows], correlation[rows]))]
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[at] == wanted, order[at], -1)


def from_before(launch: Int32, is_device: Bool, device: Int64, stream: Int64, start: Int64) -> Int64:
    """Positions of the device rows without a launch that run before the first launched row of a stream."""
    rows = np.flatnonzero(is_device)
    orphans = launch[rows] < 0
    if not orphans.any() or orphans.all():
        return np.empty(0, np.int64)
    devices, streams = pd.factorize(device[rows])[0], pd.factorize(stream[rows])[0]
    lane = devices * (int(streams.max()) + 1) + streams
    first = np.full(int(lane.max()) + 1, np.iinfo(np.int64).min, np.int64)  # of a stream without any: never
    linked = rows[~orphans]
    order = np.argsort(-start[linked], kind="stable")
    first[lane[~orphans][order]] = start[linked[order]]
    return rows[orphans & (start[rows] < first[lane])]


def nesting(
    start: Int64, end: Int64, lane: Int64, rank_in_tie: Int64, by_start: Int64 | None = None
) -> tuple[Int32, Int16]:
    """Caller and depth of each row by containment in time on its lane.

    Args:
        lane: rows nest only within the same lane; negative: the row takes no part (parent -1, depth -1).
        rank_in_tie: of rows with the same start and end the lower one is the caller; then file order.
        by_start: all rows by start, where that is known.

    Returns:
        parent: the innermost row of the lane that contains the row, -1 at the top.
        depth: number of open rows around it; rows of one lane and depth never overlap. A row that only partly
            overlaps the one before it is one deeper, but not its child.
    """
    parent, depth = np.full(len(start), -1, np.int32), np.full(len(start), -1, np.int16)
    rows = order_of_nesting(lane, start, end, rank_in_tie, by_start)
    if len(rows):
        _nest(rows, start, end, lane, parent, depth)
    return parent, depth


@kernel
def _nest(rows: Int64, start: Int64, end: Int64, lane: Int64, parent: Int32, depth: Int16) -> None:
    stack = np.empty(len(rows), np.int64)
    top = 0
    for i in range(len(rows)):
        row = rows[i]
        if i and lane[row] != lane[rows[i - 1]]:
            top = 0
        while top and end[stack[top - 1]] <= start[row]:
            top -= 1
        # Partly overlapping rows leave ends on the stack that are not nested: look further down for the
        # container.
        below = top
        while below and end[stack[below - 1]] < end[row]:
            below -= 1
        parent[row] = stack[below - 1] if below else -1
        depth[row] = min(top, 32767)
        stack[top] = row
        top += 1


def forward_calls(is_backward: Bool, sequence_number: Int64, start: Int64) -> Int32:
    """For each backward row the forward call it differentiates, by the autograd sequence number.

    Several forward rows may share a number (an operator and the ones it calls): the last to start is the one
    that created the graph node.
    """
    link = np.full(len(start), -1, np.int32)
    numbered = sequence_number != NULL
    forward = np.flatnonzero(numbered & ~is_backward)
    backward = np.flatnonzero(numbered & is_backward)
    if not len(forward) or not len(backward):
        return link
    forward = forward[np.lexsort((start[forward], sequence_number[forward]))]
    ids = sequence_number[forward]
    at = np.maximum(np.searchsorted(ids, sequence_number[backward], side="right") - 1, 0)
    found = (ids[at] == sequence_number[backward]) & (start[forward[at]] <= start[backward])
    link[backward[found]] = forward[at[found]]
    return link


def windows_of(start: Int64, window_start: Int64, window_end: Int64) -> Int32:
    """Position of the window [start, end) that holds each time, -1 if none; windows sorted and disjoint."""
    if not len(window_start):
        return np.full(len(start), -1, np.int32)
    at = np.searchsorted(window_start, start, side="right") - 1
    inside = (at >= 0) & (start < window_end[np.maximum(at, 0)])
    return np.where(inside, at, -1).astype(np.int32)


def overlapping(start: Int64, end: Int64, windows: Int64) -> Bool:
    """Which rows overlap windows, int64[k, 2], sorted and disjoint; one of zero length where it starts."""
    found = np.zeros(len(start), np.bool_)
    if len(windows):
        _overlap(start, end, windows, found)
    return found


@kernel
def _overlap(start: Int64, end: Int64, windows: Int64, found: Bool) -> None:
    for i in range(len(start)):
        # the last window that begins before the row ends is the only candidate
        at = np.searchsorted(windows[:, 0], max(end[i], start[i] + 1)) - 1
        found[i] = at >= 0 and windows[at, 1] > start[i]
