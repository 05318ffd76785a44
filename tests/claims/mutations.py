"""A recording as it might have been recorded instead: shorter, with less in it, slower, or late."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["MUTATIONS", "mutated", "slower"]

Events = list[dict[str, Any]]

_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events"}
_RUNTIME = {"cuda_runtime", "cuda_driver", "mtia_runtime", "runtime"}


def _times(events: Events) -> list[float]:
    return sorted(float(each["ts"]) for each in events if each.get("ph") == "X" and "ts" in each)


def _first_half(events: Events) -> Events:
    times = _times(events)
    return [each for each in events if "ts" not in each or float(each["ts"]) <= times[len(times) // 2]]


def _without_args(events: Events, *names: str) -> Events:
    return [
        {**each, "args": {key: value for key, value in each["args"].items() if key not in names}}
        if isinstance(each.get("args"), dict)
        else each
        for each in events
    ]


def slower(by: float, device_only: bool) -> Callable[[Events], Events]:
    """All times, or those of the device, from the first one on."""

    def change(events: Events) -> Events:
        zero = _times(events)[0]
        found = []
        for each in events:
            timed = "ts" in each and each.get("ph") in ("X", "i", "s", "f")
            if timed and (not device_only or each.get("cat") in _DEVICE or each.get("ph") == "f"):
                each = each | {"ts": zero + by * (float(each["ts"]) - zero)}
                if "dur" in each:
                    each["dur"] = by * float(each["dur"])
            found.append(each)
        return found

    return change


def _unmarked(events: Events) -> Events:
    return [each for each in events if not str(each.get("name", "")).startswith("ProfilerStep#")]


MUTATIONS: dict[str, Callable[[Events], Events]] = {
    "first half": _first_half,
    "without shapes": lambda events: _without_args(events, "Input Dims", "Input type", "Concrete Inputs"),
    "without stacks": lambda events: [each for each in events if each.get("cat") != "python_function"],
    "without calls": lambda events: [each for each in events if each.get("cat") not in _RUNTIME],
    "unmarked": _unmarked,
    "ten times as slow": slower(10.0, False),
    "device slower by 1.5": slower(1.5, True),
}


def mutated(source: Path, target: Path, change: Callable[[Events], Events], only: int | None = None) -> Path:
    """A folder with the files of a job, changed; or with only one of them changed, by its place."""
    files = [source] if source.is_file() else sorted(each for each in source.iterdir() if each.is_file())
    target.mkdir()
    for place, file in enumerate(files):
        data = file.read_bytes()
        document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        if only is None or only == place:
            document["traceEvents"] = change(document["traceEvents"])
        (target / file.name.removesuffix(".gz")).write_text(json.dumps(document))
    return target
