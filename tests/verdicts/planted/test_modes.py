"""Programs whose modules are in the wrong mode: it is said; of others, or where nothing tells, it is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hta_widgets import Trace
from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.story import story
from tests.analysis.kineto_file import write
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import MS, US, Program

NODE = "autograd::engine::evaluate_function: NativeBatchNormBackward0"
TRAIN_KERNEL = "void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(cudnn::bn_fw_tr_1C11_args)"
INFER_KERNEL = (
    "void cudnn::bn_fw_inf_1C11_kernel_NCHW<float, float, true, 1>(float, float, cudnnTensorStruct)"
)


def program(mode: str, backward: bool, kernel: str = "", operator: str = "aten::batch_norm") -> Program:
    """Ten layers of a convolution and this operator; its mode is recorded unless it is ""."""
    found = Program()
    place = 5 if operator == "aten::batch_norm" else 2
    args = {"Concrete Inputs": [""] * place + [mode, "0.1", "1e-5", "True"]} if mode else {}
    for number in range(1, 5):
        with found.step(number):
            for _ in range(10):
                with found.inside("cpu_op", "aten::conv2d"):
                    found.launch(MS, "volta_scudnn_128x64_relu_small_nn_v1")
                with found.inside("cpu_op", operator, **args):
                    found.launch(100 * US, kernel or "void add_kernel<float>(float*)")
                if backward:
                    with found.inside("cpu_op", NODE):
                        found.launch(100 * US, "void mul_kernel<float>(float*)")
            found.synchronise()
    return found


def told(folder: Path, found: Program) -> dict[str, str]:
    trace = Trace.open(write(folder / "trace.json", found.events), cache=False)
    frame = overview(trace)
    rows = frame[frame["topic"].isin(["without_eval", "without_train"])]
    screen = story(trace, frame=frame)
    for text in rows["text"]:
        assert re.split(r"(?<=[.?]) ", text)[0] in screen.limits and text in screen.asides
    assert not list(faults_of(trace, rows))
    return dict(zip(rows["topic"], rows["text"], strict=True))


@pytest.mark.parametrize(
    ("found", "topic"),
    [
        (program("True", backward=False), "without_eval"),
        (program("", False, TRAIN_KERNEL), "without_eval"),
        (program("True", False, operator="aten::dropout"), "without_eval"),
        (program("False", backward=True), "without_train"),
        (program("True", backward=True), ""),
        (program("False", backward=False), ""),
        (program("False", False, operator="aten::dropout"), ""),
        (program("", False, INFER_KERNEL), ""),
        (program("", backward=False), ""),  # nothing tells
        (program("", backward=True), ""),
    ],
)
def test_modes(tmp_path: Path, found: Program, topic: str) -> None:
    rows = told(tmp_path, found)
    assert set(rows) == ({topic} if topic else set())
    if topic:
        assert "40 calls" in rows[topic]
