"""Tiny Kineto files, written by hand: times in ns, as few arguments as an event needs."""

import json
from pathlib import Path
from typing import Any

from hta_widgets.trace.model import Trace

Event = dict[str, Any]


def event(cat: str, name: str, start: int, dur: int, tid: int = 1, pid: int = 100, **args: Any) -> Event:
    ts = f"{start // 1000}.{start % 1000:03d}"
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def kernel(name: str, start: int, dur: int, stream: int = 7, cat: str = "kernel", **args: Any) -> Event:
    return event(cat, name, start, dur, tid=stream, pid=0, device=0, stream=stream, **args)


def launch(start: int, correlation: int, tid: int = 1, dur: int = 1) -> Event:
    return event("cuda_runtime", "cudaLaunchKernel", start, dur, tid, correlation=correlation)


def write(path: Path, events: list[Event], rank: int = 0, ranks: int = 2) -> Path:
    """Write events to `path`, with `ts` and `dur` in us to the last digit."""
    lines = []
    for event in events:
        dur = event["dur"]
        rest = {key: value for key, value in event.items() if key not in ("ts", "dur")}
        lines.append(
            json.dumps(rest)[:-1] + f', "ts": {event["ts"]}, "dur": {dur // 1000}.{dur % 1000:03d}}}'
        )
    head = json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": ranks}})[:-1]
    path.write_text(head + ', "traceEvents": [\n' + ",\n".join(lines) + "\n]}")
    return path


def job(folder: Path, *ranks: list[Event]) -> Trace:
    """A job of these ranks, numbered from 0."""
    return Trace.open(
        {
            rank: write(folder / f"{rank}.json", events, rank, max(len(ranks), 2))
            for rank, events in enumerate(ranks)
        },
        cache=False,
    )
