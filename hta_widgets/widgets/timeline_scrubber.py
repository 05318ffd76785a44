"""The timeline: every slice of the job on lanes, with zoom, pan and a brush that selects a window of time.

Up to `CLIENT_SLICES` slices, the browser gets all of them once and never asks again. Above that, the kernel
keeps the slices and answers window requests from a level-of-detail pyramid. Slices are sent in messages,
never in synced traits, which would be saved in the notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, ClassVar, NamedTuple

import pandas as pd
import traitlets as t

from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.engine import UI_LOCK, Latest
from hta_widgets.errors import MissingDataError
from hta_widgets.timeline import GROUPINGS, LaneChoice, Packed, lane_table, pack_window
from hta_widgets.trace.model import Trace
from hta_widgets.widgets.counter_questions import CounterQuestions
from hta_widgets.widgets.first_lanes import first_lanes
from hta_widgets.widgets.part import Part
from hta_widgets.widgets.rank_labels import lane_labels
from hta_widgets.widgets.rpc import rpc_method
from hta_widgets.widgets.selection import (
    Flags,
    Focus,
    Gap,
    Integers,
    LaneGap,
    Names,
    Selection,
    Whole,
    Window,
)
from hta_widgets.widgets.stream_lanes import lane_of_stream, stream_of
from hta_widgets.widgets.timeline_content import Content, recorded_content, replayed_content
from hta_widgets.widgets.timeline_questions import Questions, slice_payload

CLIENT_SLICES = 1_500_000
WINDOWS_KEPT = 8  # answers kept while the browser fetches their further chunks
MAX_PIXELS = 65_536


class _Made(NamedTuple):
    """An arrangement, and what is to be said about its times."""

    content: Content
    note: str
    first: list[dict[str, Any]]


def _asked(question: Callable[[Questions, dict[str, Any]], dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """A method that passes a call of the view on to `Questions`."""

    @rpc_method(question.__name__)
    def reply(timeline: TimelineScrubber, params: dict[str, Any]) -> dict[str, Any]:
        return question(timeline._require().questions, params)

    return reply


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
        switchable: offer to switch between recorded times and those of a replay under `edits`.

    >>> timeline = TimelineScrubber(trace)                  # doctest: +SKIP
    >>> timeline.window = (1_000_000, 5_000_000)            # doctest: +SKIP
    """

    _view = t.Unicode("timeline").tag(sync=True)
    _from_browser: ClassVar[Sequence[str]] = (
        "critical_path", "view", "focus_slice", "focus_gap", "height", "times", "lane_filter", "pinned",
        "lane_groups", "lane_order", "python", "counters", "added_ranks", "every_rank",
    )  # fmt: skip

    ranks = Integers(
        help="ranks whose lanes are shown; () means all, or of many `first_ranks` and `added_ranks`"
    ).tag(sync=True)
    first_ranks: t.List[Any] = t.List(
        help="of more than 32 ranks those that have lanes first: [{rank, why}], as in `first_lanes`"
    ).tag(sync=True)
    added_ranks = Integers(help="ranks whose lanes are shown beside those of `first_ranks`").tag(sync=True)
    every_rank = t.Bool(False, help="whether the lanes of all ranks are shown, however many").tag(sync=True)
    iterations = Integers(help="iterations that are highlighted").tag(sync=True)
    window = Window(help="the brushed (start, end) in ns; setting it moves the view there").tag(sync=True)
    names = Names(help="exact names of the events that light up; () means all").tag(sync=True)
    query = t.Unicode("", help="text in the names of the events that light up").tag(sync=True)
    critical_path = t.Bool(False, help="whether the critical path is drawn").tag(sync=True)
    view = Window(help="the visible (start, end) in ns; None before the first paint").tag(sync=True)
    focus = Focus(help="(rank, event_id) of the focused event, or None")
    focus_slice = Whole(-1, help="the timeline's own number of the focused slice, -1 for none").tag(sync=True)
    gap = Gap(help="(rank, stream, time_ns) of the gap looked at, or None")
    focus_gap = LaneGap(help="(lane, time_ns) of that gap on the timeline, or None").tag(sync=True)
    flags = Flags(help="(time_ns, note) of each flagged moment").tag(sync=True)
    height = t.Int(480, min=160, help="height in CSS pixels").tag(sync=True)
    lane_filter = t.Unicode(
        "", help="what rank, kind and label of shown lanes hold, with commas; after a minus, do not hold"
    ).tag(sync=True)
    pinned: t.List[tuple[int, str]] = t.List(
        t.Tuple(Whole(), t.Unicode()), help="(rank, label) of the lanes that stay at the top"
    ).tag(sync=True)
    lane_groups = t.Enum(
        GROUPINGS,
        "rank",
        help="lanes stand together by rank, by process or device of a rank, or by stream of all ranks",
    ).tag(sync=True)
    lane_order: t.List[tuple[int, str]] = t.List(
        t.Tuple(Whole(), t.Unicode()), help="(rank, label) of lanes that come first in their group"
    ).tag(sync=True)
    python = t.Enum(
        ("nested", "apart"),
        "nested",
        help="Python's frames stand around what they call, or modules and others on lanes of their own",
    ).tag(sync=True)
    counters: t.List[str] = t.List(
        t.Unicode(), help="names of the counters that are drawn, as `analysis.counters` has them"
    ).tag(sync=True)
    times = t.Enum(
        ("recorded", "what_if"),
        "recorded",
        help="the slices lie as recorded, or as a replay under `edits` has it",
    ).tag(sync=True)
    edits: t.List[Edit] = t.List(t.Instance(Edit), help='the changes of `times` "what_if"')
    switchable = t.Bool(True, help="whether the view offers to switch the times").tag(sync=True)
    times_note = t.Unicode("", help="of replayed times: what is shown, or why there are none").tag(sync=True)
    moved_window = Window(help="where `window` lies at replayed times").tag(sync=True)
    version = t.Int(help="counts the arrangements: slices of an older one are void").tag(sync=True)

    def __init__(
        self,
        trace: Any,
        *,
        selection: Selection | dict[str, Any] | None = None,
        height: int = 480,
        client_slices: int = CLIENT_SLICES,
        switchable: bool = True,
    ) -> None:
        self._content: Content | None = None
        self._recorded: tuple[tuple[Trace, bool], Content] | None = None
        self._replayed: tuple[tuple[Trace, tuple[Edit, ...], bool], Content] | None = None
        self._windows_lock = Lock()
        self._translating = False
        self._client_slices = client_slices
        super().__init__(trace, selection=selection, height=height, switchable=switchable)
        self.observe(self._event_to_slice, "focus")
        self.observe(self._slice_to_event, "focus_slice")
        self.observe(self._lane_to_gap, "focus_gap")
        self.observe(self._gap_to_lane, "gap")
        self.observe(self._move_window, "window")
        self.observe(self._arrange, ("times", "python"))
        self.observe(self._change_edits, "edits")
        self._build = Latest[_Made](self._ready, self._failed)
        self._arrange()

    @property
    def lanes(self) -> pd.DataFrame:
        """The lanes as they stand on the screen, one row for each stream, thread or other track.

        What `lane_filter`, `pinned`, `lane_groups`, `lane_order` and `python` say is done. Shown are lanes of
        the selected ranks; where none is selected, of the first and the added, or of all.

        Columns: group (str, the header above), rank (int64), kind (str: stream, sync, annotation or thread),
        label (str), slices (int64), shown, pinned (bool; those stand at the top instead).

        Raises:
            LookupError: the slices are not arranged yet.
        """
        lanes = self._require().lanes
        labels = lane_labels(self.trace, {track.rank for track in lanes.tracks})
        choice = LaneChoice(
            self.lane_filter, self.pinned, self.lane_groups, self.lane_order, self._lane_ranks(set(labels))
        )
        return lane_table(lanes, labels, choice)

    @property
    def matches(self) -> pd.DataFrame:
        """The slices that `names`, `query` and `ranks` choose, as the list of matches shows them.

        Columns: rank, event_id (int64), name (str), lane (str, the stream, thread or other track), start_ns,
        dur_ns (int64, ns on the job's axis; where replayed times are shown, those). By start; all slices if
        neither names nor a query are given.

        Raises:
            LookupError: the slices are not arranged yet.
        """
        return self._require().questions.match_frame(self.names, self.query, self.ranks)

    def _lane_ranks(self, there: set[int]) -> list[int] | None:
        """The ranks that have lanes, in the order of these; None for all."""
        if self.ranks:
            return [rank for rank in self.ranks if rank in there]
        if self.every_rank or not self.first_ranks:
            return None
        some = dict.fromkeys([*(int(one["rank"]) for one in self.first_ranks), *self.added_ranks])
        return [rank for rank in some if rank in there] or None

    def change_trace(self, trace: Trace) -> None:
        """Show the same job read another way; what is visible and selected stays."""
        with UI_LOCK:
            super().change_trace(trace)
            self._arrange()

    def _change_edits(self, _change: Any) -> None:
        if self.times == "what_if":
            self._arrange()

    def _arrange(self, _change: Any = None) -> None:
        with UI_LOCK:
            trace, edits, replay = self.trace, tuple(self.edits), self.times == "what_if"
            apart = self.python == "apart"
            self._set_status("busy", "Replaying" if replay else "Arranging slices on lanes")
            self._build.submit(lambda: self._made(trace, edits, replay, apart))

    def _made(self, trace: Trace, edits: tuple[Edit, ...], replay: bool, apart: bool) -> _Made:
        """In a worker thread; of each kind the last arrangement is kept."""
        first = first_lanes(trace)
        why = "No change is chosen" if replay and not edits else ""
        if any(edit.across for edit in edits):
            why = "Changes between ranks place no events: the panel What if has their answer"
        if replay and not why:
            kept = self._replayed
            if kept is not None and kept[0] == (trace, edits, apart):
                return _Made(kept[1], kept[1].note, first)
            try:
                content = replayed_content(trace, edits, self._client_slices, apart)
                self._replayed = ((trace, edits, apart), content)
                return _Made(content, content.note, first)
            except MissingDataError as error:
                why = str(error)
        if self._recorded is None or self._recorded[0] != (trace, apart):
            self._recorded = ((trace, apart), recorded_content(trace, self._client_slices, apart))
        return _Made(self._recorded[1], f"As recorded: {why}" if replay and why else "", first)

    def close(self) -> None:
        """Close the timeline and stop work whose result nobody will see."""
        self._build.close()
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

    _matches = _asked(Questions.matches)
    _match = _asked(Questions.match)
    _match_page = _asked(Questions.match_page)
    _relative = _asked(Questions.relative)
    _gap = _asked(Questions.gap)
    _window_sums = _asked(Questions.window_sums)
    _same_name = _asked(Questions.same_name)
    _waits = _asked(Questions.waits)
    _longest = _asked(Questions.longest)
    _longest_gaps = _asked(Questions.longest_gaps)

    @rpc_method("counter_list")
    def _counter_list(self, params: dict[str, Any]) -> dict[str, Any]:
        return self._require_counters().listed(params)

    @rpc_method("counter_values")
    def _counter_values(self, params: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        return _chunk(self._require_counters().values(params), params)

    @rpc_method("path")
    def _path(self, params: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        return _chunk(self._require().questions.path(params), params)

    def _require(self) -> Content:
        if self._content is None:
            raise LookupError("the timeline is not ready")
        return self._content

    def _require_counters(self) -> CounterQuestions:
        counters = self._require().counters
        if counters is None:
            raise LookupError("counters are of recorded times: these are replayed")
        return counters

    def _ready(self, made: _Made) -> None:
        content, before = made.content, self._content
        if before is not None and self.view == tuple(before.lanes.extent):
            self.view = None  # all of it, however long it is at these times
        self._content = content
        self.times_note, self.first_ranks = made.note, made.first
        self._move_window(None)
        self.version += 1
        if not content.lanes.n:
            self._set_status("empty", "The trace holds no events with a duration: nothing to draw.")
            return
        self._event_to_slice(None)
        self._gap_to_lane(None)
        self._set_status("idle", "")

    def _failed(self, error: Exception) -> None:
        self._set_status("error", str(error))

    def _set_status(self, status: str, message: str) -> None:
        with UI_LOCK, self.hold_sync():
            self.message = message
            self.status = status

    def _move_window(self, _change: Any) -> None:
        if self._content is not None:
            self.moved_window = None if self.window is None else self._content.moved(self.window)

    @contextmanager
    def _translated(self) -> Iterator[Content | None]:
        """What an event or a gap is translated by, into a slice or a lane; None where that is under way."""
        if self._content is None or self._translating:
            yield None
            return
        self._translating = True
        try:
            yield self._content
        finally:
            self._translating = False

    def _event_to_slice(self, _change: Any) -> None:
        with self._translated() as content:
            if content is not None:
                self.focus_slice = -1 if self.focus is None else content.lanes.find(*self.focus)

    def _slice_to_event(self, _change: Any) -> None:
        with self._translated() as content:
            if content is None:
                return
            lanes, position = content.lanes, self.focus_slice
            known = 0 <= position < lanes.n
            self.focus = (lanes.track_of(position).rank, int(lanes.event_id[position])) if known else None

    def _lane_to_gap(self, _change: Any) -> None:
        with self._translated() as content:
            if content is None or self.focus_gap is None:
                return
            lane, time_ns = self.focus_gap
            if (place := stream_of(content.lanes, self.trace, lane)) is not None:
                self.gap = (*place, time_ns)

    def _gap_to_lane(self, _change: Any) -> None:
        with self._translated() as content:
            if content is None:
                return
            lane = None if self.gap is None else lane_of_stream(content.lanes, self.trace, *self.gap[:2])
            self.focus_gap = None if lane is None or self.gap is None else (lane, self.gap[2])


def _chunk(packed: Packed, params: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
    number = int(params.get("chunk", 0))
    return {**packed.layout, "chunks": packed.chunks}, [packed.chunk(number)]
