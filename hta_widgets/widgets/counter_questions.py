"""Answers to what the timeline's view asks about counters: which there are, and their values on a screen."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from hta_widgets.analysis.counters import Counter, counters_of
from hta_widgets.timeline import Lanes, Packed, pack_counters
from hta_widgets.trace.model import Trace
from hta_widgets.widgets.stream_lanes import lanes_of_streams

_MOST_COUNTERS: Final = 256  # in one request
_MOST_PIXELS: Final = 65_536


class CounterQuestions:
    """Answers about one arrangement of slices at recorded times. Only reads, so that any thread may ask."""

    def __init__(self, trace: Trace, lanes: Lanes) -> None:
        self._trace = trace
        self._lanes = lanes

    def listed(self, params: dict[str, Any]) -> dict[str, Any]:
        """The counters of the chosen ranks, all if none is chosen; `lane` is the first of the stream that a
        counter belongs to, -1 for none. `bottom` and `top` are of its scale: what has the same rank, key and
        unit, as allocated and reserved memory of a device, has the same.
        """
        chosen = [int(rank) for rank in params.get("ranks") or ()] or self._trace.ranks
        shown = {track.rank for track in self._lanes.tracks}
        return {"counters": [each for rank in chosen if rank in shown for each in self._of_rank(rank)]}

    def values(self, params: dict[str, Any]) -> Packed:
        """The values of `counters`, as [rank, name, key] each, between t0 and t1 on so many pixels."""
        wanted = [(int(rank), str(name), str(key)) for rank, name, key in params["counters"]][:_MOST_COUNTERS]
        by_name = {
            (rank, one.name, one.key): one
            for rank in {rank for rank, *_ in wanted}
            for one in counters_of(self._trace, rank)
        }
        parts = [(by_name[each].time, by_name[each].value) for each in wanted]
        start, end = float(params["t0"]), float(params["t1"])
        if not start < end:
            raise ValueError(f"no time between {start} and {end}")
        return pack_counters(parts, start, end, min(max(int(params["px"]), 1), _MOST_PIXELS))

    def _of_rank(self, rank: int) -> list[dict[str, Any]]:
        found = counters_of(self._trace, rank)
        streams = lanes_of_streams(self._lanes, self._trace, rank)
        spans = [(float(one.value.min()), float(one.value.max())) for one in found]
        scales: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0])
        for one, span in zip(found, spans, strict=True):
            scales[_scale(one)] += span
        return [
            {
                "rank": rank,
                "name": one.name,
                "key": one.key,
                "unit": one.unit,
                "lane": -1 if one.stream is None else streams.get(one.stream, -1),
                "least": least,
                "most": most,
                "bottom": min(scales[_scale(one)]),
                "top": max(scales[_scale(one)]),
            }
            for one, (least, most) in zip(found, spans, strict=True)
        ]


def _scale(one: Counter) -> tuple[str, str]:
    return one.key, one.unit or one.name
