"""A static picture that replaces a live part where no kernel runs: a saved notebook, GitHub, a review.

JupyterLab saves widgets with a notebook only if configured to, and without its widget such an output is
empty. So the cell of a part that a browser displays gets a second output: a picture of the part, updated a
moment after each change. While a live view is displayed above it, the picture is hidden.

Only a displayed view requests the picture (`js/src/static_preview.ts`). A notebook that runs without a
browser (nbconvert, nbval, papermill) gets none.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from hta_widgets.engine import UI_LOCK
from hta_widgets.errors import HtaWidgetsError
from hta_widgets.version import __version__
from hta_widgets.widgets.part import Part
from hta_widgets.widgets.rpc import rpc_method
from hta_widgets.widgets.selection import Selection

if TYPE_CHECKING:
    from hta_widgets.charts.svg import Picture

_log = logging.getLogger(__name__)

REST_SECONDS = 2.0  # a change that is followed by another one within this time is not drawn
MOST_CELLS = 8  # the newest ones that display one part

# The picture is hidden below a live view, and replaces a widget that JupyterLab could not find.
STYLE = """<style>
.jp-OutputArea-child:has(.hta) ~ .jp-OutputArea-child:has(.hta-picture),
.jp-OutputArea-child:has(> .jp-OutputArea-output.jupyter-widgets):has(~ .jp-OutputArea-child .hta-picture) {
  display: none
}
</style>"""


@dataclass
class _Cell:
    """An execution of a cell that displayed the part, and the picture's place in its output."""

    publisher: Any
    parent: dict[str, Any]
    display_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    published: bool = False

    def publish(self, bundle: dict[str, str]) -> None:
        """Show the bundle in this cell, whichever runs now."""
        session, publisher = self.publisher.session, self.publisher
        kind = "update_display_data" if self.published else "display_data"
        content = {"data": bundle, "metadata": {}, "transient": {"display_id": self.display_id}}
        message = session.msg(kind, content, parent=self.parent)
        session.send(publisher.pub_socket, message, ident=publisher.topic)
        self.published = True


class Pictured(Part):
    """A part with a static preview; its trait `parts`, if any, lists [(area, part, ...)]."""

    _static_preview: StaticPreview | None = None

    def _bind(self, selection: Selection, traits: dict[str, Any]) -> None:
        super()._bind(selection, traits)
        self._static_preview = StaticPreview(self._picture)
        for shown in self._pictured():
            shown.observe(self._static_preview.renew)
        self.observe(self._static_preview.renew, "status")
        self.observe(self._follow_parts, "parts")

    def snapshot(self) -> Picture:
        """A static picture of what is shown."""
        raise NotImplementedError

    def close(self) -> None:
        """Take the part down; the last picture of it stays."""
        if self._static_preview is not None:
            self._static_preview.stop()
            with UI_LOCK, contextlib.suppress(ValueError):  # closed before
                for shown in self._pictured():
                    shown.unobserve(self._static_preview.renew)
        super().close()

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        if self._static_preview is not None:
            self._static_preview.displayed()
        return super()._repr_mimebundle_(**kwargs)

    def _pictured(self) -> list[Selection]:
        """The selections that the picture shows."""
        return [self.selection]

    def _picture(self) -> Picture | None:
        return self.snapshot() if self.status == "idle" else None

    def _follow_parts(self, change: Any) -> None:
        """Follow the status of each part, which is busy before it shows something else."""
        if self._static_preview is not None:
            for _, part, *_ in change.new:
                part.observe(self._static_preview.renew, "status")
            self._static_preview.renew()

    @rpc_method("view_opened")
    def _view_opened(self, params: dict[str, Any]) -> None:
        if self._static_preview is not None:
            self._static_preview.view_opened(str(params["view"]), int(params["count"]))

    @rpc_method("view_closed")
    def _view_closed(self, params: dict[str, Any]) -> None:
        if self._static_preview is not None:
            self._static_preview.view_closed(str(params["view"]))


class StaticPreview:
    """The pictures of one part, drawn in a thread that begins with the first view on display.

    Args:
        draw: draws the picture; may wait for computations in progress. None: there is nothing to show yet.
    """

    def __init__(self, draw: Callable[[], Picture | None]) -> None:
        self._draw = draw
        self._cells: dict[int, _Cell] = {}  # by the number of their execution
        self._views: dict[str, int] = {}  # that are on display, and in the output of which execution
        self._changes: SimpleQueue[bool] = SimpleQueue()  # False: the part is closed
        self._thread: threading.Thread | None = None
        self._closed = False
        self._lock = threading.Lock()

    def displayed(self) -> None:
        """The cell that runs displays the part."""
        shell = _shell()
        if shell is None:
            return
        # not its `execution_count`: some versions of IPython count on before the code runs
        number = len(shell.history_manager.input_hist_parsed) - 1
        cell = _Cell(shell.display_pub, shell.get_parent())
        with self._lock:
            self._cells[number] = cell
            for old in list(self._cells)[:-MOST_CELLS]:
                del self._cells[old]

    def view_opened(self, view: str, count: int) -> None:
        """A view is on display in the output of that execution: a picture belongs there."""
        with self._lock:
            if self._closed:
                return
            self._views[view] = count
            begins = self._thread is None
            if begins:
                self._thread = threading.Thread(target=self._run, name="hta_widgets_picture", daemon=True)
            thread = self._thread
        if begins and thread is not None:
            thread.start()
        self.renew()

    def view_closed(self, view: str) -> None:
        """The view is no longer on display."""
        with self._lock:
            self._views.pop(view, None)

    def renew(self, _change: object = None) -> None:
        """The content has changed: draw the picture again once nothing has changed for a while.

        Observers call it under `UI_LOCK`, so it takes no lock and starts no thread.
        """
        if self._views:
            self._changes.put(True)

    def stop(self) -> None:
        """The part is closed: the last picture stays as it is."""
        with self._lock:
            self._closed = True
            self._views.clear()
        self._changes.put(False)

    def _run(self) -> None:
        while self._changes.get():
            try:
                while self._changes.get(timeout=REST_SECONDS):
                    pass
            except Empty:
                self._publish()
            else:
                return

    def _publish(self) -> None:
        try:
            picture = self._draw()
        except HtaWidgetsError:  # something else was selected while it was drawn, which is drawn next
            return
        except Exception:  # the next picture may succeed
            if not self._closed:
                _log.exception("a picture could not be drawn")
            return
        if picture is None:
            return
        image = picture._repr_mimebundle_()["text/html"]
        bundle = {"text/html": f'{STYLE}<div class="hta-picture">{image}</div>', "text/plain": repr(picture)}
        if not self._changes.empty():  # a newer one is drawn next
            return
        with self._lock:
            cells = [self._cells[count] for count in set(self._views.values()) & self._cells.keys()]
        for cell in cells:
            cell.publish(bundle)


def origin(live: str) -> str:
    """The last line of a picture: when it was made, and how to get what is alive."""
    made = f"{datetime.now().astimezone():%Y-%m-%d %H:%M}"
    return f"Static picture of {made}, hta_widgets {__version__}: run the cell for the live {live}."


def _shell() -> Any:
    """IPython's shell if it belongs to a Jupyter kernel, else None."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell if hasattr(getattr(shell, "display_pub", None), "pub_socket") else None
