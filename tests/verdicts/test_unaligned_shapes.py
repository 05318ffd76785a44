"""Products of unaligned sizes on a real recording, counted again from the plain events."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from hta_widgets.analysis.findings import overview
from hta_widgets.analysis.operators.unaligned import aligned_ns
from hta_widgets.trace import Trace
from tests.support import shared_trace
from tests.verdicts.plain_operators import kernels_with_operators
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
    taken, left = 0.0, 0.0
    slow = set()
    for record, operator in kernels_with_operators(file):
        if SLOW.search(record["name"]) and "Input Dims" in operator["args"]:
            found = left_ns(operator["args"]["Input Dims"])
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
