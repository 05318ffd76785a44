"""Matrix products of libraries beside PyTorch: [M, K] times [K, N] takes 2 M N K operations there, too.

Signatures are those that the libraries register: FBGEMM's `gen_ai/src/quantize/quantize.cpp` (weights [N, K],
results in bfloat16), vLLM's `csrc/torch_bindings.cpp` and `csrc/libtorch_stable/torch_bindings.cpp` (the
result is the first tensor), FlashInfer's `flashinfer/gemm.py`, and aiter's `ops/gemm_op_a8w8.py`. Scales,
zero points and biases are read once.
"""

from __future__ import annotations

import math

from hta_widgets.analysis.operators.cost import Cost, Formulas, formula
from hta_widgets.analysis.operators.inputs import Inputs, UnknownInputError, itemsize


@formula
def _rows_by_rows(inputs: Inputs, *also: int, packed: int = 1) -> Cost:
    """X [..., K] and W [N, K / packed], and further inputs, to [..., N] in bfloat16."""
    features, weight = inputs.shape(0), inputs.shape(1, 2)
    if len(features) < 2 or features[-1] != packed * weight[1]:
        raise UnknownInputError
    made = math.prod(features[:-1]) * weight[0]
    traffic = inputs.read(0, 1, *also) + made * itemsize("bfloat16")
    return Cost(2 * made * features[-1], traffic)


@formula
def _into(inputs: Inputs, result: int, left: int, right: int, *also: int, rows: bool = False) -> Cost:
    """[..., M, K] and [..., K, N] into a tensor that is given; with `rows`, the second is [N, K]."""
    made, first, second = inputs.shape(result), inputs.shape(left), inputs.shape(right)
    if not 2 <= len(made) == len(first) == len(second) <= 3:
        raise UnknownInputError
    across = second[-2] if rows else second[-1]
    depth = second[-1] if rows else second[-2]
    if made != (*first[:-1], across) or first[-1] != depth or first[:-2] != second[:-2]:
        raise UnknownInputError
    return Cost(2 * math.prod(made) * depth, inputs.read(result, left, right, *also))


FORMULAS: Formulas = {
    "fbgemm::i8i8bf16": _rows_by_rows(),
    "fbgemm::i8i8bf16_dynamic": _rows_by_rows(2),
    "fbgemm::f8f8bf16": _rows_by_rows(2),
    "fbgemm::f8f8bf16_tensorwise": _rows_by_rows(),
    "fbgemm::f8f8bf16_rowwise": _rows_by_rows(2, 3, 4),
    "fbgemm::f8f8bf16_cublas": _rows_by_rows(2, 3),
    "fbgemm::f8i4bf16_rowwise": _rows_by_rows(2, 3, 4, packed=2),
    "fbgemm::bf16i4bf16_rowwise": _rows_by_rows(2, 3, packed=2),
    "_C::cutlass_scaled_mm": _into(0, 1, 2, 3, 4, 5),
    "flashinfer::bmm_fp8": _into(3, 1, 2, 4, 5),
    "aiter::gemm_a8w8": _into(4, 0, 1, 2, 3, 5, rows=True),
}
