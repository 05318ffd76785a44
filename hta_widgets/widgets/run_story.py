"""What changed between runs: bars of their steps on one scale, and what each change is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import traitlets as t

from hta_widgets.analysis.compare.run_story import RunStory, run_story
from hta_widgets.engine import UI_LOCK, start
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.answer_cache import cached_comparison
from hta_widgets.widgets.comparison_panel import SELECTED
from hta_widgets.widgets.computed import Computed
from hta_widgets.widgets.runs import distinct
from hta_widgets.widgets.runtime import DIFF_BUNDLE
from hta_widgets.widgets.selection import Selection


class RunsStory(Computed):
    """The first screen of `DiffViewer`: `analysis.compare.run_story` of what is selected in each run.

    Args:
        runs: the open jobs by name; the first is the base.
        selections: of each run.
    """

    _bundle: ClassVar = DIFF_BUNDLE
    _view = t.Unicode("run_story").tag(sync=True)
    _from_browser: ClassVar = ("shown",)
    _followed: Sequence[Selection] = ()

    content: t.Dict[str, Any] = t.Dict(
        help="the story as `RunStory.as_dict` has it; {} before it is there"
    ).tag(sync=True)
    shown = t.Int(-1, min=-1, help="the change whose place is shown; -1 for none").tag(sync=True)

    def __init__(self, runs: Mapping[str, Trace], selections: Mapping[str, Selection]) -> None:
        self._runs, self._selections = dict(runs), dict(selections)
        self._trace = next(iter(runs.values()))
        start()
        with UI_LOCK:
            self._bind(next(iter(selections.values())), {})
            self._followed = distinct(self._selections)
            for selection in self._followed:
                selection.observe(self._refresh, SELECTED)

    def close(self) -> None:
        """Take the part down and stop following the selections."""
        with UI_LOCK:
            for selection in self._followed:
                selection.unobserve(self._refresh, SELECTED)
            self._followed = ()
            super().close()

    def _question(self) -> dict[str, Scope]:
        return {run: selection.scope for run, selection in self._selections.items()}

    def _compute(self, question: dict[str, Scope]) -> RunStory:
        waterfall, lines = (
            cached_comparison(self._runs, kind, question) for kind in ("step_waterfall", "diff")
        )
        return run_story(self._runs, question, waterfall, lines)

    def _show(self, told: RunStory) -> None:
        content = told.as_dict()
        if [each["part"] for each in content["changes"]] != [
            each["part"] for each in self.content.get("changes", ())
        ]:
            self.shown = -1
        self.content = content
