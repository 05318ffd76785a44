"""The category of an operator, by its name: that of its formula, or else by the words in it."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from hta_widgets.analysis.operators.formulas import BUILT_IN

CATEGORIES: Final = (*BUILT_IN, "communication", "other")

_BY_NAME: Final = {name: category for category, family in BUILT_IN.items() for name in family}

# The first that is found decides. Names of autograd's nodes say what they differentiate, but the work is that
# of the operators that they call.
_NODE = re.compile(r"^autograd::engine|Backward\d*$|^torch::autograd::")
_RULES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), category)
    for pattern, category in (
        (r"^triton_tem_fused_(?:\w*_)?(?:add|baddb|b)?mm(?:_|$)", "matmul"),
        (r"^c10d|^record_param_comms$|nccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all",
         "communication"),
        (r"attention|flash_attn|fmha|flashinfer|paged_attn", "attention"),
        (r"fused_moe|fused_experts", "matmul"),
        (r"conv(?:olution)?\d?d?(?:_|$|transpose)", "convolution"),
        (r"_foreach_|_fused_(?:adam|sgd|adagrad)|optimizer", "optimizer"),
        (r"embedding|(?:^|::)(?:index|gather|scatter|take)(?:_|$)", "embedding"),
        (r"(?:^|[_:])(?:matmul|linear|einsum|gemm|\w*mm|chain_matmul|inner|outer)(?:_|$|\d)", "matmul"),
        (r"(?:layer|batch|group|rms|instance)_?norm|softmax", "norm"),
        (r"(?:^|::)(?:copy|clone|contiguous|to|_to_copy|cat|stack|fill|zero|zeros|ones|full|empty_like|"
         r"zeros_like|ones_like|pad|constant_pad|repeat|roll|flip|pin_memory|_pin_memory)_?(?:_|$)", "copy"),
        (r"(?:^|::)(?:sum|mean|max|min|amax|amin|norm|var|std|cum\w+|sort|topk|any|all|prod|\w*pool\w*|"
         r"\w*_loss\w*|cross_entropy\w*|arg\w+)(?:_|$)", "reduction"),
        (r"^triton_(?:poi|red|per)_fused|(?:^|::)(?:relu|gelu|silu|dropout|sigmoid|tanh|quantize\w*)",
         "elementwise"),
    )
)  # fmt: skip


@cache
def category_of(name: str) -> str:
    """One of `CATEGORIES`."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    if _NODE.search(name):
        return "other"
    return next((category for rule, category in _RULES if rule.search(name)), "other")
