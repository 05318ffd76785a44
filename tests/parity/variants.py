"""Copies of a trace on which a known defect of HTA cannot show, so that all other cells must be equal.

``whole``: every time is a whole number of what HTA takes for us. Times are multiplied by 1000 after their
common start was taken off, so a copy holds the ns of its original, and HTA computes with them without
rounding (Q-1, Q-2).

``plain``: besides, nothing is a profiler step, so HTA drops no event (Q-7, Q-8, Q-55); no host call carries a
stream and there are no synchronisation events, so nothing but device work counts as it (Q-9, Q-10); and no
slice is event 0 (Q-24).
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

# Small times overflow the narrow integers that HTA keeps them in.
START = 10**12
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset", "mtia_ccp_events"}


_FRACTION = re.compile(rb'"ts":\s*-?[0-9]+[.eE]')


def load(path: Path) -> dict[str, Any]:
    document = json.loads(_text(path), parse_float=Decimal)
    assert isinstance(document, dict)
    return document


def is_whole(path: Path) -> bool:
    """HTA rounds nothing: no timestamp of a slice has a fraction."""
    return _FRACTION.search(_text(path)) is None


def _text(path: Path) -> bytes:
    raw = path.read_bytes()
    return gzip.decompress(raw) if path.suffix == ".gz" else raw


def in_whole_units(documents: Iterable[dict[str, Any]]) -> None:
    """Multiply the times of one job's files by 1000, in place."""
    jobs = list(documents)
    starts = [
        Decimal(event["ts"]) for job in jobs for event in job["traceEvents"] if event.get("dur") is not None
    ]
    first = min(starts)
    for job in jobs:
        for event in job["traceEvents"]:
            if event.get("ts") is not None:
                event["ts"] = round((Decimal(event["ts"]) - first) * 1000) + START
            if event.get("dur") is not None:
                event["dur"] = round(Decimal(event["dur"]) * 1000)


def without_steps_and_waits(document: dict[str, Any]) -> None:
    """Make a file ``plain``, in place; its times are left alone."""
    events = [{"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": 0, "args": {"name": "first"}}]
    for event in document["traceEvents"]:
        if event.get("cat") == "cuda_sync":
            continue
        if isinstance(event.get("name"), str):
            event["name"] = event["name"].replace("ProfilerStep", "Step")
        if event.get("cat") not in DEVICE and isinstance(event.get("args"), dict):
            event["args"].pop("stream", None)
        events.append(event)
    document["traceEvents"] = events


def write(document: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(document, default=float), encoding="utf-8")
