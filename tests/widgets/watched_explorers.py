"""Explorers that are opened, changed and closed while every lock is watched: a process of its own.

`python -m tests.widgets.watched_explorers`: prints what was seen as JSON. A stall ends it with all stacks.
"""

import faulthandler
import gc
import json
import sys
import threading
import time
from collections import Counter
from typing import Any

from tests.lock_watch import WATCH, install
from tests.support import EVERY_CASE

SECONDS = 300


def watched(rounds: int = 2 if EVERY_CASE else 1) -> dict[str, Any]:
    """What was seen. Nothing of the package may have been imported before."""
    assert "hta_widgets.engine" not in sys.modules, "its locks would not be watched"
    faulthandler.dump_traceback_later(SECONDS, exit=True, file=sys.__stderr__)
    install(collect=False)
    from hta_widgets import DiffViewer, Trace, TraceExplorer, examples
    from hta_widgets.widgets import static_preview
    from hta_widgets.widgets.part import Part

    static_preview.REST_SECONDS = 0.01
    finalized: Counter[str] = Counter()
    finalize = Part.__del__

    def note(part: Part) -> None:
        finalized[threading.current_thread().name] += 1
        finalize(part)

    Part.__del__ = note  # type: ignore[method-assign]

    def explore() -> None:
        explorer = TraceExplorer(examples.path("gpt2_baseline"), panels=["temporal_breakdown", "events"])
        explorer.ask("view_opened", {"view": "a", "count": 1})
        explorer.wait()
        while explorer.status != "idle":
            assert not WATCH.errors, WATCH.errors
            time.sleep(0.01)
        change(explorer)
        explorer.close()

    def change(explorer: TraceExplorer) -> None:
        timeline = next(part for area, part in explorer.parts if area == "timeline")
        # as a click in the browser does
        call = {"rpc": 1, "call": "1", "method": "find_names", "params": {"text": "gemm"}}
        explorer._handle_rpc(explorer, call, [])
        timeline.set_state({"ranks": [0]})
        explorer.set_state({"panels": ["overview", "job", "what_if"], "query": "gemm"})
        explorer.set_state({"clock": "host"})
        explorer.selection.window = (0, 10_000_000)
        explorer.panels = ["kernel_breakdown"]
        explorer.communication = ("gemm",)
        explorer.selection.undo()
        explorer.snapshot()

    def compare() -> None:
        viewer = DiffViewer(examples.path("gpt2_baseline"), examples.path("gpt2_ddp"), names=["a", "b"])
        viewer.ask("view_opened", {"view": "a", "count": 1})
        viewer.wait()
        viewer.selections["b"].names = ("gemm",)
        viewer.snapshot()
        viewer.close()

    def short_of_memory() -> None:
        """Ranks are dropped and read again, which starts threads."""
        trace = Trace.open(examples.path("ddp_4ranks"), memory_limit=1)
        explorer = TraceExplorer(trace, panels=["rank_waits"])
        for rank in trace.ranks:
            explorer.selection.ranks = (rank,)
        explorer.snapshot()
        explorer.close()

    deeds = (explore, compare, short_of_memory)
    for deed in deeds:  # what is imported and compiled on the way is no garbage
        deed()
    gc.collect()
    gc.freeze()
    gc.disable()
    WATCH.collect = True
    for _ in range(rounds):
        others = [threading.Thread(target=deed, name=deed.__name__) for deed in deeds]
        for other in others:
            other.start()
        explore()
        for other in others:
            other.join()
    gc.enable()
    faulthandler.cancel_dump_traceback_later()
    order = sorted(WATCH.order)
    return {"finalized": finalized, "collected": WATCH.collected, "order": order, "errors": WATCH.errors}


if __name__ == "__main__":
    json.dump(watched(), sys.stdout)
