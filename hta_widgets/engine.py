"""Runs work outside the UI thread: only the newest answer is delivered.

A user who drags a brush requests forty answers and wants one. So each consumer owns a `Latest`, which runs
one task at a time, keeps only the newest of those waiting and revokes the ticket of the one that runs.
Analyses call `checkpoint()` between steps, which raises `Superseded` once the ticket is revoked. Nothing is
killed, and a stale answer cannot overwrite a newer one.

What takes seconds and is read last gives way (`submit(..., patient=True)`): at its checkpoints it waits while
others compute, for which a reader waits now. It does so for a limited time, so that nobody waits for ever on
what it holds.

`UI_LOCK` guards what the browser sees. Traitlets drops notifications when two threads set traits at once, and
the thread that runs observers differs between ipykernel versions, so every browser-visible change happens
under it.

Under a lock no thread is started, joined or waited for, and a finalizer takes none: the garbage collector
runs it in any thread, a new one that is being waited for among them. So the workers are started once
(`start`), before anything is submitted under a lock.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from hta_widgets.interrupts import uninterrupted

Renewed = TypeVar("Renewed")
Result = TypeVar("Result")
Task = tuple[Callable[[], Result], bool]  # what to compute, and whether it is patient

UI_LOCK = threading.RLock()

_WORKERS = 4


def _new_pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=_WORKERS, thread_name_prefix="hta_widgets")


_POOL = _new_pool()
_not_started = [True]  # empty once a thread has begun to start the workers
_log = logging.getLogger(__name__)


class Superseded(Exception):  # noqa: N818 - a signal, not an error
    """A newer request replaced this computation."""


class Ticket:
    """Permission to go on computing, revocable from another thread.

    Attributes:
        patience: for how many seconds it still gives way to others.
    """

    def __init__(self, patience: float = 0.0) -> None:
        self.live = True
        self.patience = patience

    def revoke(self) -> None:
        self.live = False


_PATIENCE_SECONDS = 3.0
_LOOK_EVERY_SECONDS = 0.01
_LONGEST_START_SECONDS = 1.0


class _Urgent:
    """How many tasks of `Latest` give way to nobody, from their submission to their end."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._lock, self.count = threading.Lock(), 0

    def change(self, by: int) -> None:
        with self._lock:
            self.count = max(0, self.count + by)  # tasks of a parent process may end in a child


_ticket: contextvars.ContextVar[Ticket | None] = contextvars.ContextVar("hta_widgets_ticket", default=None)


def checkpoint() -> None:
    """Raise `Superseded` if the answer is no longer wanted; does nothing outside the engine."""
    ticket = _ticket.get()
    if ticket is None:
        return
    while ticket.live and ticket.patience > 0.0 and _urgent.count:
        ticket.patience -= _LOOK_EVERY_SECONDS
        time.sleep(_LOOK_EVERY_SECONDS)
    if not ticket.live:
        raise Superseded


def current_ticket() -> Ticket | None:
    """That of the task which this thread works on; None outside the engine."""
    return _ticket.get()


def start() -> None:
    """Start the workers, unless they are; call it without a lock before submitting under one."""
    try:
        _not_started.pop()
    except IndexError:
        return
    together = threading.Barrier(_WORKERS)  # the pool starts a thread for a task only if none is idle
    with uninterrupted(), contextlib.suppress(RuntimeError):  # the interpreter is shutting down
        for _ in range(_WORKERS):
            _POOL.submit(together.wait, _LONGEST_START_SECONDS)


def submit(function: Callable[[], Result], ticket: Ticket | None = None) -> Future[Result]:
    """Run `function` in the engine's pool; `checkpoint()` inside it obeys `ticket`."""
    start()
    with uninterrupted():
        return _POOL.submit(contextvars.copy_context().run, under, ticket, function)


_renewed: weakref.WeakSet[Any] = weakref.WeakSet()


def in_forked_child(thing: Renewed) -> Renewed:
    """Call `thing.renew()` in every process that is forked while `thing` exists; returns `thing`.

    Only the thread that forks goes on in the child. What other threads held or did stays as it was.
    """
    _renewed.add(thing)
    return thing


_urgent = in_forked_child(_Urgent())


def _after_fork() -> None:
    global _POOL
    UI_LOCK.release()
    _POOL = _new_pool()  # the threads of the parent's are not there
    _not_started[:] = [True]
    for thing in list(_renewed):
        thing.renew()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    # Held while forking: the child then has nothing that another thread was in the middle of changing.
    os.register_at_fork(before=UI_LOCK.acquire, after_in_parent=UI_LOCK.release, after_in_child=_after_fork)


def under(ticket: Ticket | None, function: Callable[[], Result]) -> Result:
    """Call `function`, in which `checkpoint()` obeys `ticket`."""
    _ticket.set(ticket)
    return function()


class Latest(Generic[Result]):
    """Runs at most one task at a time for one consumer and, of those waiting, only the newest.

    Args:
        deliver: receives a result, under `UI_LOCK`; never a result older than one it already has.
        fail: receives the exception of a task that was not superseded, under `UI_LOCK`.
    """

    def __init__(self, deliver: Callable[[Result], None], fail: Callable[[Exception], None]) -> None:
        self._deliver = deliver
        self._fail = fail
        self._lock = threading.Lock()
        self._running: Ticket | None = None
        self._computed: Task[Result] | None = None
        self._waiting: Task[Result] | None = None
        self._closed = False
        in_forked_child(self)

    def renew(self) -> None:
        """Begin again what a thread of the parent process was computing."""
        self._lock = threading.Lock()
        if self._running is not None:
            self._waiting = self._waiting or (self._computed if self._running.live else None)
            self._running = None
            self._start_waiting()

    def submit(self, compute: Callable[[], Result], *, patient: bool = False) -> None:
        """Compute soon, in another thread; supersedes whatever was submitted before.

        Args:
            patient: give way to other consumers' tasks that are not.
        """
        with uninterrupted(), self._lock:
            if self._closed:
                return
            self._waiting = compute, patient
            if self._running is None:
                self._start_waiting()
            else:
                self._running.revoke()

    def cancel(self) -> None:
        """Drop the waiting task and discard the answer of the running one."""
        with self._lock:
            self._waiting = None
            if self._running is not None:
                self._running.revoke()

    def close(self) -> None:
        """The consumer is gone: as `cancel`, and nothing is computed from now on."""
        self._closed = True
        self.cancel()

    def _start_waiting(self) -> None:
        task, self._waiting = self._waiting, None
        if task is None:
            return
        compute, patient = task
        ticket = self._running = Ticket(_PATIENCE_SECONDS if patient else 0.0)
        self._computed = task
        hurry = 0 if patient else 1
        _urgent.change(hurry)
        try:
            submit(lambda: self._run(compute, ticket, hurry), ticket)
        except RuntimeError:  # the interpreter is shutting down: nobody waits for the answer
            self._running = None
            _urgent.change(-hurry)

    def _run(self, compute: Callable[[], Result], ticket: Ticket, hurry: int) -> None:
        try:
            self._answer(compute, ticket)
        finally:
            _urgent.change(-hurry)
            with self._lock:
                self._running = self._computed = None
                self._start_waiting()

    def _answer(self, compute: Callable[[], Result], ticket: Ticket) -> None:
        try:
            if ticket.patience:
                with UI_LOCK:  # the change that asks for it may be about to ask others
                    pass
            checkpoint()  # it may have been superseded while it waited for a thread
            result = compute()
        except Superseded:
            return
        except Exception as error:
            self._tell(ticket, self._fail, error)
            return
        self._tell(ticket, self._deliver, result)

    def _tell(self, ticket: Ticket, receive: Callable[[Any], None], outcome: Any) -> None:
        """Hand over an outcome; an error in receiving it (of an observer, a view) is an outcome, too."""
        with UI_LOCK:
            if not ticket.live:
                return
            try:
                receive(outcome)
            except Exception as error:
                _log.exception("an answer could not be shown")
                try:
                    self._fail(error)
                except Exception:  # the same observer again: the state is set nevertheless
                    _log.exception("nor could the error")
