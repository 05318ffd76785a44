"""What kernels take, what would be left of them, how they are launched, and what they multiply.

Operations and bytes of matrix products, chains of pointwise kernels and their bytes are counted again. What
attention, waves of blocks and a filled device would leave has only bounds here; the planted programs of
`tests/verdicts/planted` hold what it is.
"""

from __future__ import annotations

import json
import math
import re
from functools import cache
from statistics import median
from typing import Any

from tests.claims.job import Job, PlainRank, Record
from tests.claims.measures.idle import at_most
from tests.claims.plain_kernels import (
    KINDS,
    LOOK_UPS,
    SIZES,
    device_of,
    dims,
    kernels_of,
    least_of,
    limits_of,
    longest,
    operator_of,
    product_of,
    room_of,
    shapes,
    unit_of,
    wanted_unit,
)
from tests.claims.registry import Stated, check, close

POINTS = 0.15  # of the time: what is rounded up, and kernels at the edges of windows


def stated_by(job: Job, stated: Stated, ns: float) -> float:
    """ns of all ranks that a claim is about, in its unit."""
    ranks = job.of(stated.ranks)
    if stated.unit == "%":
        return 100.0 * ns / max(sum(rank.judged_ns for rank in ranks), 1)
    return ns / len(ranks) / (max(len(job.steps), 1) if stated.unit == "ns/step" else 1)


def in_unit(job: Job, stated: Stated, share_pct: float) -> float:
    """A share of the judged time in the unit of a claim."""
    return stated_by(job, stated, share_pct / 100.0 * sum(rank.judged_ns for rank in job.of(stated.ranks)))


def beside(stated: Stated, measure: str) -> float:
    """What the same row states by another measure, in %."""
    claims = json.loads(stated.row["claims"])
    return next(each["value"] for each in claims if each["measure"] == measure and each["unit"] == "%")


def time_of(rank: PlainRank, kernels: list[Record]) -> int:
    return rank.within([kernel.window for kernel in kernels])


def event_of(job: Job, stated: Stated) -> tuple[PlainRank, Record]:
    """The event that a claim is about, on its rank."""
    (rank,) = job.of(stated.ranks)
    return rank, rank.by_number[stated.about["event"]]


@check("kernels_named")
def kernels_named(job: Job, stated: Stated) -> str:
    """Kernels of these names run, those of FSDP aside."""
    taken = sum(time_of(rank, kernels_of(job, rank, stated.about)) for rank in job.of(stated.ranks))
    return close(stated, stated_by(job, stated, taken), 0.01, 0.01 if stated.unit == "%" else 1000.0)


@check("kernels_of_kind")
def kernels_of_kind(job: Job, stated: Stated) -> str:
    """Kernels of this kind run; or at most so much, where not all of what they have to be is read here."""
    taken = sum(time_of(rank, kernels_of(job, rank, stated.about)) for rank in job.of(stated.ranks))
    true = stated_by(job, stated, taken)
    if KINDS[stated.about["kind"]][1] != "most":
        return close(stated, true, 0.05, POINTS)
    whole = beside(stated, "lost_to_kernels") + beside(stated, "kernels_could_take")
    fits = abs(stated.value - whole) < 1e-6 and stated.value <= true + POINTS
    return "" if fits else f"no more than {true:.3g} %, and what is lost with what is left"


@check("kernels_could_take")
def kernels_could_take(job: Job, stated: Stated) -> str:
    """What is left of the time of these kernels: counted again, or a part of what they take."""
    find, how = KINDS[stated.about["kind"]]
    taken, lost = beside(stated, "kernels_of_kind"), beside(stated, "lost_to_kernels")
    if abs(taken - lost - float(stated.value)) > 1e-6 or not -1e-9 <= stated.value < taken:
        return f"{taken} % less {lost} % are left"
    if how != "exact":
        return ""
    left = 0.0
    for rank in job.of(stated.ranks):
        found = [pair for pair in find(job, rank) if rank.judged([pair[0]])]
        whole = sum(kernel.dur for kernel, _ in found)
        left += time_of(rank, [kernel for kernel, _ in found]) * sum(ns for _, ns in found) / max(whole, 1)
    return close(stated, stated_by(job, stated, left), 0.05, POINTS)


@check("lost_to_kernels")
def lost_to_kernels(job: Job, stated: Stated) -> str:
    """What these kernels take without what would be left of them."""
    if KINDS[stated.about["kind"]][1] == "kernels":  # nothing would be left
        taken = sum(time_of(rank, kernels_of(job, rank, stated.about)) for rank in job.of(stated.ranks))
        return close(stated, stated_by(job, stated, taken), 0.05, POINTS if stated.unit == "%" else 1000.0)
    lost = beside(stated, "kernels_of_kind") - beside(stated, "kernels_could_take")
    return close(stated, in_unit(job, stated, lost), 0.001, 1e-6 if stated.unit == "%" else 100.0)


@check("longest_kernel")
def longest_kernel(job: Job, stated: Stated) -> str:
    """Of these kernels none takes more time, by name; and what is shown of the name stands in it."""
    (rank,) = job.of(stated.ranks)
    found = longest(kernels_of(job, rank, stated.about))
    time = dict(found)
    if stated.value not in time:
        return f"{stated.value} is none of these kernels"
    most = KINDS[stated.about["kind"]][1] if "kind" in stated.about else "exact"
    if most != "most" and time[stated.value] < 0.98 * found[0][1]:
        return f"{found[0][0]} takes longer"
    pieces = re.findall(r"[A-Za-z0-9]+", stated.shown)
    lacking = [piece for piece in pieces if piece not in stated.value]
    return f"{lacking} stand not in the name" if lacking or not pieces else ""


@check("number_of_kernels")
def number_of_kernels(job: Job, stated: Stated) -> str:
    """So many of these kernels run in the judged time."""
    (rank,) = job.of(stated.ranks)
    return close(stated, len(kernels_of(job, rank, stated.about)), 0.0, 0.5)


@check("median_kernel")
def median_kernel(job: Job, stated: Stated) -> str:
    """The median of these kernels takes so long."""
    (rank,) = job.of(stated.ranks)
    return close(stated, median(kernel.dur for kernel in kernels_of(job, rank, stated.about)), 0.0, 1.0)


# -- what multiplies -------------------------------------------------------------------------------


def products(job: Job, stated: Stated) -> tuple[float, float, float]:
    """ns of products by kernels that are sure to be of these units, that may be, and of all.

    Of a kernel at an edge of the judged time it is not sure that it belongs to it.
    """
    wanted = wanted_unit(stated.about)
    sure = maybe = whole = 0
    for rank in job.of(stated.ranks):
        for kernel in rank.judged(rank.kernels):
            unit = unit_of(kernel.name)
            inside = any(start <= kernel.start and kernel.end <= end for start, end in rank.windows)
            sure += kernel.dur * (unit == wanted and inside)
            maybe += kernel.dur * (unit in (wanted, ""))
            whole += kernel.dur * (unit != "none")
    return sure, maybe, whole


@check("half_of_products")
def half_of_products(job: Job, stated: Stated) -> str:
    """Half of what these products take."""
    sure, maybe, _ = products(job, stated)
    low, high = (stated_by(job, stated, ns / 2) for ns in (sure, maybe))
    return "" if 0.98 * low <= stated.value <= 1.02 * high else f"{low:,.4g} to {high:,.4g} {stated.unit}"


@check("lost_to_precision")
def lost_to_precision(job: Job, stated: Stated) -> str:
    """What these products take beyond fewer bits at half the peak with half the bytes; at least half."""
    wanted = wanted_unit(stated.about)
    sure = maybe = 0.0
    for rank in job.of(stated.ranks):
        full, _, half, memory = device_of(job, rank.number)
        rate = full if wanted == "fp64" else half
        for kernel in rank.judged(rank.kernels):
            operator = operator_of(rank, kernel)
            # a product of numbers half as large moves half the bytes, as memory twice as fast does
            align = re.search(r"align(\d)", kernel.name)
            slow = wanted == "tf32" and align is not None and int(align[1]) < 4  # in any type
            least = least_of(operator, rate, 2 * memory) if operator and not slow else None
            half_of_it = kernel.dur / 2
            lost = kernel.dur - min(half_of_it, math.inf if least is None else max(least, 5_000))
            # convolutions and others, whose operations this reader does not count, lose half or more
            most = kernel.dur if operator is not None and least is None and not slow else lost
            inside = any(start <= kernel.start and kernel.end <= end for start, end in rank.windows)
            sure += lost * (unit_of(kernel.name) == wanted and inside)
            maybe += most * (unit_of(kernel.name) in (wanted, ""))
    low, high = (stated_by(job, stated, ns) for ns in (sure, maybe))
    return "" if 0.98 * low <= stated.value <= 1.02 * high else f"{low:,.4g} to {high:,.4g} {stated.unit}"


@check("share_of_products")
def share_of_products(job: Job, stated: Stated) -> str:
    """How much of the time of all products these take."""
    sure, maybe, whole = products(job, stated)
    low, high = 100.0 * sure / max(whole, 1), 100.0 * maybe / max(whole, 1)
    return "" if 0.98 * low <= stated.value <= 1.02 * high else f"{low:,.4g} to {high:,.4g} %"


@check("rate_of_16_bits")
def rate_of_16_bits(job: Job, stated: Stated) -> str:
    """How many times as fast the tensor cores of this device multiply 16 bits, by its datasheet."""
    full, _, half, _ = device_of(job, job.of(stated.ranks)[0].number)
    return close(stated, half / full, 0.01, 0.0)


@check("device")
def device(job: Job, stated: Stated) -> str:
    """The recorded device is that model."""
    for rank in job.of(stated.ranks):
        recorded = limits_of(job, rank.number)
        name, gib = str(recorded.get("name", "")), int(recorded.get("totalGlobalMem") or 0) / 2**30
        for word in str(stated.value).split():
            size = re.fullmatch(r"(\d+)GB", word)
            near = size is not None and 0.85 <= gib / int(size[1]) <= 1.15
            if word not in name and not near and not (word == "SXM" and "PCIe" not in name):
                return f"rank {rank.number} ran on {name!r}"
    return ""


@check("recorded_device")
@check("compute_capability")
def recorded_device(job: Job, stated: Stated) -> str:
    """The file says so, or without properties of devices the names of kernels do."""
    built = {"8.0": ("ampere_", "sm80", "sm_80", "cutlass_80", "sm86"), "9.0": ("sm90", "nvjet", "sm100")}
    for rank in job.of(stated.ranks):
        recorded = limits_of(job, rank.number)
        if stated.measure == "compute_capability" and "computeMajor" not in recorded:
            names = [each.name.lower() for each in rank.kernels]
            if not any(mark in name for name in names for mark in built[str(stated.value)]):
                return "no kernel is built for it"
            continue
        capability = f"{recorded.get('computeMajor')}.{recorded.get('computeMinor')}"
        if stated.value not in (str(recorded.get("name")).strip(), capability):
            return f"{recorded.get('name')}, {capability}"
    return ""


@check("longest_product")
def longest_product(job: Job, stated: Stated) -> str:
    """The operator has these inputs, and launches the longest of these kernels."""
    rank, operator = event_of(job, stated)
    found = product_of(operator)
    if found is None:
        return f"{operator.name} is no product"
    batch, rows, inner, columns, _ = found
    true = f"{f'{batch:,} times ' * (batch > 1)}[{rows:,}, {inner:,}] x [{inner:,}, {columns:,}]"
    kernels = kernels_of(job, rank, {"kind": "unaligned products"})
    most = operator_of(rank, max(kernels, key=lambda kernel: kernel.dur))
    assert most is not None
    return (
        "" if stated.value == true and product_of(most) == found else f"{true}; longest: {product_of(most)}"
    )


@check("rows_looked_up")
@check("rows_of_table")
def look_up(job: Job, stated: Stated) -> str:
    """So many indices, of a table of so many rows, have this gradient."""
    rank, operator = event_of(job, stated)
    width, indices = dims(operator)[0][-1], math.prod(dims(operator)[1])
    if stated.measure == "rows_looked_up":
        return close(stated, indices, 0.0, 0.0)
    looked = [dims(each) for each in rank.events if each.name in LOOK_UPS]
    tables = [table for table, among, *_ in looked if table[1] == width and math.prod(among) == indices]
    return close(stated, min(tables)[0], 0.0, 0.0)


@check("unaligned_sizes")
def unaligned_sizes(job: Job, stated: Stated) -> str:
    """The sizes of the product that are no multiples of 16 bytes."""
    _, operator = event_of(job, stated)
    multiple = 16 // shapes(operator)[-1][1]
    odd = sorted({size for size in (product_of(operator) or ())[1:4] if size % multiple})
    return "" if list(stated.value) == odd else f"these are {odd}"


@check("numbers_in_16_bytes")
def numbers_in_16_bytes(job: Job, stated: Stated) -> str:
    """So many numbers of an operator's type are 16 bytes."""
    _, operator = event_of(job, stated)
    return close(stated, 16 // shapes(operator)[0][1], 0.0, 0.0)


# -- attention -------------------------------------------------------------------------------------


def _size_of_scores(place: str, size: Any) -> None:
    @check(f"attention_{place}")
    def judge(job: Job, stated: Stated) -> str:
        _, softmax = event_of(job, stated)
        if "softmax" not in softmax.name:
            return f"{softmax.name} is no softmax"
        return close(stated, size(shapes(softmax)[0][0]), 0.0, 0.0)


_size_of_scores("heads", lambda shape: math.prod(shape[:-2]))
_size_of_scores("queries", lambda shape: shape[-2])
_size_of_scores("keys", lambda shape: shape[-1])


@check("path_of_attention")
def path_of_attention(job: Job, stated: Stated) -> str:
    """The softmax lies in scaled_dot_product_attention, which calls no fused kernel then."""
    rank, softmax = event_of(job, stated)
    around = [each.name for each in rank.around(softmax)]
    fits = stated.value == "math" and any("scaled_dot_product_attention" in name for name in around)
    return "" if fits else f"around the softmax are {around}"


@check("width_of_heads")
def width_of_heads(job: Job, stated: Stated) -> str:
    """A query, key or value has that many elements, which are no multiple of 16 bytes."""
    _, operator = event_of(job, stated)
    widths = [shape[-1] for shape, size in shapes(operator)[:3] if shape[-1] % (16 // size)]
    return "" if stated.value in widths else f"these are {widths}"


@check("type_of_input")
def type_of_input(job: Job, stated: Stated) -> str:
    """The first input is of that type."""
    _, operator = event_of(job, stated)
    return "" if f"the type {operator.args['Input type'][0]}32" == stated.value else "it is of another type"


@check("mask_of_attention")
def mask_of_attention(job: Job, stated: Stated) -> str:
    """The fourth input is a tensor."""
    _, operator = event_of(job, stated)
    given = operator.args["Input type"][3:4]
    return "" if stated.value == "a mask" and given and given[0] in SIZES else "there is no mask"


# -- launches --------------------------------------------------------------------------------------


def launched(job: Job, stated: Stated) -> tuple[int, int, dict[str, int], dict[str, Any], Record]:
    rank, kernel = event_of(job, stated)
    limits = limits_of(job, rank.number)
    return *room_of(limits, kernel), limits, kernel


@check("blocks")
def blocks(job: Job, stated: Stated) -> str:
    """The blocks of a launch."""
    return close(stated, launched(job, stated)[0], 0.0, 0.0)


@check("multiprocessors")
def multiprocessors(job: Job, stated: Stated) -> str:
    """Those of the device."""
    return close(stated, launched(job, stated)[3]["numSms"], 0.0, 0.0)


@check("resident_blocks")
def resident_blocks(job: Job, stated: Stated) -> str:
    """How many blocks of a launch fit on one of them."""
    return close(stated, min(launched(job, stated)[2].values()), 0.0, 0.0)


@check("blocks_at_once")
def blocks_at_once(job: Job, stated: Stated) -> str:
    """How many fit on all of them."""
    _, _, fits, limits, _ = launched(job, stated)
    return close(stated, limits["numSms"] * min(fits.values()), 0.0, 0.0)


@check("waves")
def waves(job: Job, stated: Stated) -> str:
    """How many times as many there are."""
    number, _, fits, limits, _ = launched(job, stated)
    return close(stated, number / (limits["numSms"] * min(fits.values())), 1e-6, 0.0)


@check("whole_waves")
def whole_waves(job: Job, stated: Stated) -> str:
    """That, rounded up."""
    number, _, fits, limits, _ = launched(job, stated)
    return close(stated, math.ceil(number / (limits["numSms"] * min(fits.values()))), 0.0, 0.0)


@check("occupancy")
def occupancy(job: Job, stated: Stated) -> str:
    """How many of the threads that the device has room for there are."""
    number, threads, fits, limits, _ = launched(job, stated)
    held = min(number / limits["numSms"], *fits.values())
    return close(stated, 100.0 * held * threads / limits["maxThreadsPerMultiprocessor"], 0.01, 0.01)


@check("limiter")
def limiter(job: Job, stated: Stated) -> str:
    """What lets no more blocks fit."""
    _, _, fits, _, _ = launched(job, stated)
    return "" if fits.get(str(stated.value)) == min(fits.values()) else f"{fits} fit"


WORDS = {
    "elementwise": r"elementwise|triton_(?:poi|for)|foreach|multi_tensor|OpTensor|distribution|dropout"
    r"|Pointwise|SubTensor|Op\dd?Tensor|act_and_mul",
    "normalization": r"norm|bn_|GammaBeta|ComputeInternalGradients|RMS",
    "reduction": r"reduce|triton_(?:red|per)|pool|loss|NLL|PostGSU",
    "copy": r"copy|Cat", "softmax": r"soft_?max", "optimizer": r"adam|sgd|lamb|optim", "fill": r"fill",
    "layout": r"To[A-Z]|transpose", "indexing": r"index|gather|scatter|masked",
    "embedding": r"embedding|weight",
}  # fmt: skip


# Triton's and others, whose names have no word of a library for products.
MULTIPLIES = re.compile(r"matmul|attention|attn|fused_moe|^bmm_|marlin", re.IGNORECASE)


@cache
def _may_be(name: str, operation: str, operand: str) -> bool:
    """Whether a kernel of this name may do that with such numbers."""
    if operation not in ("gemm", "convolution", "attention"):
        return re.search(WORDS.get(operation, ""), name, re.IGNORECASE) is not None
    unit = unit_of(name)
    unit = "" if unit == "none" and MULTIPLIES.search(name) else unit
    units = {"fp32": ("fp32",), "tf32": ("tf32",), "fp16": ("16 bits",), "bf16": ("16 bits",)}
    return unit in ("", *units.get(operand, ("fp32", "tf32", "16 bits")))


@check("kind_of_kernels")
@check("computing_in_kind")
def computing_in_kind(job: Job, stated: Stated) -> str:
    """Of the time of all kernels that of some kind: no more than that of kernels which may be of it."""
    operation, operand = stated.about["operation"], stated.about["operand"]
    may = whole = 0
    for rank in job.of(stated.ranks):
        for kernel in rank.judged(rank.kernels):
            whole += kernel.dur
            may += kernel.dur * _may_be(kernel.name, operation, operand)
    if stated.unit == "name":
        return "" if may or not whole else "there are none"
    return at_most(stated, 100.0 * may / max(whole, 1), 2.0)


def _least_of_product(operator: Record, peak: float, memory: float) -> float:
    """ns at a peak in TFLOP/s, or at that of memory in GB/s; the other matrix may be written either way."""
    found = [shape for shape, _ in shapes(operator)]
    left, right = found[1:3] if operator.name in ("aten::addmm", "aten::baddbmm") else found[:2]
    batch = math.prod(left[:-2])
    inner = left[-1] if left[-1] in right[-2:] else left[-2]  # some are recorded as they lie in memory
    result = batch * (math.prod(left[-2:]) // inner) * (math.prod(right[-2:]) // inner)
    elements = math.prod(left) + math.prod(right) + result
    return max(2 * result * inner / (peak * 1e3), shapes(operator)[-1][1] * elements / memory)


def _products_named(job: Job, stated: Stated) -> tuple[int, float, int]:
    """ns of the kernels of an operator, the least that they could take, and ns of all device work."""
    rank, spent, least = job.of(stated.ranks)[0], 0, 0.0
    full, tf32, half, memory = device_of(job, rank.number)
    seen = set()
    for kernel in rank.judged(rank.kernels):
        operator = operator_of(rank, kernel)
        if operator is None or operator.name != stated.about.get("name", stated.value):
            continue
        spent += kernel.dur
        if operator.window not in seen and unit_of(kernel.name) != "none":
            seen.add(operator.window)
            peak = {"fp32": full, "tf32": tf32}.get(unit_of(kernel.name), half)
            least += _least_of_product(operator, peak, memory)
    return spent, least, sum(work.dur for work in rank.judged(rank.work))


@check("product_below_roof")
@check("operator_work")
@check("reaches_of_roof")
def below_roof(job: Job, stated: Stated) -> str:
    """How near to the roof the products of a name are, and how much of the device work they take."""
    spent, least, whole = _products_named(job, stated)
    if stated.unit == "name":
        return "" if spent else "it launches nothing"
    if stated.measure == "operator_work":
        return close(stated, 100.0 * spent / max(whole, 1), 0.1, 1.0)
    return close(stated, 100.0 * least / max(spent, 1), 0.15, 1.0)


@check("rank_of_roof")
def rank_of_roof(job: Job, stated: Stated) -> str:
    """The rank is one of the job."""
    return "" if set(stated.value) <= set(job.ranks) else "there is no such rank"


@check("roof_reached")
def roof_reached(job: Job, stated: Stated) -> str:
    """Less than half, of what is far from the roof; counted again for matrix products of 16 bits."""
    rank, kernel = event_of(job, stated)
    operator = operator_of(rank, kernel)
    _, _, half, memory = device_of(job, rank.number)
    if (
        operator is not None
        and unit_of(kernel.name) in ("16 bits", "none")
        and least_of(operator, half, memory)
    ):
        return close(stated, 100.0 * (least_of(operator, half, memory) or 0.0) / kernel.dur, 0.02, 0.01)
    return "" if 0.0 < float(stated.value) < 50.0 else "that is not far from the roof"
