"""Recordings of one kind of event, and mutated ones: every answer is a frame, or an error of ours."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from hta_widgets import Trace
from tests.fuzz import campaign
from tests.fuzz.answers import asked, questions
from tests.support import EVERY_CASE

pytestmark = pytest.mark.slow


def memory(ts: int, change: int, total: int) -> dict[str, Any]:
    arguments = {
        "Device Type": 1, "Device Id": 0, "Addr": 5, "Bytes": change, "Total Allocated": total,
        "Total Reserved": 1000,
    }  # fmt: skip
    return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts, "s": "t",
            "args": arguments}  # fmt: skip


def flow(phase: str, ts: int) -> dict[str, Any]:
    return {"ph": phase, "name": "ac2g", "cat": "ac2g", "id": 1, "pid": 0, "tid": 0, "ts": ts}


ONE_KIND = {
    "memory": [memory(1, 10, 10), memory(2, 20, 30), memory(9, -10, 20)],
    "counter": [{"ph": "C", "name": "x", "pid": 0, "ts": 1, "args": {"v": 1}}],
    "flow": [flow("s", 1), flow("f", 2)],
    "names": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "x"}}],
    "begin": [{"ph": "B", "name": "x", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 5}],
}


@pytest.mark.parametrize("kind", ONE_KIND)
def test_a_recording_of_one_kind_of_event_is_answered(tmp_path: Path, kind: str) -> None:
    (tmp_path / "rank0.json").write_text(json.dumps({"traceEvents": ONE_KIND[kind]}))
    trace = Trace.open(tmp_path, cache=False)
    answered = {name for name, ask in questions(trace, random.Random(0)) if asked(name, ask)}
    assert {"health", "trust", "events", "evidence"} <= answered
    assert ("memory_peak" in answered) == (kind == "memory")


def test_mutated_recordings_are_answered() -> None:
    told = list(campaign.run(range(6 if EVERY_CASE else 3), "answers"))
    assert [failure for _, _, failure in told if failure is not None] == []
    assert "answers: answered" in {outcome for _, outcome, _ in told}
