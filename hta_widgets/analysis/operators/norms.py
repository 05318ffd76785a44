"""Normalisations and softmax: bound by memory, so only traffic is counted.

A kernel that keeps a row (or a channel) on chip reads each input once; one that cannot reads it twice and
lies further from the roof. Statistics are float32, one pair for each row, group or channel. Signatures are
those of `native_functions.yaml`.
"""

from __future__ import annotations

import math

from hta_widgets.analysis.operators.cost import Cost, Formulas, formula
from hta_widgets.analysis.operators.inputs import Inputs, UnknownInputError, itemsize

_STATISTIC = itemsize("float32")


@formula
def _like_input(inputs: Inputs, *read: int) -> Cost:
    """Reads these inputs and writes a result of the shape and type of the first of them."""
    return Cost(math.nan, inputs.nbytes(read[0]) + inputs.read(*read))


def _softmax(inputs: Inputs) -> Cost:
    """_softmax(self, dim, half_to_float): the result may be float32."""
    wide = len(inputs.values) > 2 and inputs.values[2] == "True"
    written = inputs.numel(0) * _STATISTIC if wide else inputs.nbytes(0)
    return Cost(math.nan, inputs.nbytes(0) + written)


def _softmax_backward(inputs: Inputs) -> Cost:
    """_softmax_backward_data(grad_output, output, dim, input_dtype)."""
    written = inputs.numel(0) * itemsize(inputs.dtype(3, inputs.type(0)))
    return Cost(math.nan, inputs.read(0, 1) + written)


def _rows(inputs: Inputs, at: int, weight: int) -> int:
    """Rows that are normalised, each as long as the weight."""
    length = inputs.numel(weight)
    if not length or inputs.numel(at) % length:
        raise UnknownInputError
    return inputs.numel(at) // length


@formula
def _layer(inputs: Inputs, weight: int, bias: int | None, statistics: int) -> Cost:
    """native_layer_norm(input, normalized_shape, weight, bias, eps)."""
    traffic = 2 * inputs.nbytes(0) + inputs.read(weight, *([bias] if bias is not None else []))
    if inputs.is_tensor(weight):
        traffic += statistics * _rows(inputs, 0, weight) * _STATISTIC
    return Cost(math.nan, traffic, exact=inputs.is_tensor(weight))


@formula
def _gradients(
    inputs: Inputs, gradient: int, image: int, read: tuple[int, ...], weights: tuple[int, ...]
) -> Cost:
    """Reads these inputs, writes the gradient of the input, and those of its weights, each of their shape."""
    traffic = inputs.nbytes(gradient) + 2 * inputs.nbytes(image) + inputs.read(*read)
    return Cost(math.nan, traffic + inputs.read(*weights))


@formula
def _channels(inputs: Inputs, training: int | None) -> Cost:
    """batch_norm(input, weight, bias, running_mean, running_var, training, ...): in training the running
    statistics are updated, and those of the batch are kept.
    """
    learns = training is not None and inputs.values and inputs.flag(training)
    traffic = 2 * inputs.nbytes(0) + inputs.read(1, 2, 3, 4)
    if learns:
        traffic += inputs.read(3, 4) + 2 * inputs.shape(0)[1] * _STATISTIC
    return Cost(math.nan, traffic, exact=bool(inputs.values) or training is None)


def _groups(inputs: Inputs) -> Cost:
    """native_group_norm(input, weight, bias, N, C, HxW, group, eps)."""
    kept = 2 * inputs.shape(0)[0] * inputs.ints(6)[0] * _STATISTIC
    return Cost(math.nan, 2 * inputs.nbytes(0) + inputs.read(1, 2) + kept)


def _rms_kernel(inputs: Inputs) -> Cost:
    """rms_norm(out, input, weight, eps) of vLLM's kernels; rmsnorm of FlashInfer's (its norm.py)."""
    return Cost(math.nan, inputs.read(0, 1, 2))


def _rms_with_residual(inputs: Inputs) -> Cost:
    """fused_add_rms_norm(input, residual, weight, eps) of vLLM and FlashInfer: overwrites both."""
    return Cost(math.nan, 2 * inputs.read(0, 1) + inputs.read(2))


FORMULAS: Formulas = {
    "aten::_softmax": _softmax,
    "aten::_log_softmax": _softmax,
    "aten::_softmax_backward_data": _softmax_backward,
    "aten::_log_softmax_backward_data": _softmax_backward,
    "aten::_safe_softmax": _like_input(0),
    "aten::native_layer_norm": _layer(2, 3, 2),
    "aten::native_layer_norm_backward": _gradients(0, 1, (3, 4, 5), (5, 6)),
    "aten::_fused_rms_norm": _layer(2, None, 1),
    "aten::_fused_rms_norm_backward": _gradients(0, 1, (3, 4), (4,)),
    "aten::native_group_norm": _groups,
    "aten::native_group_norm_backward": _gradients(0, 1, (2, 3, 4), (4, 4)),
    **dict.fromkeys(
        ("aten::native_batch_norm", "aten::_native_batch_norm_legit", "aten::cudnn_batch_norm",
         "aten::miopen_batch_norm"),
        _channels(5),
    ),
    "aten::_native_batch_norm_legit_no_training": _channels(None),
    "aten::native_batch_norm_backward": _gradients(0, 1, (2, 5, 6), (2, 2)),
    "aten::cudnn_batch_norm_backward": _gradients(1, 0, (2, 5, 6), (2, 2)),
    "aten::miopen_batch_norm_backward": _gradients(1, 0, (2, 5, 6), (2, 2)),
    "_C::rms_norm": _rms_kernel,
    "_C::fused_add_rms_norm": _rms_with_residual,
    "flashinfer::rmsnorm": _rms_kernel,
    "flashinfer::fused_add_rmsnorm": _rms_with_residual,
}  # fmt: skip
