"""Reads traces in the background, with progress and cancellation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError
from functools import partial
from typing import Any, Generic, TypeVar

from hta_widgets.analysis.device_time.busy import busy
from hta_widgets.engine import Ticket, checkpoint, in_forked_child, under
from hta_widgets.errors import HtaWidgetsError
from hta_widgets.pace import Pace
from hta_widgets.trace.far import FarTrace
from hta_widgets.trace.model import Trace
from hta_widgets.trace.reader.discovery import discover
from hta_widgets.trace.scope import Scope

Loaded = TypeVar("Loaded")
Progress = Callable[[float, int, str], None]


class LoadingCancelledError(HtaWidgetsError):
    """The user cancelled the loading."""


def open_all(
    sources: Mapping[str, Any], progress: Progress, options: Mapping[str, Any] | None = None
) -> dict[str, Trace]:
    """Open what is not open yet of `{name: anything Trace.open takes}`, one after another.

    `progress` is called as `progress(files read, files in all, what is being read and for how long)`; a file
    that is being read counts in part. `options` are further arguments of `Trace.open`.
    """
    recording = (options or {}).get("recording")
    files = {
        name: len(discover(source, recording).files)
        for name, source in sources.items()
        if not isinstance(source, Trace)
    }
    total, before = sum(files.values()), 0
    opened: dict[str, Trace] = {}
    for name, source in sources.items():
        if isinstance(source, Trace):
            opened[name] = source
            continue
        prefix = f"{name}: " if len(sources) > 1 else ""
        report = partial(_report_reading, progress, Pace(), before, total, prefix)
        trace = opened[name] = Trace.open(source, progress=report, **(options or {}))
        before += files[name]
        # Computed on first use and needed for the first view: do it now, while a progress bar is shown.
        pace = Pace()
        for done, rank in enumerate(() if isinstance(trace, FarTrace) or trace.was_opened else trace.ranks):
            which = f" (rank {done + 1} of {len(trace.ranks)})" if len(trace.ranks) > 1 else ""
            text = f"linking events{which}{pace.left(done / len(trace.ranks))}"
            progress(before, total, prefix + text)
            _ = trace.rank(rank).launch, trace.rank(rank).iterations
        progress(before, total, f"{prefix}linking events")
        _ = trace.iterations, trace.summary
    return opened


def read_ahead(trace: Trace) -> None:
    """Read what was left out because an earlier process had read it, so that the first selection finds it."""
    if isinstance(trace, FarTrace) or trace.exceeds_memory:
        return
    for rank in trace.ranks:
        checkpoint()
        _ = trace.rank(rank).launch, trace.rank(rank).iterations, busy(trace.rank(rank), Scope())


def _report_reading(
    progress: Progress, pace: Pace, before: int, total: int, prefix: str, done: float, files: int, text: str
) -> None:
    progress(before + done, total, f"{prefix}{text}{pace.left(done / files) if files else ''}")


class Loading(Generic[Loaded]):
    """One attempt to read something, which begins with `start()`.

    The result is set before `done` is called: a cell that waits for it never waits for the browser.

    Args:
        read: does it; called in the loading thread with a function to report progress to, which raises once
            the loading is cancelled.
        progress: called with what `read` reports.
        done: called with the result, in the loading thread.
        failed: called with the error, in the loading thread; not after `cancel()`.
    """

    def __init__(
        self,
        read: Callable[[Progress], Loaded],
        *,
        progress: Progress,
        done: Callable[[Loaded], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._read, self._progress, self._done, self._failed = read, progress, done, failed
        self._ticket = Ticket()
        self._result: Future[Loaded] = Future()
        in_forked_child(self)

    def start(self) -> None:
        """Begin to read; to be called without a lock."""
        # A thread of its own: the engine's few workers are for answers, and an exit does not wait for it.
        threading.Thread(
            target=under, args=(self._ticket, self._run), name="hta_widgets_loading", daemon=True
        ).start()

    def cancel(self) -> None:
        """Stop at the next report or checkpoint; `wait()` raises `LoadingCancelledError` at once."""
        self._ticket.revoke()
        self._fails(LoadingCancelledError("loading was cancelled; call load() to start again"))

    def wait(self, timeout: float | None = None) -> Loaded:
        """The result, as soon as it is there.

        Raises:
            TimeoutError: not within `timeout` seconds.
            LoadingCancelledError: it was cancelled.
            HtaWidgetsError: it could not be read.
        """
        return self._result.result(timeout)

    def renew(self) -> None:
        """In a forked child nobody reads on: those that wait get an error."""
        if not self._result.done():
            self._result = Future()
            self._fails(
                LoadingCancelledError("the process was forked during loading; call load() to start again")
            )

    def _run(self) -> None:
        try:
            result = self._read(self._report)
        except Exception as error:
            if self._fails(error):
                self._failed(error)
            return
        try:
            self._result.set_result(result)
        except InvalidStateError:  # cancelled at this moment
            return
        self._done(result)

    def _report(self, done: float, total: int, text: str) -> None:
        if not self._ticket.live:
            raise LoadingCancelledError("loading was cancelled")
        self._progress(done, total, text)

    def _fails(self, error: Exception) -> bool:
        """Whether this outcome came first; the thread and `cancel()` may finish at the same moment."""
        try:
            self._result.set_exception(error)
        except InvalidStateError:
            return False
        return True
