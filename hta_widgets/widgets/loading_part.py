"""A part that opens its trace itself, in the background, and shows how far that is."""

from __future__ import annotations

import os
from pathlib import Path
from time import monotonic
from typing import Any, Self

from hta_widgets.engine import FRONT
from hta_widgets.trace.discovery import discover
from hta_widgets.trace.model import Trace
from hta_widgets.widgets.home import Home
from hta_widgets.widgets.loading import Loading
from hta_widgets.widgets.part import Part, as_selection, describe
from hta_widgets.widgets.rpc import answers
from hta_widgets.widgets.selection import Selection

_SECONDS_BETWEEN_REPORTS = 0.1


class LoadingPart(Part):
    """Loads what `Trace.open` takes; subclasses show the trace in `_show`, maybe in the loading thread.

    Args:
        source: an open `Trace`, or anything `Trace.open` takes.
        selection: a `Selection`, or a dict of its traits, to start from.

    Raises:
        TraceNotFoundError: the path does not exist, or the folder holds no trace file.
    """

    _loading: Loading | None = None  # none for a trace that is open already
    _last_report = 0.0

    def __init__(
        self, source: Any, *, selection: Selection | dict[str, Any] | None = None, **traits: Any
    ) -> None:
        self._home = Home()
        self._source = source
        self._name = _name_of(source)
        if isinstance(source, Trace):
            self._contents = describe(source)
            self._bind(as_selection(selection), traits)
            self._loaded(source)
        else:
            files = len(discover(source).files)
            self._contents = f"{files} file{'s' * (files != 1)}"
            self._bind(as_selection(selection), traits)
            self.load()

    def load(self) -> None:
        """Start to read the trace in the background, unless that is under way or done."""
        with FRONT:
            if isinstance(self._source, Trace) or (self.status in ("busy", "idle") and self._loading):
                return
            with self.hold_sync():
                self.status, self.message, self.progress = "busy", f"Opening {self._name or 'trace'}", None
            self._loading = Loading(
                self._source, progress=self._report, done=self._loaded, failed=self._not_loaded
            )

    def cancel(self) -> None:
        """Stop the loading; `load()` starts again."""
        with FRONT:
            if self._loading is None or self.status != "busy":
                return
            self._loading.cancel()
            with self.hold_sync():
                self.status, self.message, self.progress = "empty", "Loading was cancelled.", None

    def wait(self, timeout: float | None = None) -> Self:
        """Wait until the trace is loaded; for cells that need it at once.

        Raises:
            TimeoutError: it took more than `timeout` seconds.
            HtaWidgetsError: why the trace could not be loaded.
        """
        if self._loading is not None:
            self._loading.wait(timeout)
        return self

    def close(self) -> None:
        """Take the part down and stop the loading."""
        if self._loading is not None:
            self._loading.cancel()
        super().close()

    @property
    def trace(self) -> Trace:
        """The trace; waits for the loading.

        Raises:
            HtaWidgetsError: why it could not be loaded.
        """
        return self._source if self._loading is None else self._loading.wait()

    def _show(self, trace: Trace) -> None:
        raise NotImplementedError

    def _loaded(self, trace: Trace) -> None:
        self._home.do(lambda: self._show_or_tell(trace))

    def _show_or_tell(self, trace: Trace) -> None:
        try:
            self._show(trace)
        except Exception as error:  # in the loading thread nobody would see it
            self._not_loaded(error)
            raise

    def _not_loaded(self, error: Exception) -> None:
        with FRONT, self.hold_sync():
            self.status, self.message, self.progress = "error", f"{type(error).__name__}: {error}", None

    def _report(self, done: int, total: int, text: str) -> None:
        now = monotonic()
        if now - self._last_report < _SECONDS_BETWEEN_REPORTS and done < total:
            return
        self._last_report = now
        with FRONT, self.hold_sync():
            if self.status == "busy":
                self.progress = done / total if total else None
                self.message = f"{done} of {total} files: {text}" if total > 1 else text.capitalize()

    @answers("cancel")
    def _on_cancel(self, _params: dict[str, Any]) -> None:
        self.cancel()

    @answers("load")
    def _on_load(self, _params: dict[str, Any]) -> None:
        self.load()

    def __repr__(self) -> str:
        """Says what can be told before loading, so that a notebook's output is the same on every run."""
        name = f"{self._name!r}: " if self._name else ""
        return f"{type(self).__name__}({name}{self._contents})"


def _name_of(source: Any) -> str:
    """The last part of a path or URL; no name for anything else."""
    if isinstance(source, os.PathLike):
        return Path(source).resolve().name
    if isinstance(source, str):
        return source.rstrip("/").rsplit("/", 1)[-1] if "://" in source else Path(source).resolve().name
    return ""
