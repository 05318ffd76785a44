"""The selection in words, with a button to drop each clause, undo and redo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import traitlets as t

from hta_widgets.engine import UI_LOCK
from hta_widgets.widgets.part import Part, variable_name
from hta_widgets.widgets.rpc import rpc_method
from hta_widgets.widgets.selection import Flags, Focus, Gap, Integers, Names, Selection, Window


class Breadcrumb(Part):
    """The selection clause by clause, with a search for event names, undo, redo and "Copy code".

    Args:
        trace: an open `Trace`, or anything `Trace.open` takes.
        selection: the `Selection` to share with other parts.
        python_expression: returns the Python lines that "Copy code" copies; default: the line that makes the
            selection.
    """

    _view = t.Unicode("breadcrumb").tag(sync=True)
    _clauses: ClassVar = (
        "ranks", "iterations", "window", "streams", "names", "query", "focus", "gap", "flags",
    )  # fmt: skip

    ranks = Integers(help="selected ranks; () means all").tag(sync=True)
    iterations = Integers(help="selected iterations; () means all").tag(sync=True)
    window = Window(help="selected (start, end) in ns; None means all time").tag(sync=True)
    streams = Integers(help="selected streams; () means all").tag(sync=True)
    names = Names(help="names of the chosen events; () means all").tag(sync=True)
    query = t.Unicode("", help="text to search for in the names of events").tag(sync=True)
    focus = Focus(help="(rank, event_id) of the focused event; part of the code, but not a clause")
    gap = Gap(help="(rank, stream, time_ns) of the gap looked at; part of the code, but not a clause")
    flags = Flags(help="(time_ns, note) of each flagged moment; part of the code, but not a clause")

    can_undo = t.Bool(help="whether there is something to undo").tag(sync=True)
    can_redo = t.Bool(help="whether there is something to redo").tag(sync=True)
    code = t.Unicode(help="Python lines that restore the selection").tag(sync=True)

    _history: tuple[t.dlink, ...] = ()

    def __init__(
        self,
        trace: Any,
        *,
        selection: Selection | dict[str, Any] | None = None,
        python_expression: Callable[[], str] | None = None,
    ) -> None:
        self._python_expression = python_expression or self._selection_expression
        super().__init__(trace, selection=selection)
        with UI_LOCK:
            history = self.selection.history
            self._history = tuple(t.dlink((history, name), (self, name)) for name in ("can_undo", "can_redo"))
            self.observe(self.refresh, list(self._clauses))
            self.refresh()

    def refresh(self, _change: Any = None) -> None:
        """Write the code anew; called by an owner when its part of the code has changed."""
        with UI_LOCK:
            self.code = self._python_expression()

    def close(self) -> None:
        """Take the part down."""
        with UI_LOCK:
            for link in self._history:
                link.unlink()
            self._history = ()
            super().close()

    @rpc_method("undo")
    def _on_undo(self, _params: dict[str, Any]) -> None:
        self.selection.undo()

    @rpc_method("redo")
    def _on_redo(self, _params: dict[str, Any]) -> None:
        self.selection.redo()

    def _selection_expression(self) -> str:
        return f"{variable_name(self.selection, 'selection')} = {self.selection!r}"
