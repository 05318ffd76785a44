"""A picture of a finding: what host and device do around the place where its time is lost."""

from __future__ import annotations

from typing import Final

import pandas as pd

from hta_widgets import Scope, Trace, analysis
from hta_widgets.analysis.findings.shown_at import Place
from hta_widgets.charts.svg.drawing import LINE, MUTED, Drawing
from hta_widgets.formatting import byte_size, duration
from hta_widgets.kernel_names import short_kernel_name
from hta_widgets.palette import LIGHT

WIDTH: Final = 720
_LEFT, _RIGHT, _TOP = 84.0, WIDTH - 12.0, 30.0
_ROW, _GAP = 16.0, 5.0
_MOST_RANKS, _MOST_STREAMS, _MOST_CALLS = 4, 3, 3
_AROUND: Final = 1.5  # of the place's length, on both sides
_NARROW, _WIDE_ENOUGH = 3.0, 36.0
_COLOURS: Final = {"memory_copy": "memory", "memory_set": "memory", "overhead": "sync", "other": "idle"}
_ON_HOST: Final = ("host_op", "runtime", "annotation", "python")
MARK: Final = "#b3261e"


def picture(trace: Trace, place: Place, ranks: list[int]) -> str:
    """An SVG of these ranks around the place: of each its host's calls and its streams."""
    start, end = _window(trace, place)
    scale = (_RIGHT - _LEFT) / (end - start)
    drawing, y = Drawing(WIDTH), _TOP
    for rank in ranks[:_MOST_RANKS]:
        top = y
        events = trace.events(Scope(ranks=(rank,), window_ns=(start, end)))
        for label, row in _rows(events, several=len(ranks) > 1):
            drawing.text(_LEFT - 8, y + 12, label, size=11, fill=MUTED, end=True)
            _draw(drawing, y, row, start, scale)
            y += _ROW + 2
        if rank == place.rank:
            x, right = (_LEFT + (at - start) * scale for at in (place.start_ns, place.end_ns))
            drawing.rect(x, top - 3, max(right - x, 1), y - top + 3, "none", line=MARK)
            drawing.text(max(_LEFT, min(x, _RIGHT - 300)), _TOP - 10, place.label, size=11, fill=MARK)
        drawing.rect(_LEFT, y + 1, _RIGHT - _LEFT, 1, LINE)
        y += _GAP
    drawing.text(_RIGHT, y + 12, duration(end - start), size=11, fill=MUTED, end=True)
    return drawing.document(y + 20, place.label)


def memory_picture(trace: Trace, label: str) -> str:
    """An SVG of what the first rank has reserved (pale) and allocated over time."""
    levels = analysis.memory_timeline(trace, Scope(ranks=trace.ranks[:1]))
    reserved, allocated = (levels[name].astype(int) for name in ("reserved_bytes", "allocated_bytes"))
    low, high, tall = int(allocated.min()), int(max(reserved.max(), allocated.max())), 90.0
    low -= (high - low) // 10
    times = levels["time_ns"].to_numpy()
    scale = (_RIGHT - _LEFT) / max(int(times[-1] - times[0]), 1)
    drawing = Drawing(WIDTH)
    drawing.text(_LEFT, _TOP - 10, label, size=11, fill=MARK)
    for level, opacity in ((reserved, 0.25), (allocated, 0.6)):
        for at, value in enumerate(level.iloc[:-1]):
            height = tall * (value - low) / (high - low)
            x, wide = _LEFT + (times[at] - times[0]) * scale, (times[at + 1] - times[at]) * scale
            drawing.rect(x, _TOP + tall - height, wide, height, LIGHT["memory"], opacity=opacity)
    for value, y in ((high, _TOP + 10), (low, _TOP + tall)):
        drawing.text(_LEFT - 8, y, byte_size(value), size=11, fill=MUTED, end=True)
    drawing.rect(_LEFT, _TOP + tall, _RIGHT - _LEFT, 1, LINE)
    return drawing.document(_TOP + tall + 14, label)


def _window(trace: Trace, place: Place) -> tuple[int, int]:
    """The place with what is around it, at most half a step, within what the rank recorded."""
    around = round(_AROUND * (place.end_ns - place.start_ns))
    steps = trace.rank(place.rank).iterations
    if len(steps):
        around = min(around, int((steps["end_ns"] - steps["start_ns"]).median()) // 2)
    first, last = trace.rank(place.rank).host_span
    device = trace.rank(place.rank).device_span or (first, last)
    first, last = min(first, device[0]), max(last, device[1])
    return max(place.start_ns - around, first), min(place.end_ns + around, last)


def _rows(events: pd.DataFrame, *, several: bool) -> list[tuple[str, pd.DataFrame]]:
    """Label -> events of each row: the busiest thread by depth, then the streams."""
    names = events["name"].astype(str)
    host = events[
        events["event_class"].isin(_ON_HOST) & ~names.str.startswith(("ProfilerStep#", "PyTorch Profiler"))
    ]
    device = events[events["stream"].notna() & ~events["event_class"].isin((*_ON_HOST, "sync"))]
    rank = f"rank {events['rank'].iloc[0]}, " if several and len(events) else ""
    rows: list[tuple[str, pd.DataFrame]] = []
    if len(host):
        thread = host.groupby(["pid", "tid"], observed=True)["dur_ns"].sum().idxmax()
        host = host[(host["pid"] == thread[0]) & (host["tid"] == thread[1])]
        depths = sorted(host["depth"].dropna().unique())[: 1 if several else _MOST_CALLS]
        rows += [
            (f"{rank}CPU" if at == 0 else "", host[host["depth"] == depth]) for at, depth in enumerate(depths)
        ]
    lanes = device.groupby(["device", "stream"], dropna=False, observed=True)
    busiest = sorted(lanes, key=lambda lane: -lane[1]["dur_ns"].sum())[: 1 if several else _MOST_STREAMS]
    rows += [
        ("GPU" if several else f"stream {lane[1]}", found)
        for lane, found in sorted(busiest, key=lambda one: one[0])
    ]
    return rows


def _draw(drawing: Drawing, y: float, events: pd.DataFrame, start: int, scale: float) -> None:
    """One row; events too narrow to see become one piece with those of their class beside them."""
    pieces: list[tuple[float, float, str, str]] = []
    for event in events.sort_values("start_ns").itertuples():
        x = max(_LEFT + (event.start_ns - start) * scale, _LEFT)
        right = min(_LEFT + (event.end_ns - start) * scale, _RIGHT)
        kind = "host" if event.event_class in _ON_HOST else str(event.event_class)
        begin, end, other, name = pieces[-1] if pieces else (0.0, 0.0, "", "")
        if not name and other == kind and right - x < _NARROW and x - end < _NARROW:
            pieces[-1] = (begin, max(right, end), kind, "")
        elif right > end:
            pieces.append((x, right, kind, "" if right - x < _NARROW else str(event.name)))
    for x, right, kind, name in pieces:
        width = max(right - x - 0.5, 0.7)
        drawing.rect(x, y, width, _ROW, LIGHT[_COLOURS.get(kind, kind)], opacity=0.5)
        if name and width > _WIDE_ENOUGH:
            drawing.text(x + 3, y + 12, short_kernel_name(name), size=10, width=width - 5)
