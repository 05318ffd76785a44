"""Sliders for changes to a program, and what they would save: a recording's replay while the hand moves.

The browser holds the dependency graph of the rank and replays it itself, to the nanosecond as Python does.
When the hand rests, Python answers the same question with `analysis.what_if`, which also times the steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pandas as pd
import traitlets as t

from hta_widgets.analysis.critical_path.what_if import what_if
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.analysis.replay.expressions import written
from hta_widgets.analysis.replay.marginal import marginal_savings
from hta_widgets.analysis.replay.speed_map import SPEEDS, speed_map
from hta_widgets.charts.spec import Contour, Savings
from hta_widgets.charts.svg import PanelPicture, Picture
from hta_widgets.engine import UI_LOCK
from hta_widgets.report import write
from hta_widgets.short_paths import Paths, paths_as
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.computed import Computed
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.part import describe, variable_name
from hta_widgets.widgets.reporting import own_page
from hta_widgets.widgets.rpc import rpc_method
from hta_widgets.widgets.runtime import WHAT_IF_BUNDLE
from hta_widgets.widgets.selection import Integers, Selection, Whole, Window
from hta_widgets.widgets.static_preview import Pictured, origin
from hta_widgets.widgets.what_if_answer import Replayed, packed_graph, pictured, replayed
from hta_widgets.widgets.what_if_controls import CONTROLS, edits_of, settings_of, time_class

if TYPE_CHECKING:
    import plotly.graph_objects as go


_SAVINGS = Savings("edits", "alone_ns", "next_ns", "together_ns", "before_ns", "time_class")
_SPEEDS = ("host", "kernels")
"""The controls that the map varies."""
_MAP = Contour(
    "host_factor", "device_factor", "after_ns", "before_ns", "compute", ("Host", "Compute kernels")
)
_MOST = SPEEDS[-1]
"""A faster point is marked at the map's edge."""


class NoSuchRankError(t.TraitError, ValueError):
    """The trace has no such rank. As a TraitError, traitlets takes the value back; other errors leave it."""


class WhatIf(Pictured, Computed):
    """How long would the recording take after a change? Sliders and switches, answered while they move.

    A rank is replayed by itself through its dependencies, as `analysis.what_if` describes. Edits of several
    ranks are answered for a step of all selected ranks, without sliders and map.

    Args:
        trace: an open `Trace`, or anything `Trace.open` takes.
        rank: the rank to replay; by default the first whose replay can be trusted.
        edits: changes to begin with, from the module `edits`.
        selection: the `Selection` to share with other parts. Of its ranks one is replayed, always the whole
            recording; of its iterations and its window the steps are shown.
        python_expression: returns the Python expression of the function that answers, without its arguments.

    Raises:
        ValueError: the trace has no such rank.

    >>> widget = WhatIf("run_17/")                                    # doctest: +SKIP
    >>> widget.edits = [edits.kernels(2.0), edits.syncs()]            # doctest: +SKIP
    >>> widget.frame()                                                # doctest: +SKIP
    """

    _bundle: ClassVar = WHAT_IF_BUNDLE
    _view = t.Unicode("what_if").tag(sync=True)
    _from_browser: ClassVar[Sequence[str]] = ("rank", "settings", "further")
    _depends: ClassVar = ("rank", "edits", "ranks", "iterations", "window")

    rank = Whole(None, allow_none=True, help="the rank to replay; None: the first that can be trusted").tag(
        sync=True
    )
    ranks = Integers(help="the ranks to choose from; () means all")
    iterations = Integers(help="the iterations whose times are shown; () means all")
    window = Window(help="(start, end) in ns that the shown iterations overlap; None means all time")
    edits: t.List[Edit] = t.List(t.Instance(Edit), help="the changes, made together")
    settings: t.Dict[str, float] = t.Dict(
        help="the edits of sliders and switches: the share of the time that is left, by name"
    ).tag(sync=True)
    further: t.List[str] = t.List(help="expressions of the edits that no slider makes").tag(sync=True)
    options: t.List[Any] = t.List(help="the ranks there are: [{rank, label}]").tag(sync=True)
    about: t.Dict[str, Any] = t.Dict(help="facts about the replay, whatever the edits are").tag(sync=True)
    controls: t.List[Any] = t.List(help="the sliders and switches").tag(sync=True)
    answer: t.Dict[str, Any] = t.Dict(help="times as recorded and after the edits, ns").tag(sync=True)
    expression = t.Unicode(help="Python expression of the answer").tag(sync=True)
    map_expression = t.Unicode(help="Python expression of the map, of the whole recording").tag(sync=True)

    def __init__(
        self,
        trace: Any,
        rank: int | None = None,
        edits: Edit | Sequence[Edit] = (),
        *,
        selection: Selection | dict[str, Any] | None = None,
        python_expression: Callable[[], str] | None = None,
    ) -> None:
        self._python_expression = python_expression
        given = [edits] if isinstance(edits, Edit) else list(edits)
        super().__init__(trace, selection=selection, edits=given, rank=rank)
        self._list_ranks()

    def frame(self) -> pd.DataFrame:
        """The rows of `analysis.what_if` for what is shown: the rank, the edits, the selected iterations.

        Raises:
            MissingDataError: the rank has no device work, or its replay cannot be trusted.
        """
        scope, edits = self._shown()
        return what_if(self.trace, edits, scope)

    def savings(self) -> pd.DataFrame:
        """What each of the edits saves: `analysis.marginal_savings` for what is shown.

        Raises:
            MissingDataError: the rank has no device work, or its replay cannot be trusted.
        """
        scope, edits = self._shown()
        return marginal_savings(self.trace, edits, scope)

    def speed_map(self) -> pd.DataFrame:
        """Where am I bound? `analysis.speed_map` for what is shown, beside the edits of other controls.

        Raises:
            MissingDataError: the rank has no device work, or its replay cannot be trusted.
        """
        scope, edits = self._shown()
        return speed_map(self.trace, scope, _beside(edits))

    def figure(self, kind: Literal["savings", "speed_map"] = "savings") -> go.Figure:
        """A plotly figure.

        Args:
            kind: "savings": the waterfall of `savings()`; "speed_map": contours of `speed_map()`, on which
                the speeds of the sliders are marked.

        Raises:
            MissingDataError: the rank has no device work, or its replay cannot be trusted.
            ValueError: there is no such figure.
        """
        from hta_widgets.charts import plotly  # takes half a second: only when somebody asks for a figure

        scope, edits = self._shown()
        if kind == "savings":
            frame = marginal_savings(self.trace, edits, scope)
            classes = [time_class(edits[change]) for change in frame["change"]]
            return plotly.figure(_SAVINGS, frame.assign(time_class=classes), "What each change saves")
        if kind == "speed_map":
            settings, _ = settings_of(edits)
            host, device = (1 / max(settings.get(name, 1.0), 1 / _MOST) for name in _SPEEDS)
            return plotly.figure(replace(_MAP, point=(host, device)), self.speed_map(), "Where is it bound?")
        raise ValueError(f"there is no figure {kind!r}; the figures are savings, speed_map")

    def to_html(self, path: str | PathLike[str], *, title: str = "", paths: Paths = "short") -> Path:
        """Write what is shown to one HTML file that opens anywhere, offline and without Python.

        The sliders work there: the file holds the dependency graph of the rank, and replays it. They stay
        where they are for a graph of more than 500,000 nodes, and beside an edit that no slider makes.

        Args:
            path: the file to write; it is returned.
            title: the page's title.
            paths: "short" cuts paths to their last part, and home folders to `~`; "full" leaves them.

        Raises:
            OSError: the file cannot be written.
        """
        title = title or f"What if: {describe(self.trace)}"
        return write(path, own_page(self, "what_if", title, paths_as(paths)))

    def snapshot(self) -> Picture:
        """A static picture of what is shown, for the output of a cell in a saved notebook."""
        settle([self])
        with UI_LOCK:
            about, said = self.about, [edit.expression for edit in self.edits]
        return Picture(
            title="What if",
            facts=[("rank", str(about["rank"]))] if "rank" in about else [],
            selected="; ".join(said) or "nothing is changed",
            overview=None,
            answers=[self.picture()],
            origin=origin("widget"),
        )

    def picture(self) -> PanelPicture:
        """What is shown as a panel of a static picture; the widget must have settled."""
        with UI_LOCK:
            return pictured(self.answer, "" if self.status == "idle" else self.message)

    def _shown(self) -> tuple[Scope, list[Edit]]:
        settle([self])
        with UI_LOCK:
            return self._scope(self._rank()), list(self.edits)

    def _rank(self) -> int | None:
        """The rank that is shown; None while all are replayed together."""
        return None if self._of_job() else self.about.get("rank", self.rank)

    def _of_job(self) -> bool:
        return any(edit.across for edit in self.edits)

    def _scope(self, rank: int | None) -> Scope:
        ranks = self.ranks or None if rank is None else (rank,)
        return Scope(ranks=ranks, iterations=self.iterations or None, window_ns=self.window)

    @t.validate("rank")
    def _known_rank(self, proposal: Mapping[str, Any]) -> int | None:
        rank: int | None = proposal["value"]
        if rank is not None and rank not in self.trace.ranks:
            raise NoSuchRankError(
                f"the trace has no rank {rank}; it has {', '.join(map(str, self.trace.ranks))}"
            )
        return rank

    @t.validate("settings")
    def _possible_settings(self, proposal: Mapping[str, Any]) -> dict[str, float]:
        """The browser may set only controls that there are, to shares of a time."""
        known = {control.name for control in CONTROLS}
        try:
            given = {str(name): float(value) for name, value in proposal["value"].items() if value != 1}
        except (TypeError, ValueError, OverflowError) as error:
            raise t.TraitError(f"settings are shares of a time: {error}") from None
        if not given.keys() <= known or not all(0 <= value < math.inf for value in given.values()):
            raise t.TraitError(f"settings are shares of a time by name of a control, not {given}")
        return given

    @t.validate("further")
    def _known_further(self, proposal: Mapping[str, Any]) -> list[str]:
        """The browser may drop edits, but not make any: an expression is text, and nothing runs it."""
        known = [edit.expression for edit in self.edits]
        return [expression for expression in proposal["value"] if expression in known]

    @t.observe("ranks")
    def _list_ranks(self, _change: Any = None) -> None:
        """Offer the selected ranks; one that is not selected is no longer shown."""
        with UI_LOCK, self.hold_sync():
            ranks = [rank for rank in self.trace.ranks if not self.ranks or rank in self.ranks]
            self.options = [{"rank": rank, "label": self.trace.rank(rank).label} for rank in ranks]
            if self.rank not in ranks:
                self.rank = None

    @t.observe("edits")
    def _edits_changed(self, _change: Any) -> None:
        # both at once: between the two, `_controls_changed` would see an edit dropped
        with UI_LOCK, self.hold_sync(), self.hold_trait_notifications():
            settings, further = settings_of(self.edits)
            self.settings, self.further = settings, [edit.expression for edit in further]
            self._express()

    @t.observe("settings", "further")
    def _controls_changed(self, _change: Any) -> None:
        """The hand moved a slider, or dropped an edit that no slider makes."""
        with UI_LOCK:
            settings, others = settings_of(self.edits)
            kept = [edit for edit in others if edit.expression in self.further]
            if settings != self.settings or len(kept) < len(others):
                self.edits = [*edits_of(self.settings), *kept]

    def _question(self) -> tuple[Scope, tuple[Edit, ...]]:
        return self._scope(None if self._of_job() else self.rank), tuple(self.edits)

    def _compute(self, question: tuple[Scope, tuple[Edit, ...]]) -> Replayed:
        return replayed(self.trace, *question)

    def _show(self, result: Replayed) -> None:
        self.about, self.controls, self.answer = result
        self._express()

    def _express(self) -> None:
        """Say in Python what is shown."""
        edits, name = written(self.edits), variable_name(self.trace, "trace")
        rank = self._rank() if len(self.trace.ranks) > 1 else None
        if self._python_expression is not None:
            self.expression = f"{self._python_expression()}({edits})"
        else:
            scope = _written_scope(self._scope(rank))
            self.expression = f"analysis.what_if({name}, {edits}{f', {scope}' if scope else ''})"
        of_rank = _written_scope(Scope(ranks=None if rank is None else (rank,)))
        self.map_expression = f"analysis.speed_map({name}, {of_rank or None}, {written(_beside(self.edits))})"

    @rpc_method("speed_map")
    def _on_speed_map(self, params: dict[str, Any]) -> dict[str, Any]:
        with UI_LOCK:
            beside = _beside(self.edits)
        frame = speed_map(self.trace, Scope(ranks=(int(params["rank"]),)), beside)
        return {"before": int(frame["before_ns"].iloc[0]), "after": frame["after_ns"].tolist()}

    @rpc_method("graph")
    def _on_graph(self, params: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        packed = packed_graph(self.trace.rank(int(params["rank"])))
        return {"chunks": packed.chunks}, [packed.chunk(int(params["chunk"]))]


def _beside(edits: Sequence[Edit]) -> list[Edit]:
    """The edits that the map makes in all its points: all but those of the speeds that it varies."""
    settings, further = settings_of(edits)
    others = {name: time for name, time in settings.items() if name not in _SPEEDS}
    return [*edits_of(others), *further]


def _written_scope(scope: Scope) -> str:
    """A scope as Python, empty for all."""
    parts = ", ".join(f"{name}={part!r}" for name, part in vars(scope).items() if part is not None)
    return f"Scope({parts})" if parts else ""
