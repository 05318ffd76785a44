"""Locks that watch themselves: in which order they are taken, and what a thread does while it holds one.

`install()` comes before the package is imported. From then on every lock that one of `WATCHED` makes is a
`Watched`, and these raise `LockError`:

- two locks that are taken in both orders, by any threads at any times (lock classes: where they were made);
- a thread that is started, joined or waited for while the starting thread holds a lock of this package.

With `collect`, garbage is collected before every acquisition and at the beginning of every thread: finalizers
and weak references' callbacks then run wherever they could.
"""

from __future__ import annotations

import gc
import linecache
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

WATCHED = (
    "hta_widgets",
    "ipywidgets",
    "anywidget",
    "traitlets",
    "comm",
    "ipykernel",
    "jupyter_client",
    "zmq",
)
OWN = "hta_widgets"

_lock, _rlock = threading.Lock, threading.RLock
_start, _join = threading.Thread.start, threading.Thread.join
_wait, _run = threading.Condition.wait, threading.Thread.run


class LockError(AssertionError):
    """Threads could wait for each other."""


class Watch:
    """What was seen of all watched locks.

    Attributes:
        order: (made at, made at) of locks of which the second was taken while the first was held.
        collected: how often garbage was collected, by the name of the thread.
        errors: what was raised, since a thread may have nobody to tell it to.
    """

    def __init__(self) -> None:
        self.order: set[tuple[str, str]] = set()
        self.collected: Counter[str] = Counter()
        self.errors: list[str] = []
        self.collect = False
        self._guard = _lock()
        self._local = threading.local()

    @property
    def held(self) -> list[Watched]:
        held: list[Watched] = self._local.__dict__.setdefault("held", [])
        return held

    def garbage(self) -> None:
        if self.collect and not self._local.__dict__.get("collecting"):
            self._local.collecting = True
            try:
                self.collected[threading.current_thread().name] += 1
                gc.collect()
            finally:
                self._local.collecting = False

    def takes(self, lock: Watched) -> None:
        for before in self.held:
            if before is not lock:
                self._note(before.made_at, lock.made_at)

    def _note(self, first: str, then: str) -> None:
        if (first, then) in self.order:
            return
        with self._guard:
            self.order.add((first, then))
            turned = first == then or self._leads(then, first)
        if turned:
            self.fail(f"{then} is taken while {first} is held, and elsewhere it is the other way round")

    def _leads(self, first: str, then: str) -> bool:
        seen, todo = {first}, [first]
        while todo:
            now = todo.pop()
            if now == then:
                return True
            after = {b for a, b in self.order if a == now} - seen
            seen |= after
            todo += after
        return False

    def waits(self, for_what: str) -> None:
        own = sorted({lock.made_at for lock in self.held if lock.made_at.startswith(OWN)})
        if own:
            self.fail(f"{for_what} while {', '.join(own)} is held")

    def fail(self, what: str) -> None:
        self.errors.append(what)
        raise LockError(what)


WATCH = Watch()


class Watched:
    """A lock that tells `WATCH` when it is taken and let go."""

    def __init__(self, lock: Any, made_at: str) -> None:
        self._lock, self.made_at = lock, made_at

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if blocking:
            WATCH.garbage()
            WATCH.takes(self)
        got: bool = self._lock.acquire(blocking, timeout)
        if got:
            WATCH.held.append(self)
        return got

    def release(self) -> None:
        held = WATCH.held
        if self in held:  # a plain lock may be let go by another thread
            held.reverse()
            held.remove(self)
            held.reverse()
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lock, name)


def install(*, collect: bool) -> None:
    """Watch every lock that is made from now on."""
    WATCH.collect = collect
    threading.Lock = _maker(_lock)  # type: ignore[assignment, misc]
    threading.RLock = _maker(_rlock)  # type: ignore[assignment, misc]

    def start(thread: threading.Thread) -> None:
        WATCH.waits(f"the thread {thread.name} is started")
        _start(thread)

    def join(thread: threading.Thread, timeout: float | None = None) -> None:
        WATCH.waits(f"the thread {thread.name} is joined")
        _join(thread, timeout)

    def wait(condition: threading.Condition, timeout: float | None = None) -> bool:
        if timeout is None or timeout > 0:
            WATCH.waits("another thread is waited for")
        return _wait(condition, timeout)

    def run(thread: threading.Thread) -> None:
        WATCH.garbage()
        _run(thread)

    threading.Thread.start, threading.Thread.join = start, join  # type: ignore[method-assign]
    threading.Thread.run, threading.Condition.wait = run, wait  # type: ignore[method-assign]


def _maker(make: Callable[[], Any]) -> Callable[[], Any]:
    def made() -> Any:
        where = _maker_name()
        return Watched(make(), where) if where.startswith(WATCHED) else make()

    return made


def _maker_name() -> str:
    """What the lock is called: module.Class.attribute, or module.variable."""
    frame = sys._getframe(2)
    module, code = frame.f_globals.get("__name__", ""), frame.f_code
    owner = code.co_qualname.replace("<module>", "").removesuffix(".__init__").removesuffix(".renew")
    line = linecache.getline(code.co_filename, frame.f_lineno)
    found = re.search(r"(\w+)(?:: [\w.\[\]]+)?(?:, [\w.]+)* = ", line)
    return ".".join(filter(None, (module, owner, found[1] if found else str(frame.f_lineno))))
