"""Matrix products in a precision that costs time: full fp32, and TF32 where 16 bits would do."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.claim import Claim, Said, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.evidence import evidence_of_event
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.in_passes import only_forward
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Change, Rule
from hta_widgets.analysis.findings.shorter import (
    device_of,
    known_peaks,
    longest_kernel,
    longest_run,
    running,
)
from hta_widgets.analysis.kernels.classes import MATRIX, kernel_class
from hta_widgets.analysis.kernels.peaks import compute_capability, peaks_of_rank, recorded_name
from hta_widgets.analysis.kernels.units import Unit
from hta_widgets.analysis.operators.least_times import REACHED, least_ns
from hta_widgets.analysis.operators.unaligned import unaligned_kernels
from hta_widgets.analysis.replay import edits
from hta_widgets.analysis.replay.edits import Edit
from hta_widgets.arrays import Float64, Int64
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import capitalised, percent, significant
from hta_widgets.trace.ordering import unique
from hta_widgets.trace.rank_trace import RankTrace

_LEAST_PCT = 30.0
"""A smaller share of the time of matrix products may be some parts that need the precision."""

_FASTER: Final = 2.0
"""16 bits are half the bytes of fp32: also a product that waits for memory takes half the time. Where shapes
and peaks are known, one that does not takes as long as its operations at half the peak of 16 bits (on an H100
GPT-2 in fp32 took 17.4 ms a step in bf16, by this 20.0, instead of 79.9)."""

_LEAST_NS: Final = 5_000
"""No product that takes half of its time is taken to be shorter: a kernel takes so long to start and end."""

_MOSTLY_PCT = 50.0
"""Above it, what the units of the others are does not tell whether fp32 costs time."""

_VOLTA, _AMPERE = (7, 0), (8, 0)
# Turing without tensor cores.
_WITHOUT_CORES = re.compile(r"\bGTX\b|\bT(?:400|600|1000|1200)\b|\bMX\d{3}\b")

_Units = tuple[Unit, ...]
_FULL: Final[_Units] = ("simt_fp32", "tensor_fp32")
_TF32: Final[_Units] = ("tensor_tf32",)
_DOUBLE: Final[_Units] = ("simt_fp64", "tensor_fp64")


def fp32_units(inputs: Inputs) -> Finding | None:
    """Matrix products in full fp32, on a device whose tensor cores multiply 16 bits several times as fast.

    Without the datasheet of a device of NVIDIA, its compute capability says whether it has such cores.
    """
    share, lost, unknown = _share(inputs, _FULL)
    if share <= _LEAST_PCT:
        if unknown > _MOSTLY_PCT:
            raise MissingDataError(
                f"unit in the names of {percent(unknown)} of the kernels that multiply, by time",
                "Look at the types of what these operators multiply (record_shapes=True).",
                "kernels of other libraries do not name it",
            )
        return None
    ranks = inputs.temporal["rank"].tolist()
    cores = {inputs.recorded(rank, _tensor_cores) for rank in ranks}
    if len(cores) > 1 or None in cores:
        known_peaks(
            inputs, ranks, "kernels multiply in full fp32; whether the device has faster units is unknown"
        )
        return None
    found = cores.pop()
    if not found:
        return None
    scaled = "" if only_forward(inputs) else " and a GradScaler"
    advice = f"torch.autocast with torch.float16{scaled}, which suits models that tolerate 16 bits."
    if found == "tf32":
        advice = (
            'torch.set_float32_matmul_precision("high") is one line: fp32 tensors, multiplied as TF32 with '
            "10 bits of mantissa. torch.autocast with torch.bfloat16 also halves the memory traffic."
        )
        if _convolves(inputs):
            advice = (
                "Let convolutions multiply in TF32 (torch.backends.cudnn.allow_tf32 = True) and cuDNN choose "
                "among its kernels (torch.backends.cudnn.benchmark = True). torch.autocast with "
                "torch.bfloat16 also halves the memory traffic."
            )
    elif found == "bf16":
        advice = "torch.autocast with torch.bfloat16, which also halves the memory traffic."
    return _finding(inputs, _FULL, share, lost, "in full fp32", _of_cores(inputs, ranks), advice)


def _convolves(inputs: Inputs) -> bool:
    """Whether most products in full fp32 are convolutions, for which another switch counts, by time."""
    total = inputs.kernel_times.sum(axis=1)
    full = {name: kernel_class(name) for name in total.index if kernel_class(name).unit in _FULL}
    of_convolutions = [name for name, found in full.items() if found.operation == "convolution"]
    return bool(2 * total[of_convolutions].sum() > total[list(full)].sum())


def _tensor_cores(rank_trace: RankTrace) -> str | None:
    """What the device of a rank multiplies faster than fp32: "tf32" and 16 bits, "bf16", "fp16"; "": nothing.

    None where neither its peaks nor its compute capability is known.
    """
    peaks, capability = peaks_of_rank(rank_trace), compute_capability(rank_trace)
    if peaks is not None:
        fast, full = peaks.tflops.get("tensor_16bit"), max(peaks.tflops.get(unit, 0.0) for unit in _FULL)
        if fast is None or not full or fast < _FASTER * full:
            return ""
        return "tf32" if "tensor_tf32" in peaks.tflops else "bf16" if "AMD" in peaks.source else "fp16"
    if capability is None:
        return None
    if capability < _VOLTA or _WITHOUT_CORES.search(recorded_name(rank_trace)):
        return ""
    return "tf32" if capability >= _AMPERE else "fp16"


def _of_cores(inputs: Inputs, ranks: list[int]) -> Said:
    """How much faster the tensor cores of these ranks' device are, as far as it is known."""
    try:
        peaks = known_peaks(inputs, ranks, "")
    except MissingDataError:
        name, capability = (ask(inputs.trace.rank(ranks[0])) for ask in (recorded_name, compute_capability))
        assert isinstance(capability, tuple)
        stated = inputs.trace.rank(ranks[0]).metadata.get("deviceProperties")
        has = "has compute capability" if stated else "runs kernels that are built for compute capability"
        return say(
            f"This device{{named}} {has} {{capability}}, so it has tensor cores; how fast they are is not "
            "known here.",
            named=say(" ({name})", name=Claim("recorded_device", str(name), "name", "", tuple(ranks)))
            if name
            else "",
            capability=Claim("compute_capability", "{}.{}".format(*capability), "name", "", tuple(ranks)),
        )
    full = max(peaks.tflops.get(unit, 0.0) for unit in _FULL)
    rate = peaks.tflops["tensor_16bit"] / full
    return say(
        f"{capitalised(inputs.accelerator.units)} of this device ({{device}}) multiply 16 bits at up to "
        "{rate} times that rate.",
        device=device_of(inputs, ranks),
        rate=Claim("rate_of_16_bits", rate, "x", "", tuple(ranks), shown=significant(rate)),
    )


def tf32_units(inputs: Inputs) -> Finding | None:
    """Matrix products in TF32: every device with TF32 multiplies 16 bits twice as fast."""
    share, lost, _ = _share(inputs, _TF32)
    if share <= _LEAST_PCT:
        return None
    advice = "torch.autocast with torch.bfloat16"
    if inputs.has_fsdp:
        advice += ", or FSDP's MixedPrecisionPolicy(param_dtype=torch.bfloat16)"
    advice += ": it has the exponents of fp32, so that no loss scaling is needed."
    cores = f"The same {inputs.accelerator.units} multiply 16 bits twice as fast."
    return _finding(inputs, _TF32, share, lost, "in TF32", cores, advice)


def fp64_units(inputs: Inputs) -> Finding | None:
    """Matrix products of doubles: numbers of half the size take half the time or less on every device."""
    share, lost, _ = _share(inputs, _DOUBLE)
    if share <= _LEAST_PCT:
        return None
    advice = (
        "Make tensors and the model float32: .float(), np.float32, torch.set_default_dtype; "
        'torch.set_float32_matmul_precision("high") is faster still.'
    )
    numpy = "Tensors that are made of NumPy's arrays are double unless they are converted."
    return _finding(inputs, _DOUBLE, share, lost, "in double precision", numpy, advice)


def _finding(
    inputs: Inputs, units: _Units, share: float, lost: pd.Series[float], how: str, cores: Said, advice: str
) -> Finding:
    about = inputs.temporal[inputs.temporal["rank"].isin(lost.index[lost > 0])]
    ranks, worst = about["rank"].tolist(), int(lost.index[int(lost.argmax())])
    cost = int(lost.sum() / len(about))
    pct = 100.0 * lost.sum() / int(about["window_ns"].sum())
    by_name = inputs.kernel_times[worst]
    rank_trace = inputs.trace.rank(worst)
    name = str(by_name[by_name.index.isin(_names(rank_trace, units))].idxmax())
    rows = _rows(rank_trace, units)
    rows = rows[rank_trace.overlap(rows, inputs.scope)]
    row = longest_run(rank_trace, rows, name)
    names = {rank_trace.names[code] for code in rank_trace.name[rows].tolist()}
    products = "Matrix products and convolutions {how} cost {lost} They take"
    if all(map(_is_attention, names)):
        products = "Attention in fp32 costs {lost} It takes"
        advice = "torch.autocast with torch.bfloat16: nothing else speeds up attention of fp32 tensors."
    elif any(map(_is_attention, names)):
        products = "Products {how} and attention in fp32 cost {lost} They take"
    which = {"units": units}
    known = any(inputs.of(rank, _beyond_half, units) for rank in ranks)
    measure = "lost_to_precision" if known else "half_of_products"
    into, are = ("fp32", "is") if units == _DOUBLE else ("16 bits", "are")
    lost_to = inputs.time_lost(measure, pct, cost, ranks, **which)
    text = say(
        f"{products} {{share}} of the time of matrix products, convolutions and "
        "attention. {cores} The longest of these kernels is {longest}.",
        how=how,
        lost=say(
            f"{{cost}} more than in {into}. That is so at half the peak of this device, or with half the "
            "bytes."
            if known
            else f"at least {{cost}} more than in {into}. That is half of their time, as {into} {are} half "
            "the bytes.",
            cost=lost_to,
        ),
        share=Claim("share_of_products", share, "%", "time of products", (), which),
        cores=cores,
        longest=longest_kernel(name, worst, units=units),
    )
    return Finding(
        cost,
        pct,
        text,
        f"{advice} Check that results stay good enough.",
        "kernel_classes",
        evidence_of_event(rank_trace, row, len(about) < len(inputs.temporal)),
        change=Change(f"with these products in {into}", lambda rank: _faster(rank, units)),
        lost={rank: inputs.of(rank, _running, units) for rank in ranks},
    )


def _running(inputs: Inputs, rank: int, units: _Units) -> Intervals:
    """When these products run in the judged time."""
    return running(inputs, rank, _rows(inputs.trace.rank(rank), units))


def _rows(rank_trace: RankTrace, units: _Units) -> Int64:
    compute, names = rank_trace.compute_rows, _names(rank_trace, units)
    chosen = np.array([name in names for name in rank_trace.names] or [False], np.bool_)
    return compute[chosen[rank_trace.name[compute]]]


def _is_attention(name: str) -> bool:
    """Whether it is attention in fp32 on units of TF32."""
    found = kernel_class(name)
    return found.operation == "attention" and found.unit in _TF32


@memoize_per_rank(last=2)
def _names(rank_trace: RankTrace, units: _Units) -> frozenset[str]:
    """The kernels of a rank that multiply on these units.

    Attention in fp32 multiplies thrice in TF32, which keeps its precision, whatever products may use: it
    counts with those, in full fp32 or in TF32, that take more time.
    """
    rows = rank_trace.compute_rows
    taken = np.bincount(rank_trace.name[rows], rank_trace.dur[rows], len(rank_trace.names))
    time, attention = dict.fromkeys((_FULL, _TF32), 0.0), set()
    named: set[str] = set()
    for code in unique(rank_trace.name[rows]).tolist():
        name = rank_trace.names[code]
        found = kernel_class(name)
        if _is_attention(name):
            attention.add(name)
        elif found.operation in MATRIX:
            named |= {name} if found.unit in units else set()
            for each in time:
                time[each] += taken[code] * (found.unit in each)
    of_most = max(time, key=lambda each: time[each])
    return frozenset(named | attention if units == of_most else named)


@memoize_per_rank(last=2)
def _in_fewer_bits(rank_trace: RankTrace, units: _Units) -> tuple[Int64, Float64]:
    """These products, and how long each would take in fewer bits, ns: at most half of its time."""
    rows = _rows(rank_trace, units)
    half = rank_trace.dur[rows] / _FASTER
    peaks = peaks_of_rank(rank_trace)
    less: Unit = "simt_fp32" if units == _DOUBLE else "tensor_16bit"
    rate = peaks.tflops.get(less, 0.0) if peaks else 0.0
    own = max((peaks.tflops.get(unit, 0.0) for unit in units), default=0.0) if peaks else 0.0
    if not rate or not own:
        return rows, half
    least = np.maximum(least_ns(rank_trace, rows, REACHED * rate / own, _FASTER), _LEAST_NS)
    least[np.isin(rows, unaligned_kernels(rank_trace))] = np.nan  # they stay far from a peak in any type
    return rows, np.fmin(half, np.rint(least))  # whole ns: their sum does not depend on their order


def _left(inputs: Inputs, rank: int, units: _Units) -> float:
    """Which share of the time of these products in the judged time would be left."""
    rank_trace = inputs.trace.rank(rank)
    rows, left = _in_fewer_bits(rank_trace, units)
    mine = rank_trace.overlap(rows, inputs.scope)
    taken = int(rank_trace.dur[rows[mine]].sum())
    return float(left[mine].sum()) / taken if taken else 1 / _FASTER


def _beyond_half(inputs: Inputs, rank: int, units: _Units) -> bool:
    """Whether it is known that these products could take less than half of their time."""
    return _left(inputs, rank, units) < 1 / _FASTER


def _faster(rank_trace: RankTrace, units: _Units) -> list[Edit]:
    rows, left = _in_fewer_bits(rank_trace, units)
    names = rank_trace.name[rows]
    taken = np.bincount(names, rank_trace.dur[rows], len(rank_trace.names))
    kept = np.bincount(names, left, len(rank_trace.names))
    return [
        edits.kernels(round(taken[code] / kept[code], 2), name=edits.exactly(rank_trace.names[code]))
        for code in sorted(unique(names).tolist(), key=lambda code: rank_trace.names[code])
        if kept[code]
    ]


def _share(inputs: Inputs, units: _Units) -> tuple[float, pd.Series[float], float]:
    """Share (%) of the time of all matrix products that these units take; by rank what is lost to their
    precision, ns; and the share of those whose unit is unknown."""
    by_rank = inputs.kernel_times
    total = by_rank.sum(axis=1)
    products = [name for name in total.index if kernel_class(name).operation in MATRIX]
    whole = float(total[products].sum())
    taken = {}
    for rank in inputs.temporal["rank"].tolist():
        slow = inputs.recorded(rank, _names, units)
        taken[rank] = 0.0
        if slow and rank in by_rank:
            taken[rank] = float(by_rank.loc[by_rank.index.isin(slow), rank].sum())
    share = 100.0 * sum(taken.values()) / whole if whole else 0.0
    open_ = [name for name in products if kernel_class(name).unit is None]
    unknown = 100.0 * float(total[open_].sum()) / whole if whole else 0.0
    lost = {rank: ns * (1 - inputs.of(rank, _left, units)) if ns else 0.0 for rank, ns in taken.items()}
    return share, pd.Series(lost, dtype="float64"), unknown


RULES = (
    Rule(
        topic="fp64_units",
        question="whether kernels multiply on the fastest units",
        title="Multiplying in double precision",
        label="FP64 matmuls",
        cause="the double precision of matmuls",
        judge=fp64_units,
        risk="fp32 keeps 24 of 53 bits: results have to be compared.",
        needs="A model that does not need double precision.",
        wrong_if="The model needs the precision, as simulations may, or the products are too short.",
    ),
    Rule(
        topic="fp32_units",
        question="whether kernels multiply on the fastest units",
        title="Multiplying in full fp32",
        label="FP32 matmuls",
        cause="the full fp32 precision of matmuls",
        better="16-bit matmuls in place of fp32",
        judge=fp32_units,
        risk="TF32 keeps 10 bits of the mantissa, BF16 7: losses and metrics have to be compared.",
        needs="Units for matrices: Volta or later, CDNA.",
        wrong_if="The model needs the precision, or the products are too short to get faster.",
    ),
    Rule(
        topic="tf32_units",
        question="whether kernels multiply on the fastest units",
        title="Multiplying in TF32 instead of 16 bits",
        label="TF32 matmuls",
        cause="the TF32 precision of matmuls",
        better="16-bit matmuls in place of TF32",
        judge=tf32_units,
        risk="BF16 keeps 7 bits of the mantissa: losses and metrics have to be compared.",
        needs="torch.autocast, and a device of 2020 or later.",
        wrong_if="The model needs the precision, or the products are too short to get faster.",
    ),
)
