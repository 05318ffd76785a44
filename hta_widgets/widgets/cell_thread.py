"""The thread in which an explorer creates its parts: any in Jupyter, one that belongs to its cell in marimo.

In Jupyter any thread may create a widget at any time. marimo assigns a widget to the cell that runs in the
thread that creates it, so neither a loading thread nor a click, for which no cell runs, can create one. There
the explorer starts a `marimo.Thread` of the cell that created it, and that thread creates the parts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

_POLL_SECONDS = 1.0

Job = Callable[[], None]


def marimo() -> Any:
    """The module if this thread belongs to a marimo notebook, else None."""
    module = sys.modules.get("marimo")
    return module if module is not None and module.running_in_notebook() else None


class CellThread:
    """Belongs to the notebook cell that runs now."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job] | None = None
        if host := marimo():
            self._jobs = SimpleQueue()
            host.Thread(target=_work, args=(host, self._jobs), name="hta_widgets_cell", daemon=True).start()

    def do(self, job: Job) -> None:
        """Run `job`, which creates widgets: before this returns in Jupyter, soon in marimo."""
        if self._jobs is None:
            job()
        else:
            self._jobs.put(job)


def _work(host: Any, jobs: SimpleQueue[Job]) -> None:
    """Run until the cell is run again or deleted, and its widgets with it."""
    while not host.current_thread().should_exit:
        try:
            job = jobs.get(timeout=_POLL_SECONDS)
        except Empty:
            continue
        job()
