"""Two or more runs side by side: what changed, why, and where in their timelines.

The viewer composes parts and computes nothing itself. Once the traces are loaded, it creates a panel for each
comparison and a timeline for each run, which its view arranges. Every run has its own `Selection`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd
import traitlets as t

from hta_widgets.analysis.compare.events import event_names
from hta_widgets.analysis.compare.registry import COMPARISONS
from hta_widgets.charts.svg import Picture
from hta_widgets.engine import UI_LOCK, Latest
from hta_widgets.report import Question, write
from hta_widgets.short_paths import Paths, paths_as
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.answer_cache import cached_comparison
from hta_widgets.widgets.chosen_events import chosen_in_runs
from hta_widgets.widgets.comparison_panel import ComparisonPanel, Line, known_comparison
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.line_highlight import LineHighlight, Names
from hta_widgets.widgets.loading_part import LoadingPart
from hta_widgets.widgets.of_runs import SELECTED
from hta_widgets.widgets.part import Part, describe, placed, variable_name
from hta_widgets.widgets.reporting import diff_page
from hta_widgets.widgets.rpc import rpc_method
from hta_widgets.widgets.run_axes import RunAxes
from hta_widgets.widgets.run_story import RunsStory
from hta_widgets.widgets.runs import Selections, distinct, named, selections_of
from hta_widgets.widgets.runtime import DIFF_BUNDLE
from hta_widgets.widgets.selection import Selection
from hta_widgets.widgets.snapshot import compared_picture
from hta_widgets.widgets.static_preview import Pictured
from hta_widgets.widgets.timeline_scrubber import TimelineScrubber

if TYPE_CHECKING:
    import plotly.graph_objects as go

# The timelines are below the panels that show what changed, and above those on the runs themselves.
_AFTER_TIMELINES = ("run_table", "training_strategy", "comparability")
_TIMELINE_PIXELS = {2: 280}
_MANY_TIMELINES_PIXELS = 200


class DiffViewer(Pictured, LoadingPart):
    """Compare two or more runs with the first of them, linked in both directions to a selection of each.

    Args:
        runs: open `Trace`s, or anything `Trace.open` takes; or one mapping {name: run}.
        names: names of the runs; default: the last part of their path.
        selections: {name: initial `Selection` of that run, or a dict of its traits}.

    Raises:
        TraceNotFoundError: a path does not exist, or a folder holds no trace file. Errors found while reading
            are shown in the widget and raised by `traces`.
        ValueError: fewer than two runs, or names that are not distinct.

    >>> viewer = DiffViewer("before/", "after/")                      # doctest: +SKIP
    >>> viewer = DiffViewer({"Baseline": a, "DDP": b, "FSDP": c})     # doctest: +SKIP
    >>> viewer.selections["DDP"].ranks = (0,)                         # doctest: +SKIP
    >>> viewer.frame("diff", by="op")                                 # doctest: +SKIP
    """

    _bundle: ClassVar = DIFF_BUNDLE
    _view = t.Unicode("diff").tag(sync=True)
    _from_browser: ClassVar[Sequence[str]] = ("locked", "align", "line")

    runs: t.List[Any] = t.List(help="[{name, detail}]; the first is the base").tag(sync=True)
    notices: t.List[Any] = t.List(help="doubts, or why not to compare: [{severity, text}]").tag(sync=True)
    headline = t.Unicode(help="the greatest change of a step; empty until it is known").tag(sync=True)
    parts = placed("where each part goes: [(area, widget, kind or run)]")
    locked = t.Bool(True, help="whether the timelines move as one").tag(sync=True)
    align = t.Enum(
        ("step", "op"), "step", help="what corresponds in locked timelines: steps, or work in them"
    ).tag(sync=True)
    pairing = t.Int(0, help="incremented when other instants of the runs correspond").tag(sync=True)
    line = Line(help="(kind, line) of the `diff` line whose events are highlighted, or None").tag(sync=True)
    _followed: Sequence[Selection] = ()
    _following = False  # the focus of one run is being passed on to the others

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
        self._twins = Latest[list[tuple[int, int] | None]](
            self._show_twins, lambda error: self._show_message(str(error))
        )
        self._highlight = LineHighlight(self.selections, self._show_message)
        first = next(iter(self.selections.values()))
        super().__init__(sources, selection=first, runs=[{"name": name, "detail": ""} for name in sources])
        self._followed = self._pictured()
        for selection in self._followed:
            selection.observe(self._selected_changed, SELECTED)
            selection.observe(self._focus_changed, "focus")

    def close(self) -> None:
        """Close the viewer and its parts."""
        with UI_LOCK:
            for selection in self._followed:
                selection.unobserve(self._selected_changed, SELECTED)
                selection.unobserve(self._focus_changed, "focus")
            self._followed = ()
            self._twins.close()
            self._highlight.close()
            parts, self._panels = self.parts, {}
            super().close()
            for _, part, _ in parts:
                part.close()

    # -- what is compared

    def frame(self, kind: str, **options: Any) -> pd.DataFrame:
        """The DataFrame of a comparison of the selected parts of the runs. Waits until they are loaded.

        Args:
            kind: a key of `analysis.COMPARISONS`: "run_table", "step_waterfall", "diff", ...
            options: further arguments, such as `by="op"`; by default those that are chosen in its panel.

        Raises:
            NotComparableError: the numbers would mislead; `frame("comparability")` says why.
            MissingDataError: a run lacks what the comparison needs.
        """
        traces, panel = self.traces, self._panels.get(known_comparison(kind))
        if panel is not None and not options:
            return panel.frame()
        return cached_comparison(traces, kind, self._scopes(), options).copy()

    def figure(self, kind: str, **options: Any) -> go.Figure:
        """The plotly figure of `frame(kind, **options)`."""
        return COMPARISONS[known_comparison(kind)].figure(self.frame(kind, **options))

    @property
    def events(self) -> pd.DataFrame:
        """The events of the chosen line in every run: a first column run, then those of `Trace.events`.

        Without a chosen line, the selected events of every run. Waits until the traces are loaded.
        """
        traces = self.traces
        names = self._names_of(traces, self.line) if self.line is not None else None
        return chosen_in_runs(traces, self.selections, names)

    def to_html(self, path: str | PathLike[str], *, title: str = "", paths: Paths = "short") -> Path:
        """Write what is shown to one HTML file that opens anywhere, offline and without Python.

        The timelines stay interactive and are aligned by step. Waits for computations in progress.

        Args:
            path: the file to write; it is returned.
            title: the page's title; default: the runs.
            paths: "short" cuts paths to their last part, and home folders to `~`; "full" leaves them.

        Raises:
            OSError: the file cannot be written.
        """
        cut = paths_as(paths, self._sources.values())
        self._at_rest()
        anchors = Question("anchors", *self._corresponding(0, (0.0, 0.0), by_work=False))
        return write(path, diff_page(self, self.parts, anchors, title or " and ".join(self.selections), cut))

    def snapshot(self) -> Picture:
        """A static picture of what is shown, for the output of a cell in a saved notebook."""
        parts = self._at_rest()
        panels = [part for area, part, _ in parts if area == "panel"]
        story: dict[str, Any] = next((part.content for area, part, _ in parts if area == "story"), {})
        return compared_picture(self.runs, self.selections, panels, self.headline, story)

    def _at_rest(self) -> list[tuple[str, Part, str]]:
        """The parts, once the traces are loaded and everything is computed."""
        self.wait()
        settle([self])  # the parts are created shortly after the traces are loaded
        if not self.parts:
            raise RuntimeError(self.message)
        parts = list(self.parts)
        settle([part for _, part, _ in parts])
        return parts

    # -- the widget

    @rpc_method("anchors")
    def _anchors(self, params: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        view = float(params["t0"]), float(params["t1"])
        return self._corresponding(int(params["run"]), view, by_work=params.get("align", self.align) == "op")

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
        with UI_LOCK, self.hold_sync():
            self._check_wanted()
            self._axes = RunAxes(traces)
            self._panels = {kind: self._panel(traces, kind) for kind in COMPARISONS}
            t.link((self, "line"), (self._panels["diff"], "line"))
            t.dlink((self._panels["comparability"], "doubts"), (self, "notices"))
            self._panels["step_waterfall"].observe(self._tell_headline, ["sentence", "status"])
            height = _TIMELINE_PIXELS.get(len(traces), _MANY_TIMELINES_PIXELS)
            timelines = [
                (
                    "timeline",
                    TimelineScrubber(trace, selection=self.selections[run], height=height, switchable=False),
                    run,
                )
                for run, trace in traces.items()
            ]
            panels = [("panel", panel, kind) for kind, panel in self._panels.items()]
            above = [place for place in panels if place[2] not in _AFTER_TIMELINES]
            story = ("story", RunsStory(traces, self.selections), "")
            self.parts = [story, *above, *timelines, *(place for place in panels if place not in above)]
            self.runs = [{"name": run, "detail": describe(trace)} for run, trace in traces.items()]
            self.status, self.message, self.progress = "idle", "", None
            self._line_changed()

    def _panel(self, traces: dict[str, Trace], kind: str) -> ComparisonPanel:
        def python_expression() -> str:
            return f'{variable_name(self, "viewer")}.frame("{kind}")'

        return ComparisonPanel(traces, kind, selections=self.selections, python_expression=python_expression)

    def _tell_headline(self, change: Any) -> None:
        """The sentence of the waterfall up to the run that steps are compared with: its parts follow."""
        panel = change["owner"]
        before, than, after = panel.sentence.partition(f" than one of {next(iter(self.selections))}")
        known = panel.status in ("idle", "busy")
        self.headline = f"{before}{than}{after.partition(':')[0]}".removesuffix(".") if known else ""

    def _scopes(self) -> dict[str, Scope]:
        with UI_LOCK:
            return {run: selection.scope for run, selection in self.selections.items()}

    def _pictured(self) -> list[Selection]:
        return distinct(self.selections)

    def _selected_changed(self, _change: Any) -> None:
        with UI_LOCK:
            self.pairing += 1
            self._line_changed()

    def _focus_changed(self, change: Any) -> None:
        """Look at the same work in the other runs, unless these share a selection; locked, they align it."""
        with UI_LOCK:
            selections, axes, focus = list(self.selections.values()), self._axes, change["new"]
            if self._following or axes is None or len(self._followed) < len(selections):
                return
            self._twins.cancel()
            if focus is None:
                self._show_twins([None] * len(selections))
                return
            run = next(at for at, selection in enumerate(selections) if selection is change["owner"])
            scopes = self._scopes()
            self._twins.submit(lambda: axes.counterparts(scopes, run, *focus))

    def _show_twins(self, found: list[tuple[int, int] | None]) -> None:
        with UI_LOCK:
            self._following = True
            try:
                for selection, event in zip(self.selections.values(), found, strict=True):
                    selection.focus = event
            finally:
                self._following = False
            lacking = [name for name, event in zip(self.selections, found, strict=True) if event is None]
            some = len(lacking) < len(found)
            if self.locked and len(found) - len(lacking) > 1:
                self.align = "op"
            self._show_message(
                f"Nothing corresponds to the event in {', '.join(lacking)}" if some and lacking else ""
            )

    @t.observe("line")
    def _line_changed(self, _change: Any = None) -> None:
        with UI_LOCK:
            if self.line is None:
                self._highlight.clear()
            elif self._panels:
                self._highlight.show(self.line, partial(self._names_of, self.traces, self.line))

    def _show_message(self, message: str) -> None:
        if self.status == "idle":
            self.message = message

    def _names_of(self, traces: dict[str, Trace], line: tuple[str, str]) -> Names:
        """The names of the line's events in each run."""
        panel = self._panels["diff"]
        by: Any = panel.options.get("by", panel.analysis.options[0].default)
        return event_names(traces, by, *line, self._scopes())
