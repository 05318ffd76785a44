"""How fast a device can be: peaks of its units and of its memory, by its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.datasheets import ACHIEVABLE, DATASHEETS
from hta_widgets.analysis.kernels.units import UNITS, Unit
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import unique
from hta_widgets.trace.rank_trace import RankTrace

_OF_HOPPER = re.compile(r"(?:^|[^a-z0-9])sm_?(?:90|1[0-9]{2})|nvjet|hopper", re.IGNORECASE)
_OF_AMPERE = re.compile(r"^ampere_|(?:^|[^a-z0-9])sm_?8[069]|cutlass_?8[069]", re.IGNORECASE)


@dataclass(frozen=True)
class Peaks:
    """What a device could do at most.

    Attributes:
        device: its model.
        tflops: dense peak of each unit, in 1e12 operations per second; units that are left out are unknown.
        memory_gb_s: peak bandwidth of its memory, in 1e9 bytes per second.
        source: who says so.
        achievable: what the best matrix products reach of ``tflops``, for the units where that is known.
        achievable_source: who measured that, "" where nothing is known.
    """

    device: str
    tflops: Mapping[Unit, float]
    memory_gb_s: float
    source: str
    achievable: Mapping[Unit, float] = field(default_factory=dict)
    achievable_source: str = ""

    def __post_init__(self) -> None:
        unknown = sorted({*self.tflops, *self.achievable} - set(UNITS))
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: no such unit; there are {', '.join(UNITS)}")
        if not all(peak > 0 for peak in (*self.tflops.values(), *self.achievable.values(), self.memory_gb_s)):
            raise ValueError("peaks must be positive")


_registered: list[tuple[re.Pattern[str], Peaks]] = []


def register_peaks(pattern: str, peaks: Peaks) -> Peaks:
    """State the peaks of a device, before those that are built in; the latest comes first.

    Args:
        pattern: regular expression, searched in the device's name, whatever its case.
        peaks: what the device can do.

    Returns:
        The same peaks.

    Raises:
        ValueError: the pattern is not a regular expression.
    """
    try:
        compiled = re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
    _registered.insert(0, (compiled, peaks))
    return peaks


def unregister_peaks(peaks: Peaks) -> None:
    """Remove the peaks that `register_peaks` added."""
    _registered[:] = [entry for entry in _registered if entry[1] is not peaks]


def registered() -> tuple[Peaks, ...]:
    """The peaks that `register_peaks` added, the latest first."""
    return tuple(peaks for _, peaks in _registered)


def peaks_of(device_name: str, memory_bytes: int | None = None) -> Peaks | None:
    """The peaks of a device.

    Args:
        device_name: as in ``deviceProperties``, such as "NVIDIA A100-SXM4-80GB".
        memory_bytes: ``totalGlobalMem``: it distinguishes models whose names are the same.

    Returns:
        The peaks, or None for a device that is not known, or whose memory would have to be known.
    """
    for pattern, peaks in _registered:
        if pattern.search(device_name):
            return peaks
    found = next((model for pattern, model in _MODELS if pattern.search(device_name)), None)
    model = found(device_name, memory_bytes) if callable(found) else found
    return _datasheet(model) if model else None


def peaks_of_rank(rank_trace: RankTrace) -> Peaks | None:
    """The peaks of the device that a rank used; None if it is unknown, or used devices of several models.

    Some recordings of AMD devices have no name for them, or that of their driver. Their architecture, compute
    units and memory tell what they are.
    """
    found = [_of_properties(device) for device in _used_devices(rank_trace)]
    return found[0] if found and all(peaks == found[0] for peaks in found) else None


def recorded_name(rank_trace: RankTrace) -> str:
    """The name of the device that a rank used; "" if there is none, or several."""
    names = {device.get("name") for device in _used_devices(rank_trace)}
    name = names.pop() if len(names) == 1 else None
    return name.strip() if isinstance(name, str) else ""


def compute_capability(rank_trace: RankTrace) -> tuple[int, int] | None:
    """Of the NVIDIA device that a rank used, such as (8, 6); None where it is not recorded.

    Without the properties of devices it is the least that its kernels are built for, by their names, if that
    is Ampere or later: devices before may run what is built for older ones.
    """
    if not rank_trace.metadata.get("deviceProperties"):
        return _built_for(rank_trace)
    found = {
        (device.get("computeMajor"), device.get("computeMinor"))
        for device in _used_devices(rank_trace)
        if device.get("warpSize") != _AMD_WAVE and not _OF_AMD.search(str(device.get("name")))
    }
    major, minor = found.pop() if len(found) == 1 else (None, None)
    return (major, minor) if type(major) is int and type(minor) is int else None


@memoize_per_rank()
def _built_for(rank_trace: RankTrace) -> tuple[int, int] | None:
    kernels = rank_trace.is_device & (rank_trace.event_class == EventClass.COMPUTE)
    names = [rank_trace.names[code] for code in unique(rank_trace.name[kernels]).tolist()]
    if any(_OF_HOPPER.search(name) for name in names):
        return 9, 0
    return (8, 0) if any(_OF_AMPERE.search(name) for name in names) else None


def _used_devices(rank_trace: RankTrace) -> list[dict[str, Any]]:
    recorded: Any = rank_trace.metadata.get("deviceProperties")
    known = [device for device in recorded if isinstance(device, dict)] if isinstance(recorded, list) else []
    numbers = _device_numbers(rank_trace)
    return [device for device in known if device.get("id") in numbers] or known


@memoize_per_rank()
def _device_numbers(rank_trace: RankTrace) -> frozenset[int]:
    return frozenset(unique(rank_trace.device[rank_trace.is_device]).tolist())


def _of_properties(device: dict[str, Any]) -> Peaks | None:
    name, memory = device.get("name"), device.get("totalGlobalMem")
    memory = memory if type(memory) is int and memory > 0 else None
    by_name = peaks_of(name, memory) if isinstance(name, str) else None
    return by_name or _of_architecture(device, memory)


def _of_architecture(device: dict[str, Any], memory: int | None) -> Peaks | None:
    if device.get("warpSize") != _AMD_WAVE or memory is None:
        return None
    key = tuple(device.get(part) for part in ("computeMajor", "computeMinor", "numSms"))
    model = next((model for known, most, model in _AMD if known == key and memory <= most), None)
    return _datasheet(model) if model else None


def _datasheet(model: str) -> Peaks:
    tflops, memory, source = DATASHEETS[model]
    achievable, measured = ACHIEVABLE.get(model, ({}, ""))
    return Peaks(model, tflops, memory, source, achievable, measured)


def _a100(name: str, memory_bytes: int | None) -> str | None:
    """40 or 80 GB, by the name or else the memory; only of 80 GB do the form factors differ."""
    stated = re.search(r"(\d+)\s?GB", name, re.IGNORECASE)
    gigabytes = int(stated[1]) if stated else round((memory_bytes or 0) / 2**30)
    if 75 <= gigabytes <= 80:
        return "A100 80GB PCIe" if re.search("PCIE", name, re.IGNORECASE) else "A100 80GB SXM"
    return "A100 40GB" if 37 <= gigabytes <= 40 else None


def _gh200(name: str, memory_bytes: int | None) -> str | None:
    """By the memory of the device: the number in the name is the host's."""
    if memory_bytes is None:
        return None
    return "GH200 144GB" if memory_bytes > 120e9 else "GH200 96GB"


_Model = str | None | Callable[[str, int | None], str | None]

# The first that is found in the name decides; None: a device that nothing is known of.
_MODELS: tuple[tuple[re.Pattern[str], _Model], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), model)
    for pattern, model in (
        (r"\bMIG\b|\bLaptop\b", None),  # a slice of a device, and a slower one of the same name
        (r"\bV100S\b", "V100S PCIe"),
        (r"\bV100.*PCIE\b", "V100 PCIe"),
        (r"\bV100\b", "V100 SXM"),
        (r"\bT4\b", "T4"),
        (r"\bA[18]00\b", _a100),
        (r"\bH[18]00.*PCIE\b", "H100 PCIe"),
        (r"\bH100.*NVL\b", "H100 NVL"),
        (r"\bH[12]00.*\b(?:64|96)\s?GB\b", None),  # made for one customer, with other memory
        (r"\bH100\b", "H100 SXM"),
        (r"\bH20-3e\b|\bMI250X/MI250\b", None),
        (r"\bH200.*NVL\b", "H200 NVL"),
        (r"\bGH200\b", _gh200),
        (r"\bRTX (?:3090|4090)\b(?!$)", None),  # other models whose names go on
        *((rf"\b{re.escape(model)}\b", model) for model in DATASHEETS),
    )
)

_OF_AMD = re.compile(r"\b(?:AMD|Radeon|Instinct|gfx\d)", re.IGNORECASE)
_AMD_WAVE = 64  # threads of a wave; NVIDIA's warps have 32
# Architecture and compute units, the most memory in bytes, and the model.
_AMD = (
    ((9, 0, 104), 70e9, "MI210"),
    ((9, 0, 110), 70e9, "MI250X"),
    ((9, 4, 228), 140e9, "MI300A"),
    ((9, 4, 304), 210e9, "MI300X"),
    ((9, 4, 304), 280e9, "MI325X"),
)
