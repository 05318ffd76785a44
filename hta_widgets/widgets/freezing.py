"""An explorer as plain values, for a report: what every part shows, and answers to what its view may ask.

Parts are not interrupted: they are read once they have settled, under `UI_LOCK`, so that none is caught
between two states.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import monotonic, sleep
from typing import Any

from hta_widgets.engine import UI_LOCK
from hta_widgets.errors import HtaWidgetsError, NotAnsweredError
from hta_widgets.report import Frozen, Question
from hta_widgets.widgets.event_columns import DEFAULT_COLUMNS
from hta_widgets.widgets.events_table import MOST_ROWS
from hta_widgets.widgets.part import Part

SAVED_EVENTS = 20_000  # rows of an events table
TIMELINE_BYTES = 2_000_000  # of the overview of a timeline that is too large to be saved whole
_SHARPEST_PIXELS = 1 << 14
_SAVED_COUNTERS, _COUNTER_PIXELS = 32, 1 << 12
SETTLED_WITHIN_SECONDS = 600.0
_POLL_SECONDS = 0.02
_NOT_SHOWN = ("layout", "tabbable", "tooltip")  # traits of every ipywidget that no view reads

Saved = tuple[list[Question], list[str]]


def settle(parts: Sequence[Part], timeout: float = SETTLED_WITHIN_SECONDS) -> None:
    """Wait until no part is busy.

    Raises:
        NotAnsweredError: after `timeout` seconds some still are; it names them.
    """
    end = monotonic() + timeout
    while busy := [part for part in parts if part.status == "busy"]:
        if monotonic() > end:
            raise NotAnsweredError([_name(part) for part in busy], timeout)
        sleep(_POLL_SECONDS)


def _name(part: Part) -> str:
    title = getattr(part, "title", "")
    return f"the panel “{title}”" if title else f"the {part._view}"


def freeze(part: Part) -> tuple[Frozen, list[str]]:
    """The current state of a part, which must have settled, and notes on what a report of it cannot show."""
    with UI_LOCK:
        state = {
            name: value
            for name, value in part.get_state().items()
            if name == "_view" or not (name.startswith("_") or name in _NOT_SHOWN)
        }
    if state["status"] == "error":
        return Frozen(state), [f"No answer from {_name(part)}: {state['message']}"]
    if state["status"] != "idle":
        return Frozen(state), []
    save = _SAVED.get(state["_view"])
    questions, notes = save(part, state) if save else ([], [])
    return Frozen(state, questions), notes


def rewritten(part: Frozen, cut: Callable[[str], str]) -> Frozen:
    """The same part with other texts. Of what is packed, only a timeline's outline has some."""
    questions = [
        replace(
            question,
            result=_texts(question.result, cut),
            buffers=[_outline(data, cut) if question.method == "meta" else data for data in question.buffers],
        )
        for question in part.questions
    ]
    return Frozen(_texts(part.state, cut), questions)


def _texts(value: Any, cut: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, Mapping):
        return {_texts(key, cut): _texts(item, cut) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_texts(item, cut) for item in value]
    return value


def _outline(data: bytes, cut: Callable[[str], str]) -> bytes:
    from hta_widgets.timeline.pack import pack_json  # and with it the whole timeline

    return pack_json(_texts(json.loads(zlib.decompress(data)), cut)).data


def _timeline(part: Part, state: dict[str, Any]) -> Saved:
    """All slices of a timeline that the browser can hold, else an overview of them."""
    meta = _whole(part, "meta", {})
    outline = json.loads(zlib.decompress(meta.buffers[0]))
    questions = [meta, *_path(part, state), *_counters(part, state, outline)]
    if outline["mode"] == "client":
        return [*questions, _whole(part, "base", {})], []
    note = (
        f"The timeline's {outline['n']:,} slices are too many for a report: it shows an overview of them, "
        "which zooming in does not sharpen."
    )
    unknown = [Question(method) for method in ("slice", "relative", "gap", "matches", "match", "match_page")]
    return [*questions, _overview(part, outline), *unknown], [note]


def _path(part: Part, state: dict[str, Any]) -> list[Question]:
    """The critical path of the selection, if it is drawn and there is one."""
    if not state["critical_path"]:
        return []
    try:
        return [_whole(part, "path", {name: state[name] for name in ("ranks", "iterations", "window")})]
    except (HtaWidgetsError, LookupError, ValueError):  # the view says why when it is asked
        return []


def _counters(part: Part, state: dict[str, Any], outline: dict[str, Any]) -> list[Question]:
    """The counters that are drawn, over the whole extent."""
    if not state["counters"]:
        return []
    try:
        listed, _ = part.ask("counter_list", {"ranks": state["ranks"]})
    except LookupError:  # the times are replayed
        return []
    kept = [each for each in listed["counters"] if each["name"] in state["counters"]]
    start, end = outline["extent"]
    drawn = [[each["rank"], each["name"], each["key"]] for each in kept[:_SAVED_COUNTERS]]
    params = {"t0": start, "t1": end, "px": _COUNTER_PIXELS, "counters": drawn}
    values = replace(_whole(part, "counter_values", params), once=True)
    return [Question("counter_list", {"counters": kept[:_SAVED_COUNTERS]}), values]


def _overview(part: Part, outline: dict[str, Any]) -> Question:
    """The whole extent on all lanes, as sharp as `TIMELINE_BYTES` allow."""
    start, end = outline["extent"]
    lanes = [track["first"] + at for track in outline["tracks"] for at in range(len(track["sizes"]))]
    pixels = _SHARPEST_PIXELS
    while True:
        overview = _whole(part, "window", {"t0": start, "t1": end, "px": pixels, "lanes": lanes})
        if len(overview.buffers[0]) <= TIMELINE_BYTES or pixels <= 1024:
            return replace(overview, once=True)
        pixels //= 2


def _events(part: Part, state: dict[str, Any]) -> Saved:
    """The first events of the table, with the columns that are shown."""
    names = list(dict.fromkeys([*DEFAULT_COLUMNS, *state["columns"]]))
    state["available_columns"] = [column for column in state["available_columns"] if column["name"] in names]
    tables = []
    saved_rows = min(state["rows"], SAVED_EVENTS)
    for first in range(0, saved_rows, MOST_ROWS):
        count = min(MOST_ROWS, saved_rows - first)
        result, buffers = part.ask("page", {"first": first, "count": count, "columns": names})
        tables.append({**result, "data": bytes(buffers[0])})
    sortable = bool(state["rows"] <= SAVED_EVENTS)
    searched = bool(state["query"].strip() or state["names"])
    notes = []
    if not sortable:
        notes.append(
            f"The events table holds the first {SAVED_EVENTS:,} of {state['rows']:,} events; "
            "to sort or search them takes a notebook."
        )
        state["rows"] = SAVED_EVENTS
    elif searched:
        notes.append("The events table holds the events of the saved search only.")
    saved = {"tables": tables, "sortable": sortable, "searchable": sortable and not searched}
    return [Question("saved", saved)], notes


def _what_if(part: Part, state: dict[str, Any]) -> Saved:
    """The graph that the sliders of `WhatIf` replay, if a browser can."""
    about = state["about"]
    if about["live"]:
        return [_whole(part, "graph", {"rank": about["rank"]})], []
    if "job" in about:  # has no sliders
        return [], []
    note = (
        f"The {about['nodes']:,} points of the replay are too many for a report: What if shows its answer to "
        "the saved changes, and its sliders stay where they are."
    )
    return [], [note]


def _job(part: Part, state: dict[str, Any]) -> Saved:
    """The two large pictures of `JobView`: rank by iteration, and who waits for whom."""
    answers = [(method, *part.ask(method, {})) for method in ("cells", "pairs")]
    return [Question(method, result, [*map(bytes, data)]) for method, result, data in answers], []


def _whole(part: Part, method: str, params: dict[str, Any]) -> Question:
    """The answer to a question that is answered in chunks, as one."""
    result, buffers = part.ask(method, {**params, "chunk": 0})
    further = (part.ask(method, {**params, "chunk": number}) for number in range(1, result["chunks"]))
    data = b"".join([bytes(buffers[0]), *(bytes(more[0]) for _, more in further)])
    return Question(method, {**result, "chunks": 1}, [data])


_SAVED: dict[str, Callable[[Part, dict[str, Any]], Saved]] = {
    "timeline": _timeline,
    "events": _events,
    "what_if": _what_if,
    "job": _job,
}
"""By the name of a part's view."""
