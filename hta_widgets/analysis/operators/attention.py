"""Fused attention: two products of [S_q, D] and [D, S_k], and of [S_q, S_k] and [S_k, D_v], for each head.

Forward 2 B H pairs (D + D_v), where `pairs` counts the (query, key) pairs that the mask leaves: a causal mask
leaves about half. Backward computes five products, the scores once more among them, so 2 B H pairs (3 D + 2
D_v): 2.5 times the forward pass where D = D_v (FlashAttention-2, arXiv 2307.08691, section 4.1; the same
count as in `torch.utils.flop_counter`, which takes no masks into account). Heads are those of the queries;
keys and values may have fewer. A sliding window, or a mask in a tensor, leaves fewer pairs: then the figures
are upper bounds.

Packed sequences ([tokens, H, D] and their offsets) bound it as well: no query sees more than `max_k` keys.

Attention that is not fused (`_scaled_dot_product_attention_math`) is the sum of what it calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hta_widgets.analysis.operators.cost import Cost, Formulas, formula
from hta_widgets.analysis.operators.inputs import Inputs, Shape, UnknownInputError, itemsize


def _pairs(queries: int, keys: int, causal: bool, from_the_end: bool) -> int:
    """(query, key) pairs; a causal mask is aligned to the first query and key, or to the last ones."""
    if not causal:
        return queries * keys
    seen = keys - queries + 1 if from_the_end else 1  # keys that the first query sees
    if seen < 1:
        queries, seen = max(queries + seen - 1, 0), 1
    growing = min(queries, keys - seen + 1)  # queries that see one more each; all later ones see every key
    return growing * seen + growing * (growing - 1) // 2 + (queries - growing) * keys


def _causal(inputs: Inputs, at: int | None) -> bool | None:
    """Whether a causal mask was asked for; None if it was not recorded."""
    if at is None:
        return False
    try:
        return inputs.flag(at)
    except UnknownInputError:
        return None


def _cost(
    inputs: Inputs, first: int, heads_first: bool, causal: bool | None, exact: bool, backward: bool, end: bool
) -> Cost:
    """Queries, keys and values in the inputs from `first`: [B, H, S, D], or else [B, S, H, D]."""
    query, key, value = (inputs.shape(first + at, 4) for at in range(3))
    batch, heads, queries, keys = _sizes(query, key, value, heads_first)
    pairs = batch * heads * _pairs(queries, keys, bool(causal), end)
    made = batch * heads * queries * value[3] * itemsize(inputs.type(first))
    return _figures(inputs, first, pairs, query[3], value[3], made, backward, exact and causal is not None)


def _sizes(query: Shape, key: Shape, value: Shape, heads_first: bool) -> tuple[int, int, int, int]:
    head, place = (1, 2) if heads_first else (2, 1)
    if query[3] != key[3] or key[place] != value[place] or query[0] != key[0]:
        raise UnknownInputError
    return query[0], query[head], query[place], key[place]


def _figures(
    inputs: Inputs, first: int, pairs: int, width: int, value: int, made: float, backward: bool, exact: bool
) -> Cost:
    """Backward reads the result and its gradient too, and writes a gradient of each input."""
    read = inputs.read(first, first + 1, first + 2)
    if backward:
        return Cost(2 * pairs * (3 * width + 2 * value), 2 * read + 2 * made, exact)
    return Cost(2 * pairs * (width + value), read + made, exact)


@formula
def _dense(
    inputs: Inputs, first: int, causal: int | None, mask: int | None = None, heads_first: bool = True,
    backward: bool = False, end: bool = False, window: int | None = None,
) -> Cost:  # fmt: skip
    """Queries, keys, values of one length each. `mask`: a tensor that may forbid pairs; `window`: the place
    of the left and, next to it, the right size of a sliding window.
    """
    exact = not (mask is not None and inputs.is_tensor(mask)) and not _has_window(inputs, window)
    return _cost(inputs, first, heads_first, _causal(inputs, causal), exact, backward, end)


def _has_window(inputs: Inputs, window: int | None) -> bool:
    """Whether a sliding window is set: a size that is neither absent nor -1, which means unlimited."""
    if window is None:
        return False
    return any(
        at < len(inputs.values) and inputs.values[at] not in ("", "None", "-1") for at in (window, window + 1)
    )


@formula
def _flash(
    inputs: Inputs,
    first: int,
    offsets: int,
    longest: int,
    causal: int,
    backward: bool = False,
    window: int | None = None,
) -> Cost:
    """[B, S, H, D], or packed [tokens, H, D] if there are offsets of sequences."""
    if len(inputs.shape(first)) == 4 and not inputs.is_tensor(offsets):
        return _dense(first, causal, None, False, backward, True, window)(inputs)
    return _packed(inputs, first, offsets, longest, _causal(inputs, causal), backward, window)


def _packed(
    inputs: Inputs, first: int, offsets: int, longest: int, causal: bool | None, backward: bool,
    window: int | None,
) -> Cost:  # fmt: skip
    shapes = [inputs.shape(first + at) for at in range(3)]
    if any(len(shape) not in (3, 4) or (len(shape) == 4 and shape[0] != 1) for shape in shapes):
        raise UnknownInputError
    (tokens, heads, width), (keys, _, _), (_, _, value) = (shape[-3:] for shape in shapes)
    single = inputs.shape(offsets, 1)[0] == 2  # the offsets 0 and the end
    if single:
        pairs = _pairs(tokens, keys, bool(causal), True)
    else:
        pairs = tokens * min(inputs.ints(longest)[0], keys)
    made = tokens * heads * value * itemsize(inputs.type(first))
    exact = single and causal is not None and not _has_window(inputs, window)
    return _figures(inputs, first, heads * pairs, width, value, made, backward, exact)


@formula
def _efficient(
    inputs: Inputs, first: int, bias: int, offsets: int, longest: int, kind: int, backward: bool = False
) -> Cost:
    """[B, S, H, D]; the kind of mask is 0 for none, 1 for causal from the first, 2 from the last query."""
    masked = inputs.ints(kind)[0]
    if masked not in (0, 1, 2):
        raise UnknownInputError
    if inputs.is_tensor(offsets):
        return _packed(inputs, first, offsets, longest, masked > 0, backward, None)
    exact = not inputs.is_tensor(bias)
    return _cost(inputs, first, False, masked > 0, exact, backward, masked == 2)


_SDPA = "aten::_scaled_dot_product_"
FORMULAS: Formulas = {
    f"{_SDPA}flash_attention": _dense(0, 4),
    f"{_SDPA}flash_attention_backward": _dense(1, 11, backward=True),
    f"{_SDPA}flash_attention_for_cpu": _dense(0, 4, mask=5),
    f"{_SDPA}flash_attention_for_cpu_backward": _dense(1, 7, mask=8, backward=True),
    f"{_SDPA}efficient_attention": _dense(0, 6, mask=3),
    f"{_SDPA}efficient_attention_backward": _dense(1, 11, mask=4, backward=True),
    f"{_SDPA}cudnn_attention": _dense(0, 6, mask=3),
    f"{_SDPA}cudnn_attention_backward": _dense(1, 14, mask=8, backward=True),
    f"{_SDPA}fused_attention_overrideable": _dense(0, 5, mask=3),
    f"{_SDPA}fused_attention_overrideable_backward": _dense(1, 13, mask=4, backward=True),
    "aten::_flash_attention_forward": _flash(0, 3, 6, 8, window=11),
    "aten::_flash_attention_backward": _flash(1, 6, 9, 11, backward=True, window=15),
    "aten::_efficient_attention_forward": _efficient(0, 3, 4, 7, 9),
    "aten::_efficient_attention_backward": _efficient(1, 4, 6, 9, 14, backward=True),
    "aten::_cudnn_attention_forward": _dense(0, 10, mask=3),
    "aten::_cudnn_attention_backward": _dense(1, 14, mask=8, backward=True),
    # The library flash-attn, and aiter, which follows it (flash_attn_interface.py of version 2.7).
    **{
        f"{library}::_flash_attn_{name}": formula
        for library in ("flash_attn", "aiter")
        for name, formula in {
            "forward": _dense(0, 5, heads_first=False, end=True, window=6),
            "backward": _dense(1, 11, heads_first=False, backward=True, end=True, window=12),
            "varlen_forward": _flash(0, 3, 6, 9, window=10),
            "varlen_backward": _flash(1, 9, 12, 15, backward=True, window=16),
        }.items()
    },
}

BACKWARD: Final = frozenset(name for name in FORMULAS if name.endswith("backward"))
"""The operators of backward passes: the gradient of the result, then queries, keys and values."""


def scores_again(shapes: Sequence[Shape | list[Shape] | None]) -> tuple[int, int]:
    """The part of a backward pass's products that computes the scores once more, as (part, whole)."""
    width, value = (shape[-1] for shape in (shapes[1], shapes[3]) if isinstance(shape, tuple))
    return width, 3 * width + 2 * value
