"""What layers of experts read, from the shapes that engines record: both ends, and when nothing is said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hta_widgets.analysis.serving.experts import Experts, Inputs, experts_of

BF16, FP8, BYTE = "c10::BFloat16", "c10::Float8_e4m3fn", "unsigned char"


def op(*tensors: tuple[list[Any], str]) -> Inputs:
    return json.dumps([shape for shape, _ in tensors]), json.dumps([kind for _, kind in tensors])


def fused(
    tokens: int, chosen: int, experts: int, kind: str = BF16, width: int = 512, inner: int = 128
) -> Inputs:
    """As `vllm::inplace_fused_experts`: tokens, both weights, how much each choice counts, the choices."""
    return op(
        ([tokens, width], BF16), ([experts, 2 * inner, width], kind), ([experts, width, inner], kind),
        ([tokens, chosen], "float"), ([tokens, chosen], "long int"), ([], "Scalar"),
    )  # fmt: skip


AN_EXPERT = 3 * 512 * 128


@pytest.mark.parametrize(
    ("tokens", "chosen", "experts", "most", "least"),
    [
        (1, 8, 128, 8, 8),
        (4, 8, 128, 32, 8),
        (64, 8, 128, 128, 8),
        (4, 2, 4, 4, 2),
        (1, 1, 16, 1, 1),
        (128, 8, 128, 128, 8),  # as many tokens as experts
    ],
)
@pytest.mark.parametrize(("kind", "size"), [(BF16, 2), (FP8, 1)])
def test_between_the_fewest_and_the_most_experts(tokens, chosen, experts, most, least, kind, size) -> None:
    found = experts_of([fused(tokens, chosen, experts, kind)], experts)
    flops = 2 * tokens * chosen * AN_EXPERT
    assert found == Experts(most * AN_EXPERT * size, least * AN_EXPERT * size, flops, kind)
    assert experts_of([fused(tokens, chosen, experts, kind)], 0) == found, "without a router"


def test_weights_of_two_operators_count_once() -> None:
    """`aiter::ck_moe_stage1` and `ck_moe_stage2` both have both weights."""
    one = experts_of([fused(4, 2, 8)], 8)
    assert experts_of([fused(4, 2, 8)] * 2, 8) == one


def test_gate_and_up_of_one_shape_are_two() -> None:
    gate, up, down = ([8, 64, 32], BF16), ([8, 64, 32], BF16), ([8, 32, 64], BF16)
    choices = (([4, 2], "float"), ([4, 2], "int"))
    found = experts_of([op(([4, 32], BF16), gate, up, down, *choices)], 8)
    assert found is not None
    assert found.most == 8 * 3 * 64 * 32 * 2


def test_results_of_the_chosen_are_no_weights() -> None:
    """The sum over what each token gets, [tokens, chosen, width], with as many tokens as experts."""
    found = experts_of([fused(8, 2, 8), op(([8, 2, 512], BF16), ([8, 512], BF16))], 8)
    assert found == experts_of([fused(8, 2, 8)], 8)


def test_packed_weights_have_bytes_but_no_count_of_operations() -> None:
    found = experts_of([fused(4, 2, 8, BYTE)], 8)
    assert found is not None
    assert (found.most, found.flops) == (8 * AN_EXPERT, 0)


def test_experts_on_other_ranks_may_get_all_tokens() -> None:
    found = experts_of([fused(4, 2, 8)], 32)
    assert found is not None
    assert (found.most, found.least) == (8 * AN_EXPERT * 2, 0)


@pytest.mark.parametrize(
    "inputs",
    [
        [],
        [op(([4, 512], BF16), ([4, 32], BF16))],  # `vllm::moe_forward` alone
        [op(([4, 512], BF16), ([8, 64, 32], "Scalar"))],
        [op(([2, 8, 64], BF16), ([3, 8, 64], BF16))],  # no two that belong together
        [("[[4, 2", "[]"), ("{}", "{}"), ("", "")],
    ],
)
def test_nothing_is_said_without_shapes_of_weights(inputs: list[Inputs]) -> None:
    assert experts_of(inputs, 0) is None


def test_choices_that_are_not_recorded_leave_one_to_all() -> None:
    found = experts_of([op(([4, 512], BF16), ([8, 256, 512], BF16), ([8, 512, 128], BF16))], 8)
    assert found is not None
    assert (found.most, found.least, found.flops) == (8 * AN_EXPERT * 2, AN_EXPERT * 2, 0)
