"""What is computed of several runs, and follows what is selected in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hta_widgets.engine import UI_LOCK
from hta_widgets.widgets.computed import Computed
from hta_widgets.widgets.runs import distinct
from hta_widgets.widgets.selection import Selection

SELECTED = ["ranks", "iterations", "window", "streams"]  # traits of a selection that comparisons follow


class OfRuns(Computed):
    """Recomputes when one of the selections that it follows changes."""

    _followed: Sequence[Selection] = ()

    def _follow(self, selections: Mapping[str, Selection]) -> None:
        self._followed = distinct(selections)
        for selection in self._followed:
            selection.observe(self._refresh, SELECTED)

    def close(self) -> None:
        """Take the part down and stop following the selections."""
        with UI_LOCK:
            for selection in self._followed:
                selection.unobserve(self._refresh, SELECTED)
            self._followed = ()
            super().close()
