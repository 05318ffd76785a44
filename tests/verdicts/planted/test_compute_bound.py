"""Devices that compute nearly all of the time: what they compute, in which type, and how near to the roof."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hta_widgets import Trace
from hta_widgets.analysis.findings.overview import overview
from tests.analysis.kineto_file import kernel, write
from tests.first_lines import first_lines
from tests.verdicts.planted.host_program import MS, US, Program

HALF = "ampere_bf16_s16816gemm_bf16_256x128_ldg8_relu_f2f_stages_64x3_tn"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
OTHER = "my_own_kernel"
A100 = "NVIDIA A100-SXM4-80GB"
SHAPE = [[4096, 4096], [4096, 4096]]


def steps(*kernels: tuple[str, int], shapes: Any = SHAPE) -> Program:
    """Each step launches these kernels for so long in all, in pieces of 1 ms, each from an `aten::mm`."""
    program = Program()
    args = {"Input Dims": shapes, "Input type": ["c10::BFloat16"] * 2} if shapes else {}
    for number in range(1, 7):
        with program.step(number):
            for name, ns in kernels:
                for _ in range(ns // MS):
                    with program.inside("cpu_op", "aten::mm" if "gemm" in name else "aten::add", **args):
                        program.launch(MS, name)
            program.synchronise()
    return program


def verdict(folder: Path, program: Program, device: str = A100) -> tuple[str, str]:
    path = write(folder / "trace.json", program.events)
    recorded = json.loads(path.read_text())
    recorded["deviceProperties"] = [{"id": 0, "name": device, "totalGlobalMem": 85_000_000_000}]
    path.write_text(json.dumps(recorded))
    trace = Trace.open(path, cache=False)
    frame = overview(trace)
    return first_lines(trace, frame), str(frame.set_index("topic").loc["compute_bound", "text"])


def test_kinds_types_and_roof(tmp_path: Path) -> None:
    """2 x 4096^3 operations in 1 ms are 137 TFLOP/s, 44 % of what the tensor cores of an A100 compute."""
    said, text = verdict(tmp_path, steps((HALF, 9 * MS), (ADD, MS)))
    assert "the GPU computes 9" in said and ", mostly matrix products in bf16." in said
    assert "Of computing time: matrix products in bf16 90.0 % and pointwise kernels 10.0 %." in text
    assert "90.0 % of the device work is aten::mm, which reaches 44.1 % of its roof." in text


@pytest.mark.parametrize("shapes", [None, [[8192, 8192], [8192, 8192]]])
def test_a_roof_that_is_unknown_or_reached_is_not_told(tmp_path: Path, shapes: Any) -> None:
    """8 times as many operations would be more than the device computes: the formula does not fit."""
    _, text = verdict(tmp_path, steps((HALF, 9 * MS), shapes=shapes))
    assert "roof" not in text and "matrix products in bf16 100 %" in text


def test_without_a_datasheet_only_kinds_are_told(tmp_path: Path) -> None:
    _, text = verdict(tmp_path, steps((HALF, 9 * MS)), "unknown device")
    assert "roof" not in text and "matrix products in bf16" in text


def test_kernels_of_unknown_kind_are_told_as_such(tmp_path: Path) -> None:
    _, text = verdict(tmp_path, steps((OTHER, 6 * MS), (ADD, 3 * MS)))
    assert "kernels whose names do not say what they do 66.7 % and pointwise kernels 33.3 %" in text
    said, text = verdict(tmp_path, steps((OTHER, 9 * MS)))
    assert "Of computing time" not in text
    assert f", mostly {OTHER}." in said


@pytest.mark.parametrize("hidden", [True, False])
def test_communication_that_hides_is_told(tmp_path: Path, hidden: bool) -> None:
    program = steps((HALF, 9 * MS))
    start = 200 * US if hidden else program.now
    name = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
    if hidden:
        program.events.append(kernel(name, start, 5 * MS, 20))
    _, text = verdict(tmp_path, program)
    assert ("Communication runs" in text) is hidden
    if hidden:
        assert "99.9 % of it hides behind compute" in text
