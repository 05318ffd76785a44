"""The story: what the time goes to and what can be saved, as a headline, one bar and advice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import traitlets as t

from hta_widgets.analysis.findings.story import Story as Told
from hta_widgets.analysis.findings.story import story
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.analysis.replay.expressions import parse_all
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.answer_cache import cached_analysis
from hta_widgets.widgets.computed import Computed
from hta_widgets.widgets.selection import Integers, Selection, Window


class Story(Computed):
    """What to change first, why, and what it saves: `analysis.findings.story` of the selection.

    Args:
        trace: an open `Trace`, or anything `Trace.open` takes.
        selection: the `Selection` to share with other parts.
    """

    _view = t.Unicode("story").tag(sync=True)
    _depends: ClassVar = ("ranks", "iterations", "window", "streams")
    _from_browser: ClassVar = ("shown",)
    _patient = True

    ranks = Integers(help="ranks that the story is about; () means all")
    iterations = Integers(help="iterations that the story is about; () means all that can be judged")
    window = Window(help="(start, end) in ns that the story is about; None means all time")
    streams = Integers(help="streams that the story is about; () means all")
    content: t.Dict[str, Any] = t.Dict(help="the story as `Story.as_dict` has it; {} before it is there").tag(
        sync=True
    )
    shown = t.Int(-1, min=-1, help="the finding whose evidence is shown; -1 for none").tag(sync=True)
    kinds: t.List[str] = t.List(t.Unicode(), help="panels that the findings point to, the first first")
    _edits: Sequence[str] = ()  # of each finding; "" where a replay makes none

    def __init__(self, trace: Any, *, selection: Selection | dict[str, Any] | None = None) -> None:
        super().__init__(trace, selection=selection)

    def _compute(self, question: Scope) -> Told:
        return story(self.trace, question, cached_analysis(self.trace, "overview", question))

    def _show(self, told: Told) -> None:
        content = told.as_dict()
        if [advice["topic"] for advice in content["advice"]] != [
            advice["topic"] for advice in self.content.get("advice", ())
        ]:
            self.shown = -1
        self.content, self.kinds = content, told.kinds
        self._edits = [advice.edits for advice in told.advice]

    def edits_of(self, finding: int) -> list[Edit]:
        """The changes whose saving a finding tells, as the panel "what_if" takes them.

        Raises:
            LookupError: there is no such finding, or no edit makes its change.
        """
        if not 0 <= finding < len(self._edits) or not self._edits[finding]:
            raise LookupError("no replay makes that change")
        return list(parse_all(self._edits[finding]))

    def change_trace(self, trace: Trace) -> None:
        """Tell of the same job read another way; what is shown is shown no longer."""
        self.shown = -1
        super().change_trace(trace)
