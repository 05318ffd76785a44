"""Highlights the events of a comparison line in the timelines of all runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hta_widgets.engine import Latest
from hta_widgets.widgets.selection import Selection

Names = dict[str, tuple[str, ...]]


class LineHighlight:
    """Chooses the names of a line's events in the selections, and later clears only what it chose.

    Args:
        selections: of each run, which others may share.
        show_message: receives why the events cannot be found, or "".
    """

    def __init__(self, selections: Mapping[str, Selection], show_message: Callable[[str], None]) -> None:
        self._selections = dict(selections)
        self._show_message = show_message
        self._lit: Names = {}
        self._latest = Latest[Names](self._highlight, self._cannot)

    def show(self, line: tuple[str, str], find: Callable[[], Names]) -> None:
        """Highlight the events of the line, once `find` has returned their names in each run."""
        self._latest.submit(lambda: _everywhere(find(), line))

    def clear(self) -> None:
        """Clear the highlight, unless other names have been chosen meanwhile."""
        self._latest.cancel()
        for run, names in self._lit.items():
            if self._selections[run].names == names:
                self._selections[run].names = ()
        self._lit = {}
        self._show_message("")

    def close(self) -> None:
        """Clear the highlight for good."""
        self._latest.close()
        self.clear()

    def _highlight(self, names: Names) -> None:
        for run, selection in self._selections.items():
            selection.names = names[run]
            self._lit[run] = selection.names
        self._show_message("")

    def _cannot(self, error: Exception) -> None:
        self._show_message(f"The line's events cannot be found: {error}")


def _everywhere(names: Names, line: tuple[str, str]) -> Names:
    """For a run that lacks the line, a name that no event has, since no names would mean all."""
    lacking = line[1:] if any(names.values()) else ()
    return {run: own or lacking for run, own in names.items()}
