"""Explorers and viewers that are closed at any moment of their loading, in a process of its own.

`python -m tests.widgets.closed_early explorer|viewer|interrupted [displayed]` prints as JSON how many traces
were opened, and how many of them and of parts are still there; if they do not go within a minute, all stacks.
"""

import faulthandler
import gc
import json
import os
import random
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from ipywidgets.widgets import widget as widget_module

from hta_widgets import DiffViewer, Trace, TraceExplorer, examples
from hta_widgets.widgets.part import Part
from tests.support import EVERY_CASE

SECONDS = 60
MOMENTS_MS = (0, 10, 20, 40, 60, 80, 100, 150, 200, 300, 500, 800)


def made(kind: str) -> TraceExplorer | DiffViewer:
    first = examples.path("gpt2_baseline")
    if kind == "explorer":
        return TraceExplorer(first, panels=["overview", "events", "what_if"])
    return DiffViewer(first, examples.path("gpt2_ddp"), names=["a", "b"])


def closed_early(kind: str, displayed: bool) -> dict[str, int]:
    """Of a part that is closed again, sooner or later."""
    opened = noted()
    for milliseconds in MOMENTS_MS:
        part = made(kind)
        if displayed:
            part.ask("view_opened", {"view": "a", "count": 1})
        time.sleep(milliseconds / 1000)
        part.close()
        del part
    return left(opened, lambda: all(thread.name != "hta_widgets_loading" for thread in threading.enumerate()))


def interrupted() -> dict[str, int]:
    """Of a cell that is run again and again, and interrupted at any moment."""
    random.seed(1)
    opened = noted()
    explorer: TraceExplorer | None = None
    for _ in range(30 if EVERY_CASE else 12):
        try:  # the timer may go off before its start has returned
            threading.Timer(random.uniform(0, 0.2), os.kill, (os.getpid(), signal.SIGINT)).start()
            if explorer is not None:
                explorer.close()
            explorer = None
            explorer = TraceExplorer(examples.path("gpt2_baseline"))
            time.sleep(1)
        except KeyboardInterrupt:
            pass
    if explorer is not None:
        explorer.close()
    explorer = None
    return left(opened, lambda: threading.active_count() <= 5)


def noted() -> list[weakref.ref[Trace]]:
    """The traces that are opened from now on, when what reading compiles and imports once is there."""
    Trace.open(examples.path("gpt2_baseline"))
    opened: list[weakref.ref[Trace]] = []
    real = Trace.open

    def open_and_note(*given: Any, **named: Any) -> Trace:
        trace = real(*given, **named)
        opened.append(weakref.ref(trace))
        return trace

    Trace.open = open_and_note  # type: ignore[method-assign]
    return opened


def left(opened: list[weakref.ref[Trace]], at_rest: Callable[[], bool]) -> dict[str, int]:
    """What is still there once everything is at rest and no trace is, or after a minute."""
    deadline = time.monotonic() + SECONDS
    while _traces(opened) or not at_rest():
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
    what, *more = sys.argv[1:]
    found = interrupted() if what == "interrupted" else closed_early(what, "displayed" in more)
    sys.stdout.write(json.dumps(found))
