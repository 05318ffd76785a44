"""Opens the trace of a command, with progress and warnings about files left out on stderr."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hta_widgets.cli.exits import UsageError
from hta_widgets.cli.terminal import columns_of, is_terminal, printable, shortened
from hta_widgets.errors import ClusterError, HtaWidgetsError, TraceFormatError
from hta_widgets.pace import Pace
from hta_widgets.trace.model import Trace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

_CONNECTING_SECONDS = 10
Show = Callable[[str], None]


def open_trace(arguments: Namespace, *, warn: bool = True) -> Trace:
    """The trace of `arguments.paths`; `warn` of files that are left out.

    Raises:
        HtaWidgetsError: it cannot be read.
    """
    kept = _KEPT.get()
    key = _state_of(arguments) if kept else None
    if kept and key in kept.traces:
        kept.traces.move_to_end(key)
        return kept.traces[key]
    with reading(arguments) as show:
        pace = Pace()

        def progress(done: float, total: int, text: str) -> None:
            text += pace.left(done / total)
            show(f"{int(done)} of {total} files: {text}" if total > 1 else text)

        clock: Any = getattr(arguments, "clock", "auto")
        trace = Trace.open(
            source_of(arguments), client_of(arguments), progress=progress, clock=clock,
            recording=arguments.recording, capture=getattr(arguments, "capture", None),
        )  # fmt: skip
    if warn:
        warn_of_failed(arguments, trace)
    if kept:
        kept.add(key, trace)
    return trace


@dataclass(frozen=True)
class _Kept:
    """Opened traces, those used last at the end."""

    most: int
    traces: OrderedDict[Hashable, Trace]

    def add(self, key: Hashable, trace: Trace) -> None:
        self.traces[key] = trace
        while len(self.traces) > self.most:
            self.traces.popitem(last=False)


_KEPT: ContextVar[_Kept | None] = ContextVar("kept", default=None)


@contextmanager
def kept_open(most: int) -> Iterator[None]:
    """A context in which the traces opened last stay open, until their files change."""
    token = _KEPT.set(_Kept(most, OrderedDict()))
    try:
        yield
    finally:
        _KEPT.reset(token)


def _state_of(arguments: Namespace) -> Hashable:
    """What a trace was opened from, and how: it changes with each file."""
    files = [
        (str(file), stat.st_size, stat.st_mtime_ns)
        for path in arguments.paths
        for file in sorted([Path(path), *Path(path).rglob("*")])
        if file.exists() and (stat := file.stat())
    ]
    return tuple(arguments.paths), getattr(arguments, "clock", "auto"), arguments.recording, tuple(files)


def source_of(arguments: Namespace) -> Any:
    """What `Trace.open` is to open; "-" is standard input.

    Raises:
        UsageError: standard input is closed.
    """
    if "-" in arguments.paths and sys.stdin is None:
        raise UsageError("standard input is closed")
    sources = [sys.stdin.buffer if path == "-" else path for path in arguments.paths]
    return sources[0] if len(sources) == 1 else sources


def client_of(arguments: Namespace) -> Any:
    """A client of the cluster that `--scheduler` names; None without one.

    Raises:
        UsageError: dask.distributed is not installed, or what is named is no address.
        ClusterError: nothing answers there.
    """
    return None if arguments.scheduler is None else _connected(arguments.scheduler)


@cache
def _connected(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError("--scheduler needs dask.distributed: pip install distributed") from error
    connect: Any = Client
    try:
        return connect(address, timeout=_CONNECTING_SECONDS, set_as_default=False)
    except OSError as error:  # also of a time that is over
        remedy = "Check the address, and that it runs."
        raise ClusterError(f"no scheduler answers at {address}", remedy) from error
    except ValueError as error:
        raise UsageError(f"{address} is no address of a scheduler: {error}") from error


@contextmanager
def reading(arguments: Namespace) -> Iterator[Show]:
    """A context in which a trace is read: a function that shows the progress on a terminal.

    Raises:
        HtaWidgetsError: the trace cannot be read, for whatever reason.
    """
    seen = is_terminal(sys.stderr) and not arguments.quiet
    try:
        yield _show if seen else lambda _text: None
    except (OSError, ImportError, ValueError) as error:  # what file systems behind fsspec raise
        if isinstance(error, HtaWidgetsError):
            raise
        raise TraceFormatError(arguments.paths[0], f"{type(error).__name__}: {error}") from error
    finally:
        if seen:
            sys.stderr.write("\r\x1b[K")


def warn_of_failed(arguments: Namespace, trace: Trace) -> None:
    """Warn about each file that is not part of the trace."""
    if not arguments.quiet:
        for name, reason in trace.failed.items():
            text = printable(f"{name} is left out: {reason}")
            sys.stderr.write(f"hta-widgets: warning: {text}\n")


def scope_of(arguments: Namespace, trace: Trace) -> Scope:
    """The part of the trace that the arguments select.

    Raises:
        UsageError: the trace has no such part.
    """
    ranks = None if arguments.ranks is None else arguments.ranks.among(trace.ranks, "rank")
    rank_traces = [trace.rank(rank) for rank in ranks or trace.ranks]
    iterations = streams = None
    if arguments.iterations is not None:
        there = {number for rank in rank_traces for number in rank.iterations["iteration"].tolist()}
        iterations = arguments.iterations.among(there, "iteration")
    if arguments.streams is not None:
        there = {number for rank in rank_traces for number in np.unique(rank.stream).tolist()} - {NULL}
        streams = arguments.streams.among(there, "stream")
    window = None if arguments.window is None else arguments.window.within(trace.extent_ns)
    return Scope(ranks, iterations, window, streams)


def _show(text: str) -> None:
    cells = (columns_of(sys.stderr) or 80) - 1
    sys.stderr.write(f"\r\x1b[K{shortened(printable(text), cells)}")
    sys.stderr.flush()
