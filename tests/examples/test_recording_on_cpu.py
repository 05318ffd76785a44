"""What the recording scripts make on a CPU, opened with hta_widgets.

PyTorch is no dependency: `HTA_WIDGETS_TORCH` names an interpreter that has it (default: this one), and the
tests are skipped where it has not.
"""

import json
import os
import subprocess
import sys
from functools import cache
from itertools import pairwise
from types import SimpleNamespace

import pandas as pd
import pytest
from recorder import manifest

from hta_widgets import Trace, analysis
from hta_widgets.trace.scope import Scope
from tests.analysis.every_analysis import all_answers
from tests.support import ROOT

FOLDER = ROOT / "examples" / "recording"
RECORDED = ["baseline", "data_stall", "compiled", "accumulated", "accumulated_item", "detailed", "serving"]
SEVERAL_RANKS = ["ddp", "fsdp_full_shard", "fsdp_shard_grad_op"]


@cache
def interpreter() -> str | None:
    """An interpreter with PyTorch."""
    chosen = os.environ.get("HTA_WIDGETS_TORCH") or sys.executable
    done = subprocess.run([chosen, "-c", "import torch"], capture_output=True, check=False)
    return chosen if done.returncode == 0 else None


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """What `record_all.py --device cpu` writes, and its manifest."""
    chosen = interpreter()
    if chosen is None:
        pytest.skip("no PyTorch here: set HTA_WIDGETS_TORCH to an interpreter that has it")
    out = tmp_path_factory.mktemp("recordings")
    short = ["--warmup", "1", "--repeats", "2", "--steps", "2", "--active", "3"]
    command = [chosen, str(FOLDER / "record_all.py"), "--device", "cpu", "--out", str(out), *short]
    done = subprocess.run(
        [*command, "--only", *RECORDED, *SEVERAL_RANKS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return SimpleNamespace(out=out, manifest=manifest.load(out))


def test_the_manifest_of_a_recording_is_whole(recorded: SimpleNamespace) -> None:
    assert list(recorded.manifest["recordings"]) == [*RECORDED, *SEVERAL_RANKS]
    assert manifest.problems(recorded.manifest) == []
    assert len(recorded.manifest["pairs"]) == 7
    for name, item in recorded.manifest["recordings"].items():
        assert item["ranks"] == (2 if name in SEVERAL_RANKS else 1)
        assert all(trace["within_limit"] for trace in item["traces"])
        assert str(recorded.out) not in json.dumps(item)


@pytest.mark.parametrize("name", [*RECORDED, *SEVERAL_RANKS])
def test_recordings_open_and_every_analysis_answers_or_abstains(recorded: SimpleNamespace, name: str) -> None:
    trace = Trace.open(recorded.out / name)
    assert len(trace.ranks) == (2 if name in SEVERAL_RANKS else 1)
    assert not (trace.health["severity"] == "error").any()
    # All that a recording on a CPU lacks; a recording that was cut or damaged would show more.
    assert set(trace.health["check"][trace.health["severity"] == "warning"]) == {"no_device_events"}
    iterations = trace.iterations
    if name == "serving":
        assert list(iterations["phase"]) == 3 * ["prefill", *["decode"] * 12]
    else:
        assert list(iterations["source"]) == ["ProfilerStep"] * 3 * len(trace.ranks)
        assert all(b == a + 1 for a, b in pairwise(iterations["iteration"][:3]))
    assert not iterations["partial"].any()
    answers = all_answers(trace, Scope())
    answered = {question for question, answer in answers.items() if isinstance(answer, pd.DataFrame)}
    assert {"step_times", "op_counts", "call_stacks", "user_annotations-cpu"} <= answered
    # Nothing is made up about a device that was not recorded.
    assert not answered & {"temporal_breakdown", "kernel_breakdown", "idle_breakdown", "launch_stats"}


def test_what_differs_within_pairs_is_in_the_traces(recorded: SimpleNamespace) -> None:
    def counts(name: str) -> "pd.Series[int]":
        events = Trace.open(recorded.out / name).events(Scope(ranks=(0,)))
        return events[events["event_class"] == "host_op"]["name"].value_counts()

    item = counts("accumulated_item")
    assert item["aten::item"] - counts("accumulated").get("aten::item", 0) == 3 * 4
    stalled, usual = (
        recorded.manifest["recordings"][name]["step_time"]["step"]["before"]["q1_ns"]
        for name in ("data_stall", "baseline")
    )
    assert stalled >= 20_000_000
    assert stalled > usual
    assert counts("compiled").sum() < counts("baseline").sum()
    full, grad_op = counts("fsdp_full_shard"), counts("fsdp_shard_grad_op")
    # The two blocks are gathered a second time for backward; the unit around them never is.
    assert full["c10d::allgather_"] == 3 * 5
    assert grad_op["c10d::allgather_"] == 3 * 3
    events = Trace.open(recorded.out / "detailed").events()
    assert {"input_dims", "python_id"} <= set(events)
    assert len(analysis.memory_timeline(Trace.open(recorded.out / "detailed")))


def test_no_barrier_is_in_the_trace(recorded: SimpleNamespace) -> None:
    for name in SEVERAL_RANKS:
        assert (
            not Trace.open(recorded.out / name).events()["name"].astype("str").str.contains("barrier").any()
        )
