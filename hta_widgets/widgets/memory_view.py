"""A memory snapshot in a notebook: memory over time, who owned the peak, and what keeps free memory."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import traitlets as t

from hta_widgets.charts.svg import PanelPicture, Picture
from hta_widgets.engine import UI_LOCK, start
from hta_widgets.formatting import byte_size
from hta_widgets.memory_snapshot.snapshot import MemorySnapshot
from hta_widgets.report import write
from hta_widgets.short_paths import Paths, paths_as
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.memory_panel import ANSWERS, MemoryPanel
from hta_widgets.widgets.part import as_trace, placed, variable_name
from hta_widgets.widgets.reporting import memory_page
from hta_widgets.widgets.runtime import DIFF_BUNDLE
from hta_widgets.widgets.selection import Selection
from hta_widgets.widgets.static_preview import Pictured, origin


class MemoryView(Pictured):
    """A memory snapshot: why memory ran out, how much there was when, who owned the peak, what blocks.

    Args:
        snapshot: an open `MemorySnapshot`, or the path of one.
        trace: a recording of the same run, an open `Trace` or anything `Trace.open` takes: a panel then says
            what ran at the peak, or why the two have no time in common.

    Raises:
        TraceNotFoundError: there is no such file.
        TraceFormatError: it is no snapshot, or is damaged.

    >>> view = MemoryView("snapshot.pickle", "run_17/")               # doctest: +SKIP
    >>> view.frame("peak", by="module")                               # doctest: +SKIP
    """

    _bundle: ClassVar = DIFF_BUNDLE
    _view = t.Unicode("memory").tag(sync=True)

    headline = t.Unicode(help="why memory ran out, else what is held").tag(sync=True)
    parts = placed("where each part goes: [(area, widget, kind)]")

    def __init__(self, snapshot: MemorySnapshot | str | PathLike[str], trace: Any = None) -> None:
        opened = snapshot if isinstance(snapshot, MemorySnapshot) else MemorySnapshot.open(snapshot)
        self.memory_snapshot = opened
        beside = None if trace is None else as_trace(trace)
        start()
        with UI_LOCK:
            self._bind(Selection(), {"headline": opened.sentence()})
            self.parts = [
                ("panel", MemoryPanel(opened, kind, beside, python_expression=self._expression(kind)), kind)
                for kind in ANSWERS
                if (kind != "recording" or beside is not None)
                and (kind != "out_of_memory" or len(opened.out_of_memory()))
            ]

    def close(self) -> None:
        """Close the view and its panels."""
        with UI_LOCK:
            parts = self.parts
            super().close()
            for _, part, _ in parts:
                part.close()

    def frame(self, kind: str, **options: Any) -> pd.DataFrame:
        """The DataFrame of a panel: "timeline", "peak", "fragmentation", "blockers", ...

        Raises:
            KeyError: there is no such panel.
            MissingDataError: the snapshot lacks what the panel needs.
        """
        panels = {own: part for _, part, own in self.parts}
        if kind not in panels:
            raise KeyError(f"no panel {kind!r}; there are: {', '.join(panels)}")
        return panels[kind].frame(**options)

    def to_html(self, path: str | PathLike[str], *, title: str = "", paths: Paths = "short") -> Path:
        """Write what is shown to one HTML file that opens anywhere, offline and without Python.

        Args:
            path: the file to write; it is returned.
            title: the page's title.
            paths: "short" cuts paths to their last part, and home folders to `~`; "full" leaves them.

        Raises:
            OSError: the file cannot be written.
        """
        cut = paths_as(paths, [self.memory_snapshot.path])
        title = title or f"Memory: {Path(self.memory_snapshot.path).name}"
        return write(path, memory_page(self, self.parts, title, cut))

    def snapshot(self) -> Picture:
        """A static picture of what is shown, for the output of a cell in a saved notebook."""
        panels: Sequence[MemoryPanel] = [part for _, part, _ in self.parts]
        settle(panels)
        with UI_LOCK:
            answers = [
                PanelPicture(panel.title, panel.sentence if panel.status == "idle" else panel.message)
                for panel in panels
            ]
            return Picture(
                title="Memory snapshot",
                facts=_facts(self.memory_snapshot),
                selected=self.headline,
                overview=None,
                answers=answers,
                origin=origin("view"),
            )

    def _expression(self, kind: str) -> Any:
        return lambda: f'{variable_name(self, "view")}.frame("{kind}")'

    def __repr__(self) -> str:
        return f"MemoryView({self.memory_snapshot!r})"


def _facts(snapshot: MemorySnapshot) -> list[tuple[str, str]]:
    """What the fullest device holds."""
    table = snapshot.summary()
    if not len(table):
        return []
    top = table.sort_values("reserved_bytes", ascending=False).iloc[0]
    named = (("reserved_bytes", "reserved"), ("allocated_bytes", "allocated"), ("peak_bytes", "peak"))
    held = [(label, byte_size(top[name])) for name, label in named if top[name] >= 0]
    return [("device", str(top["device"])), *held]
