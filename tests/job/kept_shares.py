"""A job of which there is only what is kept of its ranks: headers, columns, iterations and shares.

What is kept of a rank does not grow with it. So thousands of large ranks, which nobody can record for a test,
are those of a few small ones under other numbers, written with the library's own functions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from hta_widgets import Scope, Trace
from hta_widgets.analysis import temporal_breakdown
from hta_widgets.analysis.core import kept
from hta_widgets.trace import kept_iterations
from hta_widgets.trace.arrow_frames import to_arrow
from hta_widgets.trace.rank_events import _write_header
from hta_widgets.trace.reader.cache import fingerprint
from hta_widgets.trace.reader.cache_budget import SUFFIX
from hta_widgets.trace.reader.sealed import sealed
from tests.job.many_ranks import ALIKE, write_job

__all__ = ["SLOW", "simulate"]

SLOW = ALIKE
"""The slow rank; the others are of as many kinds as there are ranks before it, in turn."""


@contextmanager
def simulate(folder: Path, ranks: int) -> Iterator[Callable[[], Trace]]:
    """What opens a job of so many ranks; while the context lasts, small ranks are kept like large ones."""
    least = kept_iterations._LEAST_SLICES
    kept_iterations._LEAST_SLICES = 0  # type: ignore[misc]
    try:
        cache = folder / "cache"
        few = Trace.open(
            write_job(folder / "few", ranks, SLOW, steps=2, layers=1, written=SLOW + 1), cache=cache
        )
        job = _write_files(folder / "job", ranks, few, cache)
        _write_shares(_opened(job, cache), few)
        yield partial(_opened, job, cache)
    finally:
        kept_iterations._LEAST_SLICES = least  # type: ignore[misc]


def _opened(job: Path, cache: Path) -> Trace:
    # like a job of large ranks it does not fit the memory: then answers are kept by rank
    return Trace.open(job, cache=cache, memory_limit=1)


def kind_of(rank: int) -> int:
    """The rank that was recorded, of which this one is another number."""
    return SLOW if rank == SLOW else rank % ALIKE


def _write_files(folder: Path, ranks: int, few: Trace, cache: Path) -> Path:
    """Files that are never read, since their headers and columns are in the cache."""
    folder.mkdir()
    for rank in range(ranks):
        events = few.rank(kind_of(rank)).events
        told = {"distributedInfo": {**events.header.metadata["distributedInfo"], "rank": rank}}
        file = folder / f"rank{rank}.json"
        file.write_text(json.dumps(told))
        key = fingerprint(file)
        assert key
        metadata = events.header.metadata | told
        _write_header(cache, key, replace(events.header, path=str(file), metadata=metadata))
        os.link(cache / f"{events.key}{SUFFIX}", cache / f"{key}{SUFFIX}")
    return folder


def _write_shares(trace: Trace, few: Trace) -> None:
    """Of each rank its iterations, and its part of `temporal_breakdown`."""
    iterations = {rank: to_arrow(few.rank(rank).iterations) for rank in few.ranks}
    answers = {rank: to_arrow(temporal_breakdown(few, Scope(ranks=(rank,)))) for rank in few.ranks}
    parts = {rank: pa.ipc.open_stream(answer).read_all() for rank, answer in answers.items()}
    asked = temporal_breakdown.__wrapped__  # type: ignore[attr-defined]
    for rank in trace.ranks:
        events, kind = trace.rank(rank).events, kind_of(rank)
        assert events.iterations is not None
        _write(
            kept_iterations._whole(events.iterations, f"auto-{trace.clock.offset_ns[rank]}"), iterations[kind]
        )
        place = kept._file(trace, asked, Scope(ranks=(rank,)), {"by": "rank"}, True)
        assert place is not None
        own = pa.array([rank], pa.int64())
        part = parts[kind].set_column(parts[kind].column_names.index("rank"), "rank", own)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, part.schema) as writer:
            writer.write_table(part)
        _write(place, sink.getvalue())


def _write(file: Path, content: Any) -> None:
    with sealed(file) as sealing:
        sealing.write(content)
