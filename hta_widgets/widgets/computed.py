"""A part whose content is computed from the selection, off-thread, newest answer wins."""

from __future__ import annotations

from typing import Any, ClassVar

from hta_widgets.engine import FRONT, Latest
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.part import Part
from hta_widgets.widgets.selection import Selection


class Computed(Part):
    """Recomputes when one of `_depends` changes.

    Subclasses say what to compute (`_compute`, in a worker thread) and what to do with it (`_show`, under
    `FRONT`).
    """

    _depends: ClassVar[tuple[str, ...]] = ()
    _own: tuple[str, ...] = ()  # what a selector selects, it does not filter by

    def __init__(
        self, trace: Any, *, selection: Selection | dict[str, Any] | None = None, **traits: Any
    ) -> None:
        self._latest: Latest[Any] = Latest(self._deliver, self._fail)
        super().__init__(trace, selection=selection, **traits)
        self.observe(self._refresh, list(self._depends))
        self._refresh()

    def close(self) -> None:
        """Take the part down and stop work that nobody will see."""
        self._latest.cancel()
        super().close()

    def _compute(self, scope: Scope) -> Any:
        raise NotImplementedError

    def _show(self, result: Any) -> None:
        raise NotImplementedError

    def _refresh(self, _change: Any = None) -> None:
        with FRONT:
            scope = self.selection.scope_without(self._own)
            self.status = "busy"
            self._latest.submit(lambda: self._compute(scope))

    def _deliver(self, result: Any) -> None:
        with FRONT, self.hold_sync():
            self.message = ""
            self._show(result)
            if self.status == "busy":  # last: whoever waits for it finds the answer
                self.status = "idle"

    def _fail(self, error: Exception) -> None:
        missing = isinstance(error, MissingDataError)
        with FRONT, self.hold_sync():
            self.status = "empty" if missing else "error"
            text = str(error)
            self.message = text[:1].upper() + text[1:] if missing else f"{type(error).__name__}: {text}"
