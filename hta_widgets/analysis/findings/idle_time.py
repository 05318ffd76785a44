"""Idle time of one cause: how much of it is judged, and where the host was meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, Said, Text, say, says
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.call_time import open_time
from hta_widgets.analysis.findings.callers import around_text, open_in, place_claim
from hta_widgets.analysis.findings.host_time import marks_steps
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.idle.causes import IdleCauses, blocked_threads, is_synchronising, named
from hta_widgets.analysis.idle.pauses import LEAST_NS
from hta_widgets.analysis.idle.places import Place, host_places, recorded_by_host
from hta_widgets.analysis.replay.host_points import ALLOCATES
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.graph_replays import GRAPH_LAUNCH
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL

# From this share on, one gap is what a loss is about, and most of a time is all that can be said of it.
MOST = 0.5
_NEARLY_ALL = 0.9
_MORE = 1.2
"""A region holds so many times as much of a loss as of all time, or that it holds it says nothing."""
_MENTIONED = 2


@dataclass(frozen=True)
class Where:
    """Where the host was during an idle time."""

    cause: str  # of the idle time
    rank: int
    idle: Intervals  # when it is, on `rank`
    places: list[Place]  # the calls that it was in
    recorded_ns: int  # how much of the time lies in recorded calls
    gap: tuple[int, int]  # the longest piece, (start, end)
    # an event that shows why: a call that is open then, or else what ends it; None if nothing
    shown_by: int | None
    drained_ns: int = 0  # how much of it lies in gaps that begin while the host waits for the device
    # the call in which it waits before most of that; "" if that is less than half of the time
    drained_by: str = ""
    # how much of it lies in replays of graphs, and right before one that is queued already
    in_replays_ns: int = 0
    between_replays_ns: int = 0
    # the annotation in which nearly all of it lies, and not as much of the other time; "" for none
    region: str = ""
    region_ns: int = 0

    @property
    def longest_ns(self) -> int:
        return self.gap[1] - self.gap[0]

    @property
    def recorded(self) -> bool:
        """Whether no less than half of the time lies in recorded calls."""
        return self.recorded_ns >= MOST * self.idle.length

    @property
    def long(self) -> bool:
        """Whether no less than half of the time lies in gaps of a millisecond or more."""
        lengths = self.idle.end - self.idle.start
        return bool(lengths[lengths >= LEAST_NS].sum() >= MOST * self.idle.length)

    @property
    def allocates(self) -> bool:
        """Whether most of it lies in calls of the driver for memory."""
        return bool(self.places) and bool(ALLOCATES.search(self.places[0].name))

    @property
    def only_allocates(self) -> bool:
        """Whether no other call holds a noticeable part of it."""
        return all(ALLOCATES.search(place.name) for place in self.places)

    @property
    def once(self) -> bool:
        """Whether half of the time or more lies in the longest gap."""
        return self.longest_ns >= MOST * self.idle.length

    def text(self, of_several: bool) -> Text:
        """`. 73 % of it lies in f. The longest gap is 3.00 ms`: few numbers each.

        of_several: the idle time is that of several ranks, of which this is one: `. On rank 5, 73 % of it`.
        """
        rank = Claim("idle_most_on", (self.rank,), "ranks", about={"cause": self.cause})
        on = say("On {rank}, ", rank=rank) if of_several else NOTHING_SAID
        where = NOTHING_SAID
        for each in self._sentences(of_several):
            where += say(". {on}{each}", on=on, each=each)
        return where

    def _sentences(self, of_several: bool) -> Iterator[Said]:
        whole = self.idle.length
        mostly = len(self.places) == 1 and self.places[0].idle_ns >= MOST * whole
        parts: list[Said] = [
            say(
                "{share}{of_it} in {place}{around}",
                share=self._part("idle_in_call", place.idle_ns, call=place.name),
                of_it=" of it lies" * (not nth),
                place=place_claim(
                    "most_idle_in" if mostly else "idle_in",
                    place.name,
                    self.rank,
                    place.within,
                    cause=self.cause,
                    nth=nth,
                ),
                around=around_text(self.rank, place.name, place.within),
            )
            for nth, place in enumerate(self.places[:_MENTIONED])
        ]
        if parts:
            yield says(parts)
        told = {name for place in self.places for name in (place.name, *place.within)}
        if self.region and self.region not in told:
            share = self._part("idle_in_region", self.region_ns, region=self.region)
            region = place_claim("region_of_idle", self.region, self.rank, cause=self.cause)
            yield say("{share} of it lies in {region}", share=share, region=region)
        if not self.recorded:
            unrecorded = self._part("idle_unrecorded", whole - self.recorded_ns)
            what = "no call" if parts else "nothing"
            yield say("{share} of it lies where the host recorded {what}", share=unrecorded, what=what)
        longest = Claim("longest_idle", self.longest_ns, "ns", "", (self.rank,), {"cause": self.cause})
        the = "the" if of_several else "The"
        yield say(
            "{longest} of it lies in one gap" if self.once else f"{the} longest gap is {{longest}}",
            longest=longest,
        )
        if self.drained_by:
            yield say(
                "{share} of it lies after the host had waited in {call} until the device had nothing left "
                "to do",
                share=self._part("idle_drained", self.drained_ns),
                call=place_claim("drained_by", self.drained_by, self.rank, cause=self.cause),
            )
        if self.of_graphs:
            place, ns = max(("inside", self.in_replays_ns), ("between", self.between_replays_ns), key=_second)
            yield say(
                "{share} of it lies {place} replays of graphs",
                share=self._part(f"idle_{place}_replays", ns),
                place=place,
            )

    @property
    def of_graphs(self) -> bool:
        """Whether half of it or more lies in replays of graphs, or between them."""
        return self.in_replays_ns + self.between_replays_ns >= MOST * self.idle.length

    def _part(self, measure: str, idle_ns: int, **about: str) -> Claim:
        share, about = 100.0 * idle_ns / self.idle.length, {"cause": self.cause, **about}
        return Claim(measure, share, "%", "idle_by_cause", (self.rank,), about)


def _second(pair: tuple[str, int]) -> int:
    return pair[1]


@dataclass(frozen=True)
class Cause:
    """A cause of `idle_breakdown`, and what is looked for in its time."""

    cause: str  # its name
    reason: str  # how a sentence ends with it
    advise: Callable[[Inputs, Where], str]  # what to try
    title: str = ""  # of its rule, where its findings name a region
    waits_for_host: bool = True  # what the host does then is why; else it may lie in replays of graphs
    known: Callable[[str], bool] = lambda name: False  # calls that say no more than the cause does
    shown_by: Callable[[str], bool] | None = None  # names of calls that are open then; default: the places
    host_ahead: bool = False  # it matters whether the host could have been ahead


def idle_of(inputs: Inputs, rank: int, cause: str) -> Intervals:
    """The judged idle time of a cause; start-up and pauses have findings of their own."""
    return (inputs.idle_causes(rank).causes[cause] & inputs.judged_time(rank)) - _apart(inputs, rank, cause)


def _apart(inputs: Inputs, rank: int, cause: str) -> Intervals:
    apart = inputs.paused(rank).both if cause == "host_busy" else Intervals.union([], [])
    return apart | inputs.start_up[rank].idle if rank in inputs.start_up else apart


def apart_ns(inputs: Inputs, ranks: list[int], cause: str) -> dict[str, int]:
    """What of a cause counts as start-up or pauses, on the ranks that have any."""
    found = {
        rank: (inputs.idle_causes(rank).causes[cause] & inputs.judged_time(rank) & apart).length
        for rank in ranks
        if (apart := _apart(inputs, rank, cause))
    }
    return {str(rank): ns for rank, ns in found.items() if ns}


def where_of(inputs: Inputs, rank: int, cause: Cause) -> Where:
    """What is known of the host on one rank during its idle time of a cause."""
    rank_trace, idle = inputs.trace.rank(rank), inputs.idle_causes(rank)
    windows = rank_trace.windows(inputs.scope)
    part = idle_of(inputs, rank, cause.cause)
    gap = part.longest
    places: list[Place] = []
    recorded = part.length
    if cause.waits_for_host:
        places = host_places(rank_trace, idle, part, windows, known=cause.known)
        if cause.cause == "host_busy":  # the cause itself does not say what the host does:
            recorded = recorded_by_host(rank_trace, idle, part, windows)
            if recorded < MOST * part.length:  # the whole loop, as a region, says nothing of it
                places = [place for place in places if not place.everywhere]
    row = open_in(rank_trace, gap, cause.shown_by or {place.name for place in places}.__contains__)
    if row < 0:
        row = int(idle.next_row[idle.gaps.end.searchsorted(gap[1])])
    return Where(
        cause.cause,
        rank,
        part,
        places,
        recorded,
        gap,
        None if row < 0 else int(rank_trace.event_id[row]),
        *(_drained(rank_trace, idle, part) if cause.host_ahead else (0, "")),
        *(_replays(rank_trace, idle, part) if not cause.waits_for_host else (0, 0)),
        *(_region(inputs, rank, part) if cause.host_ahead else ("", 0)),
    )


def _region(inputs: Inputs, rank: int, part: Intervals) -> tuple[str, int]:
    """`region` and `region_ns` of a part of the idle time."""
    rank_trace, judged = inputs.trace.rank(rank), inputs.judged_time(rank)
    regions = (rank_trace.event_class == EventClass.ANNOTATION) & ~rank_trace.is_device
    launching = np.unique(rank_trace.thread[rank_trace.issuer[rank_trace.launch >= 0]])
    regions &= (rank_trace.stream == NULL) & np.isin(rank_trace.thread, launching) & ~marks_steps(rank_trace)
    rows = np.flatnonzero(regions)
    names, least = rank_trace.name[rows], _NEARLY_ALL * part.length
    found: list[tuple[int, str, int]] = []
    # those of other names are together too short
    for code in np.flatnonzero(np.bincount(names, rank_trace.dur[rows]) >= max(least, 1)).tolist():
        open_ = open_time(rank_trace, rows[names == code]) & judged
        inside = (open_ & part).length
        if inside >= least and inside * judged.length >= _MORE * open_.length * part.length:
            found.append((open_.length, rank_trace.names[code], inside))
    _, name, inside = min(found, default=(0, "", 0))
    return name, inside


def _replays(rank_trace: RankTrace, idle: IdleCauses, part: Intervals) -> tuple[int, int]:
    """`in_replays_ns` and `between_replays_ns` of a part of the idle time."""
    graph = named(rank_trace, GRAPH_LAUNCH.match)
    work = rank_trace.launched
    begins = np.full(rank_trace.n, np.iinfo(np.int64).max)
    np.minimum.at(begins, rank_trace.launch[work], rank_trace.start[work])
    row = idle.next_row[np.searchsorted(idle.gaps.end, part.end)]
    launch = rank_trace.launch[row]
    of_graph = (launch >= 0) & graph[launch]
    first = begins[launch] == rank_trace.start[row]
    lengths = part.end - part.start
    return int(lengths[of_graph & ~first].sum()), int(lengths[of_graph & first].sum())


def _drained(rank_trace: RankTrace, idle: IdleCauses, part: Intervals) -> tuple[int, str]:
    """`drained_ns` and `drained_by` of a part of the idle time."""
    begins = idle.gaps.start[idle.gaps.end.searchsorted(part.end)]
    moments, lengths = np.stack([begins - 1, begins + 1], 1), part.end - part.start
    drained = lengths[blocked_threads(rank_trace).within_each(moments) > 0].sum()
    if drained < MOST * part.length:
        return int(drained), ""
    found = []
    for code in np.flatnonzero([is_synchronising(name) for name in rank_trace.names]).tolist():
        rows = np.flatnonzero((rank_trace.name == code) & ~rank_trace.is_device)
        calls = Intervals.union(rank_trace.start[rows], rank_trace.end[rows])
        before = lengths[calls.within_each(moments) > 0].sum()
        found.append((int(before), calls.length, rank_trace.names[code]))
    return int(drained), max(found)[2]  # of calls in each other the outermost takes longest
