"""Tiny products on real recordings, counted again from the plain events."""

from __future__ import annotations

import math

import pytest

from hta_widgets.analysis.findings import overview
from hta_widgets.analysis.operators.tiny_products import batched_ns
from hta_widgets.trace import Trace
from tests.support import shared_trace
from tests.verdicts.plain_operators import kernels_with_operators

FLOPS, MEMORY = 989.4e3 / 2, 3352.0  # operations per ns at half the peak of an H100, bytes per ns


def test_what_tiny_products_cost_is_what_the_plain_events_say() -> None:
    file = shared_trace("tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz")
    taken, left, tiny = 0.0, 0.0, set()
    for record, operator in kernels_with_operators(file):
        if "gemm" in record["name"] and record["dur"] < 10:
            assert operator["name"] == "aten::addmm"
            bias, (rows, inner), (_, columns) = operator["args"]["Input Dims"][:3]
            elements = math.prod(bias) + rows * inner + inner * columns + rows * columns
            least = max(2 * rows * inner * columns / FLOPS, 2 * elements / MEMORY)
            if least < 250 * record["dur"]:
                taken, left = taken + 1000 * record["dur"], left + least
                tiny.add(record["args"]["correlation"])
    trace = Trace.open(file)
    rank_trace = trace.rank(trace.ranks[0])
    rows_found, kept = batched_ns(rank_trace)
    assert set(rank_trace.correlation[rows_found].tolist()) == tiny and len(tiny) == 25
    assert rank_trace.dur[rows_found].sum() == pytest.approx(taken, abs=1)
    assert kept.sum() == pytest.approx(left, rel=0.005, abs=len(kept))  # each is rounded up
    row = overview(trace).set_index("topic").loc["tiny_products"]
    assert row["cost_ns"] == pytest.approx(taken - left, rel=0.005)
