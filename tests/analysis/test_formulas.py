"""Operations and traffic of operators, computed by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hta_widgets.analysis.operators.categories import CATEGORIES, category_of
from hta_widgets.analysis.operators.cost import Cost
from hta_widgets.analysis.operators.costs import _element_of
from hta_widgets.analysis.operators.formulas import BUILT_IN, formula_of
from hta_widgets.analysis.operators.inputs import (
    Inputs,
    UnknownInputError,
    itemsize,
    parse_shapes,
    parse_types,
    text_of,
)

UNKNOWN = math.nan
HALF, FULL = "bfloat16", "float32"


def cost(name: str, shapes: Any, kind: str = HALF, values: Any = None, types: Any = None) -> Cost:
    """The cost of a call with tensors of one type; `values` by position."""
    types = types or tuple("" if shape is None else kind for shape in shapes)
    texts = [""] * len(shapes)
    for at, value in (values or {}).items():
        texts += [""] * (at + 1 - len(texts))
        texts[at] = str(value)
    formula = formula_of(name)
    assert formula is not None, name
    return formula(Inputs(name, tuple(shapes), tuple(types), tuple(texts) if values else ()))


def figures(found: Cost) -> tuple[float | None, float | None, bool]:
    flops, moved = (None if math.isnan(value) else value for value in (found.flops, found.bytes))
    return flops, moved, found.exact


Q, K, V = (2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 4)  # [B, H, S, D]
FIVE = (2, 3, 5, 8)
NO = None
CASES: list[tuple[str, Any, dict[int, Any] | None, tuple[float | None, float | None, bool]]] = [
    # name, shapes (bfloat16), values, (flops, bytes, exact)
    ("aten::mm", [(4, 8), (8, 2)], None, (2 * 4 * 8 * 2, 2 * (32 + 16 + 8), True)),
    ("aten::addmm", [(2,), (4, 8), (8, 2), NO, NO], None, (128, 2 * (2 + 32 + 16 + 8), True)),
    ("aten::addmm_", [(4, 2), (4, 8), (8, 2), NO, NO], None, (128, 2 * (8 + 32 + 16 + 8), True)),
    ("aten::_addmm_activation", [(2,), (4, 8), (8, 2), NO, NO], None, (128, 2 * (2 + 32 + 16 + 8), True)),
    ("aten::vdot", [(8,), (8,)], None, (16, 2 * (8 + 8 + 1), True)),
    ("aten::bmm", [(3, 4, 8), (3, 8, 2)], None, (3 * 128, 2 * 3 * (32 + 16 + 8), True)),
    ("aten::baddbmm", [(3, 4, 2), (3, 4, 8), (3, 8, 2)], None, (3 * 128, 2 * 3 * (8 + 32 + 16 + 8), True)),
    ("aten::mv", [(4, 8), (8,)], None, (64, 2 * (32 + 8 + 4), True)),
    ("aten::addmv", [(4,), (4, 8), (8,)], None, (64, 2 * (4 + 32 + 8 + 4), True)),
    ("aten::dot", [(8,), (8,)], None, (16, 2 * (8 + 8 + 1), True)),
    ("aten::linear", [(3, 4, 8), (2, 8), (2,)], None, (2 * 12 * 8 * 2, 2 * (96 + 16 + 2 + 24), True)),
    ("aten::_grouped_mm", [(10, 8), (3, 8, 2), (3,)], None, (2 * 10 * 8 * 2, 2 * (80 + 48 + 20), False)),
    ("aten::_grouped_mm", [(3, 4, 8), (3, 8, 2)], None, (3 * 128, 2 * 3 * (32 + 16 + 8), True)),
    ("aten::_grouped_mm", [(4, 8), (8, 2), (3,)], None, (128, 2 * (32 + 16 + 3 * 8), False)),
    ("aten::_scaled_grouped_mm", [(10, 8), (3, 8, 2), (10,), (3, 2), (3,)], {7: "6"},
     (2 * 10 * 8 * 2, 2 * (80 + 48) + 4 * 20, False)),
    # 2 x 3 images of 7 x 7, stride 2, padding 1: 4 x 4 of 6 channels, in 3 groups of one.
    ("aten::convolution", [(2, 3, 7, 7), (6, 1, 3, 3), (6,), NO, NO, NO, NO, NO, NO],
     {3: "[2, 2]", 4: "[1, 1]", 5: "[1, 1]", 6: "False", 7: "[0, 0]", 8: "3"},
     (2 * 2 * 6 * 16 * 9, 2 * (2 * 3 * 49 + 54 + 6 + 2 * 6 * 16), True)),
    # The vendors' operators have the padding before the stride.
    ("aten::cudnn_convolution", [(2, 3, 7, 7), (6, 3, 3, 3), NO, NO, NO],
     {2: "[1, 1]", 3: "[2, 2]", 4: "[1, 1]", 5: "1"},
     (2 * 2 * 6 * 16 * 27, 2 * (294 + 162 + 192), True)),
    ("aten::cudnn_convolution_relu", [(2, 3, 7, 7), (6, 3, 3, 3), (6,)],
     {3: "[2, 2]", 4: "[1, 1]", 5: "[1, 1]", 6: "1"}, (2 * 2 * 6 * 16 * 27, 2 * (294 + 162 + 6 + 192), True)),
    ("aten::miopen_convolution", [(2, 3, 7, 7), (6, 3, 3, 3), NO, NO, NO, NO],
     {3: "[1, 1]", 4: "[2, 2]", 5: "[1, 1]", 6: "1"}, (2 * 2 * 6 * 16 * 27, 2 * (294 + 162 + 192), True)),
    ("aten::mkldnn_convolution", [(2, 3, 7, 7), (6, 3, 3, 3), NO, NO, NO, NO],
     {3: "[1, 1]", 4: "[2, 2]", 5: "[1, 1]", 6: "1"}, (2 * 2 * 6 * 16 * 27, 2 * (294 + 162 + 192), True)),
    # One filter for each of 3 channels.
    ("aten::miopen_depthwise_convolution", [(2, 3, 7, 7), (3, 1, 3, 3), NO, NO, NO, NO],
     {3: "[1, 1]", 4: "[2, 2]", 5: "[1, 1]", 6: "3"}, (2 * 2 * 3 * 16 * 9, 2 * (294 + 27 + 96), True)),
    ("aten::_conv_depthwise2d", [(2, 3, 7, 7), (3, 1, 3, 3), NO, (3,), NO, NO, NO],
     {2: "[3, 3]", 4: "[2, 2]", 5: "[1, 1]", 6: "[1, 1]"},
     (2 * 2 * 3 * 16 * 9, 2 * (294 + 27 + 3 + 96), True)),
    # Transposed: 3 x 3 with stride 2 and kernel 3 becomes 7 x 7; each input position meets each weight.
    ("aten::convolution", [(1, 4, 3, 3), (4, 5, 3, 3), NO, NO, NO, NO, NO, NO, NO],
     {3: "[2, 2]", 4: "[0, 0]", 5: "[1, 1]", 6: "True", 7: "[0, 0]", 8: "1"},
     (2 * 9 * 4 * 5 * 9, 2 * (36 + 180 + 5 * 49), True)),
    # Padding 1, one row and column more at the end: 6 x 6.
    ("aten::cudnn_convolution_transpose", [(1, 4, 3, 3), (4, 5, 3, 3)],
     {2: "[1, 1]", 3: "[1, 1]", 4: "[2, 2]", 5: "[1, 1]", 6: "1"},
     (2 * 9 * 4 * 5 * 9, 2 * (36 + 180 + 5 * 36), True)),
    ("aten::convolution_backward", [(2, 6, 4, 4), (2, 3, 7, 7), (6, 3, 3, 3)],
     {7: "False", 10: "[True, True, True]"},
     (2 * 2 * 2 * 6 * 16 * 27, 2 * (192 + 162 + 294 + 294 + 162 + 6), True)),
    ("aten::convolution_backward", [(2, 6, 4, 4), (2, 3, 7, 7), (6, 3, 3, 3)],
     {7: "False", 10: "[False, True, False]"}, (2 * 2 * 6 * 16 * 27, 2 * (192 + 294 + 162), True)),
    ("aten::convolution_backward", [(2, 6, 4, 4), (2, 3, 7, 7), (6, 3, 3, 3)], None,
     (2 * 2 * 2 * 6 * 16 * 27, 2 * (192 + 162 + 294 + 294 + 162), False)),
    ("aten::convolution_backward_overrideable", [(2, 6, 4, 4), (2, 3, 7, 7), (6, 3, 3, 3)],
     {6: "False", 9: "[False, True, False]"}, (2 * 2 * 6 * 16 * 27, 2 * (192 + 294 + 162), True)),
    ("aten::convolution_backward_overrideable", [(1, 5, 7, 7), (1, 4, 3, 3), (4, 5, 3, 3)],
     {6: "True", 9: "[True, False, False]"}, (2 * 9 * 4 * 5 * 9, 2 * (245 + 180 + 36), True)),
    # Until PyTorch 1.12 the gradient of the output came second, and that of the bias was another operator's.
    ("aten::cudnn_convolution_backward", [(2, 3, 7, 7), (2, 6, 4, 4), (6, 3, 3, 3)],
     {10: "[True, False]"}, (2 * 2 * 6 * 16 * 27, 2 * (192 + 162 + 294), True)),
    ("aten::miopen_convolution_backward", [(2, 3, 7, 7), (2, 6, 4, 4), (6, 3, 3, 3)],
     {9: "[False, True, True]"}, (2 * 2 * 6 * 16 * 27, 2 * (192 + 294 + 162), True)),
    ("aten::cudnn_convolution_backward", [(2, 3, 7, 7), (2, 6, 4, 4), (6, 3, 3, 3)], None,
     (2 * 2 * 2 * 6 * 16 * 27, 2 * (192 + 162 + 294 + 294 + 162), False)),
    ("aten::cudnn_convolution_backward_input", [NO, (2, 6, 4, 4), (6, 3, 3, 3)], {0: "[2, 3, 7, 7]"},
     (2 * 2 * 6 * 16 * 27, 2 * (192 + 162 + 294), True)),
    ("aten::cudnn_convolution_backward_weight", [NO, (2, 6, 4, 4), (2, 3, 7, 7)], {0: "[6, 3, 3, 3]"},
     (2 * 2 * 6 * 16 * 27, 2 * (192 + 294 + 162), True)),
    # 2 x 3 heads, 35 pairs, widths 8 and 4.
    ("aten::_scaled_dot_product_flash_attention", [Q, K, V], {4: "False"},
     (2 * 6 * 35 * 12, 2 * (240 + 336 + 168 + 120), True)),
    # A causal mask leaves query i the keys up to i: 1 + 2 + 3 + 4 + 5.
    ("aten::_scaled_dot_product_flash_attention", [Q, K, V], {4: "True"},
     (2 * 6 * 15 * 12, 2 * (240 + 336 + 168 + 120), True)),
    ("aten::_scaled_dot_product_flash_attention", [Q, K, V], None,
     (2 * 6 * 35 * 12, 2 * (240 + 336 + 168 + 120), False)),
    ("aten::_scaled_dot_product_efficient_attention", [Q, K, V, (5, 7)], {6: "False"},
     (2 * 6 * 35 * 12, 2 * (240 + 336 + 168 + 120), False)),
    ("aten::_scaled_dot_product_cudnn_attention", [Q, K, V, NO], {6: "False"},
     (2 * 6 * 35 * 12, 2 * (240 + 336 + 168 + 120), True)),
    ("aten::_scaled_dot_product_flash_attention_backward", [FIVE, FIVE, FIVE, FIVE, FIVE], {11: "False"},
     (2.5 * 2 * 6 * 25 * 16, 2 * (2 * 3 * 240 + 2 * 240), True)),
    # [B, S, H, D]; with fewer heads of keys; causal from the last query: 3 + 4 + 5 + 6 + 7 pairs.
    ("aten::_flash_attention_forward", [(2, 5, 4, 8), (2, 7, 2, 8), (2, 7, 2, 8), NO, NO],
     {5: "5", 6: "7", 8: "True"}, (2 * 8 * 25 * 16, 2 * (320 + 224 + 224 + 320), True)),
    # A window leaves fewer.
    ("aten::_flash_attention_forward", [(2, 5, 4, 8), (2, 7, 2, 8), (2, 7, 2, 8), NO, NO],
     {5: "5", 6: "7", 8: "False", 11: "3", 12: "0"}, (2 * 8 * 35 * 16, 2 * (320 + 224 + 224 + 320), False)),
    # Packed: 12 queries of at most 6 keys each.
    ("aten::_flash_attention_forward", [(12, 4, 8), (14, 4, 8), (14, 4, 8), (4,), (4,)],
     {5: "5", 6: "6", 8: "False"}, (2 * 4 * 72 * 16, 2 * (384 + 448 + 448 + 384), False)),
    ("aten::_flash_attention_forward", [(12, 4, 8), (12, 4, 8), (12, 4, 8), (2,), (2,)],
     {5: "12", 6: "12", 8: "True"}, (2 * 4 * 78 * 16, 2 * 4 * 384, True)),
    ("aten::_efficient_attention_forward", [(2, 5, 3, 8), (2, 7, 3, 8), (2, 7, 3, 4), NO, NO, NO],
     {9: "2"}, (2 * 6 * 25 * 12, 2 * (240 + 336 + 168 + 120), True)),
    ("aten::_efficient_attention_forward", [(2, 5, 3, 8), (2, 7, 3, 8), (2, 7, 3, 4), NO, NO, NO],
     {9: "1"}, (2 * 6 * 15 * 12, 2 * (240 + 336 + 168 + 120), True)),
    ("flash_attn::_flash_attn_forward", [(2, 5, 3, 8), (2, 7, 3, 8), (2, 7, 3, 4)],
     {5: "False", 6: "-1", 7: "-1"}, (2 * 6 * 35 * 12, 2 * (240 + 336 + 168 + 120), True)),
    ("flash_attn::_flash_attn_varlen_forward", [(12, 4, 8), (14, 4, 8), (14, 4, 8), (4,), (4,)],
     {5: "5", 6: "6", 9: "False", 10: "-1", 11: "-1"}, (2 * 4 * 72 * 16, 2 * (384 + 448 + 448 + 384), False)),
    # Norms: input, weights, result; statistics are float32.
    ("aten::native_layer_norm", [(2, 5, 8), NO, (8,), (8,)], None,
     (None, 2 * (80 + 80 + 16) + 2 * 10 * 4, True)),
    ("aten::native_layer_norm_backward",
     [(2, 5, 8), (2, 5, 8), NO, (2, 5, 1), (2, 5, 1), (8,), (8,)], None,
     (None, 2 * (80 + 80 + 80) + 2 * (10 + 10 + 8) + 2 * (8 + 8), True)),
    ("aten::native_batch_norm", [(2, 3, 4, 4), (3,), (3,), (3,), (3,)], {5: "True"},
     (None, 2 * (96 + 96 + 12) + 2 * 6 + 2 * 3 * 4, True)),
    ("aten::native_batch_norm", [(2, 3, 4, 4), (3,), (3,), (3,), (3,)], {5: "False"},
     (None, 2 * (96 + 96 + 12), True)),
    ("aten::native_batch_norm_backward", [(2, 3, 4, 4), (2, 3, 4, 4), (3,), (3,), (3,), (3,), (3,)], None,
     (None, 2 * (3 * 96 + 9 + 6), True)),
    ("aten::native_group_norm", [(2, 4, 8), (4,), (4,)], {6: "2"},
     (None, 2 * (64 + 64 + 8) + 2 * 4 * 4, True)),
    ("aten::native_group_norm_backward", [(2, 4, 8), (2, 4, 8), (2, 2), (2, 2), (4,)], None,
     (None, 2 * (3 * 64 + 4 + 4 + 4 + 2 * 4), True)),
    ("aten::_native_batch_norm_legit_no_training", [(2, 3, 4, 4), (3,), (3,), (3,), (3,)], None,
     (None, 2 * (96 + 96 + 12), True)),
    *((f"aten::{vendor}_batch_norm_backward",
       [(2, 3, 4, 4), (2, 3, 4, 4), (3,), (3,), (3,), (3,), (3,)], None, (None, 2 * (3 * 96 + 9 + 6), True))
      for vendor in ("cudnn", "miopen")),
    ("aten::_fused_rms_norm", [(2, 5, 8), NO, (8,)], None, (None, 2 * (80 + 80 + 8) + 10 * 4, True)),
    ("aten::_fused_rms_norm_backward", [(2, 5, 8), (2, 5, 8), NO, (2, 5, 1), (8,)], None,
     (None, 2 * (3 * 80 + 10 + 8 + 8), True)),
    ("aten::_safe_softmax", [(4, 8)], None, (None, 2 * 64, True)),
    ("aten::_softmax", [(4, 8)], {2: "False"}, (None, 2 * 64, True)),
    ("aten::_log_softmax", [(4, 8)], {2: "True"}, (None, 2 * 32 + 4 * 32, True)),
    ("aten::_softmax_backward_data", [(4, 8), (4, 8), NO, NO], {3: "15"}, (None, 2 * 96, True)),
    # Elementwise: operands, result; broadcast; in place; a tensor for the result is no operand.
    ("aten::add", [(4, 1, 8), (3, 8), NO], None, (96, 2 * (32 + 24 + 96), True)),
    ("aten::add_", [(4, 8), (8,), NO], None, (32, 2 * (32 + 8 + 32), True)),
    ("aten::mul", [(4, 8), ()], None, (32, 2 * (32 + 1 + 32), True)),
    ("aten::addcmul", [(8,), (8,), (8,)], None, (24, 2 * 32, True)),
    ("aten::neg", [(4, 8)], None, (32, 2 * 64, True)),
    ("aten::rsqrt", [(4, 8)], None, (32, 2 * 64, True)),
    ("aten::exp", [(4, 8)], None, (None, 2 * 64, True)),
    ("aten::maximum", [(4, 8), (8,)], None, (None, 2 * (32 + 8 + 32), True)),
    ("aten::_prelu_kernel", [(4, 8), (8,)], None, (None, 2 * (32 + 8 + 32), True)),
    ("aten::clamp", [(4, 8), NO, NO], None, (None, 2 * 64, True)),
    ("aten::clamp", [(4, 8), (8,), (4, 1)], None, (None, 2 * (32 + 8 + 4 + 32), True)),
    ("aten::logical_not", [(4, 8)], None, (None, 2 * 32 + 32, True)),
    ("aten::isnan", [(4, 8)], None, (None, 2 * 32 + 32, True)),
    ("aten::glu", [(4, 8)], None, (None, 2 * (32 + 16), True)),
    ("_C::silu_and_mul", [(4, 8), (4, 16)], None, (None, 2 * (32 + 64), True)),
    ("aten::gelu", [(4, 8), NO], None, (None, 2 * 64, True)),
    ("aten::gelu_backward", [(4, 8), (4, 8), NO], None, (None, 2 * 96, True)),
    ("aten::nan_to_num", [(4, 8), NO, NO, NO, (4, 8)], None, (None, 2 * 64, True)),
    ("aten::gt", [(4, 8), NO], None, (None, 2 * 32 + 32, True)),
    ("aten::native_dropout", [(4, 8)], None, (None, 2 * 64 + 32, True)),
    # Reductions.
    ("aten::sum", [(4, 8), NO, NO, NO], {1: "[0]", 2: "False"}, (32, 2 * (32 + 8), True)),
    ("aten::sum", [(4, 8), NO, NO, NO], {1: "[-1]", 2: "True", 3: "6"}, (32, 2 * 32 + 4 * 4, True)),
    ("aten::sum", [(4, 8), NO], {1: ""}, (32, 2 * 33, True)),
    ("aten::sum", [(4, 8), NO], None, (32, 2 * 32, False)),
    ("aten::nansum", [(4, 8), NO, NO, NO], {1: "[0]", 2: "False", 3: "6"}, (32, 2 * 32 + 4 * 8, True)),
    ("aten::prod", [(4, 8), NO], {1: "0"}, (32, 2 * (32 + 8), True)),
    ("aten::amax", [(4, 8), NO], {1: "[1]"}, (None, 2 * (32 + 4), True)),
    ("aten::any", [(4, 8), NO], {1: "1"}, (None, 2 * 32 + 4, True)),
    # The order of the norm comes before the dimensions.
    ("aten::linalg_vector_norm", [(4, 8), NO, NO], {1: "1", 2: "[0]"}, (None, 2 * (32 + 8), True)),
    ("aten::sort", [(4, 8)], None, (None, 2 * 64 + 8 * 32, False)),
    ("aten::mean", [(4, 8), NO], {1: "[]"}, (32, 2 * 33, True)),
    ("aten::argmax", [(4, 8), NO], {1: "-1"}, (None, 2 * 32 + 8 * 4, True)),
    ("aten::max", [(4, 8), NO], {1: "1", 2: "False"}, (None, 2 * 32 + 4 * (2 + 8), True)),
    ("aten::topk", [(4, 8)], {1: "2", 2: "-1"}, (None, 2 * 32 + 8 * (2 + 8), True)),
    # 6 x 6, kernel 3, stride 2, no padding: 2 x 2, and 3 x 3 rounded up.
    ("aten::max_pool2d_with_indices", [(2, 3, 6, 6)],
     {1: "[3, 3]", 2: "[2, 2]", 3: "[0, 0]", 4: "[1, 1]", 5: "False"}, (None, 2 * 216 + 24 * (2 + 8), True)),
    ("aten::max_pool2d_with_indices", [(2, 3, 6, 6)],
     {1: "[3, 3]", 2: "[2, 2]", 3: "[0, 0]", 4: "[1, 1]", 5: "True"}, (None, 2 * 216 + 54 * (2 + 8), True)),
    ("aten::max_pool2d_with_indices_backward", [(2, 3, 2, 2), (2, 3, 6, 6), NO, NO, NO, NO, NO, (2, 3, 2, 2)],
     None, (None, 2 * (24 + 24 + 216), True)),
    # To 2 x 1 of any size; back, only the shape of the input matters.
    ("aten::_adaptive_avg_pool2d", [(2, 3, 6, 6), NO], {1: "[2, 1]"}, (None, 2 * (216 + 12), True)),
    ("aten::_adaptive_avg_pool2d", [(3, 6, 6), NO], {1: "[2, 1]"}, (None, 2 * (108 + 6), True)),
    ("aten::_adaptive_avg_pool2d_backward", [(2, 3, 2, 1), (2, 3, 6, 6)], None, (None, 2 * (12 + 216), True)),
    ("aten::mse_loss", [(4, 8), (4, 8)], {2: "1"}, (96, 2 * (64 + 1), True)),
    ("aten::mse_loss_backward", [(), (4, 8), (4, 8)], {3: "1"}, (96, 2 * (1 + 3 * 32), True)),
    # By places: an element, or a row of 8, for each of them.
    ("aten::scatter_", [(10,), NO, (6,), (6,)], None, (None, 2 * 18, True)),
    ("aten::scatter_", [(10,), NO, (6,), NO], None, (None, 2 * 12, True)),
    ("aten::index_add_", [(10, 8), NO, (3,), (3, 8)], None, (24, 2 * (3 + 3 * 24), True)),
    ("aten::index_copy_", [(10, 8), NO, (3,), (3, 8)], None, (None, 2 * (3 + 2 * 24), True)),
    # Copies.
    ("aten::copy_", [(4, 8), (4, 8), NO], None, (0, 2 * 64, True)),
    ("aten::fill_", [(4, 8), NO], None, (0, 64, True)),
    ("aten::flip", [(4, 8)], None, (0, 2 * 64, True)),
    ("aten::_local_scalar_dense", [()], None, (0, 2, True)),
    ("aten::constant_pad_nd", [(4, 8)], {1: "[1, 2, 0, 3]"}, (0, 2 * (32 + 11 * 7), True)),
    ("aten::cat", [[(4, 8), (2, 8)], NO], None, (0, 2 * 2 * 48, True)),
    # Lists of tensors: 8 + 4 elements.
    ("aten::_foreach_add_", [[(2, 4), (4,)], [(2, 4), (4,)], NO], None, (12, 2 * 36, True)),
    ("aten::_foreach_mul_", [[(2, 4), (4,)], NO], None, (12, 2 * 24, True)),
    ("aten::_foreach_copy_", [[(2, 4), (4,)], [(2, 4), (4,)]], None, (None, 2 * 24, True)),
    ("aten::_foreach_neg_", [[(2, 4), (4,)]], None, (12, 2 * 24, True)),
    ("aten::_foreach_exp", [[(2, 4), (4,)]], None, (None, 2 * 24, True)),
    ("aten::_foreach_addcmul_", [[(2, 4), (4,)]] * 3, None, (36, 2 * 48, True)),
    ("aten::_foreach_maximum_", [[(2, 4), (4,)], [(2, 4), (4,)]], None, (None, 2 * 36, True)),
    ("aten::_foreach_zero_", [[(2, 4), (4,)]], None, (None, 2 * 12, True)),
    ("aten::_foreach_max", [[(2, 4), (4,)]], None, (None, 2 * 14, True)),
    ("aten::_foreach_norm", [[(2, 4), (4,)]], None, (None, 2 * 14, True)),
    ("aten::_fused_adamw_", [[(12,)], [(12,)], [(12,)], [(12,)], [], [()]], None, (None, 2 * 7 * 12, True)),
    ("aten::_fused_sgd_", [[(12,)], [(12,)], [(12,)]], None, (None, 2 * 5 * 12, True)),
    ("aten::_fused_adagrad_", [[(12,)], [(12,)], [(12,)], [()]], None, (None, 2 * 5 * 12, True)),
    # Quantisation.
    ("fbgemm::FloatToHFP8Quantized", [(100,), NO], None, (None, 200 + 100, True)),
    ("fbgemm::HFP8QuantizedToFloat", [(100,), (7,)], None, (None, 200 + 4 * 100, True)),
    ("aten::quantize_per_tensor", [(4, 8)], {3: "13"}, (None, 2 * 32 + 32, True)),
    ("aten::quantize_per_tensor", [(4, 8)], {3: "14"}, (None, 2 * 32 + 4 * 32, True)),
    ("aten::fake_quantize_per_tensor_affine_cachemask", [(4, 8)], None, (None, 2 * 64 + 32, True)),
    ("triton_poi_fused_add_0", [(4, 8), (4, 8), (8,), NO], None, (None, 2 * 72, False)),
    ("triton_red_fused_mean_1", [(4, 8), (4,)], None, (None, 2 * 36, False)),
    # factors with sides joined ([2, 3, 8] for [6, 8]) and transposed ([5, 8]), behind a bias, before a result
    ("triton_tem_fused_mm_0", [(6, 8), (8, 5), (6, 5)], None, (2 * 6 * 8 * 5, 2 * (48 + 40 + 30), False)),
    ("triton_tem_fused_addmm_relu_3", [(5,), (2, 3, 8), (5, 8), (6, 5)], None, (480, 2 * 123, False)),
    ("triton_tem_fused_bmm_1", [(3, 6, 8), (3, 8, 5), (3, 6, 5)], None, (3 * 480, 2 * 3 * 118, False)),
    # 3 sequences of at most 20 tokens (2 blocks of 16), 8 heads of 4, of which 2 have keys: out, query, keys
    # in parts of 2, values, heads, scale, table, lengths, block, longest
    ("_C::paged_attention_v1",
     [(3, 8, 4), (3, 8, 4), (9, 2, 2, 16, 2), (9, 2, 4, 16), NO, NO, (3, 2), (3,), NO, NO],
     {9: "20"}, (4 * 3 * 8 * 20 * 4, 2 * (96 + 96 + 6 + 3 + 2 * 3 * 20 * 2 * 4), False)),
    ("_C::paged_attention_v2",
     [(3, 8, 4), (3, 8, 2), (3, 8, 2), (3, 8, 2, 4), (3, 8, 4), (9, 2, 2, 16, 2), (9, 2, 4, 16), NO, NO,
      (3, 2), (3,), NO, NO],
     {12: "64"}, (4 * 3 * 8 * 32 * 4, 2 * (96 + 96 + 6 + 3 + 2 * 3 * 32 * 2 * 4), False)),
    ("_rocm_C::paged_attention",
     [(3, 8, 4), (3, 8, 2), (3, 8, 2), (3, 8, 2, 4), (3, 8, 4), (9, 2, 2, 16, 2), (9, 2, 4, 16), NO, NO,
      (3, 2), (3,)],
     None, (4 * 3 * 8 * 32 * 4, 2 * (96 + 96 + 6 + 3 + 2 * 3 * 32 * 2 * 4), False)),
    ("_C_cache_ops::reshape_and_cache_flash",
     [(5, 2, 4), (5, 2, 4), (9, 16, 2, 4), (9, 16, 2, 4), (3,)], None,
     (None, 2 * (3 + 3 * 2 * 4 * 2 * 2), False)),
    # 3 tokens of 8 through 2 of 16 experts each, 10 = 2 x 5 wide with their gates: at most 6 experts are used
    ("vllm::outplace_fused_experts", [(3, 8), (16, 10, 8), (16, 8, 5), (3, 2), (3, 2)], None,
     (2 * 3 * 2 * (10 * 8 + 8 * 5), 2 * (24 + 24 + 6 + 6 + 6 * (80 + 40)), False)),
    ("aiter::fused_moe_", [(30, 8), (4, 5, 8), (4, 8, 5), (30, 2), (30, 2)], None,
     (2 * 30 * 2 * (5 * 8 + 8 * 5), 2 * (240 + 240 + 60 + 60 + 4 * 80), False)),
    ("_moe_C::topk_softmax", [(3, 2), (3, 2), (3, 2), (3, 16)], None, (None, 2 * (18 + 48), True)),
    ("_moe_C::moe_align_block_size", [(3, 2), NO, NO, (32,), (4,), (1,)], None, (None, 2 * 43, False)),
    ("_moe_C::moe_sum", [(3, 2, 8), (3, 8)], None, (3 * 8, 2 * (48 + 24), True)),
]  # fmt: skip


DENSE = [
    # name, where it says whether it is causal, and where a tensor may forbid pairs
    ("aten::_scaled_dot_product_flash_attention_for_cpu", 4, 5),
    ("aten::_scaled_dot_product_flash_attention_for_cpu_backward", 7, 8),
    ("aten::_scaled_dot_product_efficient_attention", 6, 3),
    ("aten::_scaled_dot_product_efficient_attention_backward", 11, 4),
    ("aten::_scaled_dot_product_cudnn_attention", 6, 3),
    ("aten::_scaled_dot_product_cudnn_attention_backward", 14, 8),
    ("aten::_scaled_dot_product_fused_attention_overrideable", 5, 3),
    ("aten::_scaled_dot_product_fused_attention_overrideable_backward", 13, 4),
    ("aten::_cudnn_attention_forward", 10, 3),
    ("aten::_cudnn_attention_backward", 14, 8),
]


@pytest.mark.parametrize(("name", "causal", "mask"), DENSE)
def test_attention_by_hand(name: str, causal: int, mask: int) -> None:
    """Of 2 x 3 heads, 35 pairs or the causal 15; back, three products of width 8 and two of width 4."""
    backward = name.endswith("backward")
    shapes = [(2, 3, 5, 4), Q, K, V] if backward else [Q, K, V]
    moved = 2 * (2 * (240 + 336 + 168 + 120) if backward else 240 + 336 + 168 + 120)
    widths = 3 * 8 + 2 * 4 if backward else 8 + 4
    for said, pairs in (("False", 35), ("True", 15)):
        assert figures(cost(name, shapes, values={causal: said})) == (2 * 6 * pairs * widths, moved, True)
    masked = [*shapes, *[None] * (mask - len(shapes)), (5, 7)]
    assert figures(cost(name, masked, values={causal: "False"})) == (2 * 6 * 35 * widths, moved, False)


BY_TOKEN = [
    # name, values of a causal call, and where a window is
    ("aten::_flash_attention_backward", {11: "True"}, 15),
    ("aten::_efficient_attention_backward", {14: "2"}, None),
    *((f"{library}::_flash_attn_forward", {5: "True"}, 6) for library in ("flash_attn", "aiter")),
    *((f"{library}::_flash_attn_backward", {11: "True"}, 12) for library in ("flash_attn", "aiter")),
]


@pytest.mark.parametrize(("name", "values", "window"), BY_TOKEN)
def test_attention_of_tokens_by_hand(name: str, values: dict[int, str], window: int | None) -> None:
    """[B, S, H, D], causal from the last query: 3 + 4 + 5 + 6 + 7 pairs; a window leaves fewer."""
    backward = name.endswith("backward")
    shapes = [*[(2, 5, 3, 4)] * backward, (2, 5, 3, 8), (2, 7, 3, 8), (2, 7, 3, 4)]
    moved = 2 * (1 + backward) * (240 + 336 + 168 + 120)
    flops = 2 * 6 * 25 * (3 * 8 + 2 * 4 if backward else 8 + 4)
    assert figures(cost(name, shapes, values=values)) == (flops, moved, True)
    if window is not None:
        for at, sizes in ((window, "3"), (window + 1, "0")):
            assert figures(cost(name, shapes, values={**values, at: sizes})) == (flops, moved, False)
        no_window = {window: "-1", window + 1: "-1"}
        assert figures(cost(name, shapes, values={**values, **no_window})) == (flops, moved, True)


PACKED = [
    # name, and where the offsets, the longest sequences, and whether it is causal are
    (f"{library}::_flash_attn_varlen_{name}", *places)
    for library in ("flash_attn", "aiter")
    for name, *places in (("forward", 3, 5, 9), ("backward", 9, 11, 15))
]


@pytest.mark.parametrize(("name", "offsets", "longest", "causal"), PACKED)
def test_packed_attention_by_hand(name: str, offsets: int, longest: int, causal: int) -> None:
    """12 queries of at most 6 of 14 keys each; which of these is data."""
    backward = name.endswith("backward")
    shapes = [*[(12, 4, 8)] * backward, (12, 4, 8), (14, 4, 8), (14, 4, 8)]
    shapes += [None] * (offsets - len(shapes)) + [(4,), (4,)]
    found = figures(cost(name, shapes, values={longest: "5", longest + 1: "6", causal: "False"}))
    widths = 3 * 8 + 2 * 8 if backward else 8 + 8
    assert found == (2 * 4 * 72 * widths, 2 * (1 + backward) * (384 + 448 + 448 + 384), False)


@pytest.mark.parametrize(("name", "shapes", "values", "expected"), CASES)
def test_by_hand(
    name: str, shapes: Any, values: Any, expected: tuple[float | None, float | None, bool]
) -> None:
    assert figures(cost(name, shapes, values=values)) == expected


def test_each_formula_is_computed_by_hand() -> None:
    """At least for one of the operators that it is for."""
    names = {case[0] for case in (*CASES, *DENSE, *BY_TOKEN, *PACKED, *MIXED, *LIBRARIES)}
    asked = [formula_of(name) for name in names]
    formulas = [formula for family in BUILT_IN.values() for formula in family.items()]
    assert [name for name, formula in formulas if formula not in asked] == []


MIXED: list[tuple[str, Any, Any, Any, float]] = [
    # A cast reads one type and writes the other.
    ("aten::copy_", [(4,), (4,)], ("float32", "bfloat16"), None, 4 * 4 + 4 * 2),
    # A tensor without dimensions does not widen its own kind, but another kind does.
    ("aten::mul", [(4,), ()], ("bfloat16", "float32"), None, 4 * 2 + 4 + 4 * 2),
    ("aten::mul", [(4,), ()], ("int64", "float32"), None, 4 * 8 + 4 + 4 * 4),
    ("aten::add", [(4,), (4,)], ("float16", "bfloat16"), None, 4 * 2 + 4 * 2 + 4 * 4),
    ("aten::div", [(4,), (4,)], ("int64", "int64"), None, 4 * 8 + 4 * 8 + 4 * 4),
    ("aten::where", [(4,), (4,), (4,)], ("bool", "float32", "float32"), None, 4 + 16 + 16 + 16),
    ("aten::embedding", [(100, 8), (5,)], ("float32", "int64"), None, 5 * 8 + 2 * 5 * 8 * 4),
    ("aten::embedding_dense_backward", [(5, 8), (5,)], ("float32", "int64"), {2: "100"}, 160 + 40 + 3200),
    ("aten::_embedding_bag", [(100, 8), (6,), (2,)], ("float32", "int64", "int64"), None,
     6 * 8 + 2 * 8 + (6 + 2) * 8 * 4),
    ("aten::index_select", [(10, 8), None, (3,)], ("float32", "", "int64"), {1: "0"}, 3 * 8 + 2 * 3 * 8 * 4),
    ("aten::gather", [(10, 8), None, (3, 8)], ("float32", "", "int64"), None, 24 * 8 + 2 * 24 * 4),
    ("aten::scatter_add_", [(10,), None, (6,), (6,)], ("float32", "", "int64", "float32"), None,
     6 * 8 + 3 * 6 * 4),
    ("aten::cumsum", [(6,)], ("int32",), {1: "0"}, 6 * 4 + 6 * 8),
    ("aten::nll_loss_forward", [(4, 10), (4,)], ("float32", "int64"), {3: "1"}, 4 * 4 + 4 * 8 + 2 * 4),
    ("aten::nll_loss_backward", [(), (4, 10), (4,)], ("float32", "float32", "int64"), None, 4 + 32 + 160),
    ("fbgemm::FloatToFP8RowwiseQuantized", [(10, 256)], ("float32",), None, 10 * 256 * 4 + 10 * 264),
    ("fbgemm::FP8RowwiseQuantizedToFloat", [(10, 264)], ("uint8",), None, 10 * 264 + 10 * 256 * 4),
    ("aten::_scaled_mm", [(4, 8), (8, 2), (), (), None, None], ("float8_e4m3fn", "float8_e4m3fn", "float32",
     "float32", "", ""), {6: "15"}, 32 + 16 + 4 + 4 + 8 * 2),
    # Before PyTorch 2.5 the type of the result came third.
    ("aten::_scaled_mm", [(4, 8), (8, 2), None, None, (), ()], ("float8_e4m3fn", "float8_e4m3fn", "", "",
     "float32", "float32"), {3: "15"}, 32 + 16 + 4 + 4 + 8 * 2),
    ("aten::_int_mm", [(4, 8), (8, 2)], ("int8", "int8"), None, 32 + 16 + 8 * 4),
    ("fbgemm::quantize_fp8_per_row", [(3, 4, 8), None, (1,)], ("bfloat16", "", "float32"), None,
     96 * 2 + 4 + 96 + 12 * 4),
    ("_C::dynamic_scaled_int8_quant", [(4, 8), (4, 8), (4, 1)], ("int8", "float16", "float32"), None,
     32 + 64 + 16),
    ("flashinfer::rmsnorm", [(4, 8), (4, 8), (8,)], ("bfloat16",) * 3, None, 64 + 64 + 16),
    ("flashinfer::fused_add_rmsnorm", [(4, 8), (4, 8), (8,)], ("bfloat16",) * 3, None, 2 * (64 + 64) + 16),
]  # fmt: skip


F8, F32 = "float8_e4m3fn", "float32"
# [4, 8] times [8, 2], in bfloat16 unless the result is given: 128 operations.
LIBRARIES: list[tuple[str, Any, Any, float]] = [
    ("fbgemm::i8i8bf16", [(4, 8), (2, 8)], ("int8", "int8"), 32 + 16 + 8 * 2),
    ("fbgemm::i8i8bf16_dynamic", [(4, 8), (2, 8), (1,)], ("int8", "int8", F32), 32 + 16 + 4 + 16),
    ("fbgemm::f8f8bf16", [(4, 8), (2, 8), (1,)], (F8, F8, F32), 32 + 16 + 4 + 16),
    ("fbgemm::f8f8bf16_tensorwise", [(4, 8), (2, 8)], (F8, F8), 32 + 16 + 16),
    ("fbgemm::f8f8bf16_rowwise", [(2, 2, 8), (2, 8), (4,), (2,), None], (F8, F8, F32, F32, ""),
     32 + 16 + 16 + 8 + 16),
    ("fbgemm::f8f8bf16_cublas", [(4, 8), (2, 8), (1,), (1,)], (F8, F8, F32, F32), 32 + 16 + 4 + 4 + 16),
    ("fbgemm::f8i4bf16_rowwise", [(4, 8), (2, 4), (4,), (1, 2), (1, 2)], (F8, "int8", F32, F32, F32),
     32 + 8 + 16 + 8 + 8 + 16),
    ("fbgemm::bf16i4bf16_rowwise", [(4, 8), (2, 4), (1, 2), (1, 2)], (HALF, "int8", HALF, HALF),
     64 + 8 + 4 + 4 + 16),
    ("_C::cutlass_scaled_mm", [(4, 2), (4, 8), (8, 2), (4, 1), (1, 2), (2,)], (HALF, F8, F8, F32, F32, HALF),
     16 + 32 + 16 + 16 + 8 + 4),
    ("flashinfer::bmm_fp8", [(999,), (1, 4, 8), (1, 8, 2), (1, 4, 2), (), ()],
     ("uint8", F8, F8, HALF, F32, F32), 32 + 16 + 16 + 4 + 4),
    ("aiter::gemm_a8w8", [(4, 8), (2, 8), (4, 1), (1, 2), (4, 2), None], ("int8", "int8", F32, F32, HALF, ""),
     32 + 16 + 16 + 8 + 16),
]  # fmt: skip


@pytest.mark.parametrize(("name", "shapes", "types", "expected"), LIBRARIES)
def test_products_of_libraries(name: str, shapes: Any, types: Any, expected: float) -> None:
    assert figures(cost(name, shapes, types=types)) == (128, expected, True)
    assert category_of(name) == "matmul"


@pytest.mark.parametrize(("name", "shapes", "types", "values", "expected"), MIXED)
def test_types_decide_the_traffic(name: str, shapes: Any, types: Any, values: Any, expected: float) -> None:
    assert cost(name, shapes, values=values, types=types).bytes == expected


def test_operations_need_no_types_but_traffic_does() -> None:
    assert figures(cost("aten::mm", [(4, 8), (8, 2)], types=("", ""))) == (128, None, True)
    assert figures(cost("aten::_foreach_add_", [[(4,)], [(4,)]], types=("TensorList", "TensorList"))) == (
        4, None, True,
    )  # fmt: skip


WITHOUT: list[tuple[str, Any, Any]] = [
    ("triton_tem_fused_mm_0", [(6, 8), (9, 5), (6, 5)], None),
    ("triton_tem_fused_mm_0", [(6, 8), (6, 5)], None),
    ("triton_tem_fused_bmm_1", [(6, 8), (8, 5), (6, 5)], None),
    ("_C::paged_attention_v1", [(3, 8, 4), (3, 8, 4), (9, 2, 2, 16, 2), (9, 2, 8, 16), NO, NO, (3, 2)], None),
    ("_C::paged_attention_v2", [(3, 8, 4), NO, NO, NO, (3, 8, 4), NO, NO, NO, NO, (3, 2)], None),
    ("vllm::inplace_fused_experts", [(3, 8), (16, 10, 4), (16, 8, 2), (3, 2), (3, 2)], None),  # packed
    ("_C_cache_ops::reshape_and_cache", [(5, 2, 4), (5, 2, 4), NO, NO, NO], None),
    ("aten::mm", [(4, 8), (9, 2)], None),
    ("aten::mm", [None, (8, 2)], None),
    ("aten::mm", [(4, 8)], None),
    ("aten::convolution", [(2, 3, 7, 7), (6, 1, 3, 3)], None),
    ("aten::cudnn_convolution", [(2, 3, 7, 7), (6, 3, 3, 3)], {2: "oops", 3: "[1]", 4: "[1]"}),
    ("aten::cudnn_convolution_backward_weight", [None, (2, 6, 4, 4), (2, 3, 7, 7)], None),
    ("aten::_flash_attention_forward", [(12, 4, 8), (14, 4, 8), (14, 4, 8), None], None),
    ("aten::_efficient_attention_forward", [(2, 5, 3, 8), (2, 7, 3, 8), (2, 7, 3, 4)], {9: "7"}),
    ("aten::add", [(4, 8), (3, 8)], None),
    ("fbgemm::f8f8bf16", [(4, 8), (8, 2)], None),
    ("fbgemm::f8i4bf16_rowwise", [(4, 8), (2, 8), (4,), (1, 2), (1, 2)], None),
    ("_C::cutlass_scaled_mm", [(4, 2), (4, 8), (2, 8)], None),
    ("flashinfer::bmm_fp8", [(9,), (2, 4, 8), (1, 8, 2), (2, 4, 2)], None),
    ("aiter::gemm_a8w8", [(4, 8), (8, 2), (4, 1), (1, 2), (4, 2)], None),
    ("aten::cat", [[], None], None),
]


@pytest.mark.parametrize(("name", "shapes", "values"), WITHOUT)
def test_what_was_not_recorded_is_not_made_up(name: str, shapes: Any, values: Any) -> None:
    with pytest.raises(UnknownInputError):
        cost(name, shapes, values=values)


def test_shapes_and_types_have_one_form() -> None:
    kinds = parse_types('["c10::BFloat16", "Long", "Scalar", "", "TensorList", "double"]')
    assert kinds == ("bfloat16", "int64", "Scalar", "", "TensorList", "float64")
    shapes = parse_shapes("[[5185, 64], [], [], [], [[2], []], []]", kinds)
    assert shapes == ((5185, 64), (), None, None, [(2,), ()], ())
    assert text_of(shapes) == "(5185, 64), (), (), (), [(2,), ()], ()"
    assert parse_shapes('"[[5185, 64]]"', ("float32",)) == ((5185, 64),)
    assert parse_shapes('["[5185, 64]", ""]', ("float32", "")) == ((5185, 64), None)
    for broken in ("", "[", '"', '{"a": 1}', "[[1.5]]", "[[-1]]", '[["x"]]', "[" * 5000, "7"):
        assert all(shape is None for shape in parse_shapes(broken, ("float32",)))
    assert parse_shapes("[[]]", ("TensorList",)) == ([],)


# c10::ScalarType as its header counts it, of those that tensors of a model have.
SCALAR_TYPES = [
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "ComplexHalf", "complex64",
    "complex128", "bool", "QInt8", "QUInt8", "QInt32", "bfloat16", "QUInt4x2", "QUInt2x4", "Bits1x8",
    "Bits2x4", "Bits4x2", "Bits8", "Bits16", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz",
    "float8_e4m3fnuz",
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(SCALAR_TYPES)))
def test_numbers_and_sizes_of_element_types(number: int) -> None:
    name = SCALAR_TYPES[number]
    known = name[0].islower()
    assert Inputs("aten::to", (), (), (str(number),)).dtype(0, "?") == (name if known else "")
    by_hand = {"bfloat16": 2, **{each: 1 for each in SCALAR_TYPES if each.startswith("float8")}}
    if known:
        assert itemsize(name) == (by_hand.get(name) or np.dtype(name).itemsize)


def test_kernels_tell_the_type_in_lists() -> None:
    names = {
        "void multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOpListAlphaFunctor<c10::BFloat16, 2>>":
            "bfloat16",
        "void CatArrayBatchedCopy_contig<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int>":
            "int16",
        "multi_tensor_apply_kernel<TensorListMetadata<1>, FusedAdamMathFunctor<float, 4, (ADAM_MODE)0>>":
            "float32",
        "ampere_sgemm_128x64_tn": "",
    }  # fmt: skip
    assert {name: _element_of(name) for name in names} == names


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("aten::addmm", "matmul"), ("aten::matmul", "matmul"), ("aten::linear", "matmul"),
        ("aten::conv2d", "convolution"), ("aten::_convolution", "convolution"),
        ("aten::scaled_dot_product_attention", "attention"), ("flash_attn::_flash_attn_forward", "attention"),
        ("aten::layer_norm", "norm"), ("aten::batch_norm", "norm"), ("aten::softmax", "norm"),
        ("aten::relu", "elementwise"), ("aten::dropout", "elementwise"), ("aten::max_pool2d", "reduction"),
        ("aten::cross_entropy_loss", "reduction"), ("aten::index_put_", "embedding"),
        ("aten::embedding", "embedding"),
        ("aten::_foreach_lerp_", "optimizer"), ("aten::to", "copy"), ("aten::contiguous", "copy"),
        ("aten::_to_copy", "copy"), ("aten::copy_", "copy"), ("c10d::allreduce_", "communication"),
        ("nccl:all_reduce", "communication"), ("aten::t", "other"), ("aten::view", "other"),
        ("autograd::engine::evaluate_function: AddmmBackward0", "other"), ("ConvolutionBackward0", "other"),
        ("triton_tem_fused_addmm_relu_3", "matmul"), ("triton_tem_fused_zeros_1", "other"),
        ("vllm::moe_forward", "other"), ("vllm::inplace_fused_experts", "matmul"),
        ("aten::empty", "other"), ("my::thing", "other"),
    ],
)  # fmt: skip
def test_categories(name: str, category: str) -> None:
    assert category_of(name) == category
    assert category in CATEGORIES


def test_no_operator_is_in_two_families() -> None:
    names = [name for family in BUILT_IN.values() for name in family]
    assert len(names) == len({*names}) > 150
