"""Peaks of devices: found by the name where it tells the model, unknown where it does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hta_widgets import Trace
from hta_widgets.analysis.kernels import peaks as module
from hta_widgets.analysis.kernels.datasheets import ACHIEVABLE, DATASHEETS
from hta_widgets.analysis.kernels.peaks import Peaks, compute_capability, peaks_of, peaks_of_rank
from hta_widgets.analysis.kernels.units import UNITS
from tests.support import shared_trace

GIB = 2**30
# Names as drivers write them, with their memory in GiB where the name leaves it open.
MODELS = {
    ("Tesla V100-SXM2-16GB", None): "V100 SXM",
    ("Tesla V100-SXM3-32GB", None): "V100 SXM",
    ("Tesla V100-PCIE-32GB", None): "V100 PCIe",
    ("Tesla V100S-PCIE-32GB", None): "V100S PCIe",
    ("Tesla T4", None): "T4",
    ("A100-SXM4-40GB", None): "A100 40GB",
    ("NVIDIA A100-SXM4-80GB", None): "A100 80GB SXM",
    ("NVIDIA A100 80GB PCIe", None): "A100 80GB PCIe",
    ("NVIDIA A100-PCIE-40GB", None): "A100 40GB",
    ("NVIDIA A100-PG509-200", 39): "A100 40GB",
    ("NVIDIA A100-PG509-200", 79): "A100 80GB SXM",
    ("NVIDIA A800-SXM4-80GB", None): "A100 80GB SXM",
    ("NVIDIA A10", None): "A10",
    ("NVIDIA A30", None): "A30",
    ("NVIDIA A40", None): "A40",
    ("NVIDIA RTX A6000", None): "RTX A6000",
    ("NVIDIA RTX 6000 Ada Generation", None): "RTX 6000 Ada",
    ("NVIDIA GeForce RTX 3090", None): "RTX 3090",
    ("NVIDIA GeForce RTX 4090", None): "RTX 4090",
    ("NVIDIA L4", None): "L4",
    ("NVIDIA L40", None): "L40",
    ("NVIDIA L40S", None): "L40S",
    ("NVIDIA H100 80GB HBM3", 79): "H100 SXM",
    ("NVIDIA H100 PCIe", None): "H100 PCIe",
    ("NVIDIA H100 NVL", None): "H100 NVL",
    ("NVIDIA H800", None): "H800",
    ("NVIDIA H20", None): "H20",
    ("NVIDIA H200", None): "H200",
    ("NVIDIA H200 NVL", None): "H200 NVL",
    ("NVIDIA GH200 480GB", 95): "GH200 96GB",
    ("NVIDIA GH200 144G HBM3e", 139): "GH200 144GB",
    ("NVIDIA B200", None): "B200",
    ("NVIDIA GB200", None): "GB200",
    ("AMD Instinct MI210", None): "MI210",
    ("AMD Instinct MI250X", None): "MI250X",
    ("AMD Instinct MI300A", None): "MI300A",
    ("AMD Instinct MI300X", None): "MI300X",
    ("AMD Instinct MI300X VF", None): "MI300X",
    ("AMD Instinct MI325X", None): "MI325X",
    ("AMD Instinct MI355X", None): "MI355X",
}
UNKNOWN = {
    ("", None),
    ("GPU", None),
    ("NVIDIA A100-PG509-200", None),  # 40 or 80 GB
    ("NVIDIA A100-SXM-64GB", 63),
    ("NVIDIA A100X", 79),
    ("NVIDIA A10G", None),
    ("NVIDIA H20-3e", None),
    ("NVIDIA H100 64GB HBM2", None),
    ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None),
    ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
    ("NVIDIA GeForce RTX 4090 D", None),
    ("NVIDIA GH200 480GB", None),
    ("AMD Radeon Graphics", None),
    ("AMD Instinct MI250X/MI250", None),
    ("Tesla P100-PCIE-16GB", None),
}


@pytest.mark.parametrize(("device", "model"), MODELS.items(), ids=lambda value: str(value))
def test_the_name_tells_the_model(device: tuple[str, int | None], model: str) -> None:
    name, memory = device
    found = peaks_of(name, memory * GIB if memory else None)
    assert found is not None and found.device == model


@pytest.mark.parametrize("device", sorted(UNKNOWN, key=str))
def test_what_the_name_leaves_open_is_unknown(device: tuple[str, int | None]) -> None:
    name, memory = device
    assert peaks_of(name, memory * GIB if memory else None) is None


def test_figures_of_datasheets() -> None:
    h100 = peaks_of("NVIDIA H100 80GB HBM3")
    assert h100 is not None and h100.memory_gb_s == 3352
    assert h100.tflops == {
        "simt_fp64": 33.5, "simt_fp32": 66.9, "tensor_fp64": 66.9, "tensor_tf32": 494.7,
        "tensor_16bit": 989.4, "tensor_8bit": 1978.9,
    }  # fmt: skip
    assert h100.source == "NVIDIA H100 whitepaper"
    v100 = peaks_of("Tesla V100-SXM2-16GB")
    assert v100 is not None and v100.memory_gb_s == 900
    assert v100.tflops == {"simt_fp64": 7.8, "simt_fp32": 15.7, "tensor_16bit": 125}
    h100_pcie, b200, gb200 = map(peaks_of, ("NVIDIA H100 PCIe", "NVIDIA B200", "NVIDIA GB200"))
    assert h100_pcie is not None and b200 is not None and gb200 is not None
    assert h100_pcie.memory_gb_s == 1593e6 * 2 * 5120 / 8 // 1e9
    assert (b200.memory_gb_s, gb200.memory_gb_s) == (7700, 8000)
    assert b200.tflops["tensor_tf32"] == b200.tflops["tensor_16bit"] / 2
    mi300 = peaks_of("AMD Instinct MI300X")
    assert mi300 is not None and mi300.achievable["tensor_16bit"] == 708 and mi300.achievable_source


@pytest.mark.parametrize("model", DATASHEETS)
def test_more_bits_are_never_faster(model: str) -> None:
    tflops, memory, source = DATASHEETS[model]
    falling = ("tensor_4bit", "tensor_8bit", "tensor_16bit", "tensor_tf32", "tensor_fp64")
    rates = [tflops[unit] for unit in falling if unit in tflops]
    assert rates == sorted(rates, reverse=True)
    assert set(tflops) <= set(UNITS) and {"simt_fp32", "tensor_16bit"} <= set(tflops)
    assert 300 <= memory <= 8000 and source.startswith(("NVIDIA", "AMD"))


def test_what_is_achieved_lies_below_the_peak() -> None:
    for model, (achievable, source) in ACHIEVABLE.items():
        assert all(reached < DATASHEETS[model][0][unit] for unit, reached in achievable.items()) and source


@pytest.fixture
def own() -> Iterator[Peaks]:
    peaks = Peaks("ours", {"tensor_16bit": 400.0}, 1000.0, "measured here")
    yield peaks
    module.unregister_peaks(peaks)


def test_registered_peaks_come_first(own: Peaks) -> None:
    module.register_peaks("a100", own)
    assert peaks_of("NVIDIA A100-SXM4-80GB") is own and module.registered() == (own,)
    latest = Peaks("later", {}, 1.0, "")
    module.register_peaks("A100-SXM", latest)
    assert peaks_of("NVIDIA A100-SXM4-80GB") is latest
    module.unregister_peaks(latest)
    assert peaks_of("NVIDIA A100-SXM4-80GB") is own


def test_wrong_peaks_are_refused(own: Peaks) -> None:
    with pytest.raises(ValueError, match="no such unit"):
        Peaks("x", {"bf16": 1.0}, 1.0, "")  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="positive"):
        Peaks("x", {"simt_fp32": 0.0}, 1.0, "")
    with pytest.raises(ValueError, match="not a regular expression"):
        module.register_peaks("(", own)


def rank_of(folder: Path, *devices: dict[str, object], used: tuple[int, ...] = (0,)) -> Peaks | None:
    kernels = [
        {"ph": "X", "cat": "kernel", "name": "k", "pid": number, "tid": 7, "ts": 1.0, "dur": 1.0,
         "args": {"device": number, "stream": 7}}
        for number in used
    ]  # fmt: skip
    path = folder / "rank0.json"
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": devices, "traceEvents": kernels}))
    return peaks_of_rank(Trace.open(path).rank(0))


V100: dict[str, object] = {"id": 0, "name": "Tesla V100-SXM2-16GB", "totalGlobalMem": 16 * GIB}
UNNAMED: dict[str, object] = {
    "id": 0, "name": "", "totalGlobalMem": 206141652992, "warpSize": 64, "computeMajor": 9, "computeMinor": 4,
    "numSms": 304,
}  # fmt: skip


def test_the_device_that_is_used_counts(tmp_path: Path) -> None:
    h100 = {"id": 1, "name": "NVIDIA H100 80GB HBM3"}
    for used, model in (((0,), "V100 SXM"), ((1,), "H100 SXM"), ((0, 1), None)):
        found = rank_of(tmp_path, V100, h100, used=used)
        assert (found.device if found else None) == model


def test_amd_devices_without_a_name_are_known_by_what_they_are(tmp_path: Path) -> None:
    def model(**changes: object) -> str | None:
        found = rank_of(tmp_path, {**UNNAMED, **changes})
        return found.device if found else None

    assert model() == "MI300X"
    assert model(totalGlobalMem=256 * GIB) == "MI325X"
    assert model(name="AMD Radeon Graphics", computeMinor=0, numSms=104, totalGlobalMem=64 * GIB) == "MI210"
    assert (
        model(name="AMD Instinct MI250X/MI250", computeMinor=0, numSms=110, totalGlobalMem=64 * GIB)
        == "MI250X"
    )
    assert model(warpSize=32) is None
    assert model(numSms=80) is None
    assert model(totalGlobalMem="much") is None
    assert model(name=None) == "MI300X"
    assert rank_of(tmp_path) is None


HOPPER, AMPERE = "sm90_xmma_gemm_bf16", "ampere_bf16_s16816gemm"


@pytest.mark.parametrize(
    ("names", "capability"),
    [
        (("gemm", HOPPER), (9, 0)),
        (("gemm", AMPERE), (8, 0)),
        ((AMPERE, HOPPER), (9, 0)),
        (("gemm", "volta_sgemm_128x64_nn"), None),
        (("gemm", "ncclDevKernel_AllReduce_sm90"), None),
    ],
)
def test_kernels_say_the_least_that_their_device_can(tmp_path: Path, names, capability) -> None:
    """Where no properties of devices are recorded; one kernel is enough, communication says nothing."""
    kernels = [
        {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 1.0 + at, "dur": 1.0,
         "args": {"device": 0, "stream": 7}}
        for at, name in enumerate(names)
    ]  # fmt: skip
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": kernels}))
    assert compute_capability(Trace.open(path).rank(0)) == capability


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("hta/ns_resolution_trace", "V100 SXM"),
        ("hta/nccl_parser_config", "A100 40GB"),
        ("tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", "H100 SXM"),
        ("tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", "MI300X"),
        ("hta/mtia_inference_trace", None),
    ],
)
def test_devices_of_recordings(name: str, model: str | None) -> None:
    trace = Trace.open(shared_trace(name))
    found = peaks_of_rank(trace.rank(trace.ranks[0]))
    assert (found.device if found else None) == model
