"""The timeline: every slice of the job on lanes, with zoom, pan and a brush that selects a window of time.

Up to `CLIENT_SLICES` slices, the browser gets all of them once and never asks again. Above that, the kernel
keeps the slices and answers window requests from a level-of-detail pyramid. Slices are sent in messages,
never in synced traits, which would be saved in the notebook.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, ClassVar

import traitlets as t

from hta_widgets.engine import UI_LOCK, Latest, checkpoint
from hta_widgets.timeline import (
    Lanes,
    Packed,
    Pyramid,
    build_lanes,
    outline,
    pack_json,
    pack_slices,
    pack_window,
)
from hta_widgets.trace.model import Trace
from hta_widgets.widgets.part import Part
from hta_widgets.widgets.rpc import rpc_method
from hta_widgets.widgets.selection import Focus, Integers, Names, Selection, Whole, Window
from hta_widgets.widgets.timeline_questions import Questions, slice_payload

__all__ = ["CLIENT_SLICES", "TimelineScrubber"]

CLIENT_SLICES = 1_500_000
WINDOWS_KEPT = 8  # answers kept while the browser fetches their further chunks
MAX_PIXELS = 65_536


@dataclass(frozen=True)
class Content:
    """What the browser requests, computed once in a worker thread."""

    lanes: Lanes
    questions: Questions
    meta: Packed
    base: Packed | None  # all slices; None where the kernel answers windows instead
    pyramid: Pyramid | None
    windows: OrderedDict[tuple[Any, ...], Packed] = field(default_factory=OrderedDict)  # answered last


class TimelineScrubber(Part):
    """All slices of a job over time; drag to select a window, click to focus a slice.

    Slices whose name is one of `names` and contains `query` keep their colour while the others fade. If the
    kernel keeps the slices, a mark that represents several has the colour of the longest one; the count, the
    strip under the overview and the jumps from match to match are always exact.

    Args:
        trace: an open `Trace`, or anything `Trace.open` takes.
        selection: the `Selection` to share with other parts.
        height: height in CSS pixels.
        client_slices: up to this many slices the browser keeps everything, above it asks the kernel.

    >>> timeline = TimelineScrubber(trace)                  # doctest: +SKIP
    >>> timeline.window = (1_000_000, 5_000_000)            # doctest: +SKIP
    """

    _view = t.Unicode("timeline").tag(sync=True)
    _from_browser: ClassVar[Sequence[str]] = ("critical_path", "view", "focus_slice", "height")

    ranks = Integers(help="ranks whose lanes are shown; () means all").tag(sync=True)
    iterations = Integers(help="iterations that are highlighted").tag(sync=True)
    window = Window(help="the brushed (start, end) in ns; setting it moves the view there").tag(sync=True)
    names = Names(help="exact names of the events that light up; () means all").tag(sync=True)
    query = t.Unicode("", help="text in the names of the events that light up").tag(sync=True)
    critical_path = t.Bool(False, help="whether the critical path is drawn").tag(sync=True)
    view = Window(help="the visible (start, end) in ns; None before the first paint").tag(sync=True)
    focus = Focus(help="(rank, event_id) of the focused event, or None")
    focus_slice = Whole(-1, help="the timeline's own number of the focused slice, -1 for none").tag(sync=True)
    height = t.Int(480, min=160, help="height in CSS pixels").tag(sync=True)
    version = t.Int(help="counts the arrangements: slices of an older one are void").tag(sync=True)

    def __init__(
        self,
        trace: Any,
        *,
        selection: Selection | dict[str, Any] | None = None,
        height: int = 480,
        client_slices: int = CLIENT_SLICES,
    ) -> None:
        self._content: Content | None = None
        self._windows_lock = Lock()
        self._translating = False
        self._client_slices = client_slices
        super().__init__(trace, selection=selection, height=height)
        self.observe(self._event_to_slice, "focus")
        self.observe(self._slice_to_event, "focus_slice")
        self._build = Latest[Content](self._ready, self._failed)
        self._arrange()

    def change_trace(self, trace: Trace) -> None:
        """Show the same job read another way; what is visible and selected stays."""
        with UI_LOCK:
            super().change_trace(trace)
            self._arrange()

    def _arrange(self) -> None:
        trace = self.trace
        self._set_status("busy", "Arranging slices on lanes")
        self._build.submit(lambda: _content(trace, self._client_slices))

    def close(self) -> None:
        """Close the timeline and stop work whose result nobody will see."""
        self._build.cancel()
        super().close()

    @rpc_method("meta")
    def _meta(self, params: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        return _chunk(self._require().meta, params)

    @rpc_method("base")
    def _base(self, params: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        base = self._require().base
        if base is None:
            raise LookupError("this timeline is too large to be sent whole")
        return _chunk(base, params)

    @rpc_method("window")
    def _window(self, params: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        content = self._require()
        if content.pyramid is None:
            raise LookupError("the browser holds all slices of this timeline")
        start, end = float(params["t0"]), float(params["t1"])
        pixels = min(int(params["px"]), MAX_PIXELS)
        lanes = tuple(int(lane) for lane in params["lanes"])
        key = (start, end, pixels, lanes)
        with self._windows_lock:
            packed = content.windows.get(key)
        if packed is None:
            items = content.pyramid.window(start, end, pixels, lanes)
            packed = pack_window(content.lanes, items, content.lanes.extent[0])
            packed.layout["sizes"] = (items.offsets[1:] - items.offsets[:-1]).tolist()
            with self._windows_lock:
                content.windows[key] = packed
                while len(content.windows) > WINDOWS_KEPT:
                    content.windows.popitem(last=False)
        return _chunk(packed, params)

    @rpc_method("slice")
    def _slice(self, params: dict[str, Any]) -> dict[str, Any]:
        lanes = self._require().lanes
        position = int(params["id"])
        if not 0 <= position < lanes.n:
            raise LookupError(f"no slice {position}")
        flows = [[slice_payload(lanes, a), slice_payload(lanes, b)] for a, b in lanes.flows_of(position)]
        return {"slice": slice_payload(lanes, position), "flows": flows}

    @rpc_method("matches")
    def _matches(self, params: dict[str, Any]) -> dict[str, Any]:
        return self._require().questions.matches(params)

    @rpc_method("match")
    def _match(self, params: dict[str, Any]) -> dict[str, Any]:
        return self._require().questions.match(params)

    @rpc_method("relative")
    def _relative(self, params: dict[str, Any]) -> dict[str, Any]:
        return self._require().questions.relative(params)

    @rpc_method("gap")
    def _gap(self, params: dict[str, Any]) -> dict[str, Any]:
        return self._require().questions.gap(params)

    @rpc_method("path")
    def _path(self, params: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        return _chunk(self._require().questions.path(params), params)

    def _require(self) -> Content:
        if self._content is None:
            raise LookupError("the timeline is not ready")
        return self._content

    def _ready(self, content: Content) -> None:
        self._content = content
        self.version += 1
        if not content.lanes.n:
            self._set_status("empty", "The trace holds no events with a duration: nothing to draw.")
            return
        self._event_to_slice(None)
        self._set_status("idle", "")

    def _failed(self, error: Exception) -> None:
        self._set_status("error", str(error))

    def _set_status(self, status: str, message: str) -> None:
        with UI_LOCK, self.hold_sync():
            self.message = message
            self.status = status

    def _event_to_slice(self, _change: Any) -> None:
        if self._content is None or self._translating:
            return
        self._translating = True
        try:
            self.focus_slice = -1 if self.focus is None else self._content.lanes.find(*self.focus)
        finally:
            self._translating = False

    def _slice_to_event(self, _change: Any) -> None:
        if self._content is None or self._translating:
            return
        lanes = self._content.lanes
        self._translating = True
        try:
            if 0 <= self.focus_slice < lanes.n:
                self.focus = (lanes.track_of(self.focus_slice).rank, int(lanes.event_id[self.focus_slice]))
            else:
                self.focus = None
        finally:
            self._translating = False


def _content(trace: Trace, client_slices: int) -> Content:
    ranks = []
    for number in trace.ranks:
        checkpoint()
        ranks.append(trace.rank(number))
    lanes = build_lanes(ranks, checkpoint)
    whole = lanes.n <= client_slices
    outlined = outline(lanes, {r.rank: r.label for r in ranks}, trace.iterations)
    outlined["mode"] = "client" if whole else "kernel"
    return Content(
        lanes=lanes,
        questions=Questions(trace, lanes),
        meta=pack_json(outlined),
        base=pack_slices(lanes) if whole else None,
        pyramid=None if whole else Pyramid(lanes, checkpoint),
    )


def _chunk(packed: Packed, params: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
    number = int(params.get("chunk", 0))
    return {**packed.layout, "chunks": packed.chunks}, [packed.chunk(number)]
