"""Counter events (phase C), which any tool may write: their names and keys are free."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import orjson

from hta_widgets.analysis.counters.series import Counter
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import COUNTER_ARGS, NULL


def recorded_counters(rank_trace: RankTrace, offset_ns: int) -> list[Counter]:
    """One counter for each process, name, id and key of the counter events that carry numbers.

    Args:
        offset_ns: the file counts from so much before the zero of the job's axis.
    """
    table = rank_trace.table
    rows, texts = table.sparse(COUNTER_ARGS.name)
    time = table.ints("start_ns")[rows]
    order = np.argsort(time, kind="stable")
    order = order[time[order] != NULL]
    rows, texts, time = rows[order], texts[order], time[order] - offset_ns
    written = table.dictionary(COUNTER_ARGS.name)
    values = {code: _numbers(written[code]) for code in np.unique(texts).tolist()}
    process, name = (table.codes(column)[rows].tolist() for column in ("pid", "name"))
    instance = table.ints_of("flow_id", rows).tolist()
    points: defaultdict[tuple[int, int, int, str], tuple[list[int], list[float]]] = defaultdict(
        lambda: ([], [])
    )
    for *which, text, at in zip(process, name, instance, texts.tolist(), time.tolist(), strict=True):
        for key, value in values[text].items():
            times, found = points[*which, key]
            times.append(at)
            found.append(value)
    names, pids = table.dictionary("name"), table.dictionary("pid")
    several = len({pid for pid, *_ in points}) > 1
    counters = []
    for (pid, code, number, key), (times, found) in sorted(points.items()):
        instance_of = str(number) if number != NULL else ""
        process_of = f"process {pids[pid]}" if several and pid >= 0 else ""
        label = " · ".join(filter(None, (key, instance_of, process_of)))
        of = (rank_trace.rank, names[code] if code >= 0 else "", label, "")
        counters.append(Counter.of_changes(of, np.array(times, np.int64), np.array(found)))
    return counters


def _numbers(text: str) -> dict[str, float]:
    """The numbers among a counter's arguments."""
    try:
        args: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(args, dict):
        return {}
    numbers = {k: v for k, v in args.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    return {key: float(value) for key, value in numbers.items() if math.isfinite(value)}
