"""What names of kernels say: a table of names from recordings and from public code and reports."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hta_widgets.analysis.kernels.classes import KernelClass, kernel_class
from hta_widgets.analysis.kernels.units import UNITS

HEADER, *ROWS = Path(__file__).with_name("kernel_classes.tsv").read_text().splitlines()
PARTS = HEADER.split("\t")[:-1]
NAMES = {row.split("\t", len(PARTS))[-1]: row.split("\t", len(PARTS))[:-1] for row in ROWS}


def said(name: str) -> list[str]:
    found = vars(kernel_class(name))
    return ["-" if found[part] is None else str(found[part]) for part in PARTS]


def test_the_table_is_large_and_names_every_part() -> None:
    assert len(NAMES) >= 400 and set(PARTS) == set(KernelClass.__dataclass_fields__)
    for place, part in enumerate(PARTS):
        values = {row[place] for row in NAMES.values()}
        assert "-" in values and len(values) >= 3, part


def test_parts_of_real_names() -> None:
    assert {name: said(name) for name in NAMES} == NAMES


def test_the_sum_of_a_product_that_was_split_is_a_reduction() -> None:
    template = "cutlass::reduction::kernel::ReduceSplitK<cutlass::MatrixShape<4, 128> >"
    found = kernel_class(f"void cutlass::Kernel<{template} >({template}::Params)")
    assert found == KernelClass("CUTLASS 2", "reduction", split_k=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ampere_sgemm_128x64_tn", "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x3_tn"),
        ("cutlass_80_simt_sgemm_64x64_8x5_tn_align1", "cutlass_80_tensorop_s1688gemm_64x64_16x6_tn_align4"),
        (
            "cutlass_75_tensorop_s1688gemm_f16_64x64_tn_align8",
            "cutlass_80_tensorop_s1688gemm_64x64_tn_align8",
        ),
        (
            "cutlass_80_tensorop_s1688bf16gemm_64x64_tn_align4",
            "cutlass_80_tensorop_s1688gemm_64x64_tn_align4",
        ),
        ("Cijk_Alik_Bljk_SB_MT64x64x8_SE_K1", "Cijk_Alik_Bljk_SB_MT64x64x8_MI16x16x1_K1"),
        ("nvjet_hsh_64x64_64x3_2x1_v_bz_NTN", "nvjet_qqtst_64x64_128x3_2x1_v_bz_NTN"),
    ],
)
def test_names_that_differ_in_the_unit(one: str, other: str) -> None:
    assert kernel_class(one).unit != kernel_class(other).unit
    assert None not in (kernel_class(one).unit, kernel_class(other).unit)


@pytest.mark.parametrize(
    "name",
    [
        "cutlass_80_tensorop_bf16_s1688gemm_64x64_16x6_tn_align4",  # types of the operands are left out
        "nvjet_xyx_64x64_64x3_2x1_v_bz_NTN",
        "Cijk_Alik_Bljk_HHS_shortname0",
        "void gemv2T_kernel_val<int, int, __half, __half, __half, __half, 128>(x)",
    ],
)
def test_units_that_a_name_leaves_open_are_not_guessed(name: str) -> None:
    assert kernel_class(name).operation in ("gemm", "gemv") and kernel_class(name).unit is None


@pytest.mark.parametrize(
    "name", ["", "kernel", "gemm", "my_own_gemm_kernel", "cutlass", "void cutlass::f()", "nvjet"]
)
def test_other_names_say_nothing(name: str) -> None:
    assert kernel_class(name) == KernelClass()


@given(st.text(alphabet="abcgemnstx0128²_<>:, ", max_size=300))
def test_any_text_has_a_class(text: str) -> None:
    for head in ("", "cutlass_80_", "nvjet_", "Cijk_Alik_Bljk_", "sm80_xmma_gemm_", "void at::native::"):
        found = kernel_class(head + text)
        assert found.unit is None or found.unit in UNITS


@pytest.mark.parametrize(
    "piece",
    ["cutlass_", "Cijk_Alik_Bljk_", "nvjet_", "_128x64", "ck::Gridwise", "Fmha", "flash_fwd", "gemv<a, ", "<",
     "cudnn_generated_sdpa", "fmha_cutlassF_f16_a", "SM90_64x64x16_", "wgrad_", "matmul_ogs_", "fmhaSm100Qk",
     "_", "s", "9"],
)  # fmt: skip
def test_long_names_take_no_longer(piece: str) -> None:
    began = time.process_time()
    for head in ("", "void ", "_ZN2ck1", "igemm_fwd_gtcx_nhwc_bf16", "bmm_E4m3_", "_matmul_ogs_"):
        kernel_class(head + piece * (2_000_000 // len(piece)))
    assert time.process_time() - began < 2.0
