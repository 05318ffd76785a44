"""Kernel classes of a trace: kinds in words, sums against the plain JSON."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets import Scope, Trace, analysis
from hta_widgets.analysis.kernels.by_class import ANALYSIS, kernel_classes, sentence
from hta_widgets.charts.marks import marks
from hta_widgets.errors import MissingDataError
from tests.analysis.kineto_file import event, job, kernel
from tests.support import shared_trace

SGEMM = "ampere_sgemm_128x64_tn"
HGEMM = "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x3_tn"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
ATTENTION = "attn_fwd"


def small(folder: Path) -> Trace:
    return job(
        folder,
        [
            kernel(SGEMM, 0, 60),
            kernel(HGEMM, 100, 20),
            kernel(HGEMM, 200, 10),
            kernel(ATTENTION, 300, 10),
            kernel(ADD, 400, 20),
            kernel("mine", 500, 5),
            kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 600, 1000),
            kernel("Memcpy DtoD", 2000, 1000, cat="gpu_memcpy"),
        ],
        [kernel(ADD, 0, 7)],
    )


def test_each_compute_kernel_has_its_parts(tmp_path: Path) -> None:
    frame = kernel_classes(small(tmp_path))
    assert analysis.kernel_classes is kernel_classes
    rows = frame[["rank", "name", "kind", "count", "time_ns", "pct"]].to_dict("records")
    assert [tuple(row.values()) for row in rows] == [
        (0, SGEMM, "gemm: SIMT fp32", 1, 60, 48.0),
        (0, HGEMM, "gemm: 16-bit tensor cores", 2, 30, 24.0),
        (0, ADD, "elementwise", 1, 20, 16.0),
        (0, ATTENTION, "attention: unknown unit", 1, 10, 8.0),
        (1, ADD, "elementwise", 1, 7, 100.0),
        (0, "mine", "unknown", 1, 5, 4.0),
    ]
    half = frame[frame["name"] == HGEMM].iloc[0]
    parts = ("library", "operation", "unit", "tile", "layout", "stages")
    assert [half[part] for part in parts] == ["cuBLAS", "gemm", "tensor_16bit", "128x64x64", "tn", 3]
    assert all(pd.isna(half[part]) for part in ("split_k", "alignment", "epilogue"))
    assert frame["pct"].groupby(frame["rank"]).sum().tolist() == [100.0, 100.0]


def test_the_sentence_is_about_matrix_products(tmp_path: Path) -> None:
    trace = small(tmp_path)
    assert sentence(kernel_classes(trace)) == (
        "Matrix products, convolutions and attention take 75.8 % of the time of compute kernels. Of that, "
        "60.0 % runs on SIMT fp32. Another 30.0 % runs on 16-bit tensor cores. Another 10.0 % runs on units "
        "that their names do not show."
    )
    assert sentence(kernel_classes(trace, Scope(ranks=(1,)))) == (
        "No kernel's name shows a matrix product in 7 ns of compute kernels."
    )
    assert (
        sentence(kernel_classes(trace, Scope(names=("none",))))
        == "No compute kernel belongs to the selection."
    )


def test_a_bar_for_each_kind(tmp_path: Path) -> None:
    table = marks(ANALYSIS.chart, kernel_classes(small(tmp_path))).table
    assert dict(zip(table["label"], table["value"], strict=True)) == {
        "gemm: SIMT fp32": 60, "gemm: 16-bit tensor cores": 30, "elementwise": 27,
        "attention: unknown unit": 10, "unknown": 5,
    }  # fmt: skip


def test_a_host_alone_has_no_kernels(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="device events"):
        kernel_classes(job(tmp_path, [event("cpu_op", "aten::mm", 0, 10)]))


@pytest.mark.parametrize(
    ("name", "pattern", "kind"),
    [
        ("hta/ns_resolution_trace", "_sgemm_", "gemm: SIMT fp32"),
        ("hta/critical_path/alexnet", "sm80_xmma_", "convolution: TF32 tensor cores"),
        ("tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", "_B_BS_", "gemm: 16-bit tensor cores"),
    ],
)
def test_time_of_a_kind_is_that_of_its_names(name: str, pattern: str, kind: str) -> None:
    path = shared_trace(name)
    file = path if path.is_file() else next(iter(sorted(path.glob("*.json*"))))
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    spent: Counter[str] = Counter()
    for item in json.loads(text, parse_float=Decimal)["traceEvents"]:
        if item.get("ph") == "X" and str(item.get("cat")).lower() == "kernel" and pattern in item["name"]:
            spent[item["name"]] += int(item["dur"] * 1000)
    frame = kernel_classes(Trace.open(path))
    found = frame[frame["name"].str.contains(pattern, regex=False)]
    assert len(found) and set(found["kind"]) == {kind}
    assert found.groupby("name")["time_ns"].sum().to_dict() == spent
