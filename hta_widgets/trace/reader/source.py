"""The bytes of a trace: a path, URL, fsspec file or binary stream, plain or gzip, as one readable stream.

Damage never raises here: a truncated or corrupt stream ends early and reports it in `damage`.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from isal import igzip_lib, isal_zlib

from hta_widgets.errors import ForeignFileError, TraceFormatError, TraceNotFoundError
from hta_widgets.trace.reader.foreign import packed
from hta_widgets.trace.reader.remote import RemoteFile, connected

TraceSource = str | os.PathLike[str] | BinaryIO | Any
"""A local path, a URL that fsspec understands, an `fsspec.core.OpenFile`, or a binary file object."""

_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 16
_INFLATED_AT_ONCE = 1 << 18
_WEB_PAGE = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<!doctype html|<html)\b", re.IGNORECASE)


def describe(source: TraceSource) -> str:
    """The name under which a source appears in messages."""
    if isinstance(source, str):
        return source
    name = getattr(source, "path", None) or getattr(source, "name", None)
    if isinstance(source, os.PathLike):
        return os.fspath(source)
    return name if isinstance(name, str) else f"<{type(source).__name__}>"


def is_url(source: TraceSource) -> bool:
    """Whether the source is a string that only fsspec can open."""
    return isinstance(source, str) and "://" in source


class Source:
    """A trace's uncompressed bytes.  `done` and `total` count bytes of the file itself; total may be unknown
    (None).
    """

    def __init__(self, source: TraceSource) -> None:
        self.path = describe(source)
        self.damage: str | None = None
        self.done = 0
        self._file, self._own = self._open(source)
        self.total = self._size()
        try:
            self._start = self._file.read(1 << 12) or b""
        except Exception:
            self.close()
            raise
        if archive := packed(self._start):
            self.close()
            raise ForeignFileError(self.path, str(archive), 0)
        if _WEB_PAGE.match(self._start):
            self.close()
            raise TraceFormatError(self.path, "a web page, not a trace: the list of a folder, or a login", 0)
        self.compressed = self._start.startswith(_GZIP)
        self._gunzip = _Gunzip(self._read_file) if self.compressed else None

    def _open(self, source: TraceSource) -> tuple[Any, bool]:
        if hasattr(source, "read"):
            if hasattr(source, "seek") and _is_seekable(source):
                source.seek(0)
            return source, False
        try:
            if isinstance(source, str) and is_url(source):
                return RemoteFile(*connected(source)).open(), True
            if isinstance(source, str | os.PathLike):
                return Path(source).open("rb"), True
            return source.open(), True
        except FileNotFoundError as error:
            raise TraceNotFoundError(f"{self.path}: no such file") from error
        except IsADirectoryError as error:
            raise TraceFormatError(self.path, "is a folder, not a file") from error

    def _size(self) -> int | None:
        size = getattr(self._file, "size", None)
        if isinstance(size, int):
            return size
        try:
            status = os.fstat(self._file.fileno())
            return status.st_size if stat.S_ISREG(status.st_mode) else None
        except (OSError, AttributeError, ValueError):
            return None

    def _read_file(self, n: int) -> bytes:
        if self._start:
            data, self._start = self._start[:n], self._start[n:]
        else:
            data = self._file.read(n) or b""
        self.done += len(data)
        return data

    def read_into(self, target: memoryview) -> int:
        """Fill `target`; fewer bytes come only at the end."""
        filled = 0
        while filled < len(target):
            wanted = len(target) - filled
            data = self._gunzip.read(wanted) if self._gunzip else self._read_file(wanted)
            if not data:
                break
            target[filled : filled + len(data)] = data
            filled += len(data)
        if self._gunzip:
            self.damage = self._gunzip.damage
        return filled

    def close(self) -> None:
        """Close the file if this object opened it."""
        if self._own:
            self._file.close()

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _is_seekable(file: Any) -> bool:
    """Whether a file can be read from its start again; one that does not tell can."""
    return not hasattr(file, "seekable") or bool(file.seekable())


class _Gunzip:
    """Decompresses gzip members with ISA-L.

    Headers and trailers are parsed here and the body is raw deflate, so that a wrong checksum loses no text.
    """

    def __init__(self, read_file: Any) -> None:
        self.damage: str | None = None
        self._read_file = read_file
        self._compressed = b""
        self._inflater: Any = None
        self._crc = 0
        self._size = 0
        self._members = 0
        self._ended = False

    def read(self, wanted: int) -> bytes:
        """Some bytes of text, empty at the end."""
        while not self._ended:
            if self._inflater is None and not self._start_member():
                return b""
            text = self._inflate(min(wanted, _INFLATED_AT_ONCE))
            if self._inflater is not None and self._inflater.eof:
                self._end_member()
            if text:
                return text
        return b""

    def _more(self, n: int) -> bool:
        """Make at least n compressed bytes available; False at the end of the file."""
        while len(self._compressed) < n:
            data = self._read_file(_CHUNK)
            if not data:
                return False
            self._compressed += data
        return True

    def _stop(self, damage: str | None) -> bool:
        self.damage = self.damage or damage
        self._ended = True
        return False

    def _start_member(self) -> bool:
        if not self._more(1) or not self._more(2) or not self._compressed.startswith(_GZIP):
            trailing = bool(self._compressed.strip(b"\0")) or self._members == 0
            return self._stop("bytes that are not gzip follow the gzip stream" if trailing else None)
        self._more(10)
        length = _header_length(self._compressed)
        while length is None and self._more(len(self._compressed) + 1):
            length = _header_length(self._compressed)
        if length is None:
            return self._stop("the gzip stream is cut")
        self._compressed = self._compressed[length:]
        self._inflater = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE)
        self._crc = self._size = 0
        self._members += 1
        return True

    def _inflate(self, wanted: int) -> bytes:
        data = b""
        if self._inflater.needs_input:
            if not self._more(1):
                self._inflater = None
                self._stop("the gzip stream is cut")
                return b""
            data, self._compressed = self._compressed, b""
        try:
            text: bytes = self._inflater.decompress(data, wanted)
        except (igzip_lib.IsalError, ValueError, MemoryError) as error:  # type: ignore[misc]
            self._inflater = None
            self._stop(f"the gzip stream is damaged ({error})")
            return b""
        self._crc = isal_zlib.crc32(text, self._crc)
        self._size += len(text)
        return text

    def _end_member(self) -> None:
        self._compressed = self._inflater.unused_data + self._compressed
        self._inflater = None
        if not self._more(8):
            self._stop("the gzip stream is cut")
            return
        trailer, self._compressed = self._compressed[:8], self._compressed[8:]
        expected = self._crc.to_bytes(4, "little") + (self._size & 0xFFFFFFFF).to_bytes(4, "little")
        if trailer != expected:
            self.damage = "the gzip checksum is wrong"


def _header_length(data: bytes) -> int | None:
    """Length of a gzip member's header (RFC 1952), None while it is incomplete."""
    if len(data) < 10:
        return None
    flags, at = data[3], 10
    if flags & 4:  # extra field
        if len(data) < at + 2:
            return None
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for flag in (8, 16):  # file name, comment: zero-terminated
        if flags & flag:
            end = data.find(0, at)
            if end < 0:
                return None
            at = end + 1
    if flags & 2:  # header checksum
        at += 2
    return at if at <= len(data) else None
