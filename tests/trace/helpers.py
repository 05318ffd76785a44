"""Small traces written to order, for tests of the model."""

import json
from pathlib import Path
from typing import Any

from hta_widgets.trace import RankTrace, Trace


def slice_(
    name: str, category: str, start: float, dur: float, tid: object = 1, **args: Any
) -> dict[str, Any]:
    """A complete event; times in µs as in the file."""
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": 10,
        "tid": tid,
        "ts": start,
        "dur": dur,
        "args": args,
    }


def kernel(name: str, start: float, dur: float, correlation: int = 0, stream: int = 7) -> dict[str, Any]:
    """A kernel on device 0."""
    event = slice_(name, "kernel", start, dur, stream, stream=stream, device=0, correlation=correlation)
    return {**event, "pid": 0}


def write(path: Path, events: list[dict[str, Any]], **metadata: Any) -> Path:
    """A trace file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**metadata, "traceEvents": events}))
    return path


def rank_of(tmp_path: Path, events: list[dict[str, Any]], **metadata: Any) -> RankTrace:
    """The one rank of a trace of these events."""
    trace = Trace.open(write(tmp_path / "trace.json", events, **metadata), cache=False)
    return trace.rank(trace.ranks[0])


def damage(path: Path, how: str) -> None:
    """Leave of a file what a crash, a bad disk or a full one may: "cut", "changed" or "empty"."""
    data = bytearray(path.read_bytes())
    if how == "cut":
        del data[len(data) // 2 :]
    elif how == "changed":
        data[len(data) // 2] ^= 1
    else:
        data.clear()
    path.write_bytes(data)
