"""Files with a checksum for each block: what is read is what was written, or an error.

The content comes first, then a CRC-32 for each of its blocks, then the footer with the content's length and
the checksum of the checksums. So nobody waits until a file is on the disk: one that a power cut leaves half
written is found to be damaged, and made again. A file is read into memory of its own and never mapped:
another process that shortens a mapped file would kill this one.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
from isal import isal_zlib

from hta_widgets.trace.reader.cache_budget import trim_at_times
from hta_widgets.whole_files import private_folder, replacing

BLOCK: Final = 1 << 20
_MAGIC: Final = b"HTAseal1"
_FOOTER: Final = struct.Struct("<8sQI")


class DamagedFileError(ValueError):
    """A file is not what was written."""


class Sealing:
    """Writes a file; a sink for Arrow. `seal()` ends it."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._length = 0
        self._checksum = 0
        self._checksums: list[int] = []

    def write(self, data: Any) -> int:
        """Append data."""
        rest = memoryview(data).cast("B")
        total = len(rest)
        while len(rest):
            piece = rest[: BLOCK - self._length % BLOCK]
            self._file.write(piece)
            self._checksum = isal_zlib.crc32(piece, self._checksum)
            self._length += len(piece)
            if self._length % BLOCK == 0:
                self._end_block()
            rest = rest[len(piece) :]
        return total

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing ends here: `sealed` closes the file."""

    def seal(self) -> None:
        """Write the checksums."""
        if self._length % BLOCK:
            self._end_block()
        checksums = np.array(self._checksums, "<u4").tobytes()
        self._file.write(checksums)
        self._file.write(_FOOTER.pack(_MAGIC, self._length, isal_zlib.crc32(checksums)))

    def _end_block(self) -> None:
        self._checksums.append(self._checksum)
        self._checksum = 0


@contextmanager
def sealed(file: Path) -> Iterator[Sealing]:
    """A sealed file to write, which is there as a whole once the context is left, with its folder.

    What killed writers left there is removed by `CacheBudget` and `trim`, not for each of thousands of files.

    Raises:
        OSError: it cannot be written.
    """
    private_folder(file.parent)
    with replacing(file, tidy=False) as sink:
        sealing = Sealing(sink)
        yield sealing
        sealing.seal()


def keep(file: Path, content: Any, part: float, trim_every: int = 1) -> None:
    """Seal a small file in a folder that may take a part of the cache's budget.

    That it cannot be written is no error.
    """
    with suppress(OSError):
        with sealed(file) as sealing:
            sealing.write(content)
        trim_at_times(file.parent, part, trim_every)


def read_sealed(path: Path) -> pa.Buffer:
    """The content of a file, each block checked.

    Raises:
        OSError: it is not there, or cannot be read.
        DamagedFileError: it is not what was written.
    """
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size < _FOOTER.size:
            raise DamagedFileError("the file is cut")
        file.seek(size - _FOOTER.size)
        magic, length, checksum = _FOOTER.unpack(_exactly(file, bytearray(_FOOTER.size)))
        blocks = -(-length // BLOCK)
        if magic != _MAGIC or length + 4 * blocks + _FOOTER.size != size:
            raise DamagedFileError("the file has no end")
        file.seek(length)
        checksums = bytes(_exactly(file, bytearray(4 * blocks)))
        if isal_zlib.crc32(checksums) != checksum:
            raise DamagedFileError("the checksums are damaged")
        content = pa.allocate_buffer(length)
        view = memoryview(content).cast("B")
        file.seek(0)
        for at, expected in enumerate(np.frombuffer(checksums, "<u4").tolist()):
            block = view[at * BLOCK : (at + 1) * BLOCK]
            if isal_zlib.crc32(_exactly(file, block)) != expected:
                raise DamagedFileError(f"block {at} is damaged")
        return content


def _exactly(file: Any, target: bytearray | memoryview) -> bytearray | memoryview:
    view, filled = memoryview(target), 0
    while filled < len(view):
        count = file.readinto(view[filled:])
        if not count:
            raise DamagedFileError("the file was cut while it was read")
        filled += count
    return target
