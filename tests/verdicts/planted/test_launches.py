"""Programs whose kernels fill the device, or do not: waves of blocks, occupancy, and tiny products."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.sections import OPEN
from tests.verdicts.planted.devices import A100, opened, operator
from tests.verdicts.planted.host_program import US, Program

TOPICS = ("wave_quantization", "low_occupancy", "tiny_products")
LIMITS = {
    "numSms": 108, "warpSize": 32, "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536,
    "sharedMemPerMultiprocessor": 167936, "computeMajor": 8,
}  # fmt: skip
GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"
SPLIT = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_splitK_tn"
SIMT = "ampere_sgemm_128x64_tn"
UNALIGNED = (
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2>(T1::Params)"
)
NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float)"
FLASH = "void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t>>()"
POINTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>(int)"
LARGE, MEDIUM = ((4096, 1024), (1024, 4096)), ((16384, 4096), (4096, 5248))
ROWS = ((4096, 1024), (1024,), (1024,))
HEADS = ((8, 16, 1024, 64),) * 3


def launch(
    blocks: int, threads: int = 128, registers: int = 200, shared: int = 65536, pct: float = 13
) -> dict[str, Any]:
    """A launch as Kineto records it; by default two blocks fit on a multiprocessor of an A100."""
    return {
        "grid": [blocks, 1, 1], "block": [threads, 1, 1], "registers per thread": registers,
        "shared memory": shared, "est. achieved occupancy %": pct,
    }  # fmt: skip


def steps(
    name: str, shapes: tuple[tuple[int, ...], ...], kernel: str, ns: int, launched: dict[str, Any],
    count: int = 1, dtype: str | None = "bf16",
) -> Callable[[], Program]:  # fmt: skip
    """In each of three steps such operators, beside a product of 4 ms at half the peak."""

    def build() -> Program:
        program = Program()
        for number in range(1, 4):
            with program.step(number):
                with operator(program, "aten::mm", (16384, 4096), (4096, 4649), dtype=dtype):
                    program.launch(4000 * US, GEMM, **(launched and launch(108, pct=6)))
                for _ in range(count):
                    with operator(program, name, *shapes, dtype=dtype):
                        program.launch(ns, kernel, **launched)
                program.synchronise()
        return program

    return build


def told(
    folder: Path, program: Program, device: str | None = A100, **limits: Any
) -> dict[str, dict[str, Any]]:
    rows = overview(opened(folder, program, device, **(limits or LIMITS))).to_dict("records")
    return {row["topic"]: row for row in rows if row["topic"] in TOPICS}


@pytest.mark.parametrize(
    ("topic", "program", "taken", "left", "words"),
    [
        # 256 blocks where 2 x 108 fit are 1.185 waves, as long as 2
        (
            "wave_quantization",
            steps("aten::mm", LARGE, GEMM, 6000 * US, launch(256)),
            6e6,
            6e6 * 256 / 432,
            ("256 blocks", "216 at once (108 multiprocessors with 2 each)", "1.19 waves", "aten::mm"),
        ),
        # the same, but no faster than its operations at half of 312 TFLOP/s
        (
            "wave_quantization",
            steps("aten::mm", MEDIUM, GEMM, 6000 * US, launch(256)),
            6e6,
            2 * 16384 * 4096 * 5248 / 156_000,
            ("1.19 waves",),
        ),
        # 27 blocks for 108 multiprocessors: a product that can be four times as fast
        (
            "low_occupancy",
            steps("aten::mm", ((128, 8192), (8192, 3456)), GEMM, 1000 * US, launch(27, pct=2)),
            1e6,
            1e6 / 4,
            ("27 blocks for 108 multiprocessors", "aten::mm"),
        ),
        # 255 registers for each of 128 threads: two blocks, 256 of 2048 threads
        (
            "low_occupancy",
            steps("aten::native_layer_norm", ROWS, NORM, 2000 * US, launch(4096, 128, 255, 0, 12)),
            2e6,
            2e6 / 8,
            ("limited by registers", "aten::native_layer_norm"),
        ),
        # 80 KiB and 1 KiB of the system's of 164 KiB: two blocks
        (
            "low_occupancy",
            steps("aten::native_layer_norm", ROWS, NORM, 2000 * US, launch(4096, 128, 32, 81920, 12)),
            2e6,
            2e6 / 8,
            ("limited by shared memory",),
        ),
        # a block of 8 threads takes a warp of 32: a quarter of the threads
        (
            "low_occupancy",
            steps("aten::native_layer_norm", ROWS, NORM, 2000 * US, launch(13824, 8, 16, 0, 25)),
            2e6,
            2e6 / 4,
            ("limited by block size",),
        ),
        # Kineto rounds the occupancy of a block on one of 108 multiprocessors to 0
        (
            "low_occupancy",
            steps("aten::native_layer_norm", ((1, 1024), (1024,)), NORM, 1000 * US, launch(1, 128, 32, 0, 0)),
            1e6,
            1e6 * 128 / 108 / 2048,
            ("1 block for 108 multiprocessors",),
        ),
        # bytes at 2,039 GB/s
        (
            "tiny_products",
            steps("aten::mm", ((64, 512), (512, 512)), GEMM, 6 * US, launch(16, pct=1), count=200),
            200 * 6e3,
            200 * 2 * (64 * 512 + 512 * 512 + 64 * 512) / 2039,
            ("600 matrix products", "6.00 µs at the median", "aten::mm"),
        ),
    ],
    ids=["waves", "waves at the roof", "grid", "registers", "shared", "block", "one block", "tiny"],
)
def test_what_leaves_the_device_empty_is_told(
    tmp_path: Path,
    topic: str,
    program: Callable[[], Program],
    taken: float,
    left: float,
    words: tuple[str, ...],
) -> None:
    trace = opened(tmp_path, program(), A100, **LIMITS)
    rows = [row for row in overview(trace).to_dict("records") if row["topic"] in TOPICS]
    assert [row["topic"] for row in rows] == [topic]  # one time is told once
    (row,) = rows
    assert row["cost_ns"] == pytest.approx(3 * (taken - left), rel=1e-3)
    assert row["saving_high_ns"] == pytest.approx(3 * (taken - left), rel=0.02)
    assert row["section"] == "saves" and row["method"] == "bound" and row["severity"] == "note"
    assert all(word in row["text"] for word in words), row["text"]
    assert row["suggestion"] and "at most" in row["text"] and "at most" in row["saving"]


@pytest.mark.parametrize(
    "program",
    [
        steps("aten::mm", LARGE, GEMM, 6000 * US, launch(108, pct=6)),  # persistent: a block for each
        steps("aten::mm", LARGE, GEMM, 6000 * US, launch(216)),  # one full wave
        steps("aten::mm", LARGE, GEMM, 6000 * US, launch(324)),  # 1.5 waves, but three blocks for each
        steps("aten::mm", LARGE, GEMM, 6000 * US, launch(2060)),  # 9.54 waves: little is lost in the last
        steps("aten::mm", LARGE, SPLIT, 6000 * US, launch(256)),  # blocks that share a sum
        steps("aten::mm", MEDIUM, GEMM, 4500 * US, launch(256)),  # as fast as half the peak
        steps("aten::mm", LARGE, SIMT, 6000 * US, launch(256), dtype="fp32"),  # another unit, another kernel
        steps("aten::mm", ((4096, 1024), (1024, 50257)), UNALIGNED, 6000 * US, launch(256)),  # padded first
        steps("aten::gelu", ROWS[:1], POINTWISE, 6000 * US, launch(2048, 128, 32, 0, 99)),  # short
        steps("aten::_scaled_dot_product_flash_attention", HEADS, FLASH, 400 * US, launch(256)),  # uneven
        steps("aten::native_layer_norm", ROWS, NORM, 2000 * US, launch(4096, 256, 40, 0, 75)),  # filled
        steps("aten::native_layer_norm", ROWS, NORM, 15 * US, launch(54, 256, 32, 0, 6), count=40),  # fast
        steps("aten::native_layer_norm", ROWS[1:], NORM, 8 * US, launch(1, 128, 32, 0, 0), count=60),  # short
        steps("aten::mm", ((8, 4096), (4096, 2048)), GEMM, 9 * US, launch(16, pct=1), count=100),  # memory
        steps("aten::mm", ((64, 512), (512, 512)), SIMT, 6 * US, launch(16, pct=1), count=200, dtype="fp32"),
        steps("aten::mm", ((64, 512), (512, 512)), GEMM, 6 * US, launch(16, pct=1), count=10),  # little
    ],
    ids=[
        "persistent", "full wave", "even", "many waves", "split-K", "fast", "fp32", "unaligned", "pointwise",
        "attention", "filled", "at the roof", "short", "decoding", "tiny in fp32", "few",
    ],
)  # fmt: skip
def test_other_kernels_are_not_told(tmp_path: Path, program: Callable[[], Program]) -> None:
    assert told(tmp_path, program()) == {}


FILLED, SMALL = "whether kernels fill the device", "whether matrix products are too small"
TINY = ("aten::mm", ((64, 512), (512, 512)), GEMM, 6 * US, launch(16, pct=1), 200)
WAVES = ("aten::mm", LARGE, GEMM, 6000 * US, launch(256))


@pytest.mark.parametrize(
    ("program", "device", "limits", "question", "missing"),
    [
        (steps(*WAVES), A100, {"numSms": 108}, FILLED, "limits of the device"),
        (steps(*WAVES[:4], {}), A100, LIMITS, FILLED, "occupancy of kernels"),
        (steps(*WAVES, dtype=None), A100, LIMITS, FILLED, "shapes of operators"),
        (steps(*WAVES), "of no datasheet", LIMITS, FILLED, "device of a known datasheet"),
        (steps(*TINY, dtype=None), A100, LIMITS, SMALL, "shapes of operators"),
        (steps(*TINY), "of no datasheet", LIMITS, SMALL, "device of a known datasheet"),
    ],
    ids=["no limits", "no occupancy", "no shapes", "no peaks", "tiny, no shapes", "tiny, no peaks"],
)
def test_what_cannot_be_judged_stays_open(
    tmp_path: Path,
    program: Callable[[], Program],
    device: str,
    limits: dict[str, int],
    question: str,
    missing: str,
) -> None:
    rows = overview(opened(tmp_path, program(), device, **limits))
    assert not set(rows["topic"]) & set(TOPICS)
    gaps = rows.loc[rows["severity"] == OPEN, "text"]
    assert any(question in gap and f"no {missing}" in gap for gap in gaps), gaps.tolist()
