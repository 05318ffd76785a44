"""Mixtures of experts in one operator: each token through two products in each of the experts chosen for it.

Signatures are those of vLLM (`vllm/model_executor/layers/fused_moe/fused_moe.py`, `rocm_aiter_fused_moe.py`,
`csrc/moe/torch_bindings.cpp`), of SGLang, which follows them (`fused_moe_triton/fused_moe.py`), and of aiter
(`aiter/fused_moe.py`): tokens [T, K], weights [E, F, K] and [E, K, N] of E experts, with F = 2 N where a gate
multiplies and F = N where none does, and the k experts of each token [T, k]. That is 2 T k (F K + K N)
operations. Experts on other ranks are left out, and how many are chosen by any token depends on the data: the
figures are upper bounds, with the weights of no more than T k experts. Weights of other shapes, as of packed
numbers, are unknown.
"""

from __future__ import annotations

import math

from hta_widgets.analysis.operators.cost import Cost, Formulas
from hta_widgets.analysis.operators.inputs import Inputs, UnknownInputError


def _experts(inputs: Inputs) -> Cost:
    """(tokens [T, K], w1 [E, F, K], w2 [E, K, N], weights [T, k], experts [T, k], ...)."""
    tokens, width = inputs.shape(0, 2)
    (experts, between, first), (same, last, inner) = inputs.shape(1, 3), inputs.shape(2, 3)
    rows, chosen = inputs.shape(4, 2)
    fits = experts == same and first == last == width and between in (inner, 2 * inner) and rows == tokens
    if not fits:
        raise UnknownInputError
    flops = 2 * tokens * chosen * (between * width + width * inner)
    used = min(tokens * chosen, experts) / max(experts, 1)
    moved = 2 * inputs.nbytes(0) + inputs.read(3, 4) + used * inputs.read(1, 2)
    return Cost(flops, moved, exact=False)


def _topk_softmax(inputs: Inputs) -> Cost:
    """(weights [T, k], experts [T, k], sources [T, k], gates [T, E])."""
    return Cost(math.nan, inputs.read(0, 1, 2, 3))


def _align(inputs: Inputs) -> Cost:
    """(experts [T, k], ..., sorted tokens, experts of blocks, count): buffers may be longer than needed."""
    inputs.shape(0, 2)
    return Cost(math.nan, inputs.read(0, 3, 4, 5), exact=False)


def _sum(inputs: Inputs) -> Cost:
    """(results [T, k, K], sum [T, K])."""
    tokens, chosen, width = inputs.shape(0, 3)
    return Cost(tokens * max(chosen - 1, 0) * width, inputs.read(0, 1))


FORMULAS: Formulas = dict.fromkeys(
    (
        "vllm::inplace_fused_experts", "vllm::outplace_fused_experts", "vllm::rocm_aiter_fused_moe",
        "sglang::inplace_fused_experts", "sglang::outplace_fused_experts", "aiter::fused_moe_",
    ),
    _experts,
)  # fmt: skip

ROUTING: Formulas = {
    "_moe_C::topk_softmax": _topk_softmax,
    "_moe_C::moe_align_block_size": _align,
    "_moe_C::moe_sum": _sum,
}
"""Who computes which token, and the sum of what they computed."""
