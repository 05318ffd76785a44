"""Work on a Dask cluster: waiting for it, and what goes wrong in words.

Dask schedules, repeats what was lost with a worker, and keeps results where they were computed; here is only
what a notebook needs beside that: to stop waiting at once, and to say what happened.
"""

from __future__ import annotations

import pickle
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from inspect import signature
from queue import Empty, SimpleQueue
from typing import Any

from hta_widgets.engine import checkpoint
from hta_widgets.errors import ClusterError

_POLL_SECONDS = 0.1
_RECONNECTING_SECONDS = 5.0
_START_AGAIN = "Start the cluster again and open the trace with its new client."


def results(client: Any, futures: Sequence[Any], done: Callable[[int], None] | None = None) -> list[Any]:
    """The results of futures, which are cancelled if waiting for them ends otherwise.

    Args:
        futures: of this question alone: what is kept on workers must not be cancelled with it.
        done: called in this thread with the number of those that have finished; may raise to cancel others.

    Raises:
        Superseded: the request that this serves was superseded.
        ClusterError: the cluster failed, as said there.
    """
    finished: SimpleQueue[Any] = SimpleQueue()
    for future in futures:
        future.add_done_callback(finished.put)
    count, lost_since = 0, None
    try:
        with in_words(client):
            while count < len(futures):
                checkpoint()
                lost_since = (lost_since or time.monotonic()) if client.status != "running" else None
                if lost_since and (
                    client.status != "connecting" or time.monotonic() - lost_since > _RECONNECTING_SECONDS
                ):
                    raise ClusterError("the scheduler of the cluster is gone", _START_AGAIN)
                try:
                    finished.get(timeout=_POLL_SECONDS)
                except Empty:
                    continue
                count += 1
                if done is not None:
                    done(count)
            return client.gather(list(futures))
    except BaseException:
        with suppress(Exception):  # of a client that is closed
            client.cancel(list(futures))
        raise


def submitted(client: Any, function: Callable[..., Any], *args: Any) -> Any:
    """The future of a call.

    Raises:
        ClusterError: the cluster is lost.
    """
    with in_words(client):
        return client.submit(function, *args, pure=False)


def mapped(client: Any, function: Callable[..., Any], *args: Sequence[Any]) -> list[Any]:
    """The futures of a call for each of the arguments.

    Raises:
        ClusterError: the cluster is lost.
    """
    with in_words(client):
        return client.map(function, *args, pure=False)


def packed(answer: Any) -> bytes:
    """An answer in few bytes: columns of numbers have many zeros, and texts are long and alike."""
    return zlib.compress(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))


def unpacked(sent: bytes) -> Any:
    """The answer of a worker, which may run any code here as it is: to use a cluster is to trust it."""
    return pickle.loads(zlib.decompress(sent))


def places(client: Any, futures: Sequence[Any]) -> dict[str, str]:
    """The worker that has the result of each future, by the future's key; "" where none has it (any more).

    Raises:
        ClusterError: the cluster is lost.
    """
    with in_words(client):
        having = client.who_has(list(futures))
    return {future.key: min(having.get(future.key, ()), default="") for future in futures}


def threads_of(client: Any) -> dict[str, int]:
    """How many threads each worker has.

    Raises:
        ClusterError: the cluster is lost.
    """
    with in_words(client):
        return dict(client.nthreads())


def largest_worker(client: Any) -> int:
    """The bytes of memory that the largest worker may use; 0 if none has a limit."""
    info = client.scheduler_info
    every = {"n_workers": -1} if "n_workers" in signature(info).parameters else {}  # else it names five
    with in_words(client):
        workers = info(**every)["workers"].values()
    return max((int(worker["memory_limit"]) for worker in workers), default=0)


@contextmanager
def in_words(client: Any) -> Iterator[None]:
    """A context in which failures of the cluster are a `ClusterError`.

    Raises:
        ClusterError: a worker died again and again, or the scheduler cannot be reached.
    """
    try:
        yield
    except Exception as error:
        names = {kind.__name__ for kind in type(error).__mro__}
        if "KilledWorker" in names:
            raise ClusterError(
                "workers died again and again over the same work, most likely for lack of memory",
                "Give each worker more memory, or start fewer of them on a machine.",
            ) from error
        if names & {"CancelledError", "CommClosedError", "ClosedClientError"} or client.status == "closed":
            raise ClusterError("the connection to the cluster was lost", _START_AGAIN) from error
        raise
