"""Launches whose work was not recorded, and work whose launch was not: what a profiler dropped.

Of 179,087 launches of kernels, graphs and copies in real recordings every one has its work, but for those
that a stream capture records into a graph. So a single launch without work is evidence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.classify import EventClass, category_of
from hta_widgets.trace.ordering import order_in_groups, rows_with
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.records.work import launching

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

_CAPTURE = re.compile(r"^(?:cuda|hip|cu|mu)StreamBeginCapture|^(?:cuda|hip|cu|mu)StreamEndCapture")
_GRAPH = re.compile(r"GraphLaunch")
# What the slower ones of like launches took; of collectives, which wait for others, the longest.
_SLOW = 0.9


@dataclass(frozen=True)
class Losses:
    """What a rank's file lacks."""

    launches: Int64  # rows of the calls that device work always follows, one for each id
    # those of them whose work is not recorded; captured: of these, those of stream captures
    unanswered: Int64
    captured: Int64
    lost: Int64  # the unanswered ones that are neither captured nor accounted for by work without an id
    took: Int64  # ns that the work of each lost launch would take
    unlinked: int  # device records without an id of their own, which could be the work of any launch
    # rows of device work without a call though its queue had begun with work that has one, and though calls
    # of the same work are recorded elsewhere
    uncalled: Int64
    # the same of work none of whose calls is recorded: of a kind that the recorder does not see
    unseen: Int64
    captures: Int64  # int64[k, 2], when streams were captured, ns
    # how many launches are lost in a row at the start and at the end
    leading: int
    trailing: int


def losses_of(rank_trace: RankTrace) -> Losses:
    """What the file of a rank lacks."""
    launches = _launches(rank_trace)
    ids, unlinked = _recorded_work(rank_trace)
    answered = np.isin(rank_trace.correlation[launches], ids)
    unanswered = launches[~answered]
    captures = _captures(rank_trace)
    inside = _within(rank_trace.start[unanswered], captures)
    lost = unanswered[~inside]
    if len(lost) <= unlinked:
        lost = lost[:0]
    is_lost = np.zeros(rank_trace.n, np.bool_)
    is_lost[lost] = True
    in_turn = is_lost[launches[np.argsort(rank_trace.start[launches], kind="stable")]]
    return Losses(
        launches, unanswered, unanswered[inside], lost, _would_take(rank_trace, lost), unlinked,
        *_uncalled(rank_trace), captures, _run(in_turn), _run(in_turn[::-1]),
    )  # fmt: skip


def without_launch(rank_trace: RankTrace) -> int:
    """How many device records lack a launch that the recorder should have written."""
    rows = np.flatnonzero(rank_trace.is_device & (rank_trace.launch < 0))
    by_design = np.array([category_of(text).strict for text in rank_trace.categories], np.bool_)
    rows = rows[~by_design[rank_trace.category[rows]]]
    has_calls = bool((rank_trace.event_class == EventClass.RUNTIME).any())
    return len(rows) - len(rank_trace.losses.unseen) if has_calls and len(rows) else 0


def _launches(rank_trace: RankTrace) -> Int64:
    """Calls that device work always follows; of those that share an id the first."""
    rows = np.flatnonzero(rank_trace.event_class == EventClass.RUNTIME)
    rows = rows[launching(rank_trace.name[rows], rank_trace.names)]
    correlation = rank_trace.correlation[rows]
    rows = rows[(correlation != NULL) & (correlation != 0)]
    rows = rows[np.argsort(rank_trace.start[rows], kind="stable")]
    ids = rank_trace.correlation[rows]
    if (ids[1:] <= ids[:-1]).any():  # else each is a new one, as of one thread
        rows = rows[np.unique(ids, return_index=True)[1]]
    return np.sort(rows, kind="stable")


def _recorded_work(rank_trace: RankTrace) -> tuple[Int64, int]:
    """The ids of all device work of the file, also of records without a time, and how many have none."""
    table = rank_trace.table
    kinds = [category_of(text).device for text in table.dictionary("category")]
    device = np.array([*kinds, False], np.bool_)[table.codes("category")]
    device &= table.codes("phase") == _code(table.dictionary("phase"), "X")
    events, ids = table.sparse("correlation")
    ids = ids[device[events]]
    own = ids[(ids != NULL) & (ids != 0)]
    if any(text == "mtia_ccp_events" for text in table.dictionary("category")):
        return own, 0  # whose transfers carry no id, by design
    named = np.array([bool(_GRAPH.search(text)) for text in rank_trace.names], np.bool_)
    graphs = rows_with(rank_trace.name, named)
    distinct, count = np.unique(own, return_counts=True)
    surplus = (count[~np.isin(distinct, rank_trace.correlation[graphs])] - 1).sum()
    return own, int(device.sum()) - len(own) + int(surplus)


def _code(texts: list[str], text: str) -> int:
    return texts.index(text) if text in texts else len(texts)


def _captures(rank_trace: RankTrace) -> Int64:
    """When streams were captured; a capture that began before the recording, or outlasts it, is cut there."""
    edge = np.array([bool(_CAPTURE.search(text)) for text in rank_trace.names], np.bool_)
    rows = rows_with(rank_trace.name, edge)
    if not len(rows):
        return np.empty((0, 2), np.int64)
    begins = np.array(["BeginCapture" in text for text in rank_trace.names], np.bool_)[rank_trace.name[rows]]
    spans = []
    for pid in np.unique(rank_trace.pid[rows]).tolist():
        own = rank_trace.pid[rows] == pid
        started = np.sort(rank_trace.start[rows[own & begins]])
        ended = np.sort(rank_trace.start[rows[own & ~begins]])
        times = np.concatenate([started, ended])
        step = np.concatenate([np.ones(len(started), np.int64), -np.ones(len(ended), np.int64)])
        order = np.argsort(times, kind="stable")
        times, depth = times[order], np.cumsum(step[order])
        depth -= min(0, int(depth.min()))  # ends without a beginning: it lies before the recording
        first, last = rank_trace.extent
        times, depth = np.append(first, times), np.append(max(0, int(depth[0] - step[order][0])), depth)
        until = np.append(times[1:], last + 1)
        spans += [
            (a, b)
            for a, b, open_ in zip(times.tolist(), until.tolist(), depth.tolist(), strict=True)
            if open_
        ]
    return np.array(sorted(spans), np.int64).reshape(-1, 2)


def _within(times: Int64, spans: Int64) -> Bool:
    inside = np.zeros(len(times), np.bool_)
    for first, last in spans.tolist():
        inside |= (times >= first) & (times < last)
    return inside


def _would_take(rank_trace: RankTrace, lost: Int64) -> Int64:
    """How long the missing work of launches would take: as the slower ones of the same operator did."""
    if not len(lost):
        return np.empty(0, np.int64)
    work = np.flatnonzero(rank_trace.is_device & (rank_trace.launch >= 0) & ~rank_trace.estimated)
    if not len(work):
        work = rank_trace.device_rows
    if not len(work):
        return np.zeros(len(lost), np.int64)
    issuer = rank_trace.issuer[work].astype(np.int64)
    by, wanted = np.split(_operators(rank_trace, np.append(issuer, lost)), [len(issuer)])
    by = np.where(issuer >= 0, by, -1)
    waits = rank_trace.event_class[work] == EventClass.COMMUNICATION
    unknown = int(np.quantile(rank_trace.dur[work], 0.95))
    alike = np.flatnonzero(np.isin(by, wanted[wanted >= 0]))  # few of all
    order = alike[order_in_groups(by[alike], rank_trace.dur[work[alike]])]
    by, took = by[order], np.append(rank_trace.dur[work[order]], unknown)
    first, last = (np.searchsorted(by, wanted, side) for side in ("left", "right"))
    longest = np.isin(wanted, by[waits[order]])
    share = np.where(longest, 1.0, _SLOW)
    at = first + np.floor(share * np.maximum(last - first - 1, 0)).astype(np.int64)
    return np.where(last > first, took[at], unknown)


def _operators(rank_trace: RankTrace, called: Int64) -> Int64:
    """The name of the operator that called each of these rows, by the id that both carry; -1 for none."""
    operators, ids = rank_trace.recorded("external_id")
    is_operator = (rank_trace.event_class[operators] == EventClass.HOST_OP) & (ids > 0)
    operators, ids = operators[is_operator], ids[is_operator]
    if not len(operators):
        return np.full(len(called), -1, np.int64)
    order = np.argsort(ids, kind="stable")
    operators, ids = operators[order], ids[order]
    external = rank_trace.argument_of("external_id", called)
    at = np.minimum(np.searchsorted(ids, external), len(ids) - 1)
    return np.where(ids[at] == external, rank_trace.name[operators[at]], -1).astype(np.int64)


def _uncalled(rank_trace: RankTrace) -> tuple[Int64, Int64]:
    """Device work with an id but no call, after work of its queue whose call is recorded: dropped, unseen."""
    orphans = rank_trace.is_device & (rank_trace.launch < 0) & (rank_trace.correlation > 0)
    rows = np.flatnonzero(orphans)
    if not len(rows) or not (rank_trace.launch >= 0).any():
        return rows[:0], rows[:0]
    early = np.zeros(rank_trace.n, np.bool_)
    early[rank_trace.earlier_work] = True
    linked = np.flatnonzero(rank_trace.launch >= 0)
    begun = np.isin(rank_trace.thread[rows], rank_trace.thread[linked])
    strict = np.array([category_of(text).strict for text in rank_trace.categories], np.bool_)
    rows = rows[~early[rows] & begun & ~strict[rank_trace.category[rows]]]
    seen = np.zeros(len(rank_trace.names), np.bool_)
    seen[rank_trace.name[linked]] = True
    is_seen = seen[rank_trace.name[rows]]
    return rows[is_seen], rows[~is_seen]


def _run(lost: Bool) -> int:
    """How many are lost in a row at the start."""
    return len(lost) if lost.all() else int(lost.argmin())
