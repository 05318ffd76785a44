"""Everything at once: selectors, timeline and breakdowns of one job, linked through one `Selection`.

The explorer composes; it computes nothing itself. While the trace loads it shows how far that is; then it
makes the parts, each a widget of its own, and its view puts them in place.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import pandas as pd
import traitlets as t

from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.engine import FRONT
from hta_widgets.trace.discovery import discover
from hta_widgets.trace.model import Trace
from hta_widgets.widgets import facts
from hta_widgets.widgets.breakdown_panel import BreakdownPanel
from hta_widgets.widgets.iteration_selector import IterationSelector
from hta_widgets.widgets.loading import Loading
from hta_widgets.widgets.memo import answer, known
from hta_widgets.widgets.part import Part, as_selection, describe, variable_name
from hta_widgets.widgets.rank_selector import RankSelector
from hta_widgets.widgets.rpc import answers
from hta_widgets.widgets.selection import Selection
from hta_widgets.widgets.timeline_scrubber import TimelineScrubber

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["TraceExplorer"]

_SECONDS_BETWEEN_REPORTS = 0.1


class TraceExplorer(Part):
    """Explore the profiler traces of a job, linked in both directions to `selection`.

    Args:
        source: an open `Trace`, or anything `Trace.open` takes: a folder, a file, a list, {rank: file}, a
            URL.
        selection: a `Selection`, or a dict of its traits, to start from.
        panels: the analyses to show, keys of `analysis.ANALYSES`.

    Raises:
        TraceNotFoundError: the path does not exist, or the folder holds no trace file. Raised here; what only
            reading can tell (`TraceFormatError`) is shown in the widget and raised by `trace`.
        ValueError: there is no analysis of that name.

    >>> explorer = TraceExplorer("traces/")                    # doctest: +SKIP
    >>> explorer.selection.ranks = (0, 1)                      # doctest: +SKIP
    >>> explorer.events                                        # doctest: +SKIP
    """

    _view = t.Unicode("explorer").tag(sync=True)

    facts: t.List[Any] = t.List(help="header: [{label, value, title}]").tag(sync=True)
    health: t.List[Any] = t.List(help="trace.health as rows").tag(sync=True)
    notices: t.List[Any] = t.List(help="what must not be missed: [{severity, text}]").tag(sync=True)
    parts: t.List[Any] = t.List(help="where each part goes: [(area, widget)]").tag(
        sync=True, to_json=lambda parts, _: [[area, f"anywidget:{part.model_id}"] for area, part in parts]
    )

    _loading: Loading | None = None  # none for a trace that is open already
    _last_report = 0.0

    def __init__(
        self,
        source: Any,
        selection: Selection | dict[str, Any] | None = None,
        panels: Sequence[str] = ("temporal_breakdown", "comm_comp_overlap"),
    ) -> None:
        self._kinds = [known(kind) for kind in panels]
        self._source = source
        self._name = _name_of(source)
        if isinstance(source, Trace):
            self._contents = describe(source)
            self._bind(as_selection(selection), {})
            self._loaded(source)
        else:
            files = len(discover(source).files)
            self._contents = f"{files} file{'s' * (files != 1)}"
            self._bind(as_selection(selection), {})
            self.load()

    # -- loading

    def load(self) -> None:
        """Start to read the trace in the background, unless that is under way or done."""
        with FRONT:
            if isinstance(self._source, Trace) or self.status == "busy" or self.parts:
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

    def wait(self, timeout: float | None = None) -> TraceExplorer:
        """Wait until the trace is loaded; for cells that need it at once.

        Raises:
            TimeoutError: it took more than `timeout` seconds.
            HtaWidgetsError: why the trace could not be loaded.
        """
        if self._loading is not None:
            self._loading.wait(timeout)
        return self

    def close(self) -> None:
        """Take the explorer and its parts down."""
        if self._loading is not None:
            self._loading.cancel()
        for _, part in self.parts:
            part.close()
        super().close()

    # -- what is selected

    @property
    def trace(self) -> Trace:
        """The trace; waits for the loading.

        Raises:
            HtaWidgetsError: why it could not be loaded.
        """
        return self._source if self._loading is None else self._loading.wait()

    @property
    def events(self) -> pd.DataFrame:
        """The selected events, one row each; columns as in `Trace.events`.

        An event is selected if it lies in the selection's ranks, iterations, window and streams, and if its
        name holds `selection.query` (whatever the case). Waits for the loading.
        """
        frame = self.trace.events(self.selection.scope)
        query = self.selection.query.strip()
        if not query:
            return frame
        return frame[frame["name"].str.contains(query, case=False, regex=False, na=False)].reset_index(
            drop=True
        )

    def frame(self, kind: str) -> pd.DataFrame:
        """The DataFrame that the panel `kind` shows; any analysis can be asked for. Waits for the loading."""
        return answer(self.trace, known(kind), self.selection.scope).copy()

    def figure(self, kind: str) -> go.Figure:
        """The plotly figure of `frame(kind)`."""
        return ANALYSES[known(kind)].figure(self.frame(kind))

    # -- the widget

    @answers("cancel")
    def _on_cancel(self, _params: dict[str, Any]) -> None:
        self.cancel()

    @answers("load")
    def _on_load(self, _params: dict[str, Any]) -> None:
        self.load()

    def _report(self, done: int, total: int, text: str) -> None:
        now = monotonic()
        if now - self._last_report < _SECONDS_BETWEEN_REPORTS and done < total:
            return
        self._last_report = now
        with FRONT, self.hold_sync():
            if self.status == "busy":
                self.progress = done / total if total else None
                self.message = f"{done} of {total} files: {text}" if total > 1 else text.capitalize()

    def _not_loaded(self, error: Exception) -> None:
        with FRONT, self.hold_sync():
            self.status, self.message, self.progress = "error", f"{type(error).__name__}: {error}", None

    def _loaded(self, trace: Trace) -> None:
        try:
            told = facts.job_facts(trace, self._name), facts.health_rows(trace), facts.notices(trace)
            with FRONT:
                parts = self._make_parts(trace)
        except Exception as error:  # in the loading thread nobody would see it
            self._not_loaded(error)
            raise
        with FRONT, self.hold_sync():
            self.facts, self.health, self.notices = told
            self.parts = parts
            self.status, self.message, self.progress = "idle", "", None

    def _make_parts(self, trace: Trace) -> list[tuple[str, Part]]:
        shared = self.selection
        return [
            ("ranks", RankSelector(trace, selection=shared)),
            ("iterations", IterationSelector(trace, selection=shared)),
            ("timeline", TimelineScrubber(trace, selection=shared)),
            *(
                ("panel", BreakdownPanel(trace, kind, selection=shared, spell=self._spelling(kind)))
                for kind in self._kinds
            ),
        ]

    def _spelling(self, kind: str) -> Any:
        return lambda: f'{variable_name(self, "explorer")}.frame("{kind}")'

    def __repr__(self) -> str:
        """Says what can be told before loading, so that a notebook's output is the same on every run."""
        name = f"{self._name!r}: " if self._name else ""
        return f"TraceExplorer({name}{self._contents})"


def _name_of(source: Any) -> str:
    """The last part of a path or URL; no name for anything else."""
    if isinstance(source, os.PathLike):
        return Path(source).resolve().name
    if isinstance(source, str):
        return source.rstrip("/").rsplit("/", 1)[-1] if "://" in source else Path(source).resolve().name
    return ""
