"""Programs of which a part is compiled: advice follows the place, not what else the program holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets.analysis.findings import overview
from tests.verdicts.planted.host_program import US, Program

REGION = "Torch-Compiled Region: 0/0"
FILE = "/tmp/torchinductor_me/fp/cfpieooxxid4wanl4zh2smpd3slxnv4wcdo4cx6uaaxs4t5nzm46.py(107): call"


def late(program: Program, kernels: int, name: str = "gemm") -> None:
    """The device waits 100 us before each kernel."""
    for _ in range(kernels):
        program.silence(1 * US)
        program.operator("aten::slow_op", 100 * US)
        program.launch(50 * US, name)


def host_late(frame: pd.DataFrame) -> str:
    return str(frame.set_index("topic").loc["idle_host", "suggestion"])


def steps(body: Callable[[Program], None]) -> Program:
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            body(program)
            program.synchronise()
    return program


def mostly_eager(program: Program) -> None:
    late(program, 10)
    with program.inside("cpu_op", REGION):
        late(program, 1, "triton_poi_fused_add_0")


def mostly_compiled(program: Program) -> None:
    late(program, 1)
    with program.inside("cpu_op", REGION):
        late(program, 10)  # products keep their own kernels


def only_kernels_are_named(program: Program) -> None:
    late(program, 10, "triton_red_fused_mean_0")


def in_a_module(program: Program) -> None:
    with (
        program.inside("python_function", "nn.Module: SD3Transformer2DModel_0", **{"Python id": 1}),
        program.inside("python_function", FILE, **{"Python id": 2, "Python parent id": 1}),
    ):
        between_launches(program)
    program.silence(300 * US)


def between_launches(program: Program) -> None:
    """The code between launches calls no operator."""
    for _ in range(10):
        program.silence(100 * US)
        program.launch(50 * US)


def serves(names: str) -> Callable[[Program], None]:
    def body(program: Program) -> None:
        with program.inside("user_annotation", names):
            late(program, 10)

    return body


@pytest.mark.parametrize(
    ("body", "has", "has_not"),
    [
        (mostly_eager, "torch.compile, CUDA graphs", "reduce-overhead"),
        (mostly_compiled, "reduce-overhead", "torch.compile,"),
        (only_kernels_are_named, "reduce-overhead", "torch.compile,"),
        (in_a_module, "Look at compiled graph of SD3Transformer2DModel", "cfpieoo"),
        (serves("execute_context_0(0)_generation_8(8)"), "without --enforce-eager", "torch.compile"),
        (serves("step[DECODE bs=8]"), "without --disable-cuda-graph", "torch.compile"),
        (serves("my_step"), "torch.compile, CUDA graphs", "enforce-eager"),
    ],
)
def test_advice_follows_the_place(
    body: Callable[[Program], None], has: str, has_not: str, tmp_path: Path
) -> None:
    said = host_late(overview(steps(body).open(tmp_path)))
    assert has in said and has_not not in said


def test_who_replays_graphs_is_not_told_to(tmp_path: Path) -> None:
    """What `--enforce-eager` keeps from running runs."""

    def body(program: Program) -> None:
        with program.inside("user_annotation", "execute_context_0(0)_generation_8(8)"):
            program.operator("prepare", 400 * US)
            program.replay(20, 20 * US)

    assert "enforce-eager" not in host_late(overview(steps(body).open(tmp_path)))


def test_a_file_of_the_compiler_is_named_by_its_module(tmp_path: Path) -> None:
    row = overview(steps(in_a_module).open(tmp_path)).set_index("topic").loc["idle_host"]
    assert "compiled graph of SD3Transformer2DModel. " in row["text"]
    assert FILE in row["claims"] and "in nn.Module" not in row["text"]


def test_without_a_module_it_is_a_compiled_graph(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        with program.inside("python_function", FILE, **{"Python id": 2}):
            between_launches(program)
        program.silence(300 * US)

    row = overview(steps(body).open(tmp_path)).set_index("topic").loc["idle_host"]
    assert "compiled graph" in row["suggestion"] and "cfpieoo" not in row["suggestion"]
