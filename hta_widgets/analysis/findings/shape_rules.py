"""Matrix products of sizes off the fast path."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.core.claim import say
from hta_widgets.analysis.findings.compiled import MOST, compiled_part
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Change, Rule
from hta_widgets.analysis.findings.shorter import (
    AboutEvent,
    device_of,
    known_peaks,
    matters,
    shapes_missing,
    shorter,
)
from hta_widgets.analysis.operators.unaligned import aligned_ns, unaligned_kernels, unaligned_products
from hta_widgets.analysis.replay import edits
from hta_widgets.trace.ordering import longest_at


def unaligned_shapes(inputs: Inputs) -> Finding | None:
    """Products whose sizes are no multiples of 16 bytes, in kernels that load less at once."""
    found = shorter(inputs, aligned_ns, _abstain)
    if found is None:
        return None
    rank_trace = inputs.trace.rank(found.worst)
    products, rows, of = unaligned_products(rank_trace)
    rows, of = rows[mine := np.isin(rows, found.rows)], of[mine]
    most = products[of[longest_at(rank_trace.start[rows], rank_trace.dur[rows])]]
    times = f"{most.batch:,} times " if most.batch > 1 else ""
    product = f"{times}[{most.rows:,}, {most.inner:,}] x [{most.inner:,}, {most.columns:,}]"
    sizes = " and ".join(f"{size:,}" for size in most.odd)
    states = AboutEvent(rank_trace, most.row)
    is_compiled = compiled_part(inputs, found.worst, rows) >= MOST
    pads = "" if is_compiled else "; torch.compile pads the factors of products by itself"
    return found.finding(
        inputs,
        say(
            "Matrix products of unaligned sizes cost {lost}. Their kernels load less than 16 bytes at once "
            "and take {taken}.{by} The longest is {product}: {sizes} {are} no multiple of {multiple}. "
            "Padded, they would take {left}: at half the peak of this device ({device}), or as near to it as "
            "aligned products come here.",
            **found.parts(inputs, "unaligned products"),
            product=states("longest_product", product, "name", product),
            sizes=states("unaligned_sizes", most.odd, shown=sizes),
            are="are" if len(most.odd) > 1 else "is",
            multiple=states("numbers_in_16_bytes", most.multiple),
            device=device_of(inputs, found.ranks),
        ),
        f"Make such sizes (vocabulary, features, batch, sequence) multiples of {most.multiple}, better of "
        f"64{pads}. What is padded has to be left out of the loss, and takes a little memory.",
        Change("with padded sizes", lambda _: [edits.padded_products()]),
        event=most.row,
    )


def _abstain(inputs: Inputs, rank: int) -> None:
    """That such kernels run is known by their names; why, and what they could take, is not."""
    rank_trace = inputs.trace.rank(rank)
    slow = unaligned_kernels(rank_trace)
    if not matters(inputs, rank, slow):
        return
    if not rank_trace.has_argument("input_dims"):
        raise shapes_missing("kernels load less than 16 bytes at once; which sizes are the reason is unknown")
    if matters(inputs, rank, unaligned_products(rank_trace)[1]):
        known_peaks(inputs, [rank], "kernels load less than 16 bytes at once; what that costs is not known")


RULE = Rule(
    topic="unaligned_shapes",
    question="whether sizes fit the units",
    title="Multiplying matrices of unaligned sizes",
    label="Unaligned matmuls",
    cause="matmuls of unaligned sizes",
    judge=unaligned_shapes,
    risk="Larger sizes change the model, its memory and its results, unless the added part is masked.",
    needs="Sizes that may be chosen or padded.",
    wrong_if="Strides or offsets, not sizes, keep the kernels from loading more at once.",
)
