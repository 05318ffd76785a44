"""Convolutions: each weight takes a multiply-add for each output position (`torch.utils.flop_counter`).

That is 2 N C_out C_in/groups prod(kernel) prod(output); a transposed convolution takes as many per input
position. The gradients of the input and of the weight take as many as the forward pass each, so a backward
pass that leaves one out takes half. Signatures are those of `native_functions.yaml`: PyTorch's own operators
give stride, padding, dilation; those of cuDNN and MIOpen padding, stride, dilation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hta_widgets.analysis.operators.cost import Cost, Formulas, formula
from hta_widgets.analysis.operators.inputs import Inputs, Shape, UnknownInputError, itemsize


def _spread(numbers: Sequence[int], dims: int) -> Sequence[int]:
    """One number for each dimension of space."""
    if len(numbers) not in (1, dims):
        raise UnknownInputError
    return numbers if len(numbers) == dims else list(numbers) * dims


def _output(
    image: Shape, weight: Shape, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> Shape:
    """The shape of the result, by the formula in the documentation of `torch.nn.Conv2d`."""
    dims = len(image) - 2
    if dims < 1 or len(weight) != len(image):
        raise UnknownInputError
    sizes = [
        (size + 2 * pad - spacing * (kernel - 1) - 1) // step + 1
        for size, kernel, step, pad, spacing in zip(
            image[2:], weight[2:], _spread(stride, dims), _spread(padding, dims), _spread(dilation, dims),
            strict=True,
        )
    ]  # fmt: skip
    return (image[0], weight[0], *sizes)


def _transposed(
    image: Shape, weight: Shape, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    beyond: Sequence[int], groups: int,
) -> Shape:  # fmt: skip
    """The same for `torch.nn.ConvTranspose2d`; its weight is [C_in, C_out / groups, *kernel]."""
    dims = len(image) - 2
    if dims < 1 or len(weight) != len(image):
        raise UnknownInputError
    sizes = [
        (size - 1) * step - 2 * pad + spacing * (kernel - 1) + extra + 1
        for size, kernel, step, pad, spacing, extra in zip(
            image[2:], weight[2:], _spread(stride, dims), _spread(padding, dims), _spread(dilation, dims),
            _spread(beyond, dims), strict=True,
        )
    ]  # fmt: skip
    return (image[0], weight[1] * groups, *sizes)


def _work(positions: Shape, weight: Shape) -> int:
    """Operations of a pass: each position of a batch's images meets each weight of its channels' group."""
    return 2 * positions[0] * math.prod(positions[2:]) * math.prod(weight)


@formula
def _forward(inputs: Inputs, stride: int, padding: int, dilation: int, bias: int | None = 2) -> Cost:
    """input, weight, [bias] and lists of numbers at these places."""
    image, weight = inputs.shape(0), inputs.shape(1)
    result = _output(image, weight, inputs.ints(stride), inputs.ints(padding), inputs.ints(dilation))
    traffic = inputs.read(0, 1) + math.prod(result) * itemsize(inputs.type(0))
    return Cost(_work(result, weight), traffic + (inputs.read(bias) if bias is not None else 0))


def _native(inputs: Inputs) -> Cost:
    """convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)."""
    if not inputs.flag(6):
        return _forward(3, 4, 5)(inputs)
    image, weight = inputs.shape(0), inputs.shape(1)
    result = _transposed(
        image, weight, inputs.ints(3), inputs.ints(4), inputs.ints(5), inputs.ints(7), inputs.ints(8)[0]
    )
    traffic = inputs.read(0, 1, 2) + math.prod(result) * itemsize(inputs.type(0))
    return Cost(_work(image, weight), traffic)


def _vendor_transposed(inputs: Inputs) -> Cost:
    """cudnn_convolution_transpose(self, weight, padding, output_padding, stride, dilation, groups, ...)."""
    image, weight = inputs.shape(0), inputs.shape(1)
    result = _transposed(
        image, weight, inputs.ints(4), inputs.ints(2), inputs.ints(5), inputs.ints(3), inputs.ints(6)[0]
    )
    traffic = inputs.read(0, 1) + math.prod(result) * itemsize(inputs.type(0))
    return Cost(_work(image, weight), traffic)


def _both(inputs: Inputs, made: int, image: int, mask: Sequence[bool], transposed: bool, exact: bool) -> Cost:
    """The gradients that a mask (input, weight, bias) asks for."""
    positions, weight = inputs.shape(image if transposed else made), inputs.shape(2)
    if len(positions) < 3 or len(weight) != len(positions):
        raise UnknownInputError
    once = inputs.read(made)
    read = once + (inputs.read(2) if mask[0] else 0) + (inputs.read(image) if mask[1] else 0)
    channels = inputs.shape(made)[1] * itemsize(inputs.type(made))
    written = sum(
        size
        for requested, size in zip(mask, (inputs.nbytes(image), inputs.nbytes(2), channels), strict=True)
        if requested
    )
    return Cost((mask[0] + mask[1]) * _work(positions, weight), read + written, exact)


@formula
def _backward(inputs: Inputs, mask: int, transposed: int) -> Cost:
    """convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed,
    output_padding, groups, output_mask). Without recorded values: both gradients, as an upper bound.
    """
    if not inputs.values:
        return _both(inputs, 0, 1, (True, True, False), False, exact=False)
    return _both(inputs, 0, 1, inputs.flags(mask), inputs.flag(transposed), exact=True)


@formula
def _vendor_backward(inputs: Inputs, mask: int) -> Cost:
    """cudnn_convolution_backward(self, grad_output, weight, padding, stride, dilation, groups, ...,
    output_mask), of PyTorch before 1.12.
    """
    known = mask < len(inputs.values) and bool(inputs.values[mask])
    requested = inputs.flags(mask) if known else [True, True]
    return _both(inputs, 1, 0, [*requested[:2], False], False, exact=known)


def _of_input(inputs: Inputs) -> Cost:
    """cudnn_convolution_backward_input(self_size, grad_output, weight, ...)."""
    gradient, weight = inputs.shape(1), inputs.shape(2)
    if len(gradient) < 3 or len(weight) != len(gradient):
        raise UnknownInputError
    made = math.prod(inputs.ints(0)) if inputs.values else math.nan
    return Cost(_work(gradient, weight), inputs.read(1, 2) + made * itemsize(inputs.type(1)))


def _of_weight(inputs: Inputs) -> Cost:
    """cudnn_convolution_backward_weight(weight_size, grad_output, self, ...)."""
    gradient, weight = inputs.shape(1), inputs.ints(0)
    if len(gradient) < 3 or len(weight) != len(gradient):
        raise UnknownInputError
    written = math.prod(weight) * itemsize(inputs.type(1))
    return Cost(_work(gradient, tuple(weight)), inputs.read(1, 2) + written)


FORMULAS: Formulas = {
    **dict.fromkeys(("aten::convolution", "aten::_convolution", "aten::convolution_overrideable"), _native),
    "aten::cudnn_convolution": _forward(3, 2, 4, None),
    "aten::cudnn_convolution_relu": _forward(3, 4, 5),
    "aten::miopen_convolution": _forward(4, 3, 5),
    "aten::miopen_depthwise_convolution": _forward(4, 3, 5),
    "aten::mkldnn_convolution": _forward(4, 3, 5),
    "aten::_conv_depthwise2d": _forward(4, 5, 6, 3),
    "aten::cudnn_convolution_transpose": _vendor_transposed,
    "aten::convolution_backward": _backward(10, 7),
    "aten::convolution_backward_overrideable": _backward(9, 6),
    "aten::cudnn_convolution_backward": _vendor_backward(10),
    "aten::miopen_convolution_backward": _vendor_backward(9),
    **{f"aten::{vendor}_convolution_backward_input": _of_input for vendor in ("cudnn", "miopen")},
    **{f"aten::{vendor}_convolution_backward_weight": _of_weight for vendor in ("cudnn", "miopen")},
}
