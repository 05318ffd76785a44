"""How much of a job is held in memory: ranks are dropped by bytes, the least recently used first.

A rank holds its columns, what follows from them (links, nesting) and what analyses remember for it; all of it
can be had again from the cache of columns. `Memory` adds up what ranks hold and drops until they fit; it
never drops the rank that was loaded last, so that a limit smaller than one rank still answers.
"""

from __future__ import annotations

import ctypes
import math
import os
import re
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
import pandas as pd

# What other programs, the notebook and answers about the whole job leave of the machine's memory.
_SHARE_OF_MACHINE = 0.5
_WHERE_UNKNOWN = 8 << 30
_CONTROL_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
# Ranks grow after they were loaded. Until this share of the limit is in use nobody looks by how much.
_LOOK_FROM = 0.25
# A rank that holds up to so many times as many things as when it was counted is not counted again.
_FEW_MORE = 1.125
# What was dropped is with the C library until it is asked for it. That takes milliseconds, and what is made
# next touches its memory anew: not for each rank.
_GIVE_BACK_FROM = 0.25
_SAMPLE = 64
# Of a table of so few values pandas takes longer to add up the bytes than for most analyses of a rank.
_SMALL_TABLE = 4096
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_bytes(amount: float | str) -> int:
    """The bytes of a number, or of a text in the units of Dask: "1GB" is 1e9 bytes, "1 GiB" 2**30.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(amount, str):
        found = _AMOUNT.fullmatch(amount.strip())
        if found is None or (found[3] and not found[2]):
            raise ValueError('it is neither a number of bytes nor a text such as "500 MB" or "1.5GiB"')
        return int(float(found[1]) * (1024 if found[3] else 1000) ** _POWERS[found[2].lower()])
    if not isinstance(amount, bool) and math.isfinite(amount):
        return int(amount)
    raise ValueError("it is not a number of bytes")


def default_limit() -> int:
    """Half of the memory of the machine, or of the container; 8 GiB where it is unknown."""
    known = []
    with suppress(AttributeError, ValueError, OSError):  # not on Windows
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for file in _CONTROL_GROUPS:
        with suppress(OSError, ValueError):  # "max" is no number
            known.append(int(Path(file).read_text()))
    known = [size for size in known if size > 0]
    return int(_SHARE_OF_MACHINE * min(known)) if known else _WHERE_UNKNOWN


@cache
def _trim() -> Callable[[int], object] | None:
    """What makes the C library give memory back to the system; None where it has no such function."""
    with suppress(AttributeError, OSError, TypeError):
        return ctypes.CDLL(None).malloc_trim  # glibc's
    return None


class Droppable(Protocol):
    """What a rank holds."""

    def held_things(self) -> int:
        """How many things it holds now, which is quick to say."""

    def held_bytes(self) -> int:
        """The bytes it holds now."""

    def drop(self) -> None:
        """Hold nothing; what is asked for later is made again."""


class Memory:
    """Which ranks are in memory. Thread-safe.

    Attributes:
        limit: bytes that ranks may hold together.
        dropped: how many ranks were dropped so far.
    """

    counted_apart = True

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.dropped = 0
        self._lock = Lock()
        self._bytes: OrderedDict[Droppable, int] = OrderedDict()  # the latest used last
        self._things: dict[Droppable, int] = {}  # when their bytes were counted
        self._total = 0
        self._looks = False
        self._freed = 0  # since memory was given back

    def used(self, rank: Droppable) -> None:
        """A rank is in use, or was just loaded; others are dropped until all fit."""
        with self._lock:
            before = next(reversed(self._bytes), None)
            if before is rank:
                return
            if rank not in self._bytes:
                self._count(rank)
            self._bytes.move_to_end(rank)
            if before is not None and (self._looks or self._total >= _LOOK_FROM * self.limit):
                # it has grown since it was loaded, and so have all at whom nobody looked yet
                for grown in [before] if self._looks else list(self._bytes):
                    self._count(grown)
                self._looks = True
            self._fit()

    def _count(self, rank: Droppable) -> None:
        """Its bytes, which take as long as a small analysis: not again for the few things of a question."""
        things = rank.held_things()
        if rank in self._things and things <= _FEW_MORE * self._things[rank]:
            return
        size = rank.held_bytes()
        self._total += size - self._bytes.get(rank, 0)
        self._bytes[rank], self._things[rank] = size, things

    def _fit(self) -> None:
        while self._total > self.limit and len(self._bytes) > 1:
            rank, size = self._bytes.popitem(last=False)
            self._total -= size
            self._freed += size
            del self._things[rank]
            self.dropped += 1
            rank.drop()
        if self._freed > _GIVE_BACK_FROM * self.limit and (trim := _trim()) is not None:
            self._freed = 0
            trim(0)


def bytes_of(things: Iterable[Any], seen: set[int] | None = None) -> int:
    """The bytes that these hold, arrays above all: each object counts once, long lists by a sample.

    Only containers, arrays, frames and objects of this library are followed, and of those not the ones with
    `counted_apart`: ranks and traces, to which what is remembered for them may refer.
    """
    seen = set() if seen is None else seen
    return sum(_bytes_of(thing, seen) for thing in things)


def _bytes_of(thing: Any, seen: set[int]) -> int:
    if id(thing) in seen or thing is None or isinstance(thing, bool | int | float | type):
        return 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        owner: Any = thing.base
        if owner is None:
            return int(thing.nbytes)
        if isinstance(owner, np.ndarray):
            return _bytes_of(owner, seen)
        if id(owner) in seen:
            return 0
        seen.add(id(owner))
        return int(thing.nbytes)
    if isinstance(thing, str | bytes):
        return sys.getsizeof(thing)
    if isinstance(thing, pd.DataFrame | pd.Series | pd.Index):
        if thing.size <= _SMALL_TABLE:
            return 8 * int(thing.size)
        used = thing.memory_usage(deep=False)
        return int(used if isinstance(used, int) else used.sum())
    if isinstance(thing, Mapping):
        return 64 + _sampled(list(thing.values()), seen) + 80 * len(thing)
    if isinstance(thing, list | tuple | set | frozenset):
        return sys.getsizeof(thing) + _sampled(list(thing), seen)
    if type(thing).__module__.startswith("hta_widgets.") and not hasattr(thing, "counted_apart"):
        slots = [getattr(thing, name, None) for name in getattr(type(thing), "__slots__", ())]
        return bytes_of([*list(getattr(thing, "__dict__", {}).values()), *slots], seen)
    return 0


def _sampled(items: list[Any], seen: set[int]) -> int:
    if len(items) <= _SAMPLE:
        return bytes_of(items, seen)
    some = items[:: -(-len(items) // _SAMPLE)]
    return bytes_of(some, seen) * len(items) // len(some)
