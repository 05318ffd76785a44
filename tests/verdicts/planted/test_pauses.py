"""Programs whose host pauses: once, in each step, for the garbage collector, or where something names it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hta_widgets.analysis import what_if
from hta_widgets.analysis.findings import overview
from hta_widgets.analysis.idle.pauses import pauses_of
from hta_widgets.analysis.replay.expressions import parse_all
from hta_widgets.trace.model import Trace
from tests.analysis.kineto_file import event
from tests.verdicts.plain_reader import nanoseconds
from tests.verdicts.planted.host_program import MS, US, Program

Before = Callable[[Program, int], None]
LOAD = "/home/x/loader.py(12): make_batch"


def steps(before: Before, often: int = 10, inside: Before = lambda program, number: None) -> Program:
    """Each step does something first, then copies its batch and keeps the device busy for 10 ms."""
    program = Program()
    for number in range(1, often + 1):
        with program.step(number):
            before(program, number)
            with program.inside("cpu_op", "aten::to"):
                program.copy(20 * US)
            for place in range(100):
                program.operator("aten::mm", 10 * US)
                program.launch(100 * US)
                if place == 50:
                    inside(program, number)
            program.synchronise()
    return program


def silent(ns: int, only: tuple[int, ...] = ()) -> Before:
    return lambda program, number: program.silence(ns if not only or number in only else 0)


def named(category: str, name: str, ns: int, only: tuple[int, ...] = ()) -> Before:
    def body(program: Program, number: int) -> None:
        if not only or number in only:
            args = {"Python id": number} if category == "python_function" else {}
            with program.inside(category, name, **args):
                program.silence(ns)

    return body


def told(program: Program, folder: Path) -> tuple[Trace, dict[str, dict]]:
    trace = program.open(folder)
    return trace, {row["topic"]: row for row in overview(trace).to_dict("records")}


def span(event: dict) -> tuple[int, int]:
    start = nanoseconds(event["ts"])
    return start, start + event["dur"]


def idle_before(program: Program, name: str, least: int) -> int:
    """Of each pause of this length or more before a call of a name: what is left when all work is done."""
    calls = sorted(
        (*span(event), event["name"])
        for event in program.events
        if event["cat"] in ("cpu_op", "cuda_runtime")
    )
    works = sorted(span(event) for event in program.events if event["cat"] in ("kernel", "gpu_memcpy"))
    idle, until = 0, calls[0][0]
    for start, end, called in calls:
        if start - until >= least and called == name:
            idle += start - max([until, *(end for begin, end in works if begin < start)])
        until = max(until, end)
    return idle


def test_work_in_each_step_that_nothing_names(tmp_path: Path):
    program = steps(silent(1500 * US))
    trace, rows = told(program, tmp_path)
    row = rows["unmarked_host"]
    assert "idle_host" not in rows and "host_stall" not in rows
    assert (
        "In most steps aten::to ends it. The longest stretch is 1.5" in row["text"]
        and "record_function" in row["suggestion"]
    )
    # the first step begins with a pause, too, before any call
    whole = idle_before(program, "aten::to", MS) + 1500 * US
    assert row["cost_ns"] == pytest.approx(whole, rel=0.01)
    assert row["edits"] == "[edits.pauses(before='aten::to', longer_than_ns=1000000)]"
    assert (row["section"], row["method"]) == ("saves", "replay")
    assert row["saving_ns"] == pytest.approx(row["cost_ns"], rel=0.01)
    after = what_if(trace, parse_all(row["edits"])).query("iteration.notna()")
    _, without = told(steps(silent(0)), tmp_path)
    assert "unmarked_host" not in without
    bare = what_if(steps(silent(0)).open(tmp_path), []).query("iteration.notna()")
    assert after["after_ns"].tolist()[1:] == pytest.approx(bare["before_ns"].tolist()[1:], rel=0.001)


@pytest.mark.parametrize(("often", "enough"), [(3, True), (2, False)])
def test_three_steps_show_whether_a_pause_comes_back(tmp_path: Path, often: int, enough: bool):
    """With fewer none is found, and none is said to have been looked for."""
    for name, pause, topic in (("with", 3 * MS, "unmarked_host"), ("without", 0, "nothing_found")):
        (tmp_path / name).mkdir()
        _, rows = told(steps(silent(pause), often), tmp_path / name)
        assert (topic in rows and "nothing_found" in rows) or not enough
        assert ("unmarked_host" in rows) == (enough and pause > 0)
        assert ("CPU pauses" in rows["nothing_found"]["text"]) == enough


def test_what_precedes_the_first_call_is_a_pause_only_in_an_annotation(tmp_path: Path):
    """Without one, the recording begins with the call. What else is open, or on other threads, is none."""
    program = steps(silent(1500 * US))
    bare = [each for each in program.events if not each["name"].startswith("ProfilerStep")]
    others = [
        event("python_function", "train.py(3): main", 0, program.now),
        event("user_annotation", "logging", 0, program.now, tid=2),
    ]
    lengths = []
    for folder, events in (("marked", program.events), ("bare", bare), ("others", bare + others)):
        program.events = events
        (tmp_path / folder).mkdir()
        lengths.append(len(pauses_of(program.open(tmp_path / folder).rank(0)).when))
    assert lengths == [10, 9, 9]


def test_a_pause_from_one_step_into_the_next_comes_once(tmp_path: Path):
    """In three of nine steps the host stops as the step ends, and goes on late in the next one."""
    program = Program()
    late = False
    for number in range(1, 10):
        with program.step(number):
            program.silence(2 * MS * late)
            for _ in range(20):
                program.operator("aten::mm", 10 * US)
                program.launch(100 * US)
            program.synchronise()
            late = number % 3 == 1
            program.silence(13 * MS * late)
    _, rows = told(program, tmp_path)
    assert "unmarked_host" not in rows
    assert "3 pauses with up to 15.0 ms of idle time each." in rows["host_stall"]["text"]


def test_work_in_each_step_in_a_python_function(tmp_path: Path):
    _, rows = told(steps(named("python_function", LOAD, 1500 * US)), tmp_path)
    assert ", in loader.py(12): make_batch. In most steps" in rows["unmarked_host"]["text"]
    assert rows["unmarked_host"]["suggestion"].startswith("Look at loader.py(12): make_batch. If it makes")


def test_a_host_that_stops_once(tmp_path: Path):
    program = steps(silent(0), inside=silent(30 * MS, (6,)))
    _, rows = told(program, tmp_path)
    row = rows["host_stall"]
    # neither idle time nor the excess of the slow step is told again
    assert not {"idle_host", "slow_steps", "unmarked_host"} & rows.keys()
    assert "the host stops" in row["text"] and "1 pause with 25.4 ms of idle time." in row["text"]
    assert "arbage" not in row["text"] and "record_python_gc_info" in row["suggestion"]
    assert row["cost_ns"] == pytest.approx(idle_before(program, "aten::mm", 10 * MS), abs=20 * US)
    assert row["edits"] == "[edits.pauses(before='aten::mm', longer_than_ns=10000000)]"
    assert row["saving_ns"] >= row["cost_ns"]


def test_what_else_the_host_is_late_by_is_told_without_the_stall(tmp_path: Path):
    slow = named("cpu_op", "aten::decode", 1500 * US)
    _, rows = told(steps(slow, inside=silent(30 * MS, (6,))), tmp_path)
    assert rows["host_stall"]["cost_ns"] > 20 * MS
    assert "of it lies in aten::decode." in rows["idle_host"]["text"]
    assert "The longest gap is 1." in rows["idle_host"]["text"]
    assert 9 * 1400 * US < rows["idle_host"]["cost_ns"] < 10 * 1600 * US
    # nor is what the stall costs saved twice
    assert rows["idle_host"]["saving_ns"] == pytest.approx(rows["idle_host"]["cost_ns"], rel=0.05)
    assert "late launches, pauses aside, the steps take " in rows["idle_host"]["saving"]
    assert rows["host_stall"]["saving_ns"] == pytest.approx(rows["host_stall"]["cost_ns"], rel=0.05)


def test_the_garbage_collector_is_named_where_it_is_recorded(tmp_path: Path):
    _, rows = told(steps(silent(0), inside=named("python_function", "Python GC", 30 * MS, (6,))), tmp_path)
    row = rows["host_stall"]
    assert "while Python's garbage collector runs" in row["text"] and "gc.freeze()" in row["suggestion"]
    assert row["edits"].endswith("edits.without('Python GC')]")
    assert not {"idle_host", "slow_steps"} & rows.keys()


def test_a_collection_too_short_to_be_told_stays_the_hosts(tmp_path: Path):
    """No idle time is lost between two findings."""

    def late(program: Program, number: int) -> None:
        named("cpu_op", "aten::decode", 1500 * US)(program, number)
        named("python_function", "Python GC", 900 * US, (6,))(program, number)

    _, rows = told(steps(late), tmp_path)
    assert "host_stall" not in rows
    assert rows["idle_host"]["cost_ns"] == pytest.approx(15_900 * US, abs=20 * US)


@pytest.mark.parametrize(
    ("program", "topic"),
    [
        (lambda: steps(silent(900 * US)), "idle_host"),  # no pause of 1 ms
        (lambda: steps(silent(0), inside=silent(9 * MS, (6,))), "slow_steps"),  # none of 10 ms
        (lambda: steps(named("user_annotation", "make batch", 1500 * US)), "idle_host"),  # it has a name
        (lambda: steps(named("cpu_op", "aten::decode", 1500 * US)), "idle_host"),
        (lambda: steps(silent(5 * MS), often=2), "idle_host"),  # too few steps to know what recurs
    ],
)
def test_other_idle_time_stays_the_hosts(program: Callable[[], Program], topic: str, tmp_path: Path):
    _, rows = told(program(), tmp_path)
    assert topic in rows
    assert not {"host_stall", "unmarked_host"} & rows.keys()


def test_a_pause_behind_the_device_costs_nothing(tmp_path: Path):
    """The host pauses 5 ms while 10 ms of kernels are queued."""

    def ahead(program: Program, number: int) -> None:
        for _ in range(100):
            program.launch(100 * US)
        program.silence(5 * MS)

    _, rows = told(steps(ahead), tmp_path)
    assert not {"host_stall", "unmarked_host"} & rows.keys()
