"""Files that only fsspec can open, read in spite of a network that fails.

Every question to a file system runs in a thread of its own, so that the waiting thread can give up: after
`STALL_SECONDS` without an answer, or at once when the reading is cancelled. What fails in a way that may pass
is tried again, and a stream goes on where it was cut: by a range request where the server knows them, else by
reading again what was read.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from threading import Thread
from typing import Any, TypeVar

from hta_widgets.engine import Superseded, checkpoint
from hta_widgets.trace.reader.remote_errors import (
    CutError,
    StalledError,
    is_final,
    library_error,
    scheme_of,
    shown,
)

Answer = TypeVar("Answer")

STALL_SECONDS = 30.0
PAUSES = (0.2, 0.5, 1.0, 2.0)
"""Seconds between the attempts."""
_POLL_SECONDS = 0.1
_BLOCK = 1 << 20  # small enough that a slow line is no stall: 35 kB/s
_VALIDATORS = ("ETag", "Last-Modified", "Content-MD5", "Digest")


class Cancelled(Exception):  # noqa: N818 - a signal, not an error
    """Nobody waits for the answer any more."""


def _never() -> bool:
    return False


def connected(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it.

    Raises:
        RemoteError: the scheme is unknown, its driver is not installed, or there are no credentials.
    """
    from fsspec.core import url_to_fs  # slow to import, and not needed for local files

    system, key = persistent(lambda: url_to_fs(url), url)
    return system, key


def persistent(
    call: Callable[[], Answer],
    url: str,
    stopped: Callable[[], bool] = _never,
    begun: bool = False,
) -> Answer:
    """What `call` returns, tried again after faults that may pass.

    Args:
        call: runs in another thread, and goes on there when it is no longer waited for.
        url: what errors are about.
        stopped: whether nobody waits any more, asked ten times a second.
        begun: the server was reached before, so that it may be again.

    Raises:
        Cancelled: `stopped`.
        RemoteError, TraceNotFoundError: what the last attempt failed with, in words.
    """
    for pause in (*PAUSES, None):
        try:
            return _waited(call, stopped)
        except (Cancelled, Superseded):
            raise
        except Exception as error:  # whatever drivers raise
            if pause is None or is_final(error, begun):
                raise library_error(error, url) from error
            _rest(pause, stopped)
    raise AssertionError("the last attempt returns or raises")


def _waited(call: Callable[[], Answer], stopped: Callable[[], bool]) -> Answer:
    answer: Future[Answer] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:  # handed to who waits
            answer.set_exception(error)

    # A daemon: what hangs in a driver must not keep the interpreter from ending.
    Thread(target=run, name="hta_widgets_remote", daemon=True).start()
    until = time.monotonic() + STALL_SECONDS
    while time.monotonic() < until:
        _look(stopped)
        try:
            return answer.result(_POLL_SECONDS)
        except TimeoutError:
            if answer.done():  # the driver's own
                raise
    raise StalledError(f"nothing came for {STALL_SECONDS:g} s")


def _rest(seconds: float, stopped: Callable[[], bool]) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        _look(stopped)
        time.sleep(min(left, _POLL_SECONDS))


def _look(stopped: Callable[[], bool]) -> None:
    checkpoint()
    if stopped():
        raise Cancelled


@dataclass(frozen=True)
class RemoteFile:
    """A file of an fsspec file system. It can be pickled: a worker of a cluster opens it for itself."""

    system: Any  # the fsspec file system
    key: str  # the path in it; of HTTP the URL, which may hold secrets
    stopped: Callable[[], bool] = _never  # whether nobody waits for the file any more

    @property
    def path(self) -> str:
        """The URL, as it may be shown."""
        return shown(self.url)

    @property
    def url(self) -> str:
        return str(self.system.unstrip_protocol(self.key))

    @property
    def name(self) -> str:
        return self.path.rstrip("/").rsplit("/", 1)[-1]

    @property
    def fs(self) -> RemoteFile:
        """Whom the cache asks for a key: this file, since `ukey` of fsspec's HTTP is the URL alone."""
        return self

    def ukey(self, _path: str) -> str:
        """What changes with the content.

        Raises:
            ValueError: the server states nothing that does.
        """
        if scheme_of(self.url) not in ("http", "https"):
            return str(persistent(lambda: self.system.ukey(self.key), self.url, self.stopped))
        info = persistent(lambda: self.system.info(self.key), self.url, self.stopped)
        stated = {name: info[name] for name in _VALIDATORS if info.get(name)}
        if not stated:
            raise ValueError("the server gives no ETag or time for the file")
        return f"{info.get('size')} {stated}"

    def beside(self, name: str) -> RemoteFile:
        """Another file of the folder."""
        return replace(self, key=f"{self.key.partition('?')[0].rpartition('/')[0]}/{name}")

    def watched(self, stopped: Callable[[], bool]) -> RemoteFile:
        """The same file, whose streams end with `Cancelled` once `stopped`."""
        return replace(self, stopped=stopped)

    def open(self) -> _Stream:
        """A binary stream, at the beginning.

        Raises:
            RemoteError, TraceNotFoundError: the file cannot be read.
        """
        return _Stream(self)


class _Stream:
    """The bytes of a remote file, one after the other."""

    def __init__(self, file: RemoteFile) -> None:
        self._file = file
        self._handle: Any = None
        self._ranges = True
        self._at = 0
        self.size: int | None = None
        self._block = memoryview(self._fetch())

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, wanted: int) -> bytes:
        """Some of the next bytes, at most so many; none at the end."""
        if not self._block and self._handle is not None:
            self._block = memoryview(self._fetch())
        data, self._block = bytes(self._block[:wanted]), self._block[wanted:]
        return data

    def close(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            Thread(target=handle.close, name="hta_widgets_remote", daemon=True).start()

    def _fetch(self) -> bytes:
        """The next block; an attempt that fails leaves nothing behind but a handle that is not used again."""
        handles = [] if self._handle is None else [self._handle]
        self._handle = None

        def step() -> tuple[Any, bytes]:
            handle = handles.pop() if handles else self._opened()
            try:
                data: bytes = handle.read(_BLOCK) or b""
            except ValueError as error:
                self._ranges = False  # the server sends whole files only
                raise CutError("the server does not support range requests") from error
            size = _size(handle)
            if not data and size is not None and self._at < size:
                raise CutError(f"the connection was cut after {self._at:,} of {size:,} bytes")
            return handle, data

        self._handle, data = persistent(step, self._file.url, self._file.stopped, begun=self._at > 0)
        self.size = _size(self._handle)
        self._at += len(data)
        if not data:
            self.close()
        return data

    def _opened(self) -> Any:
        """A handle at the place where the last one ended."""
        system, key = self._file.system, self._file.key
        handle = system.open(key, "rb", block_size=_BLOCK if self._ranges else 0)
        try:
            handle.seek(self._at)
        except (ValueError, OSError):  # a stream: what was read is read again
            left = self._at
            while left and (data := handle.read(min(left, _BLOCK))):
                left -= len(data)
        return handle


def _size(handle: Any) -> int | None:
    size = getattr(handle, "size", None)
    return size if isinstance(size, int) else None
