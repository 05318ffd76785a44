"""A part that opens its traces itself, in the background, and shows the progress."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any, Self

from hta_widgets.engine import UI_LOCK, Superseded, checkpoint
from hta_widgets.formatting import capitalised, counted
from hta_widgets.trace.model import Trace
from hta_widgets.trace.reader.discovery import discover
from hta_widgets.widgets.cell_thread import CellThread
from hta_widgets.widgets.loading import Loading, open_all
from hta_widgets.widgets.part import Part, as_selection, describe
from hta_widgets.widgets.rpc import rpc_method
from hta_widgets.widgets.selection import Selection

_SECONDS_BETWEEN_REPORTS = 0.1


class LoadingPart(Part):
    """Loads what `Trace.open` takes; subclasses show the traces in `_show`, possibly in the loading thread.

    Args:
        sources: open `Trace`s, or anything `Trace.open` takes, by name; a single one may be called "".
        selection: a `Selection`, or a dict of its traits, to start from.
        open_options: further arguments of `Trace.open`.

    Raises:
        TraceNotFoundError: a path does not exist, or a folder holds no trace file.
    """

    _loading: Loading[dict[str, Trace]] | None = None  # none for traces that are open already
    _last_report = 0.0

    def __init__(
        self,
        sources: Mapping[str, Any],
        *,
        selection: Selection | dict[str, Any] | None = None,
        open_options: Mapping[str, Any] | None = None,
        **traits: Any,
    ) -> None:
        self._cell_thread = CellThread()
        self._open_options = open_options
        self._sources = dict(sources)
        self._contents = {name: _contents(source) for name, source in sources.items()}
        try:
            self._bind(as_selection(selection), traits)
            if self._all_open:
                self._loaded(self._sources)
            else:
                self.load()
        except BaseException:  # an interrupt: nobody has the part, so nobody would close it
            self.close()
            raise

    @property
    def _all_open(self) -> bool:
        return all(isinstance(source, Trace) for source in self._sources.values())

    def load(self) -> None:
        """Start reading the traces in the background, unless they are being read or loaded already."""
        with UI_LOCK:
            if self._all_open or (self.status in ("busy", "idle") and self._loading):
                return
            opening = " and ".join(filter(None, self._sources)) or "trace"
            with self.hold_sync():
                self.status, self.message, self.progress = "busy", f"Opening {opening}", None
            loading = self._loading = Loading(
                lambda report: open_all(self._sources, report, self._open_options),
                progress=self._report,
                done=self._loaded,
                failed=self._not_loaded,
            )
        loading.start()

    def cancel(self) -> None:
        """Stop the loading; `load()` starts again."""
        with UI_LOCK:
            if self._loading is None or self.status != "busy":
                return
            self._loading.cancel()
            with self.hold_sync():
                self.status, self.message, self.progress = "empty", "Loading was cancelled.", None

    def wait(self, timeout: float | None = None) -> Self:
        """Wait until the traces are loaded; for cells that need them at once.

        Raises:
            TimeoutError: it took more than `timeout` seconds.
            HtaWidgetsError: why they could not be loaded.
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
    def traces(self) -> dict[str, Trace]:
        """The traces by name; waits for the loading.

        Raises:
            HtaWidgetsError: why they could not be loaded.
        """
        return dict(self._sources if self._loading is None else self._loading.wait())

    @property
    def trace(self) -> Trace:
        """The trace, of several the first; waits for the loading.

        Raises:
            HtaWidgetsError: why it could not be loaded.
        """
        return next(iter(self.traces.values()))

    def _show(self, traces: dict[str, Trace]) -> None:
        raise NotImplementedError

    def _loaded(self, traces: dict[str, Trace]) -> None:
        self._cell_thread.do(lambda: self._show_or_tell(traces))

    def _show_or_tell(self, traces: dict[str, Trace]) -> None:
        try:
            self._show(traces)
        except Superseded:
            return
        except Exception as error:  # in the loading thread it would go unnoticed
            self._not_loaded(error)
            raise

    def _check_wanted(self) -> None:
        """Under `UI_LOCK`, before parts are made in another thread: the part may have been closed meanwhile.

        Raises:
            Superseded: it was, or the loading was cancelled.
        """
        checkpoint()
        if self.closed:
            raise Superseded

    def _not_loaded(self, error: Exception) -> None:
        with UI_LOCK, self.hold_sync():
            self.status, self.message, self.progress = "error", f"{type(error).__name__}: {error}", None

    def _report(self, done: float, total: int, text: str) -> None:
        now = monotonic()
        if now - self._last_report < _SECONDS_BETWEEN_REPORTS and done < total:
            return
        self._last_report = now
        with UI_LOCK, self.hold_sync():
            if self.status == "busy":
                self.progress = done / total if total else None
                self.message = f"{int(done)} of {total} files: {text}" if total > 1 else capitalised(text)

    @rpc_method("cancel")
    def _on_cancel(self, _params: dict[str, Any]) -> None:
        self.cancel()

    @rpc_method("load")
    def _on_load(self, _params: dict[str, Any]) -> None:
        self.load()

    def __repr__(self) -> str:
        """Independent of the loading, so that a notebook's output is the same on every run."""
        contents = [f"{name!r}: {text}" if name else text for name, text in self._contents.items()]
        return f"{type(self).__name__}({'; '.join(contents)})"


def _contents(source: Any) -> str:
    if isinstance(source, Trace):
        return describe(source)
    return counted(len(discover(source).files), "file")
