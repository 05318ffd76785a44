"""Everything once, for a process with special settings: every module, analyses, widgets and commands.

`python -W error -m tests.whole_library FOLDER` writes pages there and prints how many analyses answered.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import pkgutil
import sys
from pathlib import Path

from ipywidgets.widgets.widget import _instances

import hta_widgets
from hta_widgets import DiffViewer, TraceExplorer, examples
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.cli import main
from hta_widgets.errors import MissingDataError

DATA = Path(examples.__file__).parent / "data"


def use_it_all(folder: Path) -> int:
    """How many analyses answered."""
    for module in pkgutil.walk_packages(hta_widgets.__path__, "hta_widgets."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    trace = examples.load("ddp_4ranks")
    answered = 0
    for analysis in ANALYSES.values():
        with contextlib.suppress(MissingDataError):
            frame = analysis.function(trace)
            analysis.figure(frame)
            analysis.sentence(frame)
            answered += 1
    explorer = TraceExplorer(trace)
    explorer.to_html(folder / "explorer.html")
    _all_well(explorer)
    viewer = DiffViewer({"one": examples.load("gpt2_baseline"), "two": examples.load("gpt2_ddp")})
    viewer.to_html(folder / "diff.html")
    _all_well(viewer)
    one, two = str(DATA / "gpt2_baseline"), str(DATA / "gpt2_ddp")
    for argv in (
        ["summary", "--json", one],
        ["health", "--fail-on", "never", one],
        ["analyze", "kernel_breakdown", one],
        ["diff", one, two],
        ["report", one, "-o", str(folder / "report.html")],
    ):
        with contextlib.redirect_stdout(io.StringIO()):
            code = main([*argv, "-q"])
        if code:
            raise SystemExit(f"{argv} ended with {code}")
    return answered


def _all_well(widget: TraceExplorer | DiffViewer) -> None:
    """Close a widget, none of whose parts failed: in their threads a warning is an error of the part."""
    parts = [part for part in _instances.values() if getattr(part, "status", "") == "error"]
    if parts:
        raise SystemExit(f"{parts[0]}: {parts[0].message}")
    widget.close()


if __name__ == "__main__":
    sys.stdout.write(f"{use_it_all(Path(sys.argv[1]))}\n")
