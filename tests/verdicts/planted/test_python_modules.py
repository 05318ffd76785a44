"""Programs in which Python in some modules keeps the device waiting: they are named with their line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings import CHECKED, overview
from hta_widgets.analysis.findings.python_rules import PER_LAUNCH_NS, _Class
from tests.verdicts.planted.host_program import MS, US, Program

FORWARD = "model.py(12): forward"


def modules(
    ns: int, kernel: int = 10 * US, inner: int = 0, launches: int = 1, recorded: bool = True
) -> Callable[[], Program]:
    """Each step calls ten blocks that take the host so long, a module inside them, and what they launch."""

    def build() -> Program:
        program, ids = Program(), iter(range(1, 10_000))

        def call(name: str):
            category = "python_function" if recorded else "cpu_op"
            return program.inside(category, name if recorded else "block", **{"Python id": next(ids)})

        for number in range(1, 7):
            with program.step(number):
                for block in range(10):
                    with call(f"nn.Module: Block_{block}"), call(FORWARD):
                        for _ in range(launches):
                            program.operator("aten::add", ns)
                            program.launch(kernel)
                        if inner:
                            with call(f"nn.Module: Linear_{block}"):
                                program.operator("aten::linear", inner)
                                program.launch(kernel)
                program.synchronise()
        return program

    return build


@pytest.mark.parametrize(
    ("program", "module"),
    [
        (modules(60 * US), "Block"),
        (modules(5 * US, inner=60 * US), "Linear"),  # the block around it is not to blame
        (modules(60 * US, inner=5 * US), "Block"),
        (modules(15 * US), ""),  # as long as any operator takes
        (modules(60 * US, kernel=200 * US), ""),  # the device hides it
        (modules(60 * US, recorded=False), ""),
    ],
)
def test_modules_in_which_python_takes_long(program, module, tmp_path: Path):
    built = program()
    frame = overview(built.open(tmp_path))
    rows = frame[frame["topic"] == "python_heavy"].to_dict("records")
    assert len(rows) == bool(module)
    if not module:
        return
    (row,) = rows
    # of each launch 60 us of the operator and 2 us of the call
    assert f"In nn.Module: {module} at {FORWARD} the host takes 62.0 µs for each launch" in row["text"]
    assert row["edits"] == f"[edits.host(0.3, within='nn.Module: {module}_*')]"
    assert (row["section"], row["method"]) == ("saves", "replay")
    # counted again from the plain events: idle but for the kernel before, its latency and the call
    kernels = sum(event["dur"] for event in built.events if event["cat"] == "kernel")
    steps = sum(event["dur"] for event in built.events if event["name"].startswith("ProfilerStep"))
    assert row["cost_ns"] < steps - kernels
    assert row["cost_ns"] > 6 * 10 * (62 - 18) * US


@pytest.mark.parametrize(("ns", "module"), [(7 * MS, "Linear"), (900 * US, "Block")])
def test_one_long_operator_makes_no_module_heavy(ns: int, module: str, tmp_path: Path):
    """What the host does once for milliseconds is not shorter for being compiled, wherever it lies."""
    program, ids = Program(), iter(range(1, 10_000))
    for number in range(1, 7):
        with program.step(number):
            for block in range(10):
                with program.inside(
                    "python_function", f"nn.Module: Block_{block}", **{"Python id": next(ids)}
                ):
                    program.operator("aten::tokenize", ns if block == 5 else 10 * US)
                    program.launch(10 * US)
                    with program.inside(
                        "python_function", f"nn.Module: Linear_{block}", **{"Python id": next(ids)}
                    ):
                        program.operator("aten::linear", 60 * US)
                        program.launch(10 * US)
            program.synchronise()
    text = overview(program.open(tmp_path)).set_index("topic").loc["python_heavy", "text"]
    assert text.startswith(f"In nn.Module: {module} the host takes ")


def test_the_hosts_place_is_told_with_its_module_and_line(tmp_path: Path):
    """The narrowest around it of each, a library's lines aside."""
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            for part in ("forward", "loss"):
                with (
                    program.inside("python_function", f"nn.Module: {part}_0", **{"Python id": number}),
                    program.inside("python_function", f"train.py(7): {part}", **{"Python id": number + 9}),
                    program.inside("python_function", "torch/nn/f.py(1): f", **{"Python id": number + 99}),
                ):
                    program.operator(f"aten::{part}", 500 * US if part == "forward" else 300 * US)
                program.launch(20 * US)
            program.synchronise()
    text = overview(program.open(tmp_path)).set_index("topic").loc["idle_host", "text"]
    assert "of it lies in aten::forward in nn.Module: forward_0 at train.py(7): forward. " in text


def test_without_python_functions_they_are_not_looked_for(tmp_path: Path):
    frame = overview(modules(60 * US, recorded=False)().open(tmp_path))
    assert not frame.loc[frame["severity"] == CHECKED, "checked"].str.contains("python_heavy").any()


@pytest.mark.parametrize(
    ("own_ns", "launches", "long_ns", "heavy"),
    [
        (2 * PER_LAUNCH_NS + 1, 2, 0, True),
        (2 * PER_LAUNCH_NS, 2, 0, False),  # what Python usually takes
        (PER_LAUNCH_NS + 1, 0, 0, True),
        (PER_LAUNCH_NS, 0, 0, False),
        (9 * PER_LAUNCH_NS, 2, 50_000, True),
        (9 * PER_LAUNCH_NS, 2, 50_001, False),  # most of it lies in pauses
    ],
)
def test_python_is_slow_from_so_much_for_each_launch(
    own_ns: int, launches: int, long_ns: int, heavy: bool
) -> None:
    idle = Intervals.union([0], [100_000])
    assert _Class("Linear", own_ns, idle, long_ns, np.arange(launches)).per_launch is heavy
