"""The one widget that carries the JavaScript bundle.

anywidget copies and evaluates a widget's `_esm` for every instance. A page with ten panels would carry the
bundle ten times, and the parts could share nothing. So one `Runtime` holds the bundle, and each part is a
stub of two hundred bytes that asks the runtime to mount the view it names.
"""

from __future__ import annotations

from pathlib import Path

import anywidget
import traitlets as t

from hta_widgets.engine import UI_LOCK
from hta_widgets.widgets.cell_thread import marimo

STATIC = Path(__file__).parent / "static"
BUNDLE = STATIC / "widgets.js"
REPORT_BUNDLES = {root: STATIC / f"report_{root}.js" for root in ("explorer", "diff")}

STUB = """
export default {
  async render(props) {
    const runtime = await props.host.getWidget(props.model.get("_runtime"), { signal: props.signal });
    return runtime.exports.mount(props);
  },
};
"""


def bundle(path: Path = BUNDLE) -> str:
    """The text of a JavaScript module: the widgets', or one of `REPORT_BUNDLES`, which open a report.

    Raises:
        RuntimeError: it has not been built.
    """
    if not path.exists():
        raise RuntimeError(
            f"{path.name} has not been built: install the package with pip, "
            "or run `npm ci && npm run build` in js/"
        )
    return path.read_text(encoding="utf-8")


class Runtime(anywidget.AnyWidget):
    """Holds the bundle; draws nothing."""

    _esm = t.Unicode().tag(sync=True)

    @t.default("_esm")
    def _read_bundle(self) -> str:
        return bundle()

    def __repr__(self) -> str:
        return "Runtime()"


_shared: Runtime | None = None


def runtime() -> Runtime:
    """The kernel's runtime; created on first use, and again after its comm was closed.

    In marimo every part has its own: a widget there belongs to its cell, and the page caches code by content.
    """
    global _shared
    if marimo():
        return Runtime()
    with UI_LOCK:
        if _shared is None or _shared.comm is None:
            _shared = Runtime()
        return _shared
