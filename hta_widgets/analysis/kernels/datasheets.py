"""What datasheets say of devices: dense peaks of their units, and the bandwidth of their memory.

Peaks with structured sparsity are left out, and so is what a datasheet does not state. Consumer devices
multiply 16 bits at half speed when they add up in fp32, as PyTorch does: theirs is that peak. Of an MI250 and
MI250X, PyTorch sees each of the two dies as a device, which has half of the package. Of tensor cores the
datasheet of the RTX 6000 Ada states the sparse FP8 peak alone: the others are that by the ratios of its
architecture, as the datasheet of the L40S has them.

Where a vendor's documents differ, the finest figure counts, so that work at the limit does not lie above the
roof. The memory of an H100 PCIe has 5,120 bits at 1,593 MHz, 2,039 GB/s: its product brief says "greater than
2,000", its datasheet 2 TB/s. Of a B200, the Blackwell datasheet states 7.7 TB/s for the 180 GB of each device
of an HGX B200; 8 TB/s is the round figure of whole DGX systems, 64 TB/s for eight, and of the 186 GB of a
GB200. Its TF32 peak is 2.2 sparse PFLOP/s there, with two digits: half of the 4.5 for 16 bits, which is the
ratio of every device since the A100 and gives 1,125 dense (1,100 elsewhere is half of the rounded 2.2).
"""

from __future__ import annotations

from typing import Final

from hta_widgets.analysis.kernels.units import Unit

_COLUMNS: Final[tuple[Unit, ...]] = (
    "simt_fp64", "simt_fp32", "tensor_fp64", "tensor_fp32", "tensor_tf32", "tensor_16bit", "tensor_8bit",
    "tensor_4bit",
)  # fmt: skip

# Device: TFLOP/s in the order of the columns ("-": none, or not stated), then GB/s of its memory.
_TABLE = """
    V100 SXM          7.8   15.7  -     -     -      125    -      -       900   NVIDIA V100 datasheet
    V100 PCIe         7     14    -     -     -      112    -      -       900   NVIDIA V100 datasheet
    V100S PCIe        8.2   16.4  -     -     -      130    -      -      1134   NVIDIA V100 datasheet
    T4                -     8.1   -     -     -      65     130    260     320   NVIDIA T4 datasheet, brief
    A100 40GB         9.7   19.5  19.5  -     156    312    624    1248   1555   NVIDIA A100 datasheet
    A100 80GB SXM     9.7   19.5  19.5  -     156    312    624    1248   2039   NVIDIA A100 datasheet
    A100 80GB PCIe    9.7   19.5  19.5  -     156    312    624    1248   1935   NVIDIA A100 datasheet
    A10               -     31.2  -     -     62.5   125    250    500     600   NVIDIA A10 datasheet
    A30               5.2   10.3  10.3  -     82     165    330    661     933   NVIDIA A30 datasheet
    A40               -     37.4  -     -     74.8   149.7  299.3  598.7   696   NVIDIA A40 datasheet
    RTX A6000         -     38.7  -     -     77.4   154.8  309.7  619.3   768   NVIDIA RTX A6000 datasheet
    RTX 3090          -     35.6  -     -     35.6   71     284    568     936   NVIDIA GA102 whitepaper
    L4                -     30.3  -     -     60     121    242.5  -       300   NVIDIA L4 datasheet
    L40               -     90.5  -     -     90.5   181    362    724     864   NVIDIA L40 datasheet
    L40S              -     91.6  -     -     183    362    733    733     864   NVIDIA L40S datasheet
    RTX 6000 Ada      -     91.1  -     -     182.1  364.2  728.5  1457    960   NVIDIA RTX 6000 Ada datasheet
    RTX 4090          -     82.6  -     -     82.6   165.2  330.3  1321.2 1008 NVIDIA Ada whitepaper
    H100 SXM          33.5  66.9  66.9  -     494.7  989.4  1978.9 -      3352   NVIDIA H100 whitepaper
    H100 PCIe         25.6  51.2  51.2  -     378    756    1513   -      2039   NVIDIA H100 whitepaper, brief
    H100 NVL          30    60    60    -     417.5  835.5  1670.5 -      3938   NVIDIA H100 NVL product brief
    H800              1     66.9  1     -     494.7  989.4  1978.9 -      3352   NVIDIA H800 datasheet
    H20               1     44    1     -     74     148    296    -      4000   NVIDIA H20 datasheet
    H200              33.5  66.9  66.9  -     494.7  989.4  1978.9 -      4800   NVIDIA H200 datasheet
    H200 NVL          30    60    60    -     417.5  835.5  1670.5 -      4800   NVIDIA H200 datasheet
    GH200 96GB        33.5  66.9  66.9  -     494.7  989.4  1978.9 -      4000   NVIDIA GH200 datasheet
    GH200 144GB       33.5  66.9  66.9  -     494.7  989.4  1978.9 -      4900   NVIDIA GH200 datasheet
    B200              37    75    37    -     1125   2250   4500   9000   7700   NVIDIA Blackwell datasheet
    GB200             40    80    40    -     1250   2500   5000   10000  8000   NVIDIA GB200 NVL72 datasheet
    MI210             22.6  22.6  45.3  45.3  -      181    181    181    1638   AMD Instinct MI210 datasheet
    MI250             22.6  22.6  45.3  45.3  -      181    181    181    1638   AMD MI250 datasheet, a die
    MI250X            23.9  23.9  47.9  47.9  -      191.5  191.5  191.5  1638   AMD MI250X datasheet, a die
    MI300A            61.3  122.6 122.6 122.6 490.3  980.6  1961.2 -      5300   AMD Instinct MI300A datasheet
    MI300X            81.7  163.4 163.4 163.4 653.7  1307.4 2614.9 -      5300   AMD Instinct MI300X datasheet
    MI325X            81.7  163.4 163.4 163.4 653.7  1307.4 2614.9 -      6000   AMD Instinct MI325X datasheet
    MI350X            72.1  144.2 72.1  144.2 -      2306.9 4613.7 9227.5 8000   AMD Instinct MI350X datasheet
    MI355X            78.6  157.3 78.6  157.3 -      2516.6 5033.2 10066.3 8000 AMD Instinct MI355X datasheet
"""

Datasheet = tuple[dict[Unit, float], float, str]


def _read() -> dict[str, Datasheet]:
    sheets = {}
    for line in _TABLE.strip().splitlines():
        text = line.strip()
        device, rest = text[:16].strip(), text[16:].split(maxsplit=len(_COLUMNS) + 1)
        peaks = {unit: float(peak) for unit, peak in zip(_COLUMNS, rest, strict=False) if peak != "-"}
        sheets[device] = (peaks, float(rest[len(_COLUMNS)]), rest[-1])
    return sheets


DATASHEETS: Final[dict[str, Datasheet]] = _read()
"""Device -> dense TFLOP/s by unit, GB/s of memory, and where that is stated."""

ACHIEVABLE: Final[dict[str, tuple[dict[Unit, float], str]]] = {
    "MI300X": (
        {"tensor_16bit": 708.0, "tensor_8bit": 1273.0},
        "AMD, Measuring max-achievable FLOPs, part 2 (bf16, fp8)",
    ),
}
"""Device -> TFLOP/s that the best matrix products reach, where somebody measured and published them."""
