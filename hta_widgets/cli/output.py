"""The output of an answer: to stdout, or atomically to a file."""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

from hta_widgets.analysis.evidence.budget import DEFAULT_TOKENS
from hta_widgets.cli.exits import OutputError, UsageError
from hta_widgets.cli.terminal import printable, to_terminal
from hta_widgets.whole_files import write_whole

if TYPE_CHECKING:
    import pandas as pd  # takes time: --help does without


_PIECE = 1 << 15
_TAKEN: ContextVar[list[str] | None] = ContextVar("taken", default=None)
_ENDINGS = {
    **dict.fromkeys(("", ".txt", ".text", ".log", ".md"), "table"),
    ".csv": "csv",
    ".json": "json",
    ".parquet": "parquet",
    ".xlsx": "xlsx",
}
BINARY = ("parquet", "xlsx")
_NOT_SHOWN = "this format is not for terminals: name a file with -o, or pipe it"


def form_of(requested: str | None, output: str) -> str:
    """The given format, or the one of the file's ending; a table without one.

    Raises:
        UsageError: no format has that ending, or the format is not for terminals, and the output is one;
            raised before the work, not after.
    """
    form = requested or _form_of_ending(output)
    if form in BINARY and to_terminal(output):
        raise UsageError(_NOT_SHOWN)
    return form


def text_form_of(as_json: bool, output: str) -> str:
    """The form of a page of text: JSON if asked for or the file's ending says so; else a table.

    Raises:
        UsageError: the ending is that of another format.
    """
    form = "json" if as_json else _form_of_ending(output)
    if form not in ("json", "table"):
        raise UsageError(
            f"this command writes text or JSON, not {PurePath(output).suffix} files; analyze writes those, "
            "and report a workbook of the whole run"
        )
    return form


def budget_of(requested: int | str | None, output: str) -> int | None:
    """The most tokens of JSON that an answer may take; None: any number.

    What is printed is read by people and agents, and bounded unless asked; a file is for programs.
    """
    if requested is None:
        return DEFAULT_TOKENS if output == "-" else None
    return None if requested == "all" else int(requested)


def _form_of_ending(output: str) -> str:
    ending = PurePath(output).suffix.lower()
    if ending not in _ENDINGS:
        known = ", ".join(filter(None, _ENDINGS))
        raise UsageError(f"no format has the ending {ending!r}: use one of {known}, or name a --format")
    return _ENDINGS[ending]


def check_writable(output: str) -> None:
    """Check before the work that `output` can be written.

    Raises:
        OutputError: its folder does not exist, or it is a folder.
    """
    if output == "-":
        return
    path = Path(output)
    if path.is_dir():
        raise OutputError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise OutputError(f"cannot write {path}: there is no folder {path.parent}")


class ClosedOutput(io.TextIOBase):
    """Stands for a standard output that is closed: every write says so."""

    @property
    def buffer(self) -> Any:
        """What bytes would be written to."""
        return self

    def write(self, _content: object) -> int:
        """Never writes."""
        raise OSError(errno.EBADF, "it is closed")


@contextmanager
def taken() -> Iterator[list[str]]:
    """A context in which lines of text are not written but put into the list that it yields."""
    lines: list[str] = []
    token = _TAKEN.set(lines)
    try:
        yield lines
    finally:
        _TAKEN.reset(token)


@contextmanager
def to_stdout() -> Iterator[None]:
    """A context that writes to standard output.

    Raises:
        OutputError: it cannot be written: its disk is full, or it is closed.
        BrokenPipeError: its reader went away.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write to standard output: {error.strerror or error}") from error


def write_lines(output: str, lines: Iterable[str]) -> None:
    """Write lines of text, each as it comes.

    Raises:
        OutputError: the file cannot be written.
    """
    taken = _TAKEN.get()
    if taken is not None:
        taken.extend(lines)
        return
    if output == "-":
        with to_stdout():
            for line in lines:
                sys.stdout.write(f"{line}\n")
        return

    def fill(file: BinaryIO) -> None:
        for line in lines:
            file.write(f"{line}\n".encode("utf-8", "backslashreplace"))

    _write_file(Path(output), fill)


def write_bytes(output: str, content: bytes, *, text: bool) -> None:
    """Write a file's content; `text`: whether a terminal may show it.

    Raises:
        OutputError: the file cannot be written.
        UsageError: it is not text, and stdout is a terminal.
    """
    if output != "-":
        _write_file(Path(output), lambda file: file.write(content))
    elif not to_terminal(output):
        with to_stdout():
            sys.stdout.flush()
            rest = memoryview(content)
            while rest:  # a pipe that closes may take a part of a large write without an error
                rest = rest[sys.stdout.buffer.write(rest[:_PIECE]) :]
            sys.stdout.buffer.flush()
    elif text:
        with to_stdout():
            # split at line ends only: what else a text holds, the terminal must not see
            for line in content.decode("utf-8", "backslashreplace").removesuffix("\r\n").split("\r\n"):
                sys.stdout.write(f"{printable(line)}\n")
    else:
        raise UsageError(_NOT_SHOWN)


def write_frame(output: str, frame: pd.DataFrame, form: str, sheet: str) -> None:
    """Write a frame as CSV, Parquet or a workbook with one sheet.

    Raises:
        OutputError: the file cannot be written.
        HtaWidgetsError: it is a workbook, and openpyxl is not installed.
    """
    if form == "xlsx":
        from hta_widgets.report.excel import workbook

        write_bytes(output, workbook({sheet: frame}), text=False)
    else:
        from hta_widgets.widgets.files import as_bytes  # the panels' files; the widgets take time to import

        write_bytes(output, as_bytes(frame, form), text=form == "csv")


def _write_file(path: Path, fill: Callable[[BinaryIO], object]) -> None:
    try:
        if path.exists() and not path.is_file():  # a pipe or device cannot be replaced
            with path.open("wb") as file:
                fill(file)
            return
        path = path.resolve()  # a link stays a link
        write_whole(path, fill)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
