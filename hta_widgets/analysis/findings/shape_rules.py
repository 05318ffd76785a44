"""Matrix products of sizes off the fast path."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.findings.callers import callers_in_words
from hta_widgets.analysis.findings.finding import NOTE_PCT, Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Change, Rule
from hta_widgets.analysis.findings.shorter import known_peaks, longest, matters, shorter
from hta_widgets.analysis.operators.unaligned import aligned_ns, unaligned_kernels, unaligned_products
from hta_widgets.analysis.replay import edits
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import percent

__all__ = ["RULE", "unaligned_shapes"]


def unaligned_shapes(inputs: Inputs) -> Finding | None:
    """Products whose sizes are no multiples of 16 bytes, in kernels that load less at once."""
    for rank in inputs.temporal["rank"].tolist():
        inputs.of(rank, _abstain)
    found = shorter(inputs, aligned_ns)
    if found is None or found.lost_pct < NOTE_PCT:
        return None
    rank_trace = inputs.trace.rank(found.worst)
    products, rows, of = unaligned_products(rank_trace)
    mine = np.isin(rows, found.rows)
    rows, of = rows[mine], of[mine]
    most = products[of[int(rank_trace.dur[rows].argmax())]]
    times = f"{most.batch:,} times " if most.batch > 1 else ""
    product = f"{times}[{most.rows:,}, {most.inner:,}] x [{most.inner:,}, {most.columns:,}]"
    sizes = " and ".join(f"{size:,}" for size in most.odd)
    return Finding(
        found.cost_ns,
        found.lost_pct,
        f"Matrix products in kernels that load less than 16 bytes at once take {percent(found.taken_pct)} of "
        f"the time{callers_in_words(rank_trace, rows)}. The longest is {product}: "
        f"{sizes} {'are' if len(most.odd) > 1 else 'is'} no multiple of "
        f"{most.multiple}. Padded, at half the peak of this device "
        f"({known_peaks(inputs, found.ranks, '').device}) or at that of its memory, they take "
        f"{percent(found.taken_pct - found.lost_pct)}: {inputs.share(found.lost_pct)}"
        f"{inputs.per_step(found.cost_ns)} is lost.",
        f"Make such sizes (vocabulary, features, batch, sequence) multiples of {most.multiple}, better of "
        "64; torch.compile pads the factors of products by itself (shape_padding). What is padded has to "
        "be left out of the loss, and takes a little memory.",
        "operators",
        Evidence(
            rank=found.worst if found.alone else None,
            name=longest(rank_trace, rows),
            event_rank=found.worst,
            event_id=int(rank_trace.event_id[most.row]),
        ),
        change=Change("with padded sizes", lambda _: [edits.padded_products()]),
    )


def _abstain(inputs: Inputs, rank: int) -> None:
    """That such kernels run is known by their names; why, and what they could take, is not."""
    rank_trace = inputs.trace.rank(rank)
    slow = unaligned_kernels(rank_trace)
    if not matters(inputs, rank, slow):
        return
    if not rank_trace.has_argument("input_dims"):
        raise MissingDataError(
            "shapes of operators",
            "Record with torch.profiler.profile(record_shapes=True).",
            "kernels load less than 16 bytes at once; which sizes are the reason cannot be told",
        )
    if matters(inputs, rank, unaligned_products(rank_trace)[1]):
        known_peaks(inputs, [rank], "kernels load less than 16 bytes at once; what that costs is not known")


RULE = Rule(
    topic="unaligned_shapes",
    question="whether sizes fit the units",
    title="Multiplying matrices of unaligned sizes",
    judge=unaligned_shapes,
    risk="Larger sizes change the model, its memory and its results, unless the added part is masked.",
    needs="Sizes that may be chosen or padded.",
)
