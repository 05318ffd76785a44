"""What changed between runs: bars of their steps on one scale, and what each change is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import traitlets as t

from hta_widgets.analysis.compare.run_story import RunStory, run_story
from hta_widgets.engine import UI_LOCK, start
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.answer_cache import cached_comparison
from hta_widgets.widgets.of_runs import OfRuns
from hta_widgets.widgets.runtime import DIFF_BUNDLE
from hta_widgets.widgets.selection import Selection


class RunsStory(OfRuns):
    """The first screen of `DiffViewer`: `analysis.compare.run_story` of what is selected in each run."""

    _bundle: ClassVar = DIFF_BUNDLE
    _view = t.Unicode("run_story").tag(sync=True)
    _from_browser: ClassVar = ("shown",)

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
            self._follow(self._selections)

    def _question(self) -> dict[str, Scope]:
        return {run: selection.scope for run, selection in self._selections.items()}

    def _compute(self, question: dict[str, Scope]) -> RunStory:
        waterfall, lines = (
            cached_comparison(self._runs, kind, question) for kind in ("step_waterfall", "diff")
        )
        return run_story(self._runs, question, waterfall, lines)

    def _show(self, story: RunStory) -> None:
        content = story.as_dict()
        if [each["part"] for each in content["changes"]] != [
            each["part"] for each in self.content.get("changes", ())
        ]:
            self.shown = -1
        self.content = content
