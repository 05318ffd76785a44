"""Programs that read single values back: how often, and what that costs, is said where it costs something."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hta_widgets import Trace
from hta_widgets.analysis.findings.overview import overview
from tests.analysis.kineto_file import write
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import MS, US, Program


def layers(each: bool, host_ns: int, mask: bool = False) -> Program:
    """Ten layers a step, of 1 ms on the device; a value is read in each of them, or once after them."""
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            for layer in range(10):
                with program.inside("cpu_op", "aten::mm"):
                    program.silence(host_ns)
                    program.launch(MS, "gemm")
                if each and mask and layer % 2:
                    choose(program)
                elif each:
                    read(program)
            if not each:
                read(program)
    return program


def read(program: Program) -> None:
    with program.inside("cpu_op", "aten::item"), program.inside("cpu_op", "aten::_local_scalar_dense"):
        program.synchronise(name="cudaStreamSynchronize")


def choose(program: Program) -> None:
    """What a mask chooses: its number is read back to know how much memory that takes."""
    with program.inside("cpu_op", "aten::index"), program.inside("cpu_op", "aten::nonzero"):
        program.launch(3 * US, "reduce")
        program.synchronise(name="cudaStreamSynchronize")
        program.launch(4 * US, "select")


def told(folder: Path, program: Program) -> dict[str, Any] | None:
    trace = Trace.open(write(folder / "trace.json", program.events), cache=False)
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    rows = frame[frame["topic"] == "values_read_back"].to_dict("records")
    return rows[0] if rows else None


def test_values_that_are_read_in_each_layer_are_counted(tmp_path: Path) -> None:
    row = told(tmp_path, layers(each=True, host_ns=500 * US))
    assert row is not None and row["section"] == "saves"
    assert "values are read back from the device 10 times (aten::item)" in row["text"]
    assert row["saving_pct"] > 20


def test_what_the_device_waits_after_them_is_the_same_loss(tmp_path: Path) -> None:
    program = layers(each=True, host_ns=500 * US)
    frame = overview(Trace.open(write(tmp_path / "trace.json", program.events), cache=False))
    frame = frame.set_index("topic")
    assert frame.loc["idle_host", "part_of"] == "values_read_back"
    assert frame.loc["values_read_back", "part_of"] == ""


def test_a_host_that_is_late_without_them_too_is_another_one(tmp_path: Path) -> None:
    """Two values are read in each step, and then the host has 20 ms to do."""
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            for _ in range(2):
                for _ in range(5):
                    program.launch(MS, "gemm")
                read(program)
            program.operator("aten::slow", 20 * MS)
    frame = overview(Trace.open(write(tmp_path / "trace.json", program.events), cache=False))
    assert frame.set_index("topic").loc["idle_host", "part_of"] == ""


def test_so_are_sizes_of_what_a_mask_chooses(tmp_path: Path) -> None:
    row = told(tmp_path, layers(each=True, host_ns=500 * US, mask=True))
    assert row is not None and row["section"] == "saves"
    assert "10 times (aten::nonzero and aten::item)" in row["text"]
    assert row["saving_pct"] > 20


def test_one_value_a_step_costs_nothing_where_the_device_is_busy(tmp_path: Path) -> None:
    assert told(tmp_path, layers(each=False, host_ns=10 * US)) is None


def test_without_operators_nothing_is_read(tmp_path: Path) -> None:
    program = layers(each=True, host_ns=500 * US)
    program.events = [each for each in program.events if each["cat"] != "cpu_op"]
    assert told(tmp_path, program) is None
