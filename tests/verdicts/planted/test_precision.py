"""Programs whose matrix products run on units of a known kind: what is lost to them is told, and no more."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hta_widgets import Trace
from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.sections import OPEN
from tests.analysis.kineto_file import write
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import US, Program

STEPS = range(1, 7)
FP32 = "volta_sgemm_128x64_nn"
FP64 = "ampere_dgemm_64x64_tn"
CONVOLUTION = "cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1"
TF32 = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4>(T1::Params)"
HALF = "ampere_bf16_s16816gemm_bf16_256x128_ldg8_relu_f2f_stages_64x3_tn"
OTHER = "gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, false>(x)"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
A100, V100, P100 = "NVIDIA A100-SXM4-80GB", "Tesla V100-SXM2-16GB", "Tesla P100-SXM2-16GB"
MI300 = "AMD Instinct MI300X"
AMD32 = "Cijk_Ailk_Bljk_S_B_Bias_HA_S_SAV_UserArgs_MT16x16x128_MI16x16x1_SN_LDSB1"


def steps(*kernels: tuple[str, int]) -> Callable[[], Program]:
    """Each step launches these kernels, as often as told, of 100 us each, far ahead."""

    def build() -> Program:
        program = Program()
        for number in STEPS:
            with program.step(number):
                for name, times in kernels:
                    for _ in range(times):
                        program.launch(100 * US, name)
                program.synchronise()
        return program

    return build


def opened(folder: Path, program: Program, device: str | None) -> Trace:
    path = write(folder / "trace.json", program.events)
    if device:
        head = f'"schemaVersion": 1, "deviceProperties": {json.dumps([{"id": 0, "name": device}])}'
        path.write_text(path.read_text().replace('"schemaVersion": 1', head))
    return Trace.open(path, cache=False)


def told(folder: Path, program: Callable[[], Program], device: str | None) -> dict[str, dict[str, Any]]:
    rows = overview(opened(folder, program(), device)).to_dict("records")
    return {row["topic"]: row for row in rows if row["topic"].endswith("_units")}


@pytest.mark.parametrize(
    ("program", "device", "topic", "share", "words"),
    [
        # 12 of 20 kernels at twice the speed save 6 of 20; the gaps between kernels and the waits stay
        (steps((FP32, 12), (ADD, 8)), V100, "fp32_units", 30.0, ("GradScaler", "V100 SXM", "7.96 times")),
        (steps((CONVOLUTION, 12), (ADD, 8)), A100, "fp32_units", 30.0, ("cudnn.allow_tf32",)),
        (steps((FP32, 8), (HALF, 12)), A100, "fp32_units", 20.0, ("16.0 times",)),
        (steps((AMD32, 12), (ADD, 8)), MI300, "fp32_units", 30.0, ("torch.bfloat16", "MI300X")),
        (steps((TF32, 12), (ADD, 8)), A100, "tf32_units", 30.0, ("torch.bfloat16", "twice as fast")),
        (steps((FP64, 12), (ADD, 8)), A100, "fp64_units", 30.0, ("float32", "NumPy")),
        (steps((FP64, 12), (ADD, 8)), None, "fp64_units", 30.0, ("float32",)),
        (steps((TF32, 12), (ADD, 8)), None, "tf32_units", 30.0, ("torch.bfloat16",)),
    ],
)
def test_units_that_cost_time_are_told(
    tmp_path: Path,
    program: Callable[[], Program],
    device: str | None,
    topic: str,
    share: float,
    words: tuple[str, ...],
) -> None:
    found = told(tmp_path, program, device)
    assert set(found) == {topic}
    row = found[topic]
    assert row["section"] == "saves" and row["severity"] == "warning" and row["kind"] == "kernel_classes"
    assert row["share_pct"] == pytest.approx(share, abs=1.0)
    assert row["saving_pct"] == pytest.approx(share, abs=1.0)
    said = f"{row['text']} {row['suggestion']}"
    assert all(word in said for word in words), said


@pytest.mark.parametrize(
    ("program", "device"),
    [
        (steps((HALF, 12), (ADD, 8)), A100),
        (steps((FP32, 3), (HALF, 9), (ADD, 8)), A100),  # a quarter of the products
        (steps((TF32, 3), (HALF, 9), (ADD, 8)), A100),
        (steps((OTHER, 12), (HALF, 1)), A100),  # a matrix times a vector waits for memory
        (steps((ADD, 20)), V100),
        (steps((FP32, 1), (ADD, 99)), V100),  # half a percent of the time
    ],
)
def test_other_programs_are_not_told_so(
    tmp_path: Path, program: Callable[[], Program], device: str | None
) -> None:
    assert not told(tmp_path, program, device)


@pytest.mark.parametrize("device", [None, P100])
def test_nothing_is_said_of_an_unknown_device(tmp_path: Path, device: str | None) -> None:
    """Neither its datasheet nor its compute capability is known."""
    program = steps((FP32, 12), (ADD, 8))
    assert not told(tmp_path, program, device)
    rows = overview(opened(tmp_path, program(), device))
    gap = rows[rows["severity"] == OPEN].iloc[0]
    assert (
        "whether kernels multiply on the fastest units" in gap["text"]
        and ("datasheet" if device else "name of the device") in gap["text"]
    )


@pytest.mark.parametrize(
    ("name", "built_for"),
    [
        ("ampere_sgemm_128x64_nn", "8.0"),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(T1::Params)", "8.0"),
        ("sm90_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_ffma", "9.0"),
        (FP32, ""),  # what is built for Volta also runs on devices without tensor cores
    ],
)
def test_kernels_say_what_an_unnamed_device_has(tmp_path: Path, name: str, built_for: str) -> None:
    trace = opened(tmp_path, steps((name, 12), (ADD, 8))(), None)
    rows = overview(trace).set_index("topic")
    assert ("fp32_units" in rows.index) is bool(built_for)
    if built_for:
        assert (
            f"runs kernels that are built for compute capability {built_for},"
            in rows.loc["fp32_units", "text"]
        )
        assert not list(map(str, faults_of(trace, overview(trace).query("topic == 'fp32_units'"))))


@pytest.mark.parametrize(
    ("name", "capability", "advice"),
    [
        ("NVIDIA GeForce RTX 3060", (8, 6), "set_float32_matmul_precision"),
        ("NVIDIA GeForce RTX 2080 Ti", (7, 5), "torch.float16"),
        ("NVIDIA GeForce GTX 1660", (7, 5), ""),  # Turing without tensor cores
        (P100, (6, 0), ""),
    ],
)
def test_a_device_without_datasheet_has_a_compute_capability(
    tmp_path: Path, name: str, capability: tuple[int, int], advice: str
) -> None:
    path = write(tmp_path / "trace.json", steps((FP32, 12), (ADD, 8))().events)
    recorded = json.loads(path.read_text())
    major, minor = capability
    recorded["deviceProperties"] = [{"id": 0, "name": name, "computeMajor": major, "computeMinor": minor}]
    path.write_text(json.dumps(recorded))
    frame = overview(Trace.open(path, cache=False)).set_index("topic")
    assert ("fp32_units" in frame.index) is bool(advice)
    if advice:
        assert f"({name}) has compute capability {major}.{minor}" in frame.loc["fp32_units", "text"]
        assert advice in frame.loc["fp32_units", "suggestion"]


def test_units_that_no_name_tells_are_not_checked(tmp_path: Path) -> None:
    rows = overview(opened(tmp_path, steps(("triton_tem_fused_mm_0", 12), (ADD, 8))(), A100))
    asked = rows["text"].str.contains("whether kernels multiply on the fastest units")
    gaps = rows[(rows["severity"] == OPEN) & asked]
    assert gaps["text"].str.contains("unit in the names of 100 % of the kernels that multiply").all() and len(
        gaps
    )
    absent = rows[rows["topic"] == "nothing_found"]["checked"].iloc[0]
    assert "fp32_units" not in absent.split()


def test_fsdp_is_advised_where_it_runs(tmp_path: Path) -> None:
    def with_fsdp() -> Program:
        program = Program()
        with program.inside("user_annotation", "FSDP::pre_forward (model)"):
            program.silence(1 * US)
        program.events += steps((TF32, 12), (ADD, 8))().events
        return program

    assert "MixedPrecisionPolicy" in told(tmp_path, with_fsdp, A100)["tf32_units"]["suggestion"]
    without = told(tmp_path, steps((TF32, 12), (ADD, 8)), A100)["tf32_units"]["suggestion"]
    assert "FSDP" not in without and "torch.bfloat16" in without


CONVOLVES = "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nhwc_tilesize128x64x8_cudnn"


@pytest.mark.parametrize(
    ("kernels", "switch"),
    [
        (((CONVOLVES, 6), (FP32, 1)), "torch.backends.cudnn.allow_tf32"),
        (((FP32, 6), (CONVOLVES, 1)), "torch.set_float32_matmul_precision"),
    ],
)
def test_convolutions_have_a_switch_of_their_own(tmp_path: Path, kernels, switch: str) -> None:
    assert switch in told(tmp_path, steps(*kernels), A100)["fp32_units"]["suggestion"]
