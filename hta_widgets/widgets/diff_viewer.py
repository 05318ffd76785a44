"""Two or more runs side by side: what changed, why, and where in their timelines.

The viewer composes; it computes nothing itself. Once the traces are loaded it makes a panel of each
comparison and a timeline of each run, and its view puts them in place. Every run has its own `Selection`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import traitlets as t

from hta_widgets.analysis.comparisons import COMPARISONS
from hta_widgets.analysis.diff import event_names
from hta_widgets.engine import FRONT, Latest
from hta_widgets.report import Question, write
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.chosen_events import Chosen, chosen_frame
from hta_widgets.widgets.comparison_panel import ComparisonPanel, Line, known_comparison
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.loading_part import LoadingPart
from hta_widgets.widgets.memo import compared
from hta_widgets.widgets.part import Part, describe, variable_name
from hta_widgets.widgets.reporting import diff_page
from hta_widgets.widgets.rpc import answers
from hta_widgets.widgets.run_axes import RunAxes
from hta_widgets.widgets.runs import Selections, named, selections_of
from hta_widgets.widgets.timeline_scrubber import TimelineScrubber

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["DiffViewer"]

# The timelines stand below the panels that say what changed, and above those on the runs themselves.
_AFTER_TIMELINES = ("training_strategy", "comparability")
_TIMELINE_PIXELS = {2: 280}
_MANY_TIMELINES_PIXELS = 200

Names = dict[str, tuple[str, ...]]


class DiffViewer(LoadingPart):
    """Compare two or more runs with the first of them, linked in both directions to a selection of each.

    Args:
        runs: open `Trace`s, or anything `Trace.open` takes; or one mapping {name: run}.
        names: of the runs; default: the last part of their path.
        selections: {name: the `Selection` of that run, or a dict of its traits}, to start from.

    Raises:
        TraceNotFoundError: a path does not exist, or a folder holds no trace file. Raised here; what only
            reading can tell is shown in the widget and raised by `traces`.
        ValueError: fewer than two runs, or names that are not distinct.

    >>> viewer = DiffViewer("before/", "after/")                      # doctest: +SKIP
    >>> viewer = DiffViewer({"Baseline": a, "DDP": b, "FSDP": c})     # doctest: +SKIP
    >>> viewer.selections["DDP"].ranks = (0,)                         # doctest: +SKIP
    >>> viewer.frame("diff", by="op")                                 # doctest: +SKIP
    """

    _view = t.Unicode("diff").tag(sync=True)

    runs: t.List[Any] = t.List(help="[{name, detail}]; the first is the base").tag(sync=True)
    notices: t.List[Any] = t.List(help="doubts, and what forbids to compare: [{severity, text}]").tag(
        sync=True
    )
    parts: t.List[Any] = t.List(help="where each part goes: [(area, widget, kind or run)]").tag(
        sync=True, to_json=lambda parts, _viewer: [_placed(*part) for part in parts]
    )
    locked = t.Bool(True, help="whether the timelines move as one").tag(sync=True)
    align = t.Enum(
        ("step", "op"), "step", help="what corresponds in locked timelines: steps, or work in them"
    ).tag(sync=True)
    line = Line(help="(kind, line) of the line of `diff` whose events light up, or None")

    def __init__(
        self,
        *runs: Any,
        names: Sequence[str] | None = None,
        selections: Selections | None = None,
    ) -> None:
        sources = named(runs, names)
        self.selections = selections_of(list(sources), selections)
        self._panels: dict[str, ComparisonPanel] = {}
        self._axes: RunAxes | None = None
        self._lit_line = False  # whether the selections' names are those of a line
        self._lit = Latest[Names](self._light, self._cannot_light)
        first = next(iter(self.selections.values()))
        super().__init__(sources, selection=first, runs=[{"name": name, "detail": ""} for name in sources])

    def close(self) -> None:
        """Take the viewer and its parts down."""
        self._lit.cancel()
        with FRONT:
            parts, self._panels = self.parts, {}
            super().close()
            for _, part, _ in parts:
                part.close()

    # -- what is compared

    def frame(self, kind: str, **options: Any) -> pd.DataFrame:
        """The DataFrame of a comparison of what is selected in the runs. Waits for the loading.

        Args:
            kind: a key of `analysis.comparisons.COMPARISONS`: "run_table", "step_waterfall", "diff", ...
            options: further arguments, such as `by="op"`; by default those that are chosen in its panel.

        Raises:
            NotComparableError: the numbers would mislead; `frame("comparability")` says why.
            MissingDataError: a run lacks what the comparison needs.
        """
        traces, panel = self.traces, self._panels.get(known_comparison(kind))
        if panel is not None and not options:
            return panel.frame()
        return compared(traces, kind, self._scopes(), options).copy()

    def figure(self, kind: str, **options: Any) -> go.Figure:
        """The plotly figure of `frame(kind, **options)`."""
        return COMPARISONS[known_comparison(kind)].figure(self.frame(kind, **options))

    @property
    def events(self) -> pd.DataFrame:
        """The events of the chosen line in every run: a first column run, then those of `Trace.events`.

        Without a chosen line, the selected events of every run. Waits for the loading.
        """
        traces, frames = self.traces, []
        names = self._names_of(traces, self.line) if self.line is not None else None
        for run, selection in self.selections.items():
            chosen = Chosen.by(selection)
            if names is not None:
                chosen = Chosen(replace(selection.scope, names=names[run]))
            found = chosen_frame(traces[run], chosen)
            if names is not None and not names[run]:  # to a scope no names are all
                found = found.iloc[:0]
            found.insert(0, "run", run)
            frames.append(found)
        return pd.concat(frames, ignore_index=True)

    def to_html(self, path: str | PathLike[str], *, title: str = "") -> Path:
        """Write what is shown to one HTML file that opens anywhere, offline and without Python.

        The timelines stay interactive; they are aligned by step. Waits for what is being computed.

        Args:
            path: of the file, which is returned.
            title: of the page; default: the runs.

        Raises:
            OSError: the file cannot be written.
        """
        self.wait()
        settle([self])  # the parts are made a moment after the traces are there
        if not self.parts:
            raise RuntimeError(self.message)
        anchors = Question("anchors", *self._corresponding(0, (0.0, 0.0), by_work=False))
        return write(path, diff_page(self, self.parts, anchors, title or " and ".join(self.selections)))

    # -- the widget

    @answers("anchors")
    def _anchors(self, params: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        view = float(params["t0"]), float(params["t1"])
        return self._corresponding(int(params["run"]), view, by_work=self.align == "op")

    def _corresponding(
        self, run: int, view: tuple[float, float], by_work: bool
    ) -> tuple[dict[str, Any], list[bytes]]:
        if self._axes is None or not 0 <= run < len(self.selections):
            raise LookupError("no such run is loaded")
        found = self._axes.anchors(self._scopes(), run, view, by_work=by_work)
        runs, count = found.times.shape
        layout = {"n": count, "runs": runs, "from": found.first, "to": found.last}
        return layout, [found.times.astype("<f8").tobytes()]

    def _show(self, traces: dict[str, Trace]) -> None:
        with FRONT, self.hold_sync():
            self._axes = RunAxes(traces)
            self._panels = {kind: self._panel(traces, kind) for kind in COMPARISONS}
            t.link((self, "line"), (self._panels["diff"], "line"))
            t.dlink((self._panels["comparability"], "doubts"), (self, "notices"))
            height = _TIMELINE_PIXELS.get(len(traces), _MANY_TIMELINES_PIXELS)
            timelines = [
                ("timeline", TimelineScrubber(trace, selection=self.selections[run], height=height), run)
                for run, trace in traces.items()
            ]
            panels = [("panel", panel, kind) for kind, panel in self._panels.items()]
            above = [place for place in panels if place[2] not in _AFTER_TIMELINES]
            self.parts = [*above, *timelines, *(place for place in panels if place not in above)]
            self.runs = [{"name": run, "detail": describe(trace)} for run, trace in traces.items()]
            self.status, self.message, self.progress = "idle", "", None
            self._line_changed()

    def _panel(self, traces: dict[str, Trace], kind: str) -> ComparisonPanel:
        def spell() -> str:
            return f'{variable_name(self, "viewer")}.frame("{kind}")'

        return ComparisonPanel(traces, kind, selections=self.selections, spell=spell)

    def _scopes(self) -> dict[str, Scope]:
        with FRONT:
            return {run: selection.scope for run, selection in self.selections.items()}

    @t.observe("line")
    def _line_changed(self, _change: Any = None) -> None:
        with FRONT:
            if not self._panels:
                return
            if self.line is None:
                if self._lit_line:
                    self._lit.cancel()
                    self._light(dict.fromkeys(self.selections, ()))
                return
            traces, line = self.traces, self.line
            self._lit_line = True
            self._lit.submit(lambda: self._names_of(traces, line))

    def _names_of(self, traces: dict[str, Trace], line: tuple[str, str]) -> Names:
        """The names of the events that the line stands for in each run."""
        panel = self._panels["diff"]
        by: Any = panel.options.get("by", panel.analysis.options[0].default)
        return event_names(traces, by, *line, self._scopes())

    def _light(self, names: Names) -> None:
        """Let the events of the line stand out in every timeline."""
        self._lit_line, self.message = self.line is not None, ""
        for run, selection in self.selections.items():
            # a run that lacks the line: nothing has that name, while no names would be all
            lacking = self.line[1:] if self.line is not None and any(names.values()) else ()
            selection.names = names[run] or lacking

    def _cannot_light(self, error: Exception) -> None:
        self.message = f"The line's events cannot be found: {error}"


def _placed(area: str, part: Part, kind: str) -> list[str]:
    """The wire form of a place."""
    return [area, f"anywidget:{part.model_id}", kind]
