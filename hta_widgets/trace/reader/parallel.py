"""Reads many files in parallel, in threads, since the scanner releases the GIL."""

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any

from hta_widgets.errors import ForeignFileError
from hta_widgets.trace.reader import cache as _cache
from hta_widgets.trace.reader.cache import Cache
from hta_widgets.trace.reader.cache_budget import CacheBudget
from hta_widgets.trace.reader.file_names import TraceFile
from hta_widgets.trace.reader.remote import RemoteFile
from hta_widgets.trace.reader.scanner import is_compiled
from hta_widgets.trace.reader.table import EventTable

WORKERS = 2
WORKERS_REMOTE = 16  # these wait for the network most of the time
POLL_SECONDS = 0.1


class _Cancelled(Exception):  # noqa: N818 - a signal, not an error
    """The caller's progress function raised; the scans stop at their next report."""


def read_all(
    files: Sequence[TraceFile],
    cache: Cache,
    progress: Callable[[float, int, str], None] | None = None,
    read_one: Callable[..., Any] | None = None,
) -> tuple[list[Any], dict[str, Exception]]:
    """Each file's table, None where it could not be read, and the reasons by file name.

    ``progress`` is called in the caller's thread; an exception that it raises stops all scans and propagates.
    ``read_one`` makes something else of a file, in the threads, with the arguments of `read_file`.
    """
    read_one = read_one or read_file
    tables: list[Any] = [None] * len(files)
    errors: dict[int, Exception] = {}
    if not files:
        return tables, {}
    stop = threading.Event()
    folder = _cache.cache_folder(cache)
    budget = None if folder is None else CacheBudget(folder, len(files))
    share = [0.0] * len(files)

    def read(file: TraceFile, at: int) -> Any:
        def report(done: int, total: int | None) -> None:
            if stop.is_set():
                raise _Cancelled
            share[at] = done / total if total else 0.0

        return read_one(_watched(file, stop), cache, report, budget)

    remote = all(isinstance(file.source, RemoteFile) for file in files)
    with ThreadPoolExecutor(min(WORKERS_REMOTE if remote else WORKERS, len(files))) as pool:
        try:
            ended: SimpleQueue[Future[Any]] = SimpleQueue()
            jobs = {pool.submit(read, file, at): at for at, file in enumerate(files)}
            for job in jobs:
                job.add_done_callback(ended.put)
            waiting = set(range(len(files)))
            while waiting:
                for job in _ended(ended):
                    at = jobs[job]
                    waiting.discard(at)
                    try:
                        tables[at] = job.result()
                    except Exception as error:  # one bad file must not fail the others
                        errors[at] = error
                if progress is not None:
                    files_read = len(files) - len(waiting) + sum(share[at] for at in waiting)
                    progress(files_read, len(files), _text(files, share, waiting))
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    # In the order of the files, not of the threads; files of one name in several folders stay apart.
    names = labels(files)
    return tables, {names[at]: errors[at] for at in sorted(errors)}


def _ended(queue: SimpleQueue[Future[Any]]) -> list[Future[Any]]:
    """Those that have ended; if there are none, the first one that does within `POLL_SECONDS`.

    `concurrent.futures.wait` would look at all of thousands of files each time that some have been read.
    """
    ended = []
    with contextlib.suppress(Empty):
        ended.append(queue.get(timeout=POLL_SECONDS))
        while True:
            ended.append(queue.get_nowait())
    return ended


def labels(files: Sequence[TraceFile]) -> list[str]:
    """The files' names; those of one name are numbered."""
    total, seen = Counter(file.name for file in files), Counter[str]()
    texts = []
    for file in files:
        seen[file.name] += 1
        of = total[file.name]
        texts.append(file.name if of == 1 else f"{file.name} ({seen[file.name]} of {of})")
    return texts


def _watched(file: TraceFile, stop: threading.Event) -> TraceFile:
    """The file, whose reading ends within a moment of `stop`, even while its server is silent."""
    source = file.source
    return replace(file, source=source.watched(stop.is_set)) if isinstance(source, RemoteFile) else file


def read_file(
    file: TraceFile,
    cache: Cache,
    progress: Callable[[int, int | None], None] | None = None,
    budget: CacheBudget | None = None,
    key: str | None = None,
) -> EventTable:
    """The table of a file, through the cache.

    Raises:
        TraceFormatError: it holds no events, and all that `cache.load` raises.
    """
    table = _cache.load(file.source, cache=cache, progress=progress, budget=budget, key=key)
    if not table.n:
        raise ForeignFileError(file.name, "it holds no trace events", known=False)
    return table


def _text(files: Sequence[TraceFile], share: list[float], waiting: set[int]) -> str:
    if not waiting:
        return "read"
    now = min(waiting)
    if not share[now] and not is_compiled():
        return "preparing the reader (compiled once per machine)"
    return f"reading {files[now].name} ({100 * share[now]:.0f} %)"
