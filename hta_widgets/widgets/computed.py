"""A part whose content is computed from the selection in a worker thread; the newest answer wins."""

from __future__ import annotations

from typing import Any, ClassVar

from hta_widgets.engine import UI_LOCK, Latest
from hta_widgets.errors import MissingDataError, NotComparableError
from hta_widgets.formatting import capitalised
from hta_widgets.trace.model import Trace
from hta_widgets.widgets.part import Part
from hta_widgets.widgets.selection import Selection


class Computed(Part):
    """Recomputes when one of `_depends` changes.

    Subclasses define what to compute (`_compute` of `_question`, in a worker thread) and how to show it
    (`_show`, under `UI_LOCK`).
    """

    _depends: ClassVar[tuple[str, ...]] = ()
    _ignores: tuple[str, ...] = ()  # traits of the selection that do not filter the content
    # After a change other parts come first; not so in the beginning, of what a reader sees first.
    _patient: ClassVar[bool] = False
    _answered = False

    def _bind(self, selection: Selection, traits: dict[str, Any]) -> None:
        """Open the comm, and begin to follow what the content depends on."""
        self._latest: Latest[Any] = Latest(self._deliver, self._fail)
        super()._bind(selection, traits)
        if self._depends:  # no names would mean all of them
            self.observe(self._refresh, list(self._depends))
        self._refresh()

    def change_trace(self, trace: Trace) -> None:
        """Show the same job read another way: the answer is computed anew."""
        with UI_LOCK:
            super().change_trace(trace)
            self._refresh()

    def close(self) -> None:
        """Close the part and stop work whose result nobody will see."""
        self._latest.close()
        super().close()

    def _question(self) -> Any:
        """What the content depends on, as a value that a worker thread can read: by default the scope."""
        return self.selection.scope_without(self._ignores)

    def _compute(self, question: Any) -> Any:
        raise NotImplementedError

    def _show(self, result: Any) -> None:
        raise NotImplementedError

    def _refresh(self, _change: Any = None) -> None:
        with UI_LOCK:
            try:
                question = self._question()
                self.status = "busy"
                self._latest.submit(lambda: self._compute(question), patient=self._patient and self._answered)
            except BaseException as error:  # of an observer, an interrupt: nothing is on its way
                self._latest.cancel()
                self._fail(error)
                if not isinstance(error, Exception):
                    raise

    def _deliver(self, result: Any) -> None:
        with UI_LOCK, self.hold_sync():
            self.message = ""
            self._show(result)
            self._answered = True
            if self.status == "busy":  # last: a waiting thread then finds the answer in place
                self.status = "idle"

    def _fail(self, error: BaseException) -> None:
        missing = isinstance(error, MissingDataError | NotComparableError)
        with UI_LOCK, self.hold_sync():
            text = str(error)
            self.message = capitalised(text) if missing else f"{type(error).__name__}: {text}"
            self.status = "empty" if missing else "error"  # last, as in `_deliver`
