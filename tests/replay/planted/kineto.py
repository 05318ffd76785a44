"""Writes a run as Kineto records it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hta_widgets.trace.model import Trace
from tests.analysis.kineto_file import Event, event, kernel, write
from tests.replay.planted.machine import Executed, Run, Waited

__all__ = ["record"]

_CATEGORY = {"compute": "kernel", "communication": "kernel", "copy": "gpu_memcpy", "fill": "gpu_memset"}


def record(run: Run, folder: Path, waits: bool = True, late_ns: int = 0, since_ns: int = 0) -> Trace:
    """The trace of a run.

    Args:
        waits: record what each wait waited for (`cuda_sync` events).
        late_ns: the clock of the device is so much ahead of the host's.
        since_ns: the recording holds what calls begin then or later, and what work ends later.
    """
    events = [
        event(category, name, begin, end - begin, thread, **{"External id": number})
        for number, (category, name, thread, begin, end) in enumerate(run.ranges, 1)
        if begin >= since_ns
    ]
    events += [
        event("cuda_runtime", name, begin, end - begin, thread, correlation=correlation)
        for name, thread, begin, end, correlation in run.calls
        if begin >= since_ns
    ]
    events += [_executed(done, late_ns) for done in run.work if done.end > since_ns]
    if waits:
        events += [_waited(waited) for waited in run.waits if waited.call.begin >= since_ns]
    folder.mkdir(parents=True, exist_ok=True)
    return Trace.open(write(folder / "trace.json", events), cache=False)


def _executed(done: Executed, late_ns: int) -> Event:
    work = done.work
    args: dict[str, Any] = {"correlation": done.correlation}
    if work.kind == "communication":
        args |= {
            "Collective name": "allreduce",
            "In msg nelems": work.elements,
            "dtype": "Float",
            "Group size": 2,
        }
    elif work.kind != "compute":
        args |= {"bytes": 20 * work.ns}
    return kernel(
        work.name, done.begin + late_ns, done.end - done.begin, work.stream, _CATEGORY[work.kind], **args
    )


def _waited(waited: Waited) -> Event:
    call = waited.call
    args: dict[str, Any] = {"cuda_sync_kind": waited.kind, "correlation": call.correlation}
    if waited.record >= 0:
        args |= {"wait_on_stream": waited.on, "wait_on_cuda_event_record_corr_id": waited.record}
    return kernel(waited.kind, call.begin, call.end - call.begin, waited.stream, "cuda_sync", **args)
