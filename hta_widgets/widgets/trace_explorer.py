"""The explorer: selectors, timeline and panels of one job, linked through one `Selection`.

The explorer composes parts and computes nothing itself. Once the trace is loaded it creates the parts, each a
widget of its own, which its view arranges. A panel is created when it is opened and closed when it is hidden:
what nobody sees is not computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd
import traitlets as t

from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.analysis.wholes import shown_scope
from hta_widgets.engine import UI_LOCK, Latest
from hta_widgets.short_paths import Paths, paths_as
from hta_widgets.trace.class_rules import append_rules, as_text
from hta_widgets.trace.model import ITERATION_CLOCKS, IterationClock, Trace
from hta_widgets.trace.reader.discovery import Which
from hta_widgets.trace.reader.file_names import name_of
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.answer_cache import cached_analysis, check_kind
from hta_widgets.widgets.breadcrumb import Breadcrumb
from hta_widgets.widgets.breakdown_panel import BreakdownPanel
from hta_widgets.widgets.chosen_events import Chosen, chosen_frame
from hta_widgets.widgets.code import explorer_code
from hta_widgets.widgets.files import Downloads
from hta_widgets.widgets.first_view import first_view
from hta_widgets.widgets.freezing import SETTLED_WITHIN_SECONDS, settle
from hta_widgets.widgets.job_header import About, about
from hta_widgets.widgets.loading import read_ahead
from hta_widgets.widgets.loading_part import LoadingPart
from hta_widgets.widgets.name_search import names_containing
from hta_widgets.widgets.panels import PanelKinds, available_panels, kinds_of, make_panel
from hta_widgets.widgets.part import Part, describe, variable_name
from hta_widgets.widgets.reading import communication_rules, read
from hta_widgets.widgets.relevance import FIRST, first_panels, unanswered
from hta_widgets.widgets.roofline_panel import PeaksByDevice
from hta_widgets.widgets.rpc import rpc_method
from hta_widgets.widgets.runs import default_names
from hta_widgets.widgets.selection import Focus, Gap, Integers, Names, Selection, Window
from hta_widgets.widgets.static_preview import Pictured

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from hta_widgets.analysis.kernels.stated_peaks import StatedPeaks
    from hta_widgets.charts.svg import Picture
    from hta_widgets.widgets.diff_viewer import DiffViewer
    from hta_widgets.widgets.story import Story
    from hta_widgets.widgets.timeline_scrubber import TimelineScrubber

_SHARED_WITHIN_SECONDS = 60.0  # by a click in the browser


class TraceExplorer(Downloads, Pictured, LoadingPart):
    """Explore the profiler traces of a job, linked in both directions to `selection`.

    Args:
        source: an open `Trace`, or anything `Trace.open` takes: a folder, a file, a list, {rank: file}, a
            URL.
        selection: the initial `Selection`, or a dict of its traits.
        panels: the panels to show, keys of `analysis.ANALYSES`; default: two that have something to say of
            this recording, chosen once it is loaded. Can be changed later.
        clock: what times the iterations: "host", "device", or "auto", as in `Trace.open`; default: that of an
            open trace, else "auto". Can be changed later.
        communication: names of device work to count as communication, beside what the rules say. Can be
            changed later; `save_rules` keeps it.
        edits: changes from the module `edits`, with which the panel "what_if" begins; can be changed later,
            by hand in the panel, too.
        peaks: peaks of devices in place of their datasheets', as `analysis.roofline` takes them; can be
            changed later, by hand in the panel "roofline", too.
        recording: of several recordings in one folder the one to open, as in `Trace.open`.
        client: a ``dask.distributed.Client`` whose workers read the files and answer, as in `Trace.open`. The
            timeline and the inspector bring the columns of the ranks that they show here, once.

    Raises:
        TraceNotFoundError: the path does not exist, or the folder holds no trace file. Errors found while
            reading (`TraceFormatError`) are shown in the widget and raised by `trace`.
        ValueError: there is no analysis of that name.
        traitlets.TraitError: `peaks` are none that a device can have.

    >>> explorer = TraceExplorer("traces/")                    # doctest: +SKIP
    >>> explorer.selection.ranks = (0, 1)                      # doctest: +SKIP
    >>> explorer.panels = ["temporal_breakdown"]               # doctest: +SKIP
    >>> explorer.events                                        # doctest: +SKIP
    >>> explorer.what_if(edits.kernels(2.0))                   # doctest: +SKIP
    """

    _view = t.Unicode("explorer").tag(sync=True)
    _from_browser: ClassVar[Sequence[str]] = ("panels", "clock", "communication")

    ranks = Integers(help="selected ranks; () means all").tag(sync=True)
    iterations = Integers(help="selected iterations; () means all").tag(sync=True)
    window = Window(help="selected (start, end) in ns; None means all time").tag(sync=True)
    names = Names(help="names of the chosen events; () means all").tag(sync=True)
    query = t.Unicode("", help="text to search for in the names of events").tag(sync=True)
    focus = Focus(help="(rank, event_id) of the focused event, or None").tag(sync=True)
    gap = Gap(help="(rank, stream, time_ns) of the gap looked at, or None").tag(sync=True)
    streams = Integers(help="selected streams; () means all").tag(sync=True)

    header: t.List[Any] = t.List(help="about the job: [{label, value, title}]").tag(sync=True)
    health: t.List[Any] = t.List(help="trace.health as rows").tag(sync=True)
    notices: t.List[Any] = t.List(help="important warnings: [{severity, text}]").tag(sync=True)
    parts: t.List[Any] = t.List(help="where each part goes: [(area, widget)]").tag(
        sync=True, to_json=lambda parts, explorer: explorer._placed(parts)
    )
    available_panels: t.List[Any] = t.List(help="the panels there are, as in `panels.available_panels`").tag(
        sync=True
    )
    lacking: t.Dict[str, str] = t.Dict(help="panels that cannot answer here, and why").tag(sync=True)
    relevant: t.List[str] = t.List(t.Unicode(), help="panels that the findings point to, first first").tag(
        sync=True
    )
    choices: t.Dict[str, Any] = t.Dict(help="{ranks, iterations}: what there is to select").tag(sync=True)
    panels = PanelKinds(help="kinds of the panels shown, in the order they were opened").tag(sync=True)
    clock: t.Enum[IterationClock] = t.Enum(ITERATION_CLOCKS, "auto", help="what times the iterations").tag(
        sync=True
    )
    communication = Names(help="names of device work that counts as communication here").tag(sync=True)
    edits: t.List[Edit] = t.List(t.Instance(Edit), help="the changes that the panel `what_if` shows")
    peaks = PeaksByDevice(help="peaks of devices in place of their datasheets', for the panel `roofline`")
    rules = t.Unicode(help="what a file hta_widgets.toml says to keep `communication`").tag(sync=True)
    clocks: t.List[Any] = t.List(help="the clocks to choose from; empty if there is no choice").tag(sync=True)

    _knows_lacking = False  # of all panels
    _fixed: Sequence[tuple[str, Part]] = ()  # the parts that are always there, once the trace is loaded
    _story: Story | None = None  # one of them

    def __init__(
        self,
        source: Any,
        selection: Selection | dict[str, Any] | None = None,
        panels: Sequence[str] | None = None,
        clock: IterationClock | None = None,
        communication: Iterable[str] = (),
        edits: Edit | Sequence[Edit] = (),
        peaks: StatedPeaks | None = None,
        recording: Which = None,
        client: Any = None,
    ) -> None:
        self._shown: dict[str, Part] = {}
        self._source = source
        self._name = source.name if isinstance(source, Trace) else name_of(source)
        self._choose_panels = panels is None
        self._about = Latest[About](self._tell, self._not_loaded)
        self._lacks = Latest[dict[str, str]](self._tell_lacking, self._not_loaded)
        self._ahead = Latest[None](lambda _: None, self._not_loaded)
        clock = clock or (source.iteration_clock if isinstance(source, Trace) else "auto")
        super().__init__(
            {self._name: source},
            selection=selection,
            open_options={"clock": clock, "recording": recording, "client": client},
            clock=clock,
            communication=communication,
            edits=[edits] if isinstance(edits, Edit) else list(edits),
            peaks=peaks or {},
            panels=kinds_of(panels or ()),
            available_panels=available_panels(),
        )

    def close(self) -> None:
        """Close the explorer and its parts."""
        with UI_LOCK:
            parts, self._story = [*dict(self._fixed).values(), *self._shown.values()], None
            self._fixed, self._shown = (), {}
            for work in (self._about, self._lacks, self._ahead):
                work.close()
            super().close()
            for part in parts:
                part.close()

    @property
    def trace(self) -> Trace:
        """The trace, timed by `clock` and with `communication`; waits for the loading.

        Raises:
            HtaWidgetsError: why it could not be loaded.
        """
        return read(super().trace, self.clock, self.communication)

    # -- what is selected

    @property
    def events(self) -> pd.DataFrame:
        """The selected events, one row each; columns as in `Trace.events`.

        An event is selected if it lies in the selection's ranks, iterations, window and streams, if its name
        is one of `selection.names`, and if it contains `selection.query` (ignoring case). Waits until the
        trace is loaded.
        """
        return chosen_frame(self.trace, Chosen.by(self.selection))

    @property
    def flags(self) -> pd.DataFrame:
        """The moments that were flagged in the timeline, a row each; `selection.flags` sets them.

        Columns: time_ns (int64, ns relative to the job's start), note (str).
        """
        flags = pd.DataFrame(list(self.selection.flags), columns=["time_ns", "note"])
        return flags.astype({"time_ns": "int64", "note": "str"})

    def frame(self, kind: str, **options: Any) -> pd.DataFrame:
        """The DataFrame of any analysis, as its panel shows it. Waits until the trace is loaded.

        Args:
            kind: a key of `analysis.ANALYSES`, "events", "what_if" or "job".
            options: further arguments of the analysis; by default those that are chosen in its panel. Of
                "job", `picture`, as `JobView.frame` takes it.
        """
        trace, panel = self.trace, self._shown.get(kind)
        if isinstance(panel, BreakdownPanel) and not options:
            return panel.frame()
        if kind == "events":
            return self.events
        if kind == "what_if":
            return self.what_if()
        if kind == "job":
            from hta_widgets.widgets.job_view import job_frame

            scope = Scope(iterations=self.selection.iterations or None)
            return job_frame(trace, scope, **{"picture": "ranks", **options})
        if kind == "roofline" and self.peaks:
            options.setdefault("peaks", self.peaks)
        selected = self.selection.scope_without(ANALYSES[check_kind(kind)].ignores)
        scope = shown_scope(trace, kind, selected)
        return cached_analysis(trace, kind, scope, options).copy()

    def figure(self, kind: str, **options: Any) -> go.Figure:
        """The plotly figure of `frame(kind, **options)`."""
        return ANALYSES[check_kind(kind)].figure(self.frame(kind, **options))

    def what_if(self, edits: Edit | Sequence[Edit] | None = None, *, path: bool = False) -> pd.DataFrame:
        """How long would the selected iterations take after a change? `analysis.what_if` of the selection.

        Waits until the trace is loaded.

        Args:
            edits: the change, or several made together, from the module `edits`; by default those of the
                panel, `explorer.edits`.
            path: also say where the new critical path leads.

        Raises:
            MissingDataError: no selected rank has device work, or the replay of none can be trusted.
        """
        from hta_widgets.analysis.critical_path.what_if import what_if

        made = self.edits if edits is None else edits
        return what_if(self.trace, made, self.selection.scope, path=path)

    def diff(self, *others: Any, names: Sequence[str] | None = None) -> DiffViewer:
        """A `DiffViewer` of this run and others that shares this selection. Waits until the trace is loaded.

        `others` are what `Trace.open` takes; `names` are of all runs, by default the last part of their path.
        """
        from hta_widgets.widgets.diff_viewer import DiffViewer

        names = names or default_names([self._source, *others])
        return DiffViewer(self.trace, *others, names=names, selections={names[0]: self.selection})

    # -- to share

    def to_markdown(self) -> str:
        """The evidence about the current selection as Markdown, for an issue or a pull request.

        It is the page of `hta-widgets diagnose`: what costs time, what to do, and how far to trust it. Waits
        until the trace is loaded.
        """
        from hta_widgets.analysis.evidence.document import evidence
        from hta_widgets.analysis.evidence.markdown import markdown

        return markdown(evidence(self.trace, self.selection.scope))

    def save_rules(self, folder: str | PathLike[str]) -> Path:
        """Add `communication` to the rules in the file hta_widgets.toml of a folder, which is returned.

        `Trace.open` reads the file that lies beside the traces.

        Raises:
            OSError: the file cannot be read or written.
        """
        return append_rules(Path(folder), communication_rules(self.communication))

    def to_html(
        self,
        path: str | PathLike[str],
        *,
        panels: Iterable[str] | None = None,
        title: str = "",
        paths: Paths = "short",
        timeout: float = SETTLED_WITHIN_SECONDS,
    ) -> Path:
        """Write what is shown to one HTML file that opens anywhere, offline and without Python.

        The timeline stays interactive, panels can be shown and hidden, and events (up to 20,000 of them) be
        searched and sorted. The figures are those of the current selection. Waits for computations in
        progress.

        Args:
            path: the file to write; it is returned.
            panels: kinds of the panels to save; default: those that are shown.
            title: the page's title; default: the explorer's.
            paths: "short" cuts paths to their last part, and home folders to `~`; "full" leaves them.
            timeout: how many seconds to wait for the parts, once the trace is loaded.

        Raises:
            NotAnsweredError: some parts took longer; it names them.
            ValueError: there is no panel of that kind, or `paths` is another word.
            OSError: the file cannot be written.
        """
        cut = paths_as(paths, [self._source])
        from hta_widgets.report import write

        kinds = self.panels if panels is None else kinds_of(panels)
        return write(path, self._document(kinds, title or self._title(), cut, timeout))

    def _document(self, kinds: Sequence[str], title: str, cut: Callable[[str], str], timeout: float) -> str:
        """The HTML document that `to_html` writes."""
        from hta_widgets.widgets.reporting import explorer_page

        shown = self._at_rest(timeout)
        made = {kind: self._make_panel(kind) for kind in kinds if kind not in shown}
        try:
            saved = [("panel", (shown | made)[kind], kind) for kind in kinds]
            settle([part for _, part, _ in saved], timeout)
            placed = [*((area, part, "") for area, part in self._fixed), *saved]
            return explorer_page(self, placed, title, cut)
        finally:
            for panel in made.values():
                panel.close()

    def _written(self, form: str) -> bytes:
        """What the view shares, for others: without paths."""
        cut = paths_as("short", [self._source])
        if form == "html":
            text = self._document(tuple(self._shown), self._title(), cut, _SHARED_WITHIN_SECONDS)
        elif form == "md":
            text = self.to_markdown()
        elif form == "svg":
            text = self.snapshot().to_svg()
        elif form == "xlsx":
            from hta_widgets.report.excel import whole_run

            return whole_run(self.trace, self.selection.scope, cut)
        else:
            raise ValueError(f"there is no format {form!r}; the formats are html, md, svg and xlsx")
        return text.encode("utf-8", "backslashreplace")

    def to_excel(self, path: str | PathLike[str], *, paths: Paths = "short") -> Path:
        """Write the tables of the current selection into one Excel workbook.

        Its sheets are findings, steps, operators, kernels, kernel classes and collectives; what the trace has
        no data for is listed on one more. Needs openpyxl: `pip install 'hta_widgets[excel]'`.

        Args:
            path: the file to write; it is returned.
            paths: as for `to_html`.

        Raises:
            HtaWidgetsError: openpyxl is not installed.
            ValueError: `paths` is another word.
            OSError: the file cannot be written.
        """
        from hta_widgets.report import to_excel

        cut = paths_as(paths, [self._source])
        self.wait()
        return to_excel(self.trace, path, self.selection.scope, cut)

    def snapshot(self) -> Picture:
        """A static picture of what is shown, for the output of a cell in a saved notebook.

        A live explorer needs a kernel. Without one (a notebook opened again, nbconvert, a code review), the
        output of this call is still there.
        """
        from hta_widgets.widgets.snapshot import picture

        shown = self._at_rest()
        return picture(self._title(), self.header, [*(part for _, part in self._fixed), *shown.values()])

    def _at_rest(self, timeout: float = SETTLED_WITHIN_SECONDS) -> dict[str, Part]:
        """The panels shown, by kind, once the trace is loaded and everything is computed."""
        self.wait()
        settle([self], timeout)  # the parts are created shortly after the trace is loaded
        if not self._fixed:
            raise RuntimeError(self.message)
        # a worker thread may still be at these
        self._tell(about(self.trace, self._name, self.communication))
        if not self._knows_lacking:
            self._tell_lacking(unanswered(self.trace))
        shown = dict(self._shown)
        settle([*(part for _, part in self._fixed), *shown.values()], timeout)
        return shown

    def _title(self) -> str:
        return f"{self._name or 'Trace'}: {describe(self.trace)}"

    # -- the widget

    @rpc_method("undo")
    def _on_undo(self, _params: dict[str, Any]) -> None:
        self.selection.undo()

    @rpc_method("redo")
    def _on_redo(self, _params: dict[str, Any]) -> None:
        self.selection.redo()

    @rpc_method("find_names")
    def _find_names(self, params: dict[str, Any]) -> list[str]:
        """Names of events that contain a text, ignoring case; the most frequent first."""
        return names_containing(self.trace, str(params["text"]))

    @rpc_method("try_finding")
    def _try_finding(self, params: dict[str, Any]) -> None:
        """Begin the panel "what_if" with the change against a finding of the story."""
        with UI_LOCK:
            if self._story is None:
                raise LookupError("the trace is not loaded")
            self.edits = self._story.edits_of(int(params["finding"]))

    def _show(self, traces: dict[str, Trace]) -> None:
        # with replay and findings: while the trace is loaded, not when the class is imported
        from hta_widgets.widgets.timeline_scrubber import TimelineScrubber

        trace = read(traces[self._name], self.clock, self.communication)
        # it arranges slices while the rest is found out
        timeline = TimelineScrubber(trace, selection=self.selection)
        try:
            known = about(trace, self._name, self.communication)
            lacking = unanswered(trace, (*FIRST, "rank_waits"))  # and whether there is a job
            view = first_view(trace)
            with UI_LOCK, self.hold_sync():
                self._check_wanted()
                timeline.view = view
                self._compose(trace, timeline, known, lacking)
        except BaseException:
            timeline.close()
            raise

    def _compose(
        self, trace: Trace, timeline: TimelineScrubber, known: About, lacking: dict[str, str]
    ) -> None:
        """Make the other parts, and show all."""
        from hta_widgets.widgets.inspector import Inspector
        from hta_widgets.widgets.iteration_selector import IterationSelector
        from hta_widgets.widgets.rank_selector import RankSelector
        from hta_widgets.widgets.story import Story

        shared = self.selection
        story = self._story = Story(trace, selection=shared)
        t.dlink((story, "kinds"), (self, "relevant"))
        timeline.share("edits", self)
        self._fixed = [
            ("breadcrumb", Breadcrumb(trace, selection=shared, python_expression=self._code)),
            ("ranks", RankSelector(trace, selection=shared)),
            ("iterations", IterationSelector(trace, selection=shared)),
            ("timeline", timeline),
            ("inspector", Inspector(trace, selection=shared, trace_expression=self._trace_expression)),
            ("story", story),
        ]
        self.lacking = lacking
        self.choices = {
            "ranks": trace.ranks,
            "iterations": [int(number) for number in trace.iterations["iteration"].unique()],
        }
        if self._choose_panels and not self.panels:
            self.panels = first_panels(trace, lacking)
        self._arrange()
        self._tell(known)
        self.status, self.message, self.progress = "idle", "", None
        self._lacks.submit(lambda: unanswered(trace), patient=True)  # of what is not shown
        self._ahead.submit(lambda: read_ahead(trace), patient=True)
        if self.trace is not trace:  # something else was chosen meanwhile
            self._read_again()

    @t.observe("communication")
    def _write_rules(self, _change: Any) -> None:
        self.rules = as_text(communication_rules(self.communication))

    @t.observe("clock", "communication")
    def _read_again(self, _change: Any = None) -> None:
        """Show the trace as it is read now; parts that are not there yet will."""
        with UI_LOCK:
            if not self._fixed:
                return
            trace, communication = self.trace, self.communication
            for _, part in self.parts:
                part.change_trace(trace)
            self._fixed[0][1].refresh()
            self._about.submit(lambda: about(trace, self._name, communication))

    def _tell(self, known: About) -> None:
        with UI_LOCK, self.hold_sync():
            self.header, self.health, self.notices = known.header, known.health, known.notices
            self.clocks = known.clocks

    def _tell_lacking(self, lacking: dict[str, str]) -> None:
        with UI_LOCK:
            self.lacking, self._knows_lacking = lacking, True

    @t.observe("edits", "peaks")
    def _code_changed(self, _change: Any) -> None:
        if self._fixed:
            self._fixed[0][1].refresh()

    @t.observe("panels")
    def _panels_changed(self, _change: Any) -> None:
        self._cell_thread.do(self._arrange)

    def _arrange(self) -> None:
        """Make the panels that were opened, close those that were hidden."""
        with UI_LOCK:
            if not self._fixed:
                return
            before = self._shown
            self._shown = {kind: before.get(kind) or self._make_panel(kind) for kind in self.panels}
            # the view releases a panel before its model is closed
            self.parts = [*self._fixed, *(("panel", panel) for panel in self._shown.values())]
            for kind in before.keys() - self._shown.keys():
                before[kind].close()
            self._fixed[0][1].refresh()

    def _make_panel(self, kind: str) -> Part:
        def python_expression() -> str:
            explorer = variable_name(self, "explorer")
            return f"{explorer}.what_if" if kind == "what_if" else f'{explorer}.frame("{kind}")'

        panel = make_panel(self.trace, kind, self.selection, python_expression)
        for name in ("edits", "peaks"):
            if panel.has_trait(name):
                panel.share(name, self)
        return panel

    def _placed(self, parts: Sequence[tuple[str, Part]]) -> list[list[str]]:
        """`parts` as sent to the browser: [area, reference, kind of a panel]."""
        kinds = {panel: kind for kind, panel in self._shown.items()}
        return [[area, f"anywidget:{part.model_id}", kinds.get(part, "")] for area, part in parts]

    def _trace_expression(self) -> str:
        return f"{variable_name(self, 'explorer')}.trace"

    def _code(self) -> str:
        name = variable_name(self, "explorer")
        edits = [edit.expression for edit in self.edits]
        return explorer_code(
            name, self._source, self.selection.to_dict(), self.panels, self.clock, self.communication, edits,
            self.peaks,
        )  # fmt: skip
