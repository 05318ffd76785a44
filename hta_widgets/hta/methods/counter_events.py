"""`generate_trace_with_counters`: a copy of a trace with queue length and bandwidth as counter tracks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd

from hta_widgets.analysis.copies.bandwidth import memory_bandwidth
from hta_widgets.analysis.launches.queue import queue_length
from hta_widgets.errors import MissingDataError
from hta_widgets.hta.common.types import TimeSeriesTypes
from hta_widgets.hta.methods.conventions import chosen_ranks, warn
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.discovery import WRITTEN_BY_TOOLS
from hta_widgets.trace.reader.raw import RawTrace
from hta_widgets.trace.reader.source import is_url
from hta_widgets.trace.scope import Scope

_SUFFIX = "_with_counters"


def generate_trace_with_counters(
    job: Trace,
    time_series: TimeSeriesTypes | None = None,
    ranks: Iterable[int] | None = None,
    output_suffix: str = _SUFFIX,
) -> None:
    """Write the ranks' traces with counter tracks for Perfetto beside the originals.

    `trace.json.gz` becomes `trace_with_counters.json.gz`, `trace.json` plain `trace_with_counters.json`.
    Events are copied byte for byte. For a rank without any of the series, no file is written.

    Args:
        time_series: `TimeSeriesTypes.QUEUE_LENGTH`, `.MEMCPY_BANDWIDTH` or both (None).
        output_suffix: put between the name and its ending.

    Raises:
        FileExistsError: a file of that name exists and is not such an output; nothing is written.
        ValueError: the trace is not on a local disk.
    """
    wanted = time_series or TimeSeriesTypes.QUEUE_LENGTH | TimeSeriesTypes.MEMCPY_BANDWIDTH
    series: tuple[tuple[TimeSeriesTypes, Callable[[Trace, int], list[dict[str, Any]]]], ...] = (
        (TimeSeriesTypes.QUEUE_LENGTH, _queue_counters),
        (TimeSeriesTypes.MEMCPY_BANDWIDTH, _bandwidth_counters),
    )
    chosen = chosen_ranks(job, ranks)
    targets = {rank: _target(job.rank(rank).path, output_suffix or _SUFFIX) for rank in chosen}
    for rank in chosen:
        events: list[dict[str, Any]] = []
        for kind, counters in series:
            if kind not in wanted:
                continue
            try:
                events += counters(job, rank)
            except MissingDataError as missing:
                warn(missing)
        if events:
            RawTrace.read(job.rank(rank).path).write(targets[rank], append=events)


def _queue_counters(job: Trace, rank: int) -> list[dict[str, Any]]:
    points = queue_length(job, Scope(ranks=(rank,)))
    place = _in_file(job.rank(rank), points["device_event_id"], points["time_ns"])
    return [
        {
            "pid": pid,
            "ts": ts,
            "args": {"Queue Length": length},
            "ph": "C",
            "name": "Queue Length",
            "id": stream,
        }
        for (pid, ts), length, stream in zip(
            place, points["queue_length"].tolist(), points["stream"].tolist(), strict=True
        )
    ]


def _bandwidth_counters(job: Trace, rank: int) -> list[dict[str, Any]]:
    points = memory_bandwidth(job, Scope(ranks=(rank,)))
    place = _in_file(job.rank(rank), points["event_id"], points["time_ns"])
    return [
        {"pid": pid, "ts": ts, "args": {"Memcpy BW": gbps}, "ph": "C", "name": kind}
        for (pid, ts), gbps, kind in zip(place, points["gbps"].tolist(), points["kind"].tolist(), strict=True)
    ]


def _in_file(
    rank_trace: RankTrace, device_event: pd.Series, time_ns: pd.Series
) -> Iterator[tuple[int | str, orjson.Fragment]]:
    """Process and time (us, to the ns) of each point as the file itself has them."""
    offset = int(rank_trace.table.ints("start_ns")[rank_trace.event_id[0]]) - int(rank_trace.start[0])
    pids: list[int | str] = [int(text) if text.isdecimal() else text for text in rank_trace.pids]
    codes = rank_trace.pid[np.searchsorted(rank_trace.event_id, device_event.to_numpy())].tolist()
    us, ns = np.divmod(time_ns.to_numpy() + offset, 1000)
    for code, whole, rest in zip(codes, us.tolist(), ns.tolist(), strict=True):
        yield pids[code], orjson.Fragment(f"{whole}.{rest:03d}")


def _target(path: str, suffix: str) -> Path:
    """The new file's name; only the name of the file itself is changed, never that of a folder."""
    if is_url(path) or not Path(path).is_file():
        raise ValueError(f"{path}: not a file on a local disk, so there is no place beside it")
    source = Path(path)
    name = source.name
    for ending, new in ((".json.gz", ".json.gz"), (".json", ".json"), (".gz", ".json.gz")):
        if name.endswith(ending):
            target = source.with_name(name.removesuffix(ending) + suffix + new)
            break
    else:
        target = source.with_name(f"{name}{suffix}.json.gz")
    if target.exists() and not WRITTEN_BY_TOOLS.search(target.name):
        raise FileExistsError(f"{target} exists and was not written here; choose another output_suffix")
    return target
