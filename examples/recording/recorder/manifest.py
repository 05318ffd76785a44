"""`manifest.json`: what was recorded, on what, how, and how long a step takes without the profiler.

    {"format": 1,
     "recordings": {name: {setup, command, started, ranks, backend, environment, steps, step_time, traces}},
     "pairs": [{first, second, field, truth}],
     "left_out": {name: reason}}

`step_time` holds for each phase of the program (training: ``step``; serving: ``prefill``, ``decode``) a
spread ``before`` and ``after`` profiling, both without the profiler, and one ``profiled``. See `spread`.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from recorder.matrix import PAIRS
from recorder.setup import Setup

FORMAT = 1
FILE = "manifest.json"
LIMIT_BYTES = 2**20

_RECORDING: dict[str, type | tuple[type, ...]] = {
    "setup": dict,
    "command": str,
    "started": str,
    "ranks": int,
    "backend": (str, type(None)),
    "environment": dict,
    "steps": dict,
    "step_time": dict,
    "traces": list,
}
_ENVIRONMENT: dict[str, type | tuple[type, ...]] = {
    "device": str,
    "devices": int,
    "driver": (str, type(None)),
    "python": str,
    "torch": str,
    "cuda": (str, type(None)),
    "rocm": (str, type(None)),
    "nccl": (str, type(None)),
    "platform": str,
    "float32_matmul_precision": str,
}
_TIMES = ("before", "after", "profiled")
_SPREAD = ("median_ns", "q1_ns", "q3_ns", "samples")


def load(folder: Path) -> dict[str, Any]:
    """The manifest of a folder, an empty one where there is none yet.

    Raises:
        ValueError: the file is of another format.
    """
    path = folder / FILE
    if not path.exists():
        return {"format": FORMAT, "recordings": {}, "pairs": [], "left_out": {}}
    found: dict[str, Any] = json.loads(path.read_text())
    if found.get("format") != FORMAT:
        raise ValueError(f"{path}: format {found.get('format')!r}, this script writes {FORMAT}")
    return found


def add(folder: Path, name: str, recording: dict[str, Any]) -> None:
    """Write a recording into the folder's manifest, over an older one of the same name."""
    manifest = load(folder)
    manifest["recordings"][name] = recording
    manifest["left_out"].pop(name, None)
    _save(folder, manifest)


def leave_out(folder: Path, name: str, reason: str) -> None:
    """Write down why there is no such recording."""
    manifest = load(folder)
    manifest["recordings"].pop(name, None)
    manifest["left_out"][name] = reason
    _save(folder, manifest)


def traces(folder: Path) -> list[dict[str, Any]]:
    """The trace files of a recording: file (seen from the folder above), bytes, and whether within 1 MiB."""
    return [
        {
            "file": f"{folder.name}/{path.name}",
            "bytes": path.stat().st_size,
            "within_limit": path.stat().st_size <= LIMIT_BYTES,
        }
        for path in sorted(folder.glob("*.json.gz"))
    ]


def problems(manifest: dict[str, Any]) -> list[str]:
    """What a manifest lacks or contradicts, one sentence each; empty if it is whole."""
    found = [] if manifest.get("format") == FORMAT else [f"format is {manifest.get('format')!r}"]
    recorded = manifest.get("recordings", {})
    for name, item in recorded.items():
        found += [f"{name}: {problem}" for problem in _of_recording(item)]
    for pair in manifest.get("pairs", []):
        sides = [recorded.get(pair[side]) for side in ("first", "second")]
        if None in sides:
            found.append(f"pair {pair['first']}, {pair['second']}: not both are recorded")
            continue
        first, second = (item["setup"] for item in sides)
        differing = [field for field in first if first[field] != second.get(field)]
        if differing != ([pair["field"]] if pair["field"] else []):
            found.append(f"pair {pair['first']}, {pair['second']}: they differ in {differing}")
    return found


def lines(name: str, recording: dict[str, Any]) -> list[str]:
    """A recording in a few lines: its step times, and traces that are too large to ship."""
    listed = []
    for phase, times in recording["step_time"].items():
        spreads = [
            f"{when} {times[when]['median_ns'] / 1e6:.3f}"
            f" [{times[when]['q1_ns'] / 1e6:.3f}, {times[when]['q3_ns'] / 1e6:.3f}]"
            for when in _TIMES
        ]
        listed.append(f"{name}: {phase} ms, median [quartiles]: {', '.join(spreads)}")
    listed += [
        f"{name}: {item['file']} has {item['bytes'] / 2**20:.2f} MiB: "
        "too large to ship, record fewer --active"
        for item in recording["traces"]
        if not item["within_limit"]
    ]
    return listed


def plain_setup(setup: Setup) -> dict[str, Any]:
    """A setup as JSON holds it."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(setup)))
    return plain


def _save(folder: Path, manifest: dict[str, Any]) -> None:
    recorded = manifest["recordings"]
    manifest["pairs"] = [asdict(pair) for pair in PAIRS if {pair.first, pair.second} <= recorded.keys()]
    # Written beside and moved: an interrupted recording must not cost the manifest of those before it.
    new = folder / f"{FILE}.new"
    new.write_text(json.dumps(manifest, indent=2) + "\n")
    new.replace(folder / FILE)


def _of_recording(item: dict[str, Any]) -> list[str]:
    found = _missing(item, _RECORDING)
    if found:
        return found
    found = _missing(item["environment"], _ENVIRONMENT)
    if not item["traces"]:
        found.append("no trace")
    if len(item["traces"]) != item["ranks"]:
        found.append(f"{item['ranks']} ranks, {len(item['traces'])} traces")
    if not item["step_time"]:
        found.append("no step time")
    for phase, times in item["step_time"].items():
        for when in _TIMES:
            numbers = [times.get(when, {}).get(key) for key in _SPREAD]
            if not all(isinstance(number, int) and number > 0 for number in numbers):
                found.append(f"step_time {phase} {when} is not a spread")
            elif not numbers[1] <= numbers[0] <= numbers[2]:
                found.append(f"step_time {phase} {when}: quartiles out of order")
    return found


def _missing(found: dict[str, Any], wanted: dict[str, type | tuple[type, ...]]) -> list[str]:
    return [
        f"{key} is missing" if key not in found else f"{key} is {found[key]!r}"
        for key, kind in wanted.items()
        if key not in found or not isinstance(found[key], kind)
    ]
