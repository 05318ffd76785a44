"""Products of unaligned sizes on a real recording, counted again from the plain events."""

from __future__ import annotations

import gzip
import json
import math
import re
from bisect import bisect_right
from typing import Any

import pytest

from hta_widgets.analysis.findings import overview
from hta_widgets.analysis.operators.unaligned import aligned_ns
from hta_widgets.trace import Trace
from tests.support import shared_trace
from tests.verdicts.plain_reader import length, overlap, union
from tests.verdicts.recordings import recording

NAME = "hta/trace_diff/control"
TF32_PEAK, MEMORY = 156e3 / 2, 1555.0  # operations per ns at half the peak of an A100 40 GB, bytes per ns
SLOW = re.compile(r"tensorop_s1688gemm_\w+_align[12]\b")


def left_ns(dims: list[Any]) -> float | None:
    """What a product of these inputs takes with padded sizes; None of aligned ones."""
    matrices = [shape for shape in dims if isinstance(shape, list) and len(shape) >= 2]
    (*batch, rows, inner), (*_, columns) = matrices[-2:]
    if all(size % 4 == 0 for size in (rows, inner, columns)):
        return None
    added = sum(math.prod(shape) for shape in dims[:1] if len(dims) > 2 and len(shape) == 1)
    elements = math.prod(batch) * (rows * inner + inner * columns + rows * columns) + added
    padding = math.prod(4 * math.ceil(size / 4) / size for size in (rows, inner, columns))
    flops = 2 * math.prod(batch) * rows * inner * columns
    return padding * max(flops / TF32_PEAK, 4 * elements / MEMORY)


def test_what_unaligned_sizes_cost_is_what_the_plain_events_say() -> None:
    folder = shared_trace(NAME)
    (file,) = folder.glob("*.json.gz")
    records = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    launches = {
        record["args"]["correlation"]: record for record in records if record.get("cat") == "cuda_runtime"
    }
    operators = sorted(
        (record for record in records if record.get("cat") == "cpu_op"), key=lambda record: record["ts"]
    )
    starts = [record["ts"] for record in operators]

    def dims(kernel: dict[str, Any]) -> list[Any]:
        """The inputs of the operator that was the last to open around its launch."""
        call = launches[kernel["args"]["correlation"]]
        at = bisect_right(starts, call["ts"])
        while True:
            at -= 1
            found = operators[at]
            if found["tid"] == call["tid"] and found["ts"] + found["dur"] >= call["ts"]:
                return list(found["args"].get("Input Dims", []))

    taken, left = 0.0, 0.0
    slow = set()
    for record in records:
        if record.get("cat") != "kernel" or not SLOW.search(record["name"]):
            continue
        if record["args"]["correlation"] in launches and (inputs := dims(record)):
            found = left_ns(inputs)
            duration = 1000 * record["dur"]
            if found is not None and found < duration:
                slow.add(record["args"]["correlation"])
                taken, left = taken + duration, left + found
    (rank,) = recording(NAME)
    windows = rank.device_windows()
    running = union(event.window for event in rank.work if event.correlation in slow)
    inside = sum(length(overlap(running, window)) for window in windows)
    trace = Trace.open(folder)
    (of_rank,) = (trace.rank(rank) for rank in trace.ranks)
    rows, kept = aligned_ns(of_rank)
    assert set(of_rank.correlation[rows].tolist()) == slow
    assert of_rank.dur[rows].sum() == taken
    assert kept.sum() == pytest.approx(left, abs=len(rows))  # each is rounded up
    row = overview(trace).set_index("topic").loc["unaligned_shapes"]
    share = 100 * inside / length(windows)
    assert row["share_pct"] == pytest.approx(share * (1 - left / taken), abs=0.05)
