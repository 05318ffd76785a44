"""Kernels that Inductor generated: the tensors that were passed are touched once, at least.

Inductor names its kernels after their kind (`poi` pointwise, `red` and `per` reductions) and passes every
tensor that one reads or writes (torch/_inductor/codegen/triton.py). A tensor that is overwritten is read as
well, one that is indexed or broadcast may be read in part or often; the source that would tell is not in the
trace. So the sum of their sizes is a bound, and operations are unknown.
"""

from __future__ import annotations

import math

from hta_widgets.analysis.operators.cost import Cost
from hta_widgets.analysis.operators.inputs import Inputs, UnknownInputError

__all__ = ["PREFIXES", "tensors_once"]

PREFIXES = ("triton_poi_fused_", "triton_red_fused_", "triton_per_fused_")


def tensors_once(inputs: Inputs) -> Cost:
    """All tensors of a generated kernel."""
    tensors = [at for at in range(len(inputs.shapes)) if inputs.is_tensor(at)]
    if not tensors:
        raise UnknownInputError
    return Cost(math.nan, inputs.read(*tensors), exact=False)
