"""A cost and its saving are of the same time, and what saves more than it costs says so."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets.analysis.findings.overview import overview
from tests.verdicts.planted.devices import H100, opened
from tests.verdicts.planted.host_program import US, Program


def loop(
    marked: bool, between_ns: int, kernels: int = 200, ns: int = 5 * US, host_ns: int = 2 * US
) -> Program:
    """Each pass of a loop: something on the host, kernels, and reading back a result."""
    program = Program()
    program.launch(20_000 * US, "before_the_loop")  # in no step, marked or guessed
    program.synchronise()
    for number in range(1, 21):
        with program.step(number) if marked else nullcontext():
            program.silence(between_ns)
            for _ in range(200):
                program.operator("aten::mm", host_ns)
                program.launch(5 * US)
            with program.inside("cpu_op", "aten::argmax"):
                program.launch(5 * US, "argmax")
            program.launch(3 * US, "Memcpy DtoH (Device -> Pinned)", kind="gpu_memcpy", api="cudaMemcpyAsync")
            program.synchronise(name="cudaStreamSynchronize")
    return program


@pytest.mark.parametrize("marked", [False, True])
def test_a_saving_is_of_the_time_that_its_cost_is_of(tmp_path: Path, marked: bool) -> None:
    frame = overview(opened(tmp_path, loop(marked, 300 * US), H100)).set_index("topic")
    row = frame.loc["idle_host"]
    assert marked or pd.isna(row["steps"])
    assert row["cost_ns"] == pytest.approx(row["saving_ns"], rel=0.05)
    assert row["saving_pct"] / row["saving_ns"] == pytest.approx(row["share_pct"] / row["cost_ns"], rel=0.005)


def test_graphs_that_save_more_than_the_launches_cost_say_why(tmp_path: Path) -> None:
    trace = opened(tmp_path, loop(True, 0, host_ns=15 * US), H100)
    frame = overview(trace)
    row = frame.iloc[0]
    assert row["topic"] == "launch_bound" and row["saving_pct"] > 1.2 * row["share_pct"]
    assert "graphs take the host's time between launches away, too" in row["saving"]
