"""Holds an interrupt back for the moment in which it would break what the whole process shares.

CPython looks for signals at every call. A lock of its standard library, that of a thread pool for one, stays
locked for ever if an interrupt comes between the end of its block and its release: no part of any notebook
cell would get an answer after that.

Before Python 3.13, `Thread.is_alive` interrupted at its lock calls a living thread stopped, for ever. A
kernel asks that of the thread that sends its messages; if it is not alive, each thread sends for itself, and
messages of two threads arrive mixed.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """An interrupt that arrives within the block, which must be short, takes effect right after it."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # other threads are never interrupted, and some programs are not at all
        return
    held: list[FrameType | None] = []
    signal.signal(signal.SIGINT, lambda _number, frame: held.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        before(signal.SIGINT, held[0])
