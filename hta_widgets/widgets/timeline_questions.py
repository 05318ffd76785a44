"""Answers to what the timeline's view asks about its slices, besides the slices themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.waits import meeting, wait_chain
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.critical_path.replayed import replayed_path
from hta_widgets.analysis.critical_path.summary import sentence
from hta_widgets.analysis.inspect.longest import longest_events
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.timeline import (
    Lanes,
    Matches,
    Packed,
    gap_at,
    matching_kinds,
    pack_path,
    relative,
    same_kind,
    shortest_gap,
    window_sums,
)
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.answer_cache import cached_analysis

_SEARCHES = 4
_MOST_BINS = 4096
_MOST_LISTED = 1000
_MOST_RANKED = 50


class Questions:
    """Answers about one arrangement of slices. Only reads, so that any thread may ask."""

    def __init__(self, trace: Trace, lanes: Lanes, edits: Sequence[Edit] | None = None) -> None:
        """`edits`: the slices lie where a replay puts them."""
        self._trace = trace
        self._lanes = lanes
        self._edits = edits

    def matches(self, params: dict[str, Any]) -> dict[str, Any]:
        """How many slices match and how many begin in each bin of the trace."""
        found = self._search(*_choice(params))
        return {"count": len(found), "bins": found.counts(min(int(params["bins"]), _MOST_BINS)).tolist()}

    def match(self, params: dict[str, Any]) -> dict[str, Any]:
        """The match after, or before, a place."""
        found = self._search(*_choice(params))
        return self._slice(found.beyond(float(params["start"]), int(params["id"]), int(params["step"])))

    def match_page(self, params: dict[str, Any]) -> dict[str, Any]:
        """Some of the matches: by start, or the longest first."""
        found = self._search(*_choice(params))
        first, limit = max(int(params["offset"]), 0), min(int(params["limit"]), _MOST_LISTED)
        page = found.page(self._lanes.dur, params["order"] == "dur", first, limit)
        return {"slices": [slice_payload(self._lanes, position) for position in page.tolist()]}

    def match_frame(self, names: Sequence[str], query: str, ranks: Sequence[int]) -> pd.DataFrame:
        """`TimelineScrubber.matches`."""
        positions = self._search(tuple(names), query, tuple(ranks)).positions
        lanes = self._lanes
        of_lane = [track for track in lanes.tracks for _ in range(track.lanes)]
        tracks = [of_lane[at] for at in np.searchsorted(lanes.offsets, positions, side="right") - 1]
        return pd.DataFrame(
            {
                "rank": np.array([track.rank for track in tracks], np.int64),
                "event_id": lanes.event_id[positions].astype(np.int64),
                "name": pd.Series([lanes.kinds.names[kind] for kind in lanes.kind[positions]], dtype="str"),
                "lane": pd.Series([track.label for track in tracks], dtype="str"),
                "start_ns": lanes.start[positions],
                "dur_ns": lanes.dur[positions],
            }
        )

    def relative(self, params: dict[str, Any]) -> dict[str, Any]:
        """The slice that calls this one, or the first that it calls."""
        to: Literal["parent", "child"] = "parent" if params["to"] == "parent" else "child"
        return self._slice(relative(self._lanes, self._position(params), to))

    def gap(self, params: dict[str, Any]) -> dict[str, Any]:
        """The idle time around a moment on some lanes."""
        return {"gap": gap_at(self._lanes, [int(lane) for lane in params["lanes"]], float(params["t"]))}

    def window_sums(self, params: dict[str, Any]) -> dict[str, Any]:
        """What lies between t0 and t1 on some lanes, summed up."""
        shown = [int(lane) for lane in params["lanes"]]
        return window_sums(self._lanes, int(params["t0"]), int(params["t1"]), shown)

    def same_name(self, params: dict[str, Any]) -> dict[str, Any]:
        """The slice of the same name and rank that begins after, or before, this one."""
        return self._slice(same_kind(self._lanes, self._position(params), int(params["step"])))

    def longest(self, params: dict[str, Any]) -> dict[str, Any]:
        """The longest events of a selection, as `longest_events` has them.

        Raises:
            MissingDataError: there are neither device work nor operators.
        """
        frame = longest_events(self._trace, _scope(params), most=_MOST_RANKED)
        keys = zip(frame["rank"], frame["event_id"], strict=True)
        found = [self._lanes.find(int(rank), int(event_id)) for rank, event_id in keys]
        return {"slices": [slice_payload(self._lanes, position) for position in found if position >= 0]}

    def longest_gaps(self, params: dict[str, Any]) -> dict[str, Any]:
        """Where the longest gaps of devices in a selection lie: lane, start and end, as `idle_gaps` has them.

        While a device is idle, so are all its streams: the gap is looked at on the one that is so most
        briefly.

        Raises:
            MissingDataError: no selected rank has device events.
        """
        frame = cached_analysis(self._trace, "idle_gaps", _scope(params))
        frame = frame.sort_values(
            ["dur_ns", "start_ns", "rank"], ascending=[False, True, True], kind="stable"
        )
        keys = zip(frame["rank"].head(_MOST_RANKED), frame["start_ns"], strict=False)
        gaps = [shortest_gap(self._lanes, int(rank), int(start)) for rank, start in keys]
        return {"gaps": list(dict.fromkeys(gap for gap in gaps if gap is not None))}

    def waits(self, params: dict[str, Any]) -> dict[str, Any]:
        """Who waits for whom at the exchange of this slice, as `meeting` has it; only at recorded times.

        The slice of the rank that arrives last, and those of the others with how long each waits; and where
        the last one had been waiting itself, the same through the exchanges up to the rank that causes it:
        for this slice, or, if it is the last one, for that which waits longest.
        """
        position = self._position(params)
        if self._edits is not None:
            return {"last": None, "waiting": [], "through": []}
        rank, event_id = self._lanes.track_of(position).rank, int(self._lanes.event_id[position])
        frame = meeting(self._trace, rank, event_id)
        keys = zip(frame["rank"].tolist(), frame["event_id"].tolist(), strict=True)
        slices = [slice_payload(self._lanes, self._lanes.find(*key)) for key in keys]
        waited = list(zip(slices, frame["waited_ns"].tolist(), strict=True))[1:]
        return {
            "last": slices[0] if slices else None,
            "waiting": [pair for pair in waited if pair[1] > 0],
            "through": self._through(frame, rank),
        }

    def _through(self, met: pd.DataFrame, rank: int) -> list[dict[str, Any]]:
        """The exchanges behind a `meeting` through which a rank waits, or else the one that waits longest."""
        if met.empty:
            return []
        own = met[(met["rank"] == rank) & (met["waited_ns"] > 0)]
        victim = own.iloc[0] if len(own) else met.iloc[int(met["waited_ns"].to_numpy().argmax())]
        hops = wait_chain(self._trace, int(victim["rank"]), int(victim["event_id"])).iloc[1:]
        waiting, awaited = (
            [
                slice_payload(self._lanes, self._lanes.find(*key))
                for key in zip(hops[of].tolist(), hops[event].tolist(), strict=True)
            ]
            for of, event in (("rank", "event_id"), ("awaited", "awaited_event_id"))
        )
        each = zip(awaited, waiting, hops["event_wait_ns"].tolist(), hops["wait_ns"].tolist(), strict=True)
        return [
            {"last": last, "waiting": [(one, waited)], "whole": whole} for last, one, waited, whole in each
        ]

    def _position(self, params: dict[str, Any]) -> int:
        position = int(params["id"])
        if not 0 <= position < self._lanes.n:
            raise LookupError(f"no slice {position}")
        return position

    def path(self, params: dict[str, Any]) -> Packed:
        """The critical path of the selected ranks, iterations and window; of a replay, of all of it.

        Raises:
            MissingDataError: the trace does not link device work to its launches.
        """
        if self._edits is not None:
            return self._replayed_path(tuple(params.get("ranks") or ()))
        scope = _scope(params)
        frame = cached_analysis(self._trace, "critical_path", scope)
        packed = pack_path(self._lanes, frame)
        packed.layout["message"] = sentence(frame)
        if not scope.iterations and not scope.window_ns and not frame.empty:
            # nothing is selected: the path is that of one iteration, so the message must name it
            table, begun = self._trace.iterations, int(frame["start_ns"].iloc[0])
            whole = table[(table["start_ns"] == begun) & (table["rank"] == frame["rank"].iloc[0])]
            if len(whole):
                packed.layout["message"] = f"{whole['label'].iloc[0]}: {packed.layout['message']}"
        return packed

    def _replayed_path(self, ranks: tuple[int, ...]) -> Packed:
        frame = replayed_path(self._trace, self._edits or (), Scope(ranks=ranks or None))
        packed = pack_path(self._lanes, frame)
        packed.layout["message"] = f"Of the whole replay: {sentence(frame)}"
        return packed

    @memoize_per_rank(last=_SEARCHES)
    def _search(self, names: tuple[str, ...], query: str, ranks: tuple[int, ...]) -> Matches:
        return Matches(self._lanes, matching_kinds(self._lanes.kinds, names, query), ranks)

    def _slice(self, position: int) -> dict[str, Any]:
        return {"slice": None if position < 0 else slice_payload(self._lanes, position)}


def slice_payload(lanes: Lanes, position: int) -> dict[str, Any]:
    """One slice as the view reads it."""
    recorded = lanes.recorded
    was = {} if recorded is None else {"was": [int(recorded[0][position]), int(recorded[1][position])]}
    return {
        **was,
        "id": position,
        "lane": lanes.lane_of(position),
        "start": int(lanes.start[position]),
        "dur": int(lanes.dur[position]),
        "kind": int(lanes.kind[position]),
    }


def _scope(params: dict[str, Any]) -> Scope:
    window = params.get("window")
    return Scope(
        ranks=tuple(params.get("ranks") or ()),
        iterations=tuple(params.get("iterations") or ()),
        window_ns=(window[0], window[1]) if window else None,
    )


def _choice(params: dict[str, Any]) -> tuple[tuple[str, ...], str, tuple[int, ...]]:
    names = tuple(str(name) for name in params.get("names") or ())
    ranks = tuple(int(rank) for rank in params.get("ranks") or ())
    return names, str(params.get("query") or ""), ranks
