"""What the inspector shows, as plain values: sections of labelled rows, with links to events."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

from hta_widgets.analysis.idle.breakdown import IDLE_CAUSES
from hta_widgets.analysis.inspect.gap import GapFacts
from hta_widgets.analysis.inspect.record import EventFacts, EventRef, Frame, Replayed, Several
from hta_widgets.analysis.inspect.step_difference import StepDifference
from hta_widgets.formatting import (
    amount,
    bandwidth,
    byte_size,
    counted,
    duration,
    flop_count,
    percent,
    signed,
)
from hta_widgets.kernel_names import short_kernel_name
from hta_widgets.widgets.step_content import difference_content

Piece = str | dict[str, Any]
Content = dict[str, Any]

_COPIES = ("memory_copy", "memory_set")
# `Memcpy HtoD (Pageable -> Device)`, also of peers (PtoP)
_MEMORIES = re.compile(r"Memcpy ([HDA])to([HDA]) \((\w+) -> (\w+)\)")
_SHOWN = 8  # of each list; the answer in Python has more
_TITLES = {
    "parts": "What the name says", "arguments": "Arguments", "launch": "Launch", "launched": "Launched",
    "operator": "Operator", "module": "Module", "role": "Part of the model", "python": "Python",
    "parents": "Callers", "children": "Calls made", "forward": "Forward partner",
    "backward": "Backward partner", "peers": "Other ranks", "roofline": "Roofline", "gone": "Without it",
}  # fmt: skip


def nothing_content() -> Content:
    """Nothing is selected: the view says what to do."""
    return _content("none", "", "", [])


def event_content(facts: EventFacts) -> Content:
    """All that is known about an event."""
    event, same = facts.event, facts.same_name
    less, more = (percent(100.0 * count / same.count) for count in (same.shorter, same.longer))
    around = [("Before", facts.previous), ("After", facts.next), ("Same name before", same.previous),
              ("Same name after", same.next), ("Longest of the name", same.longest)]  # fmt: skip
    sections = [
        _section("Time", [
            ("Start", [_exact(event.start_ns)]),
            ("Duration", [_exact(event.dur_ns)]),
            ("Self", [_exact(facts.self_ns)] if facts.self_ns != event.dur_ns else []),
            ("Iteration", [str(facts.iteration)] if facts.iteration is not None else []),
            ("Phase", [facts.phase]),
        ]),
        _section("Copy", _copy_rows(facts)),
        _section("Launch", _launch_rows(facts.launch)),
        _section("Who", [
            ("Operator", _links(facts.operator)),
            ("Module", _links(facts.module)),
            ("Forward partner", _links(facts.forward)),
            ("Backward partner", _several(facts.backward)),
        ]),
        _section("Part of the model", _role_rows(facts)),
        _section("Python" if facts.python_of is None else "Python, of the forward operator",
                 _frames(facts.python)),
        _section("Other ranks", [
            (f"Rank {peer.event.rank}",
             [_link(peer.event, duration(peer.event.dur_ns)), f" starts {_later(peer.later_ns)}"])
            for peer in facts.peers
        ]),
        _section(f"Of this name on rank {event.rank}", [
            ("Count", [f"{same.count:,}, {duration(same.time_ns)} in all"]),
            ("Median", [duration(same.median_ns)]),
            ("Range", [f"{duration(same.shortest_ns)} to {duration(same.longest_ns)}"]),
            ("This one", [f"{less} take less, {more} more"]),
        ]),
        _section("Roofline", _roof_rows(facts)),
        _section("Without it", _gone_rows(facts)),
        _section("What the name says", [(name, [_said(value)]) for name, value in facts.parts.items()]),
        _section("Arguments", [
            (argument.name, [f"{_said(argument.value)} {argument.unit}".rstrip()])
            for argument in facts.arguments
        ]),
        _section("Callers", [("", _links(caller)) for caller in facts.parents[:_SHOWN]]),
        _section("Calls made", [("", _several(facts.children))] if facts.children.count else []),
        _section("Launched", [("", _several(facts.launched))] if facts.launched.count else []),
        _section("Go to", [(label, _links(there)) for label, there in around]),
    ]  # fmt: skip
    where = f"{event.event_class.replace('_', ' ')} · rank {event.rank} · {event.lane}"
    content = _content("event", event.name, where, sections, (event.start_ns, facts.end_ns))
    bins = list(zip(same.edges_ns, same.edges_ns[1:], strict=False))
    content["histogram"] = {
        "counts": list(same.counts),
        "labels": [f"{duration(low)} to {duration(high)}" for low, high in bins],
        "own": next((i for i, (low, high) in enumerate(bins) if low <= event.dur_ns < high), -1),
    }
    content["missing"] = [[_TITLES[name], why] for name, why in facts.missing.items() if name in _TITLES]
    return content


def gap_content(gap: GapFacts) -> Content:
    """All that is known about a gap of a stream."""
    causes = sorted(((ns, cause) for cause, ns in gap.causes_ns.items() if ns), reverse=True)
    sections = [
        _section("Time", [
            ("Start", [_exact(gap.start_ns)]),
            ("Length", [_exact(gap.end_ns - gap.start_ns)]),
            ("Others busy", [_exact(gap.others_busy_ns)] if gap.others_busy_ns else []),
        ]),
        _section("Why", [(_WHY[cause], [_exact(ns)]) for ns, cause in causes]),
        _section("What the host did", [
            ("", [f"{place.name}: {duration(place.idle_ns)}", *(f" in {name}" for name in place.within[:2])])
            for place in gap.host
        ]),
        _section("Before and after", [("Before", _links(gap.before)), ("After", _links(gap.after))]),
        _section("Launch of what follows", _launch_rows(gap.launch)),
    ]  # fmt: skip
    where = f"gap · rank {gap.rank} · stream {gap.stream}"
    title = f"{duration(gap.end_ns - gap.start_ns)} without work"
    content = _content("gap", title, where, sections, (gap.start_ns, gap.end_ns))
    content["missing"] = [["Launch", gap.why_no_launch]] if gap.why_no_launch else []
    return content


def area_content(
    window: tuple[int, int], busy: pd.DataFrame, idle: pd.DataFrame, elsewhere: pd.DataFrame | str, note: str
) -> Content:
    """Where the time of devices goes in a window, and in the same part of other iterations.

    Args:
        window: its edges, ns.
        busy, idle: `temporal_breakdown` and `idle_breakdown` of it; empty without device work.
        elsewhere: `same_stretch` of the first rank, or why there is none.
        note: what is left out, "" if nothing.
    """
    rows = [(f"Rank {row['rank']}", [_split(row)]) for row in busy.to_dict("records")]
    causes = [
        (f"Rank {row['rank']}", [_shares({why: row[f"{cause}_ns"] for cause, why in _WHY.items()})])
        for row in idle.to_dict("records")
        if row["idle_ns"]
    ]
    others = [] if isinstance(elsewhere, str) else [
        (f"Iteration {row['iteration']}{' (this)' if row['own'] else ''}",
         [f"{duration(row['window_ns'])}: ", _split(row)])
        for row in elsewhere.head(_SHOWN).to_dict("records")
    ]  # fmt: skip
    sections = [
        _section("Devices", rows),
        _section("Why idle", causes),
        _section("The same part of iterations", others),
    ]
    title = f"{duration(window[1] - window[0])} from {duration(window[0])}"
    content = _content("area", title, note or "selected window", sections, window)
    content["missing"] = [["Other iterations", elsewhere]] if isinstance(elsewhere, str) else []
    return content


def steps_content(found: StepDifference, note: str) -> Content:
    """Two iterations compared. `note`: what is left out, "" if nothing."""
    content = _content("steps", found.title, note or "two selected iterations", [])
    return {**content, "difference": difference_content(found)}


def host_steps_content(first: int, second: int, changes: pd.DataFrame, note: str) -> Content:
    """Two iterations without device work, by what the host does: `changes` is `compare_iterations`."""
    rows = [
        (
            short_kernel_name(row["name"]),
            [signed(row["change_covered_ns"], duration(row["change_covered_ns"]))],
        )
        for row in changes.head(_SHOWN).to_dict("records")
    ]
    title = f"Iteration {second} against {first}"
    return _content("steps", title, note, [_section("Largest changes by name", rows)])


_WHY = {series.column.removesuffix("_ns"): series.label for series in IDLE_CAUSES}


def _content(
    kind: str, title: str, where: str, sections: Sequence[Content], window: tuple[int, int] | None = None
) -> Content:
    return {
        "kind": kind,
        "title": title,
        "short": short_kernel_name(title),
        "where": where,
        "sections": [section for section in sections if section["rows"]],
        "missing": [],
        "window": list(window) if window and window[0] < window[1] else None,
    }


def _section(title: str, rows: Sequence[tuple[str, Sequence[Piece]]]) -> Content:
    return {"title": title, "rows": [[label, list(pieces)] for label, pieces in rows if pieces]}


def _link(event: EventRef, text: str = "") -> Piece:
    about = f"{event.name}\n{duration(event.dur_ns)} on {event.lane} of rank {event.rank}"
    return {"text": text or short_kernel_name(event.name), "title": about, "to": [event.rank, event.event_id]}


def _links(event: EventRef | None) -> list[Piece]:
    return [] if event is None else [_link(event), f" {duration(event.dur_ns)}"]


def _several(events: Several) -> list[Piece]:
    """The first of some events, and how many there are."""
    if not events.count:
        return []
    pieces: list[Piece] = [f"{counted(events.count, 'event')}, {duration(events.time_ns)}: "]
    for event in events.first[:_SHOWN]:
        pieces += [_link(event), " "]
    return pieces


def _frames(frames: Sequence[Frame]) -> list[tuple[str, list[Piece]]]:
    """A row each; the innermost function of the user's own code is marked."""
    own = next((at for at, frame in enumerate(frames) if frame.is_own), -1)
    return [("Your code" if at == own else "", _frame(frame)) for at, frame in enumerate(frames)]


def _frame(frame: Frame) -> list[Piece]:
    place = f"{frame.file}:{frame.line} " if frame.line else ""
    if frame.event is None:
        return [place, frame.function]
    return [place, _link(frame.event, frame.function)]


def _launch_rows(launch: Any) -> list[tuple[str, list[Piece]]]:
    if launch is None:
        return []
    return [
        ("By", _links(launch.call)),
        ("Latency", [_exact(launch.latency_ns)]),
        ("Queued", [_exact(launch.queued_ns)]),
        ("Overhead", [_exact(launch.overhead_ns)]),
        ("Same launch", _several(launch.siblings)),
    ]


def _copy_rows(facts: EventFacts) -> list[tuple[str, list[Piece]]]:
    """How much a copy moves, how fast, and between which memories; of a fill the first two."""
    size = next((argument.value for argument in facts.arguments if argument.name == "bytes"), None)
    if facts.event.event_class not in _COPIES or not isinstance(size, int):
        return []
    rows: list[tuple[str, list[Piece]]] = [("Size", [f"{byte_size(size)} ({size:,} bytes)"])]
    if facts.event.dur_ns:
        rows.append(("Speed", [bandwidth(size / facts.event.dur_ns)]))
    if found := _MEMORIES.search(facts.event.name):
        rows.append(("From", [_memory(found[1], found[3])]))
        rows.append(("To", [_memory(found[2], found[4])]))
    return rows


def _memory(side: str, kind: str) -> str:
    """`pageable memory of the host, which the driver copies once more`."""
    where = {"H": "the host", "D": "the device"}.get(side, "its array")
    if kind == "Pageable":
        return f"pageable memory of {where}, which the driver copies once more: pinned memory is faster"
    return f"pinned memory of {where}" if kind == "Pinned" else f"memory of {where}"


def _role_rows(facts: EventFacts) -> list[tuple[str, list[Piece]]]:
    role = facts.role
    if role is None:
        return []
    return [
        ("Role", [role.role]),
        ("Layer", [] if role.layer is None else [str(role.layer)]),
        ("Known by", [role.known_by]),
        ("Module", [role.module] if role.module else []),
        ("Operator", [f"{role.operator}, when captured"] if role.operator else []),
    ]


def _roof_rows(facts: EventFacts) -> list[tuple[str, list[Piece]]]:
    roof = facts.roofline
    if roof is None:
        return []
    work = f" ({counted(roof.kernels, 'piece')} of device work, {duration(roof.device_ns)})"
    peak = "" if roof.peak_tflops_s is None else f" of {roof.peak_tflops_s:,.0f}"
    return [
        ("Formula of", [_link(roof.operator), work]),
        ("Operations", [] if roof.flops is None else [flop_count(roof.flops)]),
        ("Traffic", [] if roof.bytes is None else [byte_size(roof.bytes)]),
        ("Speed", [] if roof.tflops_s is None else [f"{amount(roof.tflops_s, '')}{peak} TFLOP/s"]),
        ("Bandwidth", [] if roof.gb_s is None else [bandwidth(roof.gb_s)]),
        ("Bound", [] if roof.bound is None else [roof.bound]),
        ("Of the roof", [] if roof.efficiency_pct is None else [percent(roof.efficiency_pct)]),
    ]


def _gone_rows(facts: EventFacts) -> list[tuple[str, list[Piece]]]:
    if facts.gone is None:
        return []
    rows: list[tuple[str, list[Piece]]] = [("Recording", [_change(facts.gone.recording)])]
    if facts.gone.iteration is not None:
        rows.insert(0, (f"Iteration {facts.iteration}", [_change(facts.gone.iteration)]))
    return rows


def _change(times: Replayed) -> str:
    def less(after: int) -> str:
        return signed(after - times.before_ns, duration(after - times.before_ns))

    between = f", {less(times.low_ns)} to {less(times.high_ns)}" if times.low_ns != times.high_ns else ""
    return f"{less(times.after_ns)} of {duration(times.before_ns)} (replayed{between})"


def _later(ns: int) -> str:
    return f"{duration(abs(ns))} {'later' if ns >= 0 else 'earlier'}"


def _split(row: dict[Any, Any]) -> str:
    parts = ("compute", "exposed_communication", "exposed_memory", "idle")
    return _shares({part.replace("_", " "): row[f"{part}_ns"] for part in parts})


def _shares(parts: dict[str, int]) -> str:
    whole = sum(parts.values())
    ordered = sorted(((ns, part) for part, ns in parts.items() if ns), reverse=True)
    return ", ".join(f"{part} {duration(ns)} ({percent(100.0 * ns / whole)})" for ns, part in ordered)


def _exact(ns: int) -> str:
    """`4.31 ms (4,312,345 ns)`."""
    return f"{duration(ns)} ({ns:,} ns)" if abs(ns) >= 1000 else f"{ns:,} ns"


def _said(value: Any) -> str:
    return value if isinstance(value, str) else str(value)
