"""Recorded against simulated: the distributions are those of the events, for any trace."""

import json
from pathlib import Path

import calibrate
import numpy as np
import pandas as pd
import pytest
from recorder import manifest
from recorder.calibration import compare, compare_fields
from recorder.matrix import recordings
from recorder.setup import Setup

from examples.simulator import SimulatedJob, simulate
from hta_widgets import Trace, analysis, examples
from tests.examples.recording_entry import entry
from tests.support import shared_trace


def test_distributions_are_those_of_the_simulation(tmp_path: Path) -> None:
    simulation = simulate(SimulatedJob("test", "ddp", ranks=2, steps=2, layers=2))
    simulation.write(tmp_path)
    table, missing = compare(Trace.open(tmp_path), examples.load("gpt2_ddp"), ("ours", "other"))
    assert missing == {}
    works = [work for rank in simulation.ranks for work in rank.device.work]
    lengths = [w.end_ns - w.start_ns for w in works if w.category == "kernel" and w.collective is None]
    found = table.loc[("duration by class", "compute", "ns")]
    assert list(found["ours"]) == [len(lengths), *np.quantile(lengths, [0.1, 0.5, 0.9])]
    calls = [work.launch for work in works]
    asked = [call.end_ns - call.start_ns for call in calls if call.name == "cudaLaunchKernel"]
    found = table.loc[("launch call", "cudaLaunchKernel", "ns")]
    assert list(found["ours"]) == [len(asked), *np.quantile(asked, [0.1, 0.5, 0.9])]
    medians = table.loc[:, (["ours", "other"], "median")].to_numpy()
    ratio = table["ratio", "median"].to_numpy()
    either = ~np.isnan(ratio)
    assert either.any()
    assert ratio[either] == pytest.approx(medians[either, 0] / medians[either, 1])


@pytest.mark.parametrize(("machine", "alike"), [("h100", True), ("example", False)])
def test_a_simulated_h100_is_like_the_recorded_one(tmp_path: Path, machine: str, alike: bool) -> None:
    """Launch calls, launch latency and gaps between kernels: medians to a tenth, the rest to a fifth."""
    simulate(SimulatedJob("h100", "single", steps=3, layers=4, machine=machine)).write(tmp_path)
    table, _ = compare(examples.load("h100_gpt2"), Trace.open(tmp_path), ("recorded", "simulated"))
    rows = table.loc[
        [
            ("launch call", "cudaLaunchKernel", "ns"),
            ("launch latency, queue excluded", "cudaLaunchKernel", "ns"),
            ("idle gap by cause", "kernel_wait", "ns"),
        ]
    ]
    for quantile, near in (("p10", 0.2), ("median", 0.1), ("p90", 0.2)):
        ratio = rows["recorded", quantile] / rows["simulated", quantile]
        assert ratio.between(1 - near, 1 / (1 - near)).all() == alike, ratio


def test_a_trace_is_like_itself() -> None:
    trace = examples.load("inference_cuda_graphs")
    table, missing = compare(trace, trace, ("one", "same"))
    assert missing == {}
    assert (table["one"] == table["same"]).all(axis=None)
    assert compare_fields(trace, trace, ("one", "same")).empty


def test_fields_are_counted_by_category(tmp_path: Path) -> None:
    def trace(name: str, **arguments: int) -> Trace:
        events = [
            {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": start, "dur": 1, "args": args}
            for start, args in ((1, {"Ev Idx": 1}), (5, {"Ev Idx": 2, **arguments}))
        ]
        path = tmp_path / name
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        return Trace.open(path)

    item, other = trace("one.json", extra=1), trace("other.json")
    found = compare_fields(item, other, ("one", "other"))
    assert found.reset_index().to_dict("records") == [
        {"category": "cpu_op", "field": "extra", "one": 0.5, "other": 0.0}
    ]


@pytest.mark.parametrize(
    ("name", "launches"),
    [
        ("tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz", True),
        ("hta/amd_trace", True),
        ("hta/cpu_only", False),
    ],
)
def test_calibrate_reads_any_trace(
    name: str, launches: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = shared_trace(name)
    assert calibrate.main([str(path), "gpt2_baseline", "--csv", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert ("recorded, launches: " in output) == (not launches)
    table = pd.read_csv(tmp_path / f"{path.name}.distributions.csv", header=[0, 1], index_col=[0, 1, 2])
    counts = table["recorded", "n"].dropna()
    assert counts.index.isin(["launch call"], level=0).any() == launches
    if launches:
        stats = analysis.launch_stats(Trace.open(path))
        assert counts.loc["launch latency, queue excluded"].sum() == len(stats)


def test_calibrate_pairs_a_manifest_with_the_examples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = SimulatedJob("test", "ddp", ranks=2, steps=1, layers=1)
    simulate(job).write(tmp_path / "ddp")
    manifest.add(tmp_path, "ddp", entry(Setup(strategy="ddp"), 2))
    assert calibrate.main([str(tmp_path)]) == 0
    assert "ddp against gpt2_ddp" in capsys.readouterr().out
    for name, setup in recordings("cuda").items():
        assert calibrate.job_like(entry(setup)) in examples.names(), name
    assert calibrate.main([str(tmp_path / "nothing")]) == 2
    assert "TraceNotFoundError" in capsys.readouterr().err
