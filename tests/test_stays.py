"""What a newcomer follows through the code has a short way: from a path to the table of its events, from a
click to its answer, from an event to the finding."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from hta_widgets import BreakdownPanel, Trace, engine, examples
from hta_widgets.analysis import overview
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.rules import RULES
from hta_widgets.analysis.kernels.breakdown import kernel_breakdown
from hta_widgets.trace.rank_columns import RankColumns
from hta_widgets.trace.reader.table import EventTable
from tests.stays import Handed, open_calls, place, stays, traced

JOB = "single_gpu_dataloader_stall"


def test_what_counts_as_a_stay() -> None:
    assert stays(["a", "a", "", "a", "b", "b", "a"]) == ["a", "b", "a"]
    assert place(overview.__wrapped__.__code__) == "analysis/findings/overview.py"  # type: ignore[attr-defined]
    assert place(overview.__code__) == place(os.path.join.__code__) == ""  # type: ignore[attr-defined]


def test_from_a_path_to_the_table_of_its_events(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json.gz"
    shutil.copy(next(examples.path("gpt2_ddp").glob("*.gz")), path)

    def is_it(value: Any) -> bool:
        return isinstance(value, str | os.PathLike) and os.fspath(value) == str(path)

    way = Handed(is_it)
    made: list[list[str]] = []

    def see(frame: FrameType, event: str, returned: Any) -> None:
        if not made:
            way(frame, event, returned)
        if event == "return" and isinstance(returned, EventTable):
            made.append([*way.places, place(frame.f_code)])

    traced(lambda: Trace.open(path), see)
    assert 5 < len(stays(made[0])) <= 20, stays(made[0])


def test_from_a_click_to_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls open where the answer is computed, after those in the thread of the page that asks for it."""
    trace = examples.load(JOB)
    panel = BreakdownPanel(trace, "kernel_breakdown")
    at_rest(panel)
    monkeypatch.setattr(engine, "_POOL", engine._new_pool())  # threads that begin now are traced
    submit, compute = engine.Latest.submit.__code__, kernel_breakdown.__wrapped__.__code__  # type: ignore[attr-defined]
    asked: list[list[str]] = []
    answered: list[list[str]] = []

    def see(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is submit:
            asked.append(open_calls(frame))
        elif event == "call" and frame.f_code is compute:
            answered.append(open_calls(frame))

    start, end = trace.extent_ns
    window = [start + (end - start) // 4, start + (end - start) // 2]

    def click() -> None:
        panel.set_state({"window": window})
        at_rest(panel)

    traced(click, see)
    way = stays([*asked[0], *answered[0]])
    panel.close()
    assert 4 < len(way) <= 8, way


def at_rest(panel: BreakdownPanel) -> None:
    deadline = time.monotonic() + 60
    while panel.status == "busy":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert panel.status == "idle", panel.message


def test_from_an_event_to_the_finding() -> None:
    """The longest way by a rule down to where events are read, and the functions that get what rules find."""
    trace = examples.load(JOB)
    handed = Handed(lambda value: isinstance(value, Finding))
    judges = {getattr(rule.judge, "func", rule.judge).__code__ for rule in RULES}
    columns = [each.fget for each in vars(RankColumns).values() if isinstance(each, property)]
    reading = {getter.__code__ for getter in columns if getter}
    ways: list[list[str]] = []

    def see(frame: FrameType, event: str, returned: Any) -> None:
        handed(frame, event, returned)
        if event == "call" and frame.f_code in reading and judges & set(codes_of(frame)):
            ways.append(stays(open_calls(frame)))

    found = traced(lambda: overview.__wrapped__(trace), see)  # type: ignore[attr-defined]
    assert (found["role"] == "cause").any()
    down, up = max(ways, key=len), stays(handed.places)
    assert 8 < len(down) + len(up) <= 25, (down, up)


def codes_of(frame: FrameType | None) -> Iterator[CodeType]:
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back
