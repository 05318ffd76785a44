"""The library's exceptions. Every one is a `HtaWidgetsError`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb, format_list
from typing import Any

_PACKAGE = Path(__file__).parent


class HtaWidgetsError(Exception):
    """Base class of every error raised by hta_widgets."""

    def _render_traceback_(self) -> list[str]:
        """What IPython prints below a cell: what happened, after the reader's own lines, without ours.

        The line of the cell itself, which stands above, is left out where it calls the library directly.
        """
        frames = extract_tb(self.__traceback__)[1:]  # the first is IPython's, which runs the cell
        own = [frame for frame in frames if not Path(frame.filename).is_relative_to(_PACKAGE)]
        said = f"{type(self).__name__}: {self}"
        return [said] if len(own) < 2 else [*(line.rstrip() for line in format_list(own)), said]


class TraceFormatError(HtaWidgetsError):
    """A file holds no usable trace.

    `path` is the file, `reason` what was found instead, `offset` the byte (of the uncompressed text) where it
    was found, or None.
    """

    def __init__(self, path: str | os.PathLike[str], reason: str, offset: int | None = None) -> None:
        self.path = os.fspath(path)
        self.reason = reason
        self.offset = offset
        where = "" if offset is None else f" (byte {offset})"
        super().__init__(f"{self.path}: {reason}{where}")

    def __reduce__(self) -> tuple[type[TraceFormatError], tuple[Any, ...]]:
        return type(self), (self.path, self.reason, self.offset)


class ForeignFileError(TraceFormatError):
    """A file is of another kind, whole and readable as such.

    `known` is whether its kind was recognised, which `reason` then names with what to do.
    """

    def __init__(
        self, path: str | os.PathLike[str], reason: str, offset: int | None = None, known: bool = True
    ) -> None:
        super().__init__(path, reason, offset)
        self.known = known

    def __reduce__(self) -> tuple[type[ForeignFileError], tuple[Any, ...]]:
        return type(self), (self.path, self.reason, self.offset, self.known)


class TraceNotFoundError(HtaWidgetsError, FileNotFoundError):
    """A path does not exist, or a folder holds no trace file."""


class RemoteError(HtaWidgetsError, OSError):
    """A file of another machine cannot be read.

    `url` is the file or folder, `reason` what happened, `remedy` what to install, set or pass.
    """

    def __init__(self, url: str, reason: str, remedy: str) -> None:
        self.url = url
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{url}: {reason}.{' ' * bool(remedy)}{remedy}")

    def __reduce__(self) -> tuple[type[RemoteError], tuple[str, str, str]]:
        return type(self), (self.url, self.reason, self.remedy)


class AccessDeniedError(RemoteError):
    """Another machine refuses a file, or whether it is there, without other credentials."""


class ClusterError(HtaWidgetsError):
    """A cluster could not do its work.

    `reason` is what happened, `remedy` what to do about it.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{reason}. {remedy}")

    def __reduce__(self) -> tuple[type[ClusterError], tuple[str, str]]:
        return type(self), (self.reason, self.remedy)


RECORD_DEVICE = (
    "Record with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]); XPU, "
    "MTIA, HPU or PrivateUse1 in place of CUDA on such a device."
)
"""The remedy for a trace without device events, or without the calls that launched them."""


class NoSuchStepError(HtaWidgetsError, ValueError):
    """None of the requested steps was recorded."""


class MissingDataError(HtaWidgetsError):
    """A question cannot be answered because the trace lacks what it needs.

    `field` is what is missing, `remedy` is how to record it, `detail` is what was found instead.
    """

    def __init__(self, field: str, remedy: str, detail: str = "") -> None:
        self.field = field
        self.remedy = remedy
        self.detail = detail
        super().__init__(f"the trace has no {field}{': ' + detail if detail else ''}. {remedy}")

    def __reduce__(self) -> tuple[type[MissingDataError], tuple[str, str, str]]:
        return type(self), (self.field, self.remedy, self.detail)


class NotAnsweredError(HtaWidgetsError, TimeoutError):
    """Parts of a widget were still computing when the limit of time was over.

    `parts` are their names.
    """

    def __init__(self, parts: Sequence[str], seconds: float) -> None:
        self.parts = tuple(parts)
        self.seconds = seconds
        super().__init__(f"no answer within {seconds:g} s from {', '.join(self.parts)}")

    def __reduce__(self) -> tuple[type[NotAnsweredError], tuple[tuple[str, ...], float]]:
        return type(self), (self.parts, self.seconds)


class OutOfMemoryError(HtaWidgetsError, MemoryError):
    """There is too little memory for what was tried, which `tried` says."""

    def __init__(self, tried: str) -> None:
        self.tried = tried
        super().__init__(f"out of memory while {tried}")

    def __reduce__(self) -> tuple[type[OutOfMemoryError], tuple[str]]:
        return type(self), (self.tried,)


@contextmanager
def out_of_memory(tried: str) -> Iterator[None]:
    """A context in which running out of memory is an error of ours.

    Raises:
        OutOfMemoryError: there is too little memory.
    """
    try:
        yield
    except OutOfMemoryError:
        raise
    except MemoryError as error:
        raise OutOfMemoryError(tried) from error


class MissingDataWarning(UserWarning):
    """What the HTA-compatible methods issue instead of a `MissingDataError`, with the same message."""


class NotComparableError(HtaWidgetsError):
    """The runs differ too much to compare: different kinds of work, or no step in common.

    `reasons` are sentences, one per check that failed.
    """

    def __init__(self, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("these runs cannot be compared: " + "; ".join(self.reasons))

    def __reduce__(self) -> tuple[type[NotComparableError], tuple[tuple[str, ...]]]:
        return type(self), (self.reasons,)
