"""The explorer's header: a few facts about the job, the trace's health, and what a reader must not miss."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pandas as pd

from hta_widgets.formatting import duration
from hta_widgets.trace.model import Trace

Fact = dict[str, str]


def job_facts(trace: Trace, name: str) -> list[Fact]:
    """`[{label, value, title}]`, the most telling first."""
    summary = trace.summary
    steps = trace.iterations["iteration"].nunique()
    ranks = len(trace.ranks)
    world = summary["world_size"]
    devices = Counter(device for device in summary["devices"].values() if device)
    return [
        _fact("Job", summary["job"] or name or "unnamed", name),
        _fact(
            "Ranks",
            f"{ranks} of {world}" if world and world != ranks else f"{ranks}",
            "\n".join(summary["files"]),
        ),
        _fact(
            "Device",
            ", ".join(devices) or "not recorded",
            ", ".join(f"{n} × {device}" for device, n in devices.items()),
        ),
        _fact("Iterations", f"{steps}", ", ".join(sorted(set(trace.iterations["source"].astype(str))))),
        _fact("Duration", duration(summary["duration_ns"]), f"{summary['duration_ns']:,} ns"),
        _fact("Events", f"{summary['events']:,}", "events with a duration"),
    ]


def health_rows(trace: Trace) -> list[dict[str, Any]]:
    """`[{severity, check, detail, remedy, count, ranks}]`: what several ranks share is told once."""
    merged: dict[tuple[str, ...], dict[str, Any]] = {}
    for finding in trace.health.to_dict("records"):
        told = {name: str(finding[name]) for name in ("severity", "check", "detail", "remedy")}
        row = merged.setdefault(tuple(told.values()), {**told, "count": 0, "ranks": []})
        row["count"] += int(finding["count"])
        if not pd.isna(finding["rank"]):
            row["ranks"].append(int(finding["rank"]))
    return list(merged.values())


def notices(trace: Trace) -> list[dict[str, str]]:
    """What must be read before any figure: missing ranks, and a trace without device work or events."""
    found = [{"severity": "error", "text": f"Not loaded: {error}"} for error in trace.failed.values()]
    if not trace.summary["events"]:
        text = "The trace holds no event with a duration: there is nothing to show. Was the profiler running?"
        found.append({"severity": "warning", "text": text})
    elif not any(trace.rank(rank).is_device.any() for rank in trace.ranks):
        text = (
            "No device work was recorded (CPU only): the timeline shows host calls, the breakdowns need "
            "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])."
        )
        found.append({"severity": "warning", "text": text})
    return found


def _fact(label: str, value: Any, title: str) -> Fact:
    return {"label": label, "value": str(value), "title": title}
