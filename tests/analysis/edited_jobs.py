"""Bundled jobs with other events than they were made with."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from hta_widgets import Trace, examples

Event = dict[str, Any]
Edit = Callable[[list[Event]], list[Event]]


def only(frame: pd.DataFrame) -> pd.Series:
    assert len(frame) == 1, frame[["strategy", "evidence"]]
    return frame.iloc[0]


def edited(folder: Path, name: str, edit: Edit, metadata: Event | None = None) -> Trace:
    """A bundled job with other events."""
    for path in sorted(examples.path(name).iterdir()):
        document = json.loads(gzip.decompress(path.read_bytes()))
        document["traceEvents"] = edit(document["traceEvents"])
        if metadata is not None:
            document["distributedInfo"] = metadata
        (folder / path.name.removesuffix(".gz")).write_text(json.dumps(document))
    return Trace.open(folder, cache=False, repair=False)


def collective(event: Event) -> str:
    return str(event.get("args", {}).get("Collective name", ""))


def each(change: Callable[[Event], None]) -> Edit:
    def edit(events: list[Event]) -> list[Event]:
        for event in events:
            change(event)
        return events

    return edit


def in_first_step(events: list[Event]) -> Callable[[Event], bool]:
    """Whether an event was launched in the first step."""
    step = next(
        event for event in events if event["name"] == "ProfilerStep#10" and event["cat"] == "user_annotation"
    )
    launched = {
        event["args"]["correlation"]: float(event["ts"])
        for event in events
        if event.get("cat") == "cuda_runtime"
    }
    end = float(step["ts"]) + float(step["dur"])
    return lambda item: launched.get(item["args"].get("correlation"), float(item["ts"])) < end


def clone(
    events: list[Event], kernels: list[Event], change: Callable[[Event], None], tid: int | None = None
) -> list[Event]:
    """Kernels again, with the call that launched them, changed by `change`."""
    launches = {event["args"]["correlation"]: event for event in events if event.get("cat") == "cuda_runtime"}
    made = []
    for number, kernel in enumerate(kernels, 10_000_000):
        call = launches[kernel["args"]["correlation"]]
        made.append({**call, "args": {**call["args"], "correlation": number}})
        if tid is not None:
            made[-1]["tid"] = tid
        copy = {**kernel, "args": {**kernel["args"], "correlation": number}}
        copy["args"].pop("Seq"), copy["args"].pop("Comms Id")
        change(copy)
        made.append(copy)
    return made


def kernels_of(events: list[Event], part: str) -> list[Event]:
    return [event for event in events if event.get("cat") == "kernel" and part in collective(event)]
