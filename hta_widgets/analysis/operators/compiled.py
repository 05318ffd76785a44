"""Kernels that Inductor generated: the tensors that were passed are touched once, at least.

Inductor names its kernels after their kind (`poi` pointwise, `red` and `per` reductions) and passes every
tensor that one reads or writes (torch/_inductor/codegen/triton.py). A tensor that is overwritten is read as
well, one that is indexed or broadcast may be read in part or often; the source that would tell is not in the
trace. So the sum of their sizes is a bound, and operations are unknown. Block sizes (`kernel_kwargs`)
times the grid are the elements of the result, rounded up: the tensors tell them already, and better.

Templates of matrix products (`tem`, torch/_inductor/kernel/mm.py and bmm.py) get both factors one after the
other, and their result last. Of [M, K], [K, N] and [M, N], transposed or with sides joined, the product of
the sizes is (M N K)^2, whichever way round they are passed.
"""

from __future__ import annotations

import math
import re
from itertools import pairwise

from hta_widgets.analysis.operators.cost import Cost
from hta_widgets.analysis.operators.inputs import Inputs, UnknownInputError

PREFIXES = ("triton_poi_fused_", "triton_red_fused_", "triton_per_fused_")

_PRODUCT = re.compile(r"^triton_tem_fused_(?:\w*_)?(?:add)?mm(?:_|$)")
_BATCHED = re.compile(r"^triton_tem_fused_(?:\w*_)?(?:baddb|b)mm(?:_|$)")


def tensors_once(inputs: Inputs) -> Cost:
    """All tensors of a generated kernel."""
    tensors = [at for at in range(len(inputs.shapes)) if inputs.is_tensor(at)]
    if not tensors:
        raise UnknownInputError
    return Cost(math.nan, inputs.read(*tensors), exact=False)


def is_product(name: str) -> bool:
    """Whether a kernel is made of the template of a matrix product."""
    return bool(_PRODUCT.search(name) or _BATCHED.search(name))


def product(inputs: Inputs) -> Cost:
    """The template of one product, or of one for each batch, and what is fused to its result."""
    tensors = [at for at in range(len(inputs.shapes)) if inputs.is_tensor(at) and inputs.numel(at)]
    if len(tensors) < 3:
        raise UnknownInputError
    batches = 1
    if _BATCHED.search(inputs.name):
        batches = inputs.shape(tensors[-1])[0] if len(inputs.shape(tensors[-1])) == 3 else 0
    found = {
        flops
        for left, right in pairwise(tensors[:-1])
        if (flops := _flops(inputs, left, right, tensors[-1], batches))
    }
    if len(found) != 1:
        raise UnknownInputError
    return Cost(found.pop(), inputs.read(*tensors), exact=False)


def _flops(inputs: Inputs, left: int, right: int, result: int, batches: int) -> int:
    """2 M N K of each batch, 0 if these are no factors of the result."""
    if not batches or any(inputs.numel(at) % batches for at in (left, right, result)):
        return 0
    first, second, made = (inputs.numel(at) // batches for at in (left, right, result))
    depth = math.isqrt(first * second // made)
    shared = depth in inputs.shape(left) and depth in inputs.shape(right)
    if depth**2 * made != first * second or not shared:
        return 0
    return 2 * batches * made * depth
