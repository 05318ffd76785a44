"""Sliders for changes to a program, and what they would save: a recording's replay while the hand moves.

The browser holds the dependency graph of the rank and replays it itself, to the nanosecond as Python does.
When the hand rests, Python answers the same question with `analysis.what_if`, which also times the steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pandas as pd
import traitlets as t

from hta_widgets.analysis.replay import what_if
from hta_widgets.analysis.replay.edits import Edit
from hta_widgets.charts.svg import Bar, PanelPicture, Picture
from hta_widgets.engine import UI_LOCK
from hta_widgets.formatting import duration
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.computed import Computed
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.part import variable_name
from hta_widgets.widgets.rpc import rpc_method
from hta_widgets.widgets.runtime import WHAT_IF_BUNDLE
from hta_widgets.widgets.snapshot import origin
from hta_widgets.widgets.static_preview import Pictured
from hta_widgets.widgets.what_if_answer import Replayed, packed_graph, replayed, sentence
from hta_widgets.widgets.what_if_controls import CONTROLS, edits_of, settings_of

__all__ = ["WhatIf"]

_LABELS = (
    ("Compute", "compute"),
    ("Exposed communication", "communication"),
    ("Exposed memory", "memory"),
    ("Idle", "idle"),
)


class WhatIf(Pictured, Computed):
    """How long would the recording take after a change? Sliders and switches, answered while they move.

    A rank is replayed by itself through its dependencies, as `analysis.what_if` describes.

    Args:
        trace: an open `Trace`, or anything `Trace.open` takes.
        rank: the rank to replay; by default the first whose replay can be trusted.
        edits: changes to begin with, from the module `edits`.

    Raises:
        ValueError: the trace has no such rank.

    >>> widget = WhatIf("run_17/")                                    # doctest: +SKIP
    >>> widget.edits = [edits.kernels(2.0), edits.syncs()]            # doctest: +SKIP
    >>> widget.frame()                                                # doctest: +SKIP
    """

    _bundle: ClassVar = WHAT_IF_BUNDLE
    _view = t.Unicode("what_if").tag(sync=True)
    _depends: ClassVar = ("rank", "edits")

    rank = t.Int(None, allow_none=True, help="the rank to replay; None: the first that can be trusted").tag(
        sync=True
    )
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

    def __init__(self, trace: Any, rank: int | None = None, edits: Edit | Sequence[Edit] = ()) -> None:
        given = [edits] if isinstance(edits, Edit) else list(edits)
        super().__init__(trace, edits=given, rank=rank)
        ranks = self.trace.ranks
        self.options = [{"rank": number, "label": self.trace.rank(number).label} for number in ranks]

    def frame(self) -> pd.DataFrame:
        """The rows of `analysis.what_if` for the rank and the edits that are shown.

        Raises:
            MissingDataError: the rank has no device work, or its replay cannot be trusted.
        """
        settle([self])
        with UI_LOCK:
            rank, edits = self.about.get("rank", self.rank), list(self.edits)
        return what_if(self.trace, edits, Scope() if rank is None else Scope(ranks=(rank,)))

    def snapshot(self) -> Picture:
        """A static picture of what is shown, for the output of a cell in a saved notebook."""
        settle([self])
        with UI_LOCK:
            answer, about, said = self.answer, self.about, [edit.expression for edit in self.edits]
            message = "" if self.status == "idle" else self.message
        bars = []
        for name, whole in (("recorded", "before"), ("after", "after")) if not message else ():
            times = zip(_LABELS, answer[f"parts_{whole}"], strict=True)
            parts = [(label, time_class, float(time)) for (label, time_class), time in times]
            bars.append(Bar(name, parts, duration(answer[whole])))
        return Picture(
            title="What if",
            facts=[("rank", str(about["rank"]))] if "rank" in about else [],
            selected="; ".join(said) or "nothing is changed",
            overview=None,
            answers=[PanelPicture("What if", message or sentence(answer), bars)],
            origin=origin("widget"),
        )

    @t.validate("rank")
    def _known_rank(self, proposal: Mapping[str, Any]) -> int | None:
        rank: int | None = proposal["value"]
        if rank is not None and rank not in self.trace.ranks:
            raise ValueError(f"the trace has no rank {rank}; it has {', '.join(map(str, self.trace.ranks))}")
        return rank

    @t.validate("settings")
    def _possible_settings(self, proposal: Mapping[str, Any]) -> dict[str, float]:
        """The browser may set only controls that there are, to shares of a time."""
        known = {control.name for control in CONTROLS}
        given = {str(name): float(value) for name, value in proposal["value"].items() if value != 1}
        if not given.keys() <= known or not all(0 <= value < math.inf for value in given.values()):
            raise t.TraitError(f"settings are shares of a time by name of a control, not {given}")
        return given

    @t.validate("further")
    def _known_further(self, proposal: Mapping[str, Any]) -> list[str]:
        """The browser may drop edits, but not make any: an expression is text, and nothing runs it."""
        known = [edit.expression for edit in self.edits]
        return [expression for expression in proposal["value"] if expression in known]

    @t.observe("edits")
    def _edits_changed(self, _change: Any) -> None:
        # both at once: between the two, `_controls_changed` would see an edit dropped
        with UI_LOCK, self.hold_sync(), self.hold_trait_notifications():
            settings, further = settings_of(self.edits)
            self.settings, self.further = settings, [edit.expression for edit in further]
            self.expression = self._python()

    @t.observe("settings", "further")
    def _controls_changed(self, _change: Any) -> None:
        """The hand moved a slider, or dropped an edit that no slider makes."""
        with UI_LOCK:
            settings, others = settings_of(self.edits)
            kept = [edit for edit in others if edit.expression in self.further]
            if settings != self.settings or len(kept) < len(others):
                self.edits = [*edits_of(self.settings), *kept]

    def _question(self) -> tuple[int | None, tuple[Edit, ...]]:
        return self.rank, tuple(self.edits)

    def _compute(self, question: tuple[int | None, tuple[Edit, ...]]) -> Replayed:
        return replayed(self.trace, *question)

    def _show(self, result: Replayed) -> None:
        self.about, self.controls, self.answer = result
        self.expression = self._python()

    def _python(self) -> str:
        """The expression of the answer: of one rank where the job has several."""
        edits = ", ".join(edit.expression for edit in self.edits)
        rank = self.about.get("rank", self.rank)
        scope = f", Scope(ranks=({rank},))" if len(self.trace.ranks) > 1 and rank is not None else ""
        return f"analysis.what_if({variable_name(self.trace, 'trace')}, [{edits}]{scope})"

    @rpc_method("graph")
    def _on_graph(self, params: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        packed = packed_graph(self.trace.rank(int(params["rank"])))
        return {"chunks": packed.chunks}, [packed.chunk(int(params["chunk"]))]
