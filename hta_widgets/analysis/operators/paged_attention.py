"""Attention over a paged cache of keys and values, and writing to that cache.

Signatures are those that vLLM registers (`csrc/torch_bindings.cpp`, `csrc/rocm/torch_bindings.cpp`;
PagedAttention, arXiv 2309.06180): queries [tokens, H, D], values [blocks, H_kv, D, block] and, for each
sequence, the numbers of its blocks. How long each sequence is stands in a tensor on the device. No query sees
more keys than the longest sequence has, or than the table of blocks has room for: 4 D operations for each,
and each sequence's keys and values are read once. So the figures are upper bounds.

A cache is written token by token; those that only pad a batch are left out, so that this is a bound as well.
"""

from __future__ import annotations

import math

from hta_widgets.analysis.operators.cost import Cost, Formulas, formula
from hta_widgets.analysis.operators.inputs import Inputs, UnknownInputError, itemsize


@formula
def _paged(inputs: Inputs, query: int, table: int, longest: int | None) -> Cost:
    """Queries, then keys and values of the cache; `longest`: the place of the longest sequence's length."""
    tokens, heads, width = inputs.shape(query, 3)
    _, kv_heads, kv_width, block = inputs.shape(query + 2, 4)
    sequences, blocks = inputs.shape(table, 2)
    if kv_width != width:
        raise UnknownInputError
    keys = blocks * block
    if longest is not None and longest < len(inputs.values) and inputs.values[longest]:
        keys = min(keys, inputs.ints(longest)[0])
    cached = 2 * sequences * keys * kv_heads * width * itemsize(inputs.type(query + 2))
    read = inputs.read(0, query, table, table + 1) + cached
    return Cost(4 * tokens * heads * keys * width, read, exact=False)


def _into_cache(inputs: Inputs) -> Cost:
    """(key [tokens, H, D], value, key_cache, value_cache, slots): reads tokens, writes them in its types."""
    slots = inputs.numel(4)
    moved = inputs.nbytes(4)
    for new, cache in ((0, 2), (1, 3)):
        _, heads, width = inputs.shape(new, 3)
        moved += slots * heads * width * (itemsize(inputs.type(new)) + itemsize(inputs.type(cache)))
    return Cost(math.nan, moved, exact=False)


FORMULAS: Formulas = {
    "_C::paged_attention_v1": _paged(1, 6, 9),
    "_C::paged_attention_v2": _paged(4, 9, 12),
    # versions differ in what stands behind the lengths
    "_rocm_C::paged_attention": _paged(4, 9, None),
}

CACHES: Formulas = dict.fromkeys(
    ("_C_cache_ops::reshape_and_cache", "_C_cache_ops::reshape_and_cache_flash"), _into_cache
)
"""Writing keys and values."""
