"""The base of visible parts: a view, a status, and traits linked to the selection.

A part's observers never compute. They mark the part busy and hand the work to `engine.Latest`, whose answer
comes back under the same lock (`UI_LOCK`) that guards every other change the browser sees.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets as t

from hta_widgets.engine import UI_LOCK, start
from hta_widgets.formatting import counted
from hta_widgets.interrupts import uninterrupted
from hta_widgets.trace.model import Trace
from hta_widgets.widgets.rpc import RpcHandler, answer_while_cells_run
from hta_widgets.widgets.runtime import BUNDLE, STUB, runtime
from hta_widgets.widgets.selection import Guarded, Selection

_log = logging.getLogger(__name__)


class Part(RpcHandler, Guarded, anywidget.AnyWidget):
    """A widget bound to a trace and to a `Selection`.

    Every trait with the name of a `Selection` trait is linked to it in both directions.

    Args:
        trace: an open `Trace`, or anything `Trace.open` takes.
        selection: the `Selection` to share with other parts, or a dict of its traits; default: one of
            its own.
    """

    _esm = STUB
    _bundle: ClassVar[Path] = BUNDLE
    _from_browser: ClassVar[Sequence[str]] = ()  # traits that the view sets, beside those of the selection
    closed = False  # for good; what was being made for it is not shown any more
    _links: Sequence[t.link] = ()
    _runtime = anywidget.WidgetTrait().tag(sync=True)
    _view = t.Unicode().tag(sync=True)

    status = t.Enum(("idle", "busy", "error", "empty"), "idle", help="what the view shows").tag(sync=True)
    message = t.Unicode("", help="plain text that explains `status`").tag(sync=True)
    progress = t.Float(None, allow_none=True, help="0..1 while busy, None if unknown").tag(sync=True)

    def __init__(
        self, trace: Any, *, selection: Selection | dict[str, Any] | None = None, **traits: Any
    ) -> None:
        self._trace = as_trace(trace)
        self._bind(as_selection(selection), traits)

    def _bind(self, selection: Selection, traits: dict[str, Any]) -> None:
        """Open the comm and link the traits that the selection has too."""
        start()
        self.selection = selection
        with UI_LOCK, uninterrupted():
            shared = [name for name in selection.traits() if name in self.class_traits()]
            started = {name: getattr(selection, name) for name in shared}
            super().__init__(_runtime=runtime(self._bundle), **{**started, **traits})
            answer_while_cells_run(self.comm)
            self._links = [t.link((selection, name), (self, name)) for name in shared]

    @property
    def trace(self) -> Trace:
        """The trace that the part shows."""
        return self._trace

    def change_trace(self, trace: Trace) -> None:
        """Show the same job read another way: timed by another clock, or with other classes."""
        with UI_LOCK:
            self._trace = trace

    def share(self, name: str, owner: t.HasTraits) -> None:
        """Have the same value of a trait as another object, from now on and until the part is closed."""
        with UI_LOCK:
            self._links = [*self._links, t.link((owner, name), (self, name))]

    def close(self) -> None:
        """Take the part down: unlink it from the selection and close its comm."""
        with UI_LOCK, uninterrupted():
            self.closed = True
            self.cancel_calls()
            for link in self._links:
                link.unlink()
            self._links = ()
            layout = self.layout if self.has_trait("layout") else None
            super().close()
            if layout is not None:
                layout.close()  # a model of its own, which would stay

    def __del__(self) -> None:
        """Nothing is left to do: ipywidgets holds every open widget, so that what is collected was closed.

        To close once more, as ipywidgets would, takes locks, which a thread may hold that waits for this one.
        """

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Apply what the browser sends; changes of one message are one action to undo.

        What Python owns (the answer, the status, the message) is not the browser's to change: such traits
        are passed over, and the browser gets what they are. So it is of all it sent if a value is refused.
        """
        own = {*self.selection.traits(), *(name for base in type(self).__mro__ for name in _editable(base))}
        foreign = [name for name in sync_data if name not in own]
        with UI_LOCK:
            told = foreign
            try:
                with self.selection.hold_trait_notifications():
                    super().set_state({name: value for name, value in sync_data.items() if name in own})
            except BaseException:
                told = list(sync_data)
                raise
            finally:
                if told:
                    _log.debug("the browser may not set %s of %s", told, type(self).__name__)
                    self.send_state([name for name in told if name in self.keys])

    def _handle_msg(self, message: dict[str, Any]) -> None:
        with UI_LOCK:
            super()._handle_msg(message)

    def _send(self, msg: Any, buffers: Any = None) -> None:
        """A kernel asks for each message whether its sending thread lives: see `uninterrupted`."""
        with uninterrupted():
            super()._send(msg, buffers)

    def __repr__(self) -> str:
        """The same text for the same trace on every run, so that notebooks can be compared."""
        return f"{type(self).__name__}({describe(self.trace)})"


def _editable(base: type) -> Sequence[str]:
    return vars(base).get("_from_browser", ())


def placed(help: str) -> t.List[Any]:
    """A trait with the parts of a viewer: [(area, widget, kind)]; the browser gets references to them."""
    references: t.List[Any] = t.List(help=help)
    return references.tag(
        sync=True,
        to_json=lambda parts, _: [[area, f"anywidget:{part.model_id}", kind] for area, part, kind in parts],
    )


def as_trace(source: Any) -> Trace:
    """The trace itself, or what `Trace.open` makes of `source`."""
    return source if isinstance(source, Trace) else Trace.open(source)


def as_selection(selection: Selection | dict[str, Any] | None) -> Selection:
    """The selection itself, or one made of a dict of its traits."""
    if isinstance(selection, Selection):
        return selection
    return Selection(**(selection or {}))


def describe(trace: Trace) -> str:
    """For example ``4 ranks, 3 iterations``."""
    ranks, iterations = len(trace.ranks), trace.iterations["iteration"].nunique()
    return f"{counted(ranks, 'rank')}, {counted(iterations, 'iteration')}"


def variable_name(value: object, default: str) -> str:
    """The name by which the notebook knows `value`, for expressions to paste into a cell."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    names = list(shell.user_ns.items()) if shell is not None else []
    return next((name for name, known in names if known is value and not name.startswith("_")), default)
