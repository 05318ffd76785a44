"""Conversions to fewer bits and back: traffic only.

FBGEMM's row-wise formats append a scale and an offset, two float32, to each row (`quantize_fp8_rowwise` and
`FloatToFP8RowwiseQuantized` in its `quantize_ops`); HFP8 has no such header. vLLM's operators write into the
first tensor.
"""

from __future__ import annotations

import math

from hta_widgets.analysis.operators.cost import Cost, Formulas
from hta_widgets.analysis.operators.inputs import Inputs, UnknownInputError, itemsize

_ROW_HEADER = 8


def _to_rows(inputs: Inputs) -> Cost:
    """FloatToFP8RowwiseQuantized(input [..., D])."""
    shape = inputs.shape(0)
    if not shape:
        raise UnknownInputError
    return Cost(math.nan, inputs.nbytes(0) + math.prod(shape[:-1]) * (shape[-1] + _ROW_HEADER))


def _from_rows(inputs: Inputs) -> Cost:
    """FP8RowwiseQuantizedToFloat(input [..., D + 8])."""
    shape = inputs.shape(0)
    if not shape or shape[-1] < _ROW_HEADER:
        raise UnknownInputError
    made = math.prod(shape[:-1]) * (shape[-1] - _ROW_HEADER)
    return Cost(math.nan, inputs.nbytes(0) + made * itemsize("float32"))


def _to_bytes(inputs: Inputs) -> Cost:
    """FloatToHFP8Quantized(input, ...)."""
    return Cost(math.nan, inputs.nbytes(0) + inputs.numel(0))


def _from_bytes(inputs: Inputs) -> Cost:
    """HFP8QuantizedToFloat(input, ...)."""
    return Cost(math.nan, inputs.nbytes(0) + inputs.numel(0) * itemsize("float32"))


def _to_integers(inputs: Inputs) -> Cost:
    """quantize_per_tensor(self, scale, zero_point, dtype): a byte for each element, or four (qint32)."""
    wide = 4 if len(inputs.values) > 3 and inputs.values[3] == "14" else 1
    return Cost(math.nan, inputs.nbytes(0) + wide * inputs.numel(0))


def _faked(inputs: Inputs) -> Cost:
    """fake_quantize_per_tensor_affine_cachemask(self, ...): the rounded values, and which were in range."""
    return Cost(math.nan, 2 * inputs.nbytes(0) + inputs.numel(0) * itemsize("bool"))


def _into(inputs: Inputs) -> Cost:
    """scaled_fp8_quant(out, input, scale, ...)."""
    return Cost(math.nan, inputs.read(0, 1, 2))


def _to_float8(inputs: Inputs) -> Cost:
    """quantize_fp8_per_row(input [..., K], bs, scale_ub, ...): bytes, and a float32 for each row.

    FBGEMM's `gen_ai/src/quantize/quantize.cpp`. With `bs`, a tensor, fewer rows count.
    """
    shape = inputs.shape(0)
    if not shape:
        raise UnknownInputError
    scales = math.prod(shape[:-1]) * itemsize("float32")
    traffic = inputs.read(0, 1, 2) + math.prod(shape) + scales
    return Cost(math.nan, traffic, exact=not inputs.is_tensor(1))


FORMULAS: Formulas = {
    "fbgemm::FloatToFP8RowwiseQuantized": _to_rows,
    "fbgemm::FP8RowwiseQuantizedToFloat": _from_rows,
    "fbgemm::FloatToHFP8Quantized": _to_bytes,
    "fbgemm::HFP8QuantizedToFloat": _from_bytes,
    "fbgemm::quantize_fp8_per_row": _to_float8,
    "aten::quantize_per_tensor": _to_integers,
    "aten::fake_quantize_per_tensor_affine_cachemask": _faked,
    "_C::static_scaled_fp8_quant": _into,
    "_C::dynamic_scaled_fp8_quant": _into,
    "_C::dynamic_per_token_scaled_fp8_quant": _into,
    "_C::static_scaled_int8_quant": _into,
    "_C::dynamic_scaled_int8_quant": _into,
}
