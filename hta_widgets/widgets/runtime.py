"""The widget that carries a JavaScript bundle.

anywidget copies and evaluates a widget's `_esm` for every instance. A page with ten panels would carry the
bundle ten times, and the parts could share nothing. So one `Runtime` holds the bundle, and each part is a
stub of two hundred bytes that asks the runtime to mount the view it names. A part that few pages show has a
bundle, and so a runtime, of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import traitlets as t

from hta_widgets.engine import UI_LOCK
from hta_widgets.widgets.cell_thread import marimo

STATIC = Path(__file__).parent / "static"
BUNDLE = STATIC / "widgets.js"
WHAT_IF_BUNDLE = STATIC / "what_if.js"
JOB_BUNDLE = STATIC / "job.js"
DIFF_BUNDLE = STATIC / "diff.js"
REPORT_BUNDLES = {root: STATIC / f"report_{root}.js" for root in ("explorer", "diff", "what_if", "job")}

STUB = """
export default {
  async render(props) {
    const runtime = await props.host.getWidget(props.model.get("_runtime"), { signal: props.signal });
    return runtime.exports.mount(props);
  },
};
"""


def bundle(path: Path = BUNDLE) -> str:
    """The text of a JavaScript module: of widgets, or one of `REPORT_BUNDLES`, which open a report.

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
    """Holds a bundle; draws nothing."""

    _esm = t.Unicode().tag(sync=True)

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Nothing here is the browser's to set: the code would run in every page of the kernel."""

    def __repr__(self) -> str:
        return "Runtime()"


_shared: dict[Path, Runtime] = {}


def runtime(path: Path = BUNDLE) -> Runtime:
    """The kernel's runtime for a bundle; created on first use, and again after its comm was closed.

    In marimo every part has its own: a widget there belongs to its cell, and the page caches code by content.
    """
    if marimo():
        return Runtime(_esm=bundle(path))
    with UI_LOCK:
        known = _shared.get(path)
        if known is None or known.comm is None:
            known = _shared[path] = Runtime(_esm=bundle(path))
        return known
