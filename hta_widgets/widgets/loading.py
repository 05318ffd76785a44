"""Reads a trace in the background, reports how far it is, and can be stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any

from hta_widgets.errors import HtaWidgetsError
from hta_widgets.trace.model import Trace

__all__ = ["Loading", "LoadingCancelledError"]


class LoadingCancelledError(HtaWidgetsError):
    """The reader of the notebook stopped the loading."""


class Loading:
    """One attempt to open a trace.

    The result is set before `done` is called: a cell that waits for it never waits for the browser.

    Args:
        path: whatever `Trace.open` takes.
        progress: called as `progress(files read, files in all, what is being read)`.
        done: called with the trace, in the loading thread.
        failed: called with the error, in the loading thread; not after `cancel()`.
    """

    def __init__(
        self,
        path: Any,
        *,
        progress: Callable[[int, int, str], None],
        done: Callable[[Trace], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._path, self._progress, self._done, self._failed = path, progress, done, failed
        self._stop = threading.Event()
        self._result: Future[Trace] = Future()
        # A thread of its own: the engine's few workers are for answers, and an exit does not wait for it.
        threading.Thread(target=self._run, name="hta_widgets_loading", daemon=True).start()

    def cancel(self) -> None:
        """Stop at the next report of progress; whoever waits gets `LoadingCancelledError` at once."""
        self._stop.set()
        self._settle(LoadingCancelledError("loading was cancelled; call load() to start again"))

    def wait(self, timeout: float | None = None) -> Trace:
        """The trace, as soon as it is there.

        Raises:
            TimeoutError: not within `timeout` seconds.
            LoadingCancelledError: somebody stopped it.
            HtaWidgetsError: why it could not be opened.
        """
        return self._result.result(timeout)

    def _run(self) -> None:
        try:
            trace = Trace.open(self._path, progress=self._report)
            # Computed on first use and needed for the first picture: now, while a progress bar is up.
            self._report(1, 1, "linking events")
            _ = trace.health, trace.iterations, trace.summary
        except Exception as error:
            if self._settle(error):
                self._failed(error)
            return
        if self._settle(trace):
            self._done(trace)

    def _report(self, done: int, total: int, text: str) -> None:
        if self._stop.is_set():
            raise LoadingCancelledError("loading was cancelled")
        self._progress(done, total, text)

    def _settle(self, outcome: Trace | Exception) -> bool:
        """Whether this outcome came first; the thread and `cancel()` may finish at the same moment."""
        try:
            if isinstance(outcome, Exception):
                self._result.set_exception(outcome)
            else:
                self._result.set_result(outcome)
        except InvalidStateError:
            return False
        return True
