"""The text of a source in blocks, read and decompressed by a separate thread.

A block's buffer has room before its text, so that the unfinished event at the end of one block can be put
before the next, and PADDING bytes after it.  Buffers are reused: the whole text is never in memory.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hta_widgets.trace.reader.bytes import PADDING, Text
from hta_widgets.trace.reader.source import Source

_LEAST, _MOST = 1 << 19, 4 << 20  # bytes of a block
_BLOCKS = 32  # of a text that is short of the most
_INFLATES = 12  # a guess: how many times larger than a compressed file its text is
_ROOM_IN_FRONT = 1 << 16
_BUFFERS = 3


@dataclass
class Block:
    """text[start : stop] lies at byte `offset + start` of the uncompressed file; `done` is how far the file
    was read.
    """

    text: Text
    start: int
    stop: int
    offset: int
    last: bool
    done: int

    def prepend(self, carry: bytes) -> None:
        """Put text in front that came just before it in the file."""
        if len(carry) > self.start:
            text = np.empty(len(carry) + self.stop - self.start + PADDING, np.uint8)
            text[len(carry) : -PADDING] = self.text[self.start : self.stop]
            self.offset += self.start - len(carry)
            self.text, self.start, self.stop = text, len(carry), len(text) - PADDING
        self.text[self.start - len(carry) : self.start] = np.frombuffer(carry, np.uint8)
        self.start -= len(carry)


def _text_bytes(source: Source) -> int | None:
    """How long the text is, a guess of a compressed one; None where the file does not tell its size."""
    return None if source.total is None else source.total * (_INFLATES if source.compressed else 1)


def _block_bytes(text: int | None) -> int:
    """How much to read at once: less of a short text, since a block's columns take ten times its memory."""
    return _MOST if text is None else min(max(text // _BLOCKS, _LEAST), _MOST)


class BlockReader:
    """Iterates over the blocks of a source while a thread reads ahead; leaving the context stops the
    thread.
    """

    def __init__(self, source: Source, block_bytes: int | None = None) -> None:
        self._source = source
        self.text_bytes = _text_bytes(source)
        self.block_bytes = block_bytes or _block_bytes(self.text_bytes)
        self._offset = 0
        self._free: queue.SimpleQueue[Text | None] = queue.SimpleQueue()
        self._filled: queue.SimpleQueue[Block | BaseException] = queue.SimpleQueue()
        for _ in range(_BUFFERS - 1):  # and the one of the first block
            self._free.put(self._buffer())
        self._stopped = False
        self._thread = threading.Thread(target=self._fill, name="hta-widgets-reader", daemon=True)

    def __enter__(self) -> BlockReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        self._free.put(None)
        if self._thread.ident is not None:
            self._thread.join()

    def __iter__(self) -> Iterator[Block]:
        block = self._read(self._buffer())  # here: there is nothing to scan meanwhile
        if not block.last:
            self._thread.start()
        while True:
            buffer, last = block.text, block.last
            yield block
            if last:
                return
            self._free.put(buffer)
            filled = self._filled.get()
            if isinstance(filled, BaseException):
                raise filled
            block = filled

    def _buffer(self) -> Text:
        return np.empty(_ROOM_IN_FRONT + self.block_bytes + PADDING, np.uint8)

    def _read(self, buffer: Text) -> Block:
        start, stop = _ROOM_IN_FRONT, _ROOM_IN_FRONT + self.block_bytes
        read = self._source.read_into(buffer.data[start:stop])
        last = read < self.block_bytes
        block = Block(buffer, start, start + read, self._offset - start, last, self._source.done)
        self._offset += read
        return block

    def _fill(self) -> None:
        try:
            while not self._stopped:
                buffer = self._free.get()
                if buffer is None:
                    return
                block = self._read(buffer)
                self._filled.put(block)
                if block.last:
                    return
        except BaseException as error:  # handed to the reading thread
            self._filled.put(error)
