"""How far operators are from their device's roofs, by hand and against the plain JSON."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hta_widgets import Trace, analysis
from hta_widgets.analysis.operators.roofline import ANALYSIS, roofline, sentence
from hta_widgets.errors import MissingDataError
from tests.analysis.kineto_file import Event, event, kernel, launch, write
from tests.support import shared_trace

TF32 = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4>(T1::Params)"
SIMT = "ampere_sgemm_128x64_tn"
COPY = "void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda>(int)"
US = 1000


def operator(name: str, at: int, work: str, dur: int, *shapes: list[int], kind: str = "float") -> list[Event]:
    """An operator that launches one kernel of this length, 10 ms after the one before."""
    start = at * 10_000 * US
    types = {"Input Dims": list(shapes), "Input type": [kind] * len(shapes)} if shapes else {}
    return [
        event("cpu_op", name, start, 50 * US, **types),
        launch(start + 10 * US, at, dur=5 * US),
        kernel(work, start + 100 * US, dur, correlation=at),
    ]


def opened(folder: Path, *operators: list[Event], device: str = "NVIDIA A100-SXM4-40GB") -> Trace:
    path = write(folder / "0.json", [item for events in operators for item in events])
    head = f'"schemaVersion": 1, "deviceProperties": {json.dumps([{"id": 0, "name": device}])}'
    path.write_text(path.read_text().replace('"schemaVersion": 1', head))
    return Trace.open({0: path}, cache=False)


SQUARE = ([1024, 1024], [1024, 1024])


def test_a_product_is_measured_by_the_unit_of_its_kernel(tmp_path: Path) -> None:
    """2 * 1024**3 operations in 100 us are 21.5 TFLOP/s; 3 * 4 MiB in 100 us are 126 GB/s."""
    fast = roofline(opened(tmp_path, operator("aten::mm", 1, TF32, 100 * US, *SQUARE))).iloc[0]
    assert (fast["unit"], fast["bound"], fast["device"]) == ("tensor_tf32", "compute", "A100 40GB")
    rate = 2 * 1024**3 / 100e-6 / 1e12
    assert fast["tflops_s"] == pytest.approx(rate) and fast["gb_s"] == pytest.approx(3 * 2**22 / 100e3)
    assert fast["efficiency_pct"] == pytest.approx(100 * rate / 156)
    assert fast["headroom_ns"] == round(100 * US * (1 - rate / 156))
    assert (fast["peak_tflops_s"], fast["peak_gb_s"]) == (156, 1555)
    slow = roofline(opened(tmp_path, operator("aten::mm", 1, SIMT, 150 * US, *SQUARE))).iloc[0]
    assert slow["unit"] == "simt_fp32" and slow["efficiency_pct"] == pytest.approx(100 * rate / 1.5 / 19.5)


def test_a_thin_product_waits_for_memory(tmp_path: Path) -> None:
    row = roofline(opened(tmp_path, operator("aten::mm", 1, TF32, 10 * US, [1, 1024], [1024, 1024]))).iloc[0]
    moved = 4 * (1024 + 1024 * 1024 + 1024)
    assert row["bound"] == "memory"
    assert row["efficiency_pct"] == pytest.approx(100 * moved / 10e3 / 1555)


def test_most_headroom_comes_first_and_what_is_unknown_last(tmp_path: Path) -> None:
    trace = opened(
        tmp_path,
        operator("aten::add", 1, COPY, 900 * US, *SQUARE),
        operator("aten::bmm", 5, "my_own_kernel", 950 * US, [1, 512, 512], [1, 512, 512]),
        operator("aten::mm", 2, TF32, 100 * US, *SQUARE),
        operator("aten::addmm", 3, TF32, 300 * US, [1024], *SQUARE),
        operator("aten::mine", 4, COPY, 400 * US, [4]),
    )
    frame = roofline(trace)
    assert frame["name"].tolist() == ["aten::add", "aten::addmm", "aten::mm", "aten::bmm"]
    assert frame["bound"].tolist()[:3] == ["memory", "compute", "compute"]
    assert frame[["unit", "bound", "headroom_ns"]].iloc[3].isna().all()  # who knows on what it multiplies
    named = analysis.operators(trace).set_index("name")["bound"]
    assert named.dropna().to_dict() == frame.set_index("name")["bound"].dropna().to_dict()
    begin = (
        "At the peaks of the device (A100 40GB), operators with a formula would take 2.74 % of their 1.30 ms."
    )
    assert sentence(frame).startswith(f"{begin} The largest part of the rest, 892 µs, is in aten::add, ")


def test_what_only_moves_an_unknown_amount_has_no_roof(tmp_path: Path) -> None:
    shapes = operator("aten::fill_", 1, COPY, 100 * US, [1 << 20], kind="")
    product = operator("aten::mm", 2, TF32, 100 * US, *SQUARE)
    frame = roofline(opened(tmp_path, shapes, product)).set_index("name")
    missing = frame.reindex(["aten::fill_"]).iloc[0][["bound", "efficiency_pct", "headroom_ns"]]
    assert missing.isna().all() and frame.loc["aten::mm", "bound"] == "compute"


def test_a_product_on_an_unknown_unit_has_no_roof(tmp_path: Path) -> None:
    thing = "void marlin::Marlin<1, 2>(x)"
    row = roofline(opened(tmp_path, operator("aten::mm", 1, thing, 100 * US, *SQUARE))).iloc[0]
    missing = row[["unit", "bound", "efficiency_pct", "headroom_ns", "peak_tflops_s"]]
    assert missing.isna().all() and row["tflops_s"] > 0


def test_an_unknown_device_has_only_achieved_figures(tmp_path: Path) -> None:
    trace = opened(tmp_path, operator("aten::mm", 1, TF32, 100 * US, *SQUARE), device="Future 1")
    frame = roofline(trace)
    assert frame["tflops_s"].iloc[0] > 20 and frame["headroom_ns"].isna().all()
    assert sentence(frame).endswith("is unknown: its peaks are not known.")
    assert len(ANALYSIS.figure(frame).data) == 1  # the mark, without ceilings


def test_shapes_are_needed(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="record_shapes"):
        roofline(opened(tmp_path, operator("aten::mm", 1, TF32, 100 * US)))
    with pytest.raises(ValueError, match="by must be"):
        roofline(opened(tmp_path, operator("aten::mm", 1, TF32, US, *SQUARE)), by="module")  # type: ignore[arg-type]


def test_kernels_share_the_time_of_the_calls_that_they_lead(tmp_path: Path) -> None:
    """A product of two kernels is one call of the longer one, with the time of both, and counts once."""
    split = operator("aten::addmm", 2, TF32, 300 * US, [1024], *SQUARE)
    split += [launch(20_020 * US, 90, dur=US), kernel(COPY, 21_000 * US, 100 * US, correlation=90)]
    inner = operator("aten::linear", 3, COPY, 30 * US, *SQUARE)
    product = operator("aten::mm", 3, TF32, 100 * US, *SQUARE)[0]
    inner[0]["dur"] = 9_000 * US
    inner += [event("cpu_op", "aten::mm", 30_100 * US, 90 * US, **product["args"])]
    inner += [launch(30_150 * US, 91, dur=US), kernel(TF32, 32_000 * US, 100 * US, correlation=91)]
    trace = opened(
        tmp_path,
        split,
        inner,
        operator("aten::add", 5, COPY, 50 * US, *SQUARE),
        operator("aten::mine", 6, COPY, 70 * US),
    )
    frame = roofline(trace, by="kernel").set_index("name")
    assert frame["calls"].to_dict() == {TF32: 2, COPY: 1}
    assert frame["device_self_ns"].to_dict() == {TF32: 530 * US, COPY: 50 * US}
    flops = 2 * 2 * 1024**3 + 1024**2
    assert frame.loc[TF32, "tflops_s"] == pytest.approx(flops / (530 * US) / 1e3, rel=1e-3)
    assert frame["device_self_pct"].sum() == pytest.approx(100 * 580 / 650)
    assert set(frame["unit"].dropna()) == {"tensor_tf32"} and set(frame["category"]) == {""}


def test_peaks_can_be_stated_for_one_answer(tmp_path: Path) -> None:
    trace = opened(tmp_path, operator("aten::mm", 1, TF32, 100 * US, *SQUARE))
    usual, name = roofline(trace).iloc[0], "A100 40GB"
    peaks = {name: {"tflops": {"tensor_tf32": 100}, "achievable": {"tensor_tf32": 80.0}}}
    row = roofline(trace, peaks=peaks).iloc[0]
    assert (row["peak_tflops_s"], row["achievable_tflops_s"], row["peak_gb_s"]) == (100, 80, 1555)
    assert row["efficiency_pct"] == pytest.approx(usual["efficiency_pct"] * 1.56)
    assert row["source"] == "entered by hand; else NVIDIA A100 datasheet"
    slow = roofline(trace, peaks={name: {"memory_gb_s": 150}}).iloc[0]
    assert (slow["bound"], slow["efficiency_pct"]) == ("memory", pytest.approx(100 * 3 * 2**22 / 100e3 / 150))
    # of another device, and nothing stated, change nothing
    for other in ({"H100 SXM": {"memory_gb_s": 1}}, {name: {}}, None):
        assert roofline(trace, peaks=other).iloc[0].equals(usual)


def test_peaks_of_a_device_without_a_datasheet(tmp_path: Path) -> None:
    trace = opened(tmp_path, operator("aten::mm", 1, TF32, 100 * US, *SQUARE), device="Future 1")
    assert roofline(trace)["device"].tolist() == ["Future 1"]
    row = roofline(trace, peaks={"Future 1": {"memory_gb_s": 1000, "tflops": {"tensor_tf32": 50}}}).iloc[0]
    assert row["efficiency_pct"] == pytest.approx(100 * 2 * 1024**3 / 100e-6 / 1e12 / 50)
    assert row["source"] == "entered by hand"
    with pytest.raises(ValueError, match="memory_gb_s of 'Future 1' is needed"):
        roofline(trace, peaks={"Future 1": {"tflops": {"tensor_tf32": 50}}})


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        ({"memory_gb_s": 0}, "must be above 0"),
        ({"memory_gb_s": float("nan")}, "must be above 0"),
        ({"memory_gb_s": float("inf")}, "at most 1e"),
        ({"memory_gb_s": "900"}, "must be a number"),
        ({"memory_gb_s": True}, "must be a number"),
        ({"tflops": {"tensor_tf32": -1}}, "must be above 0"),
        ({"tflops": {"tensor_3bit": 1}}, "no such unit"),
        ({"tflops": [1]}, "dict by unit"),
        ({"tflop": {}}, "tflop is none of"),
        ({"achievable": {"tensor_tf32": 157}}, "above the peak, 156"),
        (5, "must be a dict"),
    ],
)
def test_peaks_that_cannot_be_are_refused(tmp_path: Path, own: Any, reason: str) -> None:
    trace = opened(tmp_path, operator("aten::mm", 1, TF32, 100 * US, *SQUARE))
    with pytest.raises(ValueError, match=reason):
        roofline(trace, peaks={"A100 40GB": own})


def test_faster_than_memory_is_no_negative_headroom(tmp_path: Path) -> None:
    row = roofline(opened(tmp_path, operator("aten::mm", 1, SIMT, 1 * US, [512, 512], [512, 512]))).iloc[0]
    assert row["efficiency_pct"] > 100 and row["headroom_ns"] == 0


def test_the_figure_has_both_ceilings(tmp_path: Path) -> None:
    frame = roofline(opened(tmp_path, operator("aten::mm", 1, TF32, 100 * US, *SQUARE)))
    figure = ANALYSIS.figure(frame)
    mark, roof = figure.data
    assert mark.x[0] == pytest.approx(2 * 1024**3 / (3 * 2**22)) and mark.y[0] == pytest.approx(
        21.47, abs=0.01
    )
    assert roof.y[-1] == roof.y[1] == 156 and roof.y[0] == pytest.approx(roof.x[0] * 1555 / 1e3)
    assert roof.x[1] == pytest.approx(156e3 / 1555)
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", 989.4),
        ("tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", 1307.4),
    ],
)
def test_products_of_recordings(name: str, peak: float) -> None:
    """Every aten::mm by its own External id: 2MNK, and the time of the kernels that carry it."""
    path = shared_trace(name)
    events: list[dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    spent: dict[int, float] = defaultdict(float)
    for item in events:
        if item.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy"):
            spent[item["args"].get("External id", -1)] += item["dur"]
    flops = time = 0.0
    for item in events:
        if item.get("cat") == "cpu_op" and item["name"] == "aten::mm":
            (m, k), (_, n) = item["args"]["Input Dims"][:2]
            flops, time = flops + 2 * m * n * k, time + spent[item["args"]["External id"]]
    trace = Trace.open(path)
    frame = roofline(trace).set_index("name")
    row = frame.loc["aten::mm"]
    assert row["tflops_s"] == pytest.approx(flops / time / 1e6, rel=1e-3)
    assert row["efficiency_pct"] == pytest.approx(100 * flops / time / 1e6 / peak, rel=1e-3)
    assert row["headroom_ns"] == pytest.approx(1e3 * time * (1 - flops / time / 1e6 / peak), rel=1e-3)
    assert np.all(np.diff(frame["headroom_ns"].dropna().to_numpy(np.int64)) <= 0)
    # each nanosecond with a formula is in one row, whatever the rows are
    coverage = analysis.formula_coverage(trace).groupby("state")["device_ns"].sum()
    for by in ("name", "shapes", "kernel"):
        assert roofline(trace, by=by)["device_self_ns"].sum() == coverage["formula"]
