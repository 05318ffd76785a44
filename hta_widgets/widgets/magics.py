"""IPython magics: `%trace PATH` explores a recording, `%%profile_trace` records a cell and explores that."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError

from hta_widgets.widgets.trace_explorer import TraceExplorer

_PROFILER = "profiler"
_NO_TORCH = (
    "%%profile_trace needs PyTorch, which is not installed in this kernel. "
    "To explore a recording that is there already, write %trace PATH."
)
_FILE = "rank-0.pt.trace.json.gz"

_folders: list[
    tempfile.TemporaryDirectory[str]
] = []  # of recordings that nobody keeps; gone with the process


def register(shell: Any) -> None:
    """Teach an IPython shell the magics."""

    def trace(line: str) -> TraceExplorer:
        """Explore a recording: `%trace PATH`, a folder, a file or a URL."""
        path = _path(line)
        if not path:
            raise UsageError("%trace needs the path of a recording: %trace PATH")
        return TraceExplorer(path)

    def profile_trace(line: str, cell: str) -> TraceExplorer | None:
        """Record the cell with torch.profiler, and explore the recording.

        `%%profile_trace FOLDER` keeps the file there; without a folder it goes with the kernel. In the cell,
        `profiler` is the profiler: call `profiler.step()` after each step of a loop to mark the steps.
        """
        folder = Path(_path(line) or _temporary())
        with _recording(shell) as profiler:
            ran = shell.run_cell(cell)
        if not ran.success:
            return None  # the shell has shown why
        folder.mkdir(parents=True, exist_ok=True)
        profiler.export_chrome_trace(str(folder / _FILE))
        return TraceExplorer(folder / _FILE)

    shell.register_magic_function(trace, "line")
    shell.register_magic_function(profile_trace, "cell")


@contextmanager
def _recording(shell: Any) -> Iterator[Any]:
    """A profiler that records all that the analyses read, under the name `profiler` in the notebook."""
    try:
        torch = import_module("torch.profiler")
    except ImportError:
        raise UsageError(_NO_TORCH) from None
    made = torch.profile(
        activities=torch.supported_activities(),
        schedule=lambda _step: torch.ProfilerAction.RECORD,  # with a schedule, steps are marked
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_modules=True,
    )
    before = shell.user_ns.get(_PROFILER)
    with made as profiler:
        shell.user_ns[_PROFILER] = profiler
        try:
            yield profiler
        finally:
            if before is None:
                del shell.user_ns[_PROFILER]
            else:
                shell.user_ns[_PROFILER] = before


def _path(line: str) -> str:
    return line.strip().strip("\"'")


def _temporary() -> str:
    _folders.append(tempfile.TemporaryDirectory(prefix="hta_widgets-recorded-"))
    return _folders[-1].name
