"""All-gathers of FSDP units that are sent for in the turn of an earlier unit.

Each takes the place of the all-gather that the earlier turn sends for: it needs that launch instead of its
own, and follows in its stream what was launched before that. What it and its stream had waited for on other
streams, it now waits for as of then.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.collectives import described
from hta_widgets.analysis.replay.graph import Graph
from hta_widgets.analysis.replay.host_points import DEVICE_WIDE, named
from hta_widgets.analysis.replay.kinds import (
    COLLECTIVE,
    EVENT_STARTS,
    LATE,
    LAUNCH,
    LAUNCH_FIRST,
    ORPHAN,
    STREAM,
    SYNC,
    WAIT,
)
from hta_widgets.analysis.replay.passes import GONE
from hta_widgets.analysis.replay.plan import Plan
from hta_widgets.analysis.strategy.fsdp_passes import RECORD, Passes, passes_of
from hta_widgets.arrays import Int64
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import counted
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import paired, unique
from hta_widgets.trace.rank_trace import RankTrace

_GATHER = "allgather"


@dataclass(frozen=True)
class _Sent:
    """Work that another call launches then."""

    node: int  # of its start
    call: int  # the node of that call
    after: int  # the node that it comes behind
    turn: int  # of its unit
    opened: int  # the first call that launches in the turn in which it was launched
    written: int  # the first call that launches in its forward pass: by then parameters are written


def send_ahead(plan: Plan, units: int, phase: str | None) -> None:
    """Launch the all-gather of each unit in the turn of the unit so many before its own.

    What is copied into its buffer right before it goes with it. An all-gather that is launched that early
    already stays, and none leaves its pass.

    Raises:
        MissingDataError: no FSDP units are told, all their all-gathers are launched that early, or the stream
            that computes also copies into their buffers.
        ValueError: another edit has moved work to other streams.
    """
    if plan.moved.any() or plan.order is not None:
        raise ValueError("work is launched ahead or on another stream once: leave one of these edits out")
    rank_trace = plan.rank_trace
    found = described(rank_trace)
    rows = np.searchsorted(rank_trace.event_id, found["event_id"].to_numpy(np.int32)).astype(np.int64)
    passes = passes_of(rank_trace, found, rows)
    if passes is None:
        raise MissingDataError("FSDP ranges", RECORD)
    if not passes.passes:
        raise MissingDataError("FSDP ranges", "Record whole steps with PyTorch 2.5 or later.", passes.why)
    launch = rank_trace.launch[rows].astype(np.int64)
    gathers = np.flatnonzero((found["collective"] == _GATHER).to_numpy() & (launch >= 0))
    sent = _sent(_Calls(plan.graph, rank_trace), passes, launch, gathers, units, phase)
    if not sent:
        raise MissingDataError(
            "all-gather that could be issued earlier",
            "Ask for more units ahead, or for both passes.",
            f"each is issued {counted(units, 'unit')} ahead already, or when its pass begins",
        )
    _move(plan, sent)


def _sent(
    calls: _Calls, passes: Passes, launch: Int64, gathers: Int64, units: int, phase: str | None
) -> list[_Sent]:
    """What other calls launch then.

    Args:
        launch: row of the call that launches each collective. gathers: which of them gather.
    """
    issued_in = passes.of_launches(calls.rank_trace, launch)
    known = set(gathers.tolist())
    last: dict[int, int] = {}  # the last call of each turn that gathers
    for at in sorted(known, key=lambda at: int(calls.rank_trace.start[launch[at]])):
        last[int(issued_in[at])] = calls.node(int(launch[at]))
    order: dict[tuple[int, str], list[int]] = {}
    for turn, each in enumerate(passes.passes):
        order.setdefault((each.run, each.phase), []).append(turn)
    began = {each.run: each.opened_ns for each in reversed(passes.passes)}
    sent = []
    for (run, of), turns in order.items():
        for place, turn in enumerate(turns if phase in (None, of) else ()):
            earlier = turns[max(place - units, 0)]
            for at in known.intersection(passes.passes[turn].gathers):
                own, opened = calls.node(int(launch[at])), passes.passes[max(issued_in[at], 0)].opened_ns
                call = last.get(earlier, calls.since(passes.passes[earlier].opened_ns))
                if not 0 <= call < own:
                    continue
                after = calls.last(call) if earlier in last else call
                whole = [calls.since(opened), calls.since(began[run])]
                sent += [
                    _Sent(node, call, min(after, node), turn, *whole) for node in calls.sent_with(own, opened)
                ]
    return sent


class _Calls:
    """The calls that launch, by their nodes in a graph, and what they launch."""

    def __init__(self, graph: Graph, rank_trace: RankTrace) -> None:
        self.rank_trace = rank_trace
        edges = np.flatnonzero(np.isin(graph.kind, (LAUNCH, LAUNCH_FIRST)))
        edges = edges[np.argsort(graph.source[edges], kind="stable")]
        self._call, self._event = graph.source[edges].astype(np.int64), graph.target[edges].astype(np.int64)
        self._time = graph.origin_ns + graph.time[self._call]
        row, device = graph.row[self._call], graph.row[self._event]
        self._node = dict(zip(row.tolist(), self._call.tolist(), strict=True))
        self._thread = rank_trace.thread[row]
        event_class, lane = rank_trace.event_class[device], _lanes(graph, rank_trace)[self._event]
        computes = event_class == EventClass.COMPUTE
        spent = pd.Series(rank_trace.dur[device[computes]]).groupby(lane[computes]).sum()
        self._stays = event_class == EventClass.COMMUNICATION
        if len(spent):
            self._stays |= lane == spent.idxmax()

    def node(self, row: int) -> int:
        """The node of a call; -1 if nothing that it launched waits for it."""
        return int(self._node.get(row, -1))

    def last(self, call: int) -> int:
        """The last node of what a call launches."""
        low, high = np.searchsorted(self._call, [call, call + 1])
        return int(self._event[low:high].max()) + 1

    def since(self, time: int) -> int:
        """The first call since a moment; -1 for none."""
        at = int(np.searchsorted(self._time, time))
        return int(self._call[at]) if at < len(self._call) else -1

    def sent_with(self, call: int, since: int) -> list[int]:
        """What a call launches, and what was launched right before since a moment, on streams that do not
        compute: the nodes of their starts."""
        low, high = np.searchsorted(self._call, [call, call + 1]).tolist()
        found: list[int] = self._event[low:high].tolist()
        for at in range(low - 1, -1, -1):
            if self._time[at] < since:
                break
            if self._thread[at] == self._thread[low]:
                if self._stays[at]:
                    break
                found.append(int(self._event[at]))
        return found


def _move(plan: Plan, sent: list[_Sent]) -> None:
    """Let work hang on other launches, and follow in its stream what is launched before."""
    graph, target = plan.graph, plan.graph.target
    count = len(graph.time)
    key, turn = np.arange(count), np.zeros(count, np.int64)
    for each in sent:
        for node in (each.node, each.node + 1):
            key[node], turn[node] = each.after, each.turn + 1
    # of what one call launches: what it did, and then by turns
    order = np.lexsort((np.arange(count), turn, key))
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    lane = _lanes(graph, plan.rank_trace)
    lanes = {of: _InOrder(np.flatnonzero(lane == of), place) for of in unique(lane[lane >= 0]).tolist()}
    of_node = {each.node: each for each in sent}
    touched = unique(lane[list(of_node)])
    follows = np.isin(graph.kind, (STREAM, ORPHAN)) & np.isin(lane[target], touched)
    source, weight, residual = plan.source.copy(), plan.weight.copy(), plan.residual.copy()
    for edge in np.flatnonzero(follows | np.isin(target, list(of_node))).tolist():
        node, kind, before = int(target[edge]), int(graph.kind[edge]), int(graph.source[edge]) - 1
        moved = of_node.get(node)
        if follows[edge]:
            behind = lanes[int(lane[node])].before(int(place[node]))
        elif moved and kind in (LAUNCH, LAUNCH_FIRST):
            source[edge] = moved.call
            continue
        elif moved and before in of_node and of_node[before].turn == moved.turn:
            continue  # what fills its buffer
        elif moved and kind == COLLECTIVE:
            # an inferred wait; of all that is computed it needs the parameters alone
            behind = lanes[int(lane[before])].before(int(place[moved.written]))
        elif moved and kind in (WAIT, LATE) and place[before] > place[node]:
            if kind == WAIT and before > moved.opened:
                raise MissingDataError(
                    "all-gather whose buffer is filled on a stream that does not compute",
                    "Of others no earlier issue is replayed.",
                )
            behind = lanes[int(lane[before])].before(int(place[node]))
        else:
            continue
        if behind < 0:
            weight[edge], residual[edge] = GONE, 0
        elif behind != before:
            source[edge], weight[edge] = behind + 1, graph.gap
    plan.source, plan.weight, plan.residual = source, weight, residual
    plan.order = order.astype(np.int32)
    waits = [
        (edge, behind + 1)
        for edge in _device_waits(graph, plan.rank_trace)
        for of in touched.tolist()
        # launched after the wait as recorded, and before it then
        if (behind := lanes[of].before(int(place[target[edge]]))) > target[edge]
    ]
    plan.add_edges([edge for edge, _ in waits], [node for _, node in waits])


def _lanes(graph: Graph, rank_trace: RankTrace) -> Int64:
    """By node: a number of the stream, of starts of events; else -1."""
    starts = np.flatnonzero(graph.node_kind == EVENT_STARTS)
    rows = graph.row[starts]
    lane = np.full(len(graph.time), -1, np.int64)
    lane[starts] = paired(rank_trace.stream[rows], rank_trace.device[rows])
    return lane


def _device_waits(graph: Graph, rank_trace: RankTrace) -> list[int]:
    """An edge into each end of a call that waits for all work of the device: that of what it waited for."""
    target = graph.target
    edges = np.flatnonzero(graph.kind == SYNC)
    edges = edges[named(rank_trace, DEVICE_WIDE)[rank_trace.name[graph.row[target[edges]]]]]
    return edges[~pd.Series(target[edges]).duplicated().to_numpy()].tolist()


class _InOrder:
    """The events of a stream, by the nodes of their starts, in the order in which they are launched then."""

    def __init__(self, starts: Int64, place: Int64) -> None:
        by = np.argsort(place[starts], kind="stable")
        self._starts, self._places = starts[by].tolist(), place[starts[by]].tolist()

    def before(self, place: int) -> int:
        """The last event before a place in the order of all nodes; -1 for none."""
        at = bisect_left(self._places, place) - 1
        return int(self._starts[at]) if at >= 0 else -1
