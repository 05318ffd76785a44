"""The explorer's header: key figures of the job, the trace's health, and important warnings."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from hta_widgets.formatting import brief, capitalised, counted, duration
from hta_widgets.trace.class_rules import function_pattern
from hta_widgets.trace.classify import own_name
from hta_widgets.trace.model import ITERATION_CLOCKS, IterationClock, Trace

Field = dict[str, str]


@dataclass(frozen=True)
class About:
    """What the header shows."""

    header: list[Field]  # `[{label, value, title}]`, the most informative first
    health: list[dict[str, Any]]  # `[{severity, check, detail, remedy, name, count, ranks}]`
    notices: list[Field]  # `[{severity, text}]`: what comes before any figure
    # what may time the iterations; empty where the host or the device has nothing to time
    clocks: list[IterationClock]


def about(trace: Trace, name: str, communication: tuple[str, ...]) -> About:
    """The header of a trace.

    Args:
        communication: names of device work that the user counts as communication.
    """
    timed = bool(trace.iterations["device_start_ns"].notna().any())
    return About(
        header_fields(trace, name),
        [*health_rows(trace), *(_counted(trace, own) for own in communication)],
        notices(trace),
        list(ITERATION_CLOCKS) if timed else [],
    )


def header_fields(trace: Trace, name: str) -> list[Field]:
    """`[{label, value, title}]`, the most informative first."""
    summary = trace.summary
    ranks = len(trace.ranks)
    world = trace.absent.of or summary["world_size"]
    devices = Counter(device for device in summary["devices"].values() if device)
    return [
        _field("Job", summary["job"] or name or "unnamed", name),
        _field(
            "Ranks",
            f"{ranks:,} of {world:,}" if isinstance(world, int) and world != ranks else f"{ranks:,}",
            _files(trace, summary["files"]),
        ),
        _field(
            "Device" if devices else "Device name",
            ", ".join(devices) or "not recorded",
            ", ".join(f"{n} × {device}" for device, n in devices.items()),
        ),
        *_recording(trace),
        _iterations(trace),
        _field("Duration", duration(summary["duration_ns"]), f"{summary['duration_ns']:,} ns"),
        _field("Events", f"{summary['events']:,}", "events with a duration"),
    ]


_FILES_NAMED = 16


def _files(trace: Trace, files: list[str]) -> str:
    """What is missing, and the first files: a page cannot show a thousand of them."""
    without = trace.without
    notes = [capitalised(without)] if without else []
    notes += files[:_FILES_NAMED]
    more = len(files) - _FILES_NAMED
    return "\n".join([*notes, f"and {counted(more, 'more file')}"] if more > 0 else notes)


_KINDS = {
    "training": ("training", "a backward pass or an optimizer is recorded"),
    "serving": ("serving", "the steps of a server are recorded"),
    "forward": ("forward passes", "no backward pass is recorded: inference, or a part of training"),
    "graph capture": ("graph capture", "most launches are recorded into a graph and do not run"),
}


def _recording(trace: Trace) -> list[Field]:
    """What was recorded, where that can be told of all ranks alike."""
    if trace.several_jobs:
        return [_field("Recording", "several jobs", trace.several_jobs)]
    kinds = set(trace.kinds) - {"unknown"}
    return [_field("Recording", *_KINDS[kinds.pop()])] if len(kinds) == 1 else []


def _iterations(trace: Trace) -> Field:
    """How many there are, what announces them, and what times them where that is not the host as usual."""
    frame = trace.iterations
    sources = ", ".join(sorted(set(frame["source"].astype(str))))
    guessed = " (guessed)" if len(frame) and frame["known"].eq("guessed").any() else ""
    on_device = frame["clock"].eq("device").any()
    timed = ""
    if len(frame) and trace.iteration_clock != "auto":
        timed = f", timed on the {trace.iteration_clock}"
        sources += f"; the {trace.iteration_clock}'s clock was chosen"
    elif on_device:
        timed = ", timed on the device"
        sources += "; work of a step runs after its host's mark, so that the device's clock times all ranks"
    return _field("Iterations", f"{frame['iteration'].nunique()}{guessed}{timed}", sources)


def health_rows(trace: Trace) -> list[dict[str, Any]]:
    """`[{severity, check, detail, remedy, name, count, ranks}]`: what several ranks share is merged."""
    merged: dict[tuple[str, ...], dict[str, Any]] = {}
    for finding in trace.health.to_dict("records"):
        fields = {name: str(finding[name]) for name in ("severity", "check", "detail", "remedy", "name")}
        row = merged.setdefault(tuple(fields.values()), {**fields, "count": 0, "ranks": []})
        row["count"] += int(finding["count"])
        if not pd.isna(finding["rank"]):
            row["ranks"].append(int(finding["rank"]))
    return list(merged.values())


def _counted(trace: Trace, name: str) -> dict[str, Any]:
    """A row of the health list: work that is communication because the user says so."""
    pattern = re.compile(function_pattern(name))
    count, ranks = 0, list[int]()
    for rank in trace.ranks:
        known = trace.rank(rank)
        found = np.array([bool(pattern.search(text)) for text in known.names], np.bool_)
        here = int((known.is_device & found[known.name]).sum())
        count, ranks = count + here, ranks + [rank] * (here > 0)
    check, detail = "counted_as_communication", brief(own_name(name))
    return {
        "severity": "info", "check": check, "detail": detail, "remedy": "", "name": name, "count": count,
        "ranks": ranks,
    }  # fmt: skip


def notices(trace: Trace) -> list[dict[str, str]]:
    """What comes before any figure: other recordings, files left out, missing ranks, no events."""
    found = [{"severity": "error", "text": f"Not loaded: {error}"} for error in trace.failed.values()]
    # a note begins as a sentence does, unless it begins with the name of a file
    notes = (capitalised(note) if note.split()[0].isalpha() else note for note in trace.file_notes)
    found += [{"severity": "info", "text": note} for note in notes]
    if absent := trace.absent.text:
        text = (
            f"Not recorded: {absent}. No number here includes them, and how long others wait for them is "
            "unknown."
        )
        found.append({"severity": "warning", "text": text})
    if not trace.summary["events"]:
        text = "The trace holds no event with a duration: there is nothing to show. Was the profiler running?"
        found.append({"severity": "warning", "text": text})
    return found


def _field(label: str, value: Any, title: str) -> Field:
    return {"label": label, "value": str(value), "title": title}
