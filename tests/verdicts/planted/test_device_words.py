"""Advice names the calls, settings and tools of the device that was recorded, and of no other one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hta_widgets.analysis import overview
from hta_widgets.trace.accelerator import accelerator_in
from hta_widgets.trace.model import Trace
from tests.claims.checking import faults_of
from tests.support import shared_input
from tests.verdicts.planted.host_program import MS, US, Program

OF_NVIDIA = re.compile(
    r"torch\.cuda|nvidia|nsight|\bnccl|\bCUDA\b|PYTORCH_\w*CUDA|tensor cores", re.IGNORECASE
)
TEXTS = ("text", "saving", "suggestion", "risk", "needs", "wrong_if")


def reading_back(folder: Path, launch: str, wait: str) -> Trace:
    """Each step waits three times for its device, which has nothing to do while the host goes on."""
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            for _ in range(3):
                program.launch(MS, api=launch)
                program.synchronise(tail=600 * US, name=wait)
    return program.open(folder)


@pytest.mark.parametrize(
    ("launch", "wait", "named"),
    [
        ("cudaLaunchKernel", "cudaDeviceSynchronize", "torch.cuda.synchronize()"),
        ("hipLaunchKernel", "hipDeviceSynchronize", "torch.cuda.synchronize()"),
        ("aclrtLaunchKernel", "aclrtSynchronizeDevice", "torch.npu.synchronize()"),
        ("urEnqueueKernelLaunch", "urQueueFinish", "torch.xpu.synchronize()"),
        ("cnrtInvokeKernel", "cnrtQueueSync", "torch.mlu.synchronize()"),
    ],
)
def test_the_call_that_waits_is_that_of_the_device(
    launch: str, wait: str, named: str, tmp_path: Path
) -> None:
    """A call in which the host waits for its device is a wait, whoever made the device: not a late host."""
    trace = reading_back(tmp_path, launch, wait)
    frame = overview(trace)
    row = frame.set_index("topic").loc["sync_calls"]
    assert f"and {named} in the loop" in row["suggestion"]
    assert "idle_host" not in set(frame["topic"])
    assert not list(map(str, faults_of(trace, frame)))


@pytest.mark.parametrize(
    ("signs", "kept", "watched"),
    [
        (["cuda_runtime", "cudaMalloc"], "PYTORCH_CUDA_ALLOC_CONF", "nvidia-smi -q"),
        (["cuda_runtime", "hipMalloc"], "no torch.cuda.empty_cache()", "rocm-smi -a"),
        (["cann_runtime", "AscendCL@aclrtMalloc"], "PYTORCH_NPU_ALLOC_CONF", "npu-smi info"),
        (["xpu_runtime"], "no torch.xpu.empty_cache() in the loop.", "xpu-smi"),
        (["aten::mm"], "no the device's empty_cache()", ""),
    ],
)
def test_settings_are_those_of_the_device(signs: list[str], kept: str, watched: str) -> None:
    found = accelerator_in(signs)
    memory = found.keep_memory + found.grow_memory
    assert kept in memory and found.monitor == watched
    if "nvidia" not in found.monitor and found.module != "torch.cuda":
        assert not OF_NVIDIA.search(memory)


def test_only_miopen_needs_a_setting_for_channels_last() -> None:
    said = {sign: accelerator_in([sign]).fill("Keep it.{channels_last}") for sign in ("cudaFree", "hipFree")}
    assert said["cudaFree"] == "Keep it." and said["hipFree"].endswith("needs PYTORCH_MIOPEN_SUGGEST_NHWC=1.")


def test_what_to_record_is_written_for_the_device() -> None:
    said = "Record with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])."
    of = {sign: accelerator_in([sign]).remedy(said) for sign in ("cudaFree", "xpu_runtime", "aclnnAdd", "x")}
    assert of["cudaFree"] == of["x"] == said
    assert of["xpu_runtime"] == said.replace("CUDA", "XPU")
    npu = said.replace("torch.profiler.", "").replace("CUDA", "NPU")
    for name in ("profile(", "ProfilerActivity"):
        npu = npu.replace(name, f"torch_npu.profiler.{name}")
    assert of["aclnnAdd"] == npu


@pytest.mark.parametrize("name", ["ascend_trace_view", "mlu370"])
def test_nothing_of_another_vendor_is_named(name: str) -> None:
    rows = overview(Trace.open(shared_input("recordings") / name))
    for column in TEXTS:
        assert not rows[column].str.contains(OF_NVIDIA).any(), column
