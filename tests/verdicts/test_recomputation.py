"""What a real job computes again, held against the frames of PyTorch's checkpointing in the plain events."""

from __future__ import annotations

import gzip
import json

import pytest

from hta_widgets.analysis.findings import overview
from hta_widgets.analysis.operators.recomputed import recomputed
from hta_widgets.trace import Trace
from tests.support import shared_trace
from tests.verdicts.plain_reader import length, overlap, read, union

NAME = "tracelens/mi300/resnet_act_checkpoint.json.gz"


def test_what_is_computed_again_was_launched_by_checkpointing() -> None:
    file = shared_trace(NAME)
    records = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    frames = [
        (record["tid"], record["ts"], record["ts"] + record["dur"])
        for record in records
        if record.get("cat") == "python_function" and record["name"].endswith("): recompute_fn")
    ]
    again = {
        record["args"]["correlation"]
        for record in records
        if record.get("cat") == "cuda_runtime"
        and any(tid == record["tid"] and start <= record["ts"] < end for tid, start, end in frames)
    }
    (rank,) = read(file)
    computing = [event for event in rank.work if event.kind == "computing" and event.correlation in again]
    trace = Trace.open(file)
    of_rank = trace.rank(trace.ranks[0])
    found = set(of_rank.correlation[recomputed(of_rank)].tolist())
    assert found <= again
    assert len(found) >= 0.95 * len(computing)
    running = union(event.window for event in computing)
    windows = rank.device_windows()
    share = 100 * sum(length(overlap(running, window)) for window in windows) / length(windows)
    row = overview(trace).set_index("topic").loc["recomputation"]
    assert row["share_pct"] == pytest.approx(share, abs=0.3)
