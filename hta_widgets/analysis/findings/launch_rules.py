"""Kernels whose blocks do not fill the device: a last wave that is not full, too few warps, tiny products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hta_widgets.analysis.core.claim import Claim, Said, Text, say
from hta_widgets.analysis.core.longest import longest_name
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Change, Rule
from hta_widgets.analysis.findings.shorter import (
    AboutEvent,
    Find,
    Shorter,
    known_peaks,
    longest_kernel,
    longest_run,
    matters,
    shapes_missing,
    shorter,
)
from hta_widgets.analysis.kernels.peaks import peaks_of_rank
from hta_widgets.analysis.kernels.residency import LIMITERS, OCCUPANCY_REMEDY, residency
from hta_widgets.analysis.operators.fixed_elsewhere import judged_kernels
from hta_widgets.analysis.operators.least_times import least_ns
from hta_widgets.analysis.operators.tiny_products import SHORT_NS, batched_ns, short_products
from hta_widgets.analysis.operators.underfilled import FILLING, filled_ns, underfilled
from hta_widgets.analysis.operators.waves import OPERATIONS, full_waves_ns, partial_waves
from hta_widgets.analysis.replay import edits
from hta_widgets.arrays import Int64
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import significant
from hta_widgets.trace.rank_trace import RankTrace

_BY_LIMITER = {
    "grid": "Give it more blocks: a larger batch, shared sums (split-K, stream-K, flash decoding), or other "
    "kernels beside it on a second stream (torch.cuda.Stream). A larger batch takes memory, and changes what "
    "is learned.",
    "registers": "Let each thread hold less: smaller tiles or num_warps in Triton, __launch_bounds__ or "
    "--maxrregcount in CUDA; where the compiler then spills registers, it gets slower.",
    "shared memory": "Let each block hold less shared memory: smaller tiles, fewer num_stages in Triton; "
    "fewer loads are then under way at once.",
    "block size": "Choose blocks of whole warps, of 128 or 256 threads (num_warps in Triton, the launch in "
    "CUDA). Reductions in a block then take other paths.",
}
_OF_BATCH_NORM = " Batch norm launches more of them if model and inputs are in torch.channels_last."


def wave_quantization(inputs: Inputs) -> Finding | None:
    """Kernels that need a little more than a whole number of waves of blocks."""
    told = _look(
        inputs, "partial waves", full_waves_ns, _in_part_of_a_wave,
        "the last wave of blocks of kernels is not full; what that costs is not known",
        OPERATIONS, "how many waves of blocks kernels take is not known",
    )  # fmt: skip
    if told is None:
        return None
    (found, most), rank_trace = told, inputs.trace.rank(told[0].worst)
    row, (rows, waves) = most.row, partial_waves(rank_trace)
    launch, of_row = residency(rank_trace, np.array([row])), float(waves[rows == row][0])
    processors, resident = int(launch.multiprocessors[0]), int(launch.resident[0])
    return _finding(
        inputs, found, most,
        "Kernels whose last wave of blocks leaves much of the device idle",
        "In full waves",
        say(
            "{longest} takes the most time of them: it launches {blocks} blocks, where the device has room "
            "for {room} at once ({processors} multiprocessors with {resident} each). These are {waves} "
            "waves, which take as long as {whole}.",
            longest=most.name,
            blocks=most("blocks", int(launch.blocks[0])),
            room=most("blocks_at_once", processors * resident),
            processors=most("multiprocessors", processors),
            resident=most("resident_blocks", resident),
            waves=most("waves", of_row, shown=significant(of_row)),
            whole=most("whole_waves", int(np.ceil(of_row))),
        ),
        "Change a size (batch, sequence, features, vocabulary) so that the tiles fill whole waves, or let a "
        'kernel of other tiles or a persistent one be chosen: torch.compile(mode="max-autotune"), '
        "cuBLASLt's heuristics (TORCH_BLAS_PREFER_CUBLASLT=1), stream-K. Autotuning takes time at the start; "
        "another batch changes what is learned.",
        Change("with full waves of blocks", lambda _: [edits.full_waves()]),
    )  # fmt: skip


def low_occupancy(inputs: Inputs) -> Finding | None:
    """Kernels far from the roof that keep few warps on the device."""
    told = _look(
        inputs, "underfilled kernels", filled_ns, _of_few_warps,
        "kernels keep few warps on the device; whether they are slow for that is not known",
        FILLING, "how much of the device kernels fill is not known",
    )  # fmt: skip
    if told is None:
        return None
    (found, most), rank_trace = told, inputs.trace.rank(told[0].worst)
    row, (rows, _, limiters) = most.row, underfilled(rank_trace)
    launch, limiter = residency(rank_trace, np.array([row])), str(LIMITERS[int(limiters[rows == row][0])])
    least_pct = 100.0 * float(least_ns(rank_trace, np.array([row]))[0]) / int(rank_trace.dur[row])
    advice = _BY_LIMITER[limiter]
    why: Said = say("is limited by {limiter}", limiter=most("limiter", limiter, "name"))
    if limiter == "grid":
        advice += _OF_BATCH_NORM * ("batch_norm" in str(most.name.value))
        why = say(
            "has {blocks} block{s} for {processors} multiprocessors",
            blocks=most("blocks", blocks := int(launch.blocks[0])),
            s="s" * (blocks != 1),
            processors=most("multiprocessors", int(launch.multiprocessors[0])),
        )
    return _finding(
        inputs, found, most,
        "Kernels that keep few warps on the device",
        "With the device filled",
        say(
            "Of these, {longest} takes the most time. It fills {filled} of the device. It {why}. It reaches "
            "{reached} of half the peak, or of what memory carries.",
            longest=most.name,
            filled=most("occupancy", float(launch.filled_pct[0]), unit="%"),
            why=why,
            reached=most("roof_reached", least_pct, unit="%"),
        ),
        advice,
        Change("with the device filled by these kernels", lambda _: [edits.filled_device()]),
    )  # fmt: skip


def tiny_products(inputs: Inputs) -> Finding | None:
    """Matrix products that are over before the device has got going."""
    why = "matrix products are short; whether they could be shorter is not known"
    told = _look(inputs, "tiny products", batched_ns, short_products, why)
    if told is None:
        return None
    (found, most), rank_trace = told, inputs.trace.rank(told[0].worst)
    typical = int(np.median(rank_trace.dur[found.rows]))
    return _finding(
        inputs, found, most,
        "Matrix products too small for the device",
        "Computed many at once",
        say(
            "These are {count} matrix products, {typical} at the median; {longest} takes the most time of "
            "them.",
            count=Claim("number_of_kernels", len(found.rows), "count", "", (found.worst,), most.kind),
            typical=Claim("median_kernel", typical, "ns", "", (found.worst,), most.kind),
            longest=most.name,
        ),
        "Compute more in one product: a larger batch, or one nn.Linear for queries, keys and values. "
        "Products of equal sizes go into one torch.bmm, others into a grouped GEMM. A larger batch takes "
        "memory and makes each answer wait; products that need each other's results cannot be one.",
        Change("with these products computed many at once", lambda _: [edits.batched_products()]),
    )  # fmt: skip


class _Longest(AboutEvent):
    """The longest run of the kernel with most time of a kind."""

    def __init__(self, rank_trace: RankTrace, rows: Int64, kind: str) -> None:
        name, self.kind = longest_name(rank_trace, rows), {"kind": kind}
        self.row = longest_run(rank_trace, rows, name)
        self.name = longest_kernel(name, rank_trace.rank, kind=kind)
        super().__init__(rank_trace, self.row)


def _look(
    inputs: Inputs,
    kind: str,
    left: Find,
    find: Callable[[RankTrace], Int64],
    why: str,
    operations: tuple[str, ...] = (),
    question: str = "",
) -> tuple[Shorter, _Longest] | None:
    """What is lost to such kernels, `left` of them, and the one with most time.

    Raises:
        MissingDataError: the room of the device for kernels of these operations, or their roof, is unknown.
    """
    ranks = inputs.temporal["rank"].tolist()
    for rank in ranks if operations else ():
        inputs.of(rank, _check_limits, operations, question)
    matter = [inputs.of(rank, _check_roofs, find, why) for rank in ranks]
    found = shorter(inputs, left) if any(matter) else None
    if found is None:
        return None
    return found, _Longest(inputs.trace.rank(found.worst), found.rows, kind)


def _finding(
    inputs: Inputs,
    found: Shorter,
    most: _Longest,
    which: str,
    how: str,
    detail: Text,
    advice: str,
    change: Change,
) -> Finding:
    text = say(
        "{which} cost at most {lost}. They take {taken}.{by} {how}, they would take at least {left}: at no "
        "more than half the peak of this device or its memory. {detail}",
        **found.parts(inputs, most.kind["kind"]),
        which=which,
        how=how,
        detail=detail,
    )
    return found.finding(
        inputs,
        text,
        advice,
        change,
        kind="operators" if how == "Computed many at once" else "occupancy",
        run=most.row,
        severity="note",  # that much is a bound: what a library reaches is not known
    )


def _in_part_of_a_wave(rank_trace: RankTrace) -> Int64:
    return partial_waves(rank_trace)[0]


def _of_few_warps(rank_trace: RankTrace) -> Int64:
    return underfilled(rank_trace)[0]


def _check_limits(inputs: Inputs, rank: int, operations: tuple[str, ...], question: str) -> None:
    """Kernels that may be far from the roof can be judged only by what the device has room for."""
    rank_trace = inputs.trace.rank(rank)
    judged = judged_kernels(rank_trace)
    rows = np.concatenate([judged[each] for each in operations if each in judged] or [np.zeros(0, np.int64)])
    rows = rows[rank_trace.dur[rows] >= SHORT_NS]
    known = residency(rank_trace, rows).multiprocessors > 0
    # where all is known, it need not be known which of them matter, or are far from the roof
    if known.all() or not matters(inputs, rank, rows):
        return
    far = ~(least_ns(rank_trace, rows) >= rank_trace.dur[rows] / 2)
    if known[far].any() or not matters(inputs, rank, rows[far]):
        return
    if rank_trace.table.has("occupancy_pct"):
        raise MissingDataError(
            "limits of the device", "Record with a version of PyTorch that writes deviceProperties.", question
        )
    raise MissingDataError("occupancy of kernels", OCCUPANCY_REMEDY, question)


def _check_roofs(inputs: Inputs, rank: int, find: Callable[[RankTrace], Int64], why: str) -> bool:
    """Whether these kernels matter; how fast they could be follows from shapes and peaks."""
    rank_trace = inputs.trace.rank(rank)
    rows = find(rank_trace)
    if not matters(inputs, rank, rows):
        return False
    shapes = rank_trace.has_argument("input_dims")
    if shapes and inputs.recorded(rank, peaks_of_rank):  # what has no roof then has no formula
        return True
    if not matters(inputs, rank, rows[np.isnan(least_ns(rank_trace, rows))]):
        return True
    if not shapes:
        raise shapes_missing(why)
    known_peaks(inputs, [rank], why)
    return True


RULES = (
    Rule(
        topic="wave_quantization",
        question="whether kernels fill the device",
        title="Waiting for the last blocks of kernels",
        label="Partial waves",
        cause="waves that fill the GPU in part",
        judge=wave_quantization,
        risk="Larger sizes change the model, its memory and its results, unless the added part is masked.",
        needs="Sizes that may be chosen or padded.",
        wrong_if="The blocks do unequal work, so that waves do not end together.",
    ),
    Rule(
        topic="low_occupancy",
        question="whether kernels fill the device",
        title="Filling little of the device with kernels",
        label="Low occupancy",
        cause="kernels that fill little of the GPU",
        judge=low_occupancy,
        risk="Fewer registers per thread may spill to memory.",
        needs="Access to the kernel and how it is launched.",
        wrong_if="The kernels wait for something else, such as memory that they read in small pieces.",
    ),
    Rule(
        topic="tiny_products",
        question="whether matrix products are too small",
        title="Multiplying matrices too small for the device",
        label="Small matmuls",
        cause="matmuls too small for the GPU",
        judge=tiny_products,
        risk="Batched products need their operands side by side in memory.",
        needs="Products that do not depend on each other.",
        wrong_if="The products need each other's results, so that they cannot be computed at once.",
    ),
)
