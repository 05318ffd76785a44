"""Explorers and viewers that are closed at any moment of their loading, in a process of its own.

`python -m tests.widgets.closed_early explorer|viewer [displayed]` prints as JSON how many traces were opened,
how many of them and how many parts are still there. With all stacks, if they do not go within a minute.
"""

import faulthandler
import gc
import json
import sys
import threading
import time
import weakref
from typing import Any

from ipywidgets.widgets import widget as widget_module

from hta_widgets import DiffViewer, Trace, TraceExplorer, examples
from hta_widgets.widgets.part import Part

SECONDS = 60
MOMENTS_MS = (0, 10, 20, 40, 60, 80, 100, 150, 200, 300, 500, 800)


def made(kind: str) -> TraceExplorer | DiffViewer:
    first = examples.path("gpt2_baseline")
    if kind == "explorer":
        return TraceExplorer(first, panels=["overview", "events", "what_if"])
    return DiffViewer(first, examples.path("gpt2_ddp"), names=["a", "b"])


def closed_early(kind: str, displayed: bool) -> dict[str, int]:
    opened: list[weakref.ref[Trace]] = []
    real = Trace.open

    def open_and_note(*given: Any, **named: Any) -> Trace:
        trace = real(*given, **named)
        opened.append(weakref.ref(trace))
        return trace

    Trace.open = open_and_note  # type: ignore[method-assign]
    for milliseconds in MOMENTS_MS:
        part = made(kind)
        if displayed:
            part.ask("view_opened", {"view": "a", "count": 1})
        time.sleep(milliseconds / 1000)
        part.close()
        del part
    deadline = time.monotonic() + SECONDS
    while _traces(opened) or any(thread.name == "hta_widgets_loading" for thread in threading.enumerate()):
        if time.monotonic() > deadline:
            faulthandler.dump_traceback()
            break
        time.sleep(0.05)
    parts = sum(isinstance(each, Part) for each in widget_module._instances.values())
    return {"opened": len(opened), "traces": _traces(opened), "parts": parts}


def _traces(opened: list[weakref.ref[Trace]]) -> int:
    gc.collect()
    return sum(trace() is not None for trace in opened)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(closed_early(sys.argv[1], "displayed" in sys.argv[2:])))
