"""Programs that compute attention: what is told of those whose scores go to memory, and of no others."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hta_widgets import Trace
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.sections import OPEN
from hta_widgets.analysis.operators.fused_attention import replaced_on_host
from tests.verdicts.planted.devices import H100, opened, operator
from tests.verdicts.planted.host_program import US, Program

STEPS = range(1, 7)
HEADS, TOKENS, WIDTH = 16, 5185, 64
Q, K = (HEADS, TOKENS, WIDTH), (HEADS, WIDTH, TOKENS)
S, V = (HEADS, TOKENS, TOKENS), (HEADS, TOKENS, WIDTH)
ALIGN1 = "cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_nn_align1"
ALIGN8 = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_64x3_tn_align8>(T1::Params)"
SOFTMAX = "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float>(int)"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
SDPA = "aten::scaled_dot_product_attention"


def attends(
    program: Program,
    scores: tuple[int, ...] = S,
    shares: tuple[int, ...] = S,
    product: str = ALIGN1,
    dtype: str | None = "bf16",
    **softmax: Any,
) -> None:
    """A product of 2 ms, a mask of 1 ms, a softmax of 3 ms and a product of 2 ms, and others between."""
    batch = (*scores[:-2], scores[-2], WIDTH), (*scores[:-2], WIDTH, scores[-1])
    with operator(program, "aten::bmm", *batch, dtype=dtype):
        program.launch(2000 * US, product)
    with operator(program, "aten::add", scores, scores, dtype=dtype):
        program.launch(1000 * US, ADD)
    with operator(program, "aten::_softmax", scores, dtype=dtype, **softmax):
        program.launch(3000 * US, SOFTMAX)
    with operator(program, "aten::bmm", shares, (*shares[:-2], shares[-1], WIDTH), dtype=dtype):
        program.launch(2000 * US, product)


def steps(body: Callable[[Program], None]) -> Callable[[], Program]:
    """Steps with other work of 2 ms before and after."""

    def build() -> Program:
        program = Program()
        for number in STEPS:
            with program.step(number), ExitStack() as stack:
                for place, name in enumerate(("/home/x/train.py(12): step", "nn.Module: Attention_0")):
                    args = {"Python id": 2 * number + place}
                    stack.enter_context(program.inside("python_function", name, **args))
                with operator(program, "aten::mm", (4096, 4096), (4096, 4096)):
                    program.launch(2000 * US, ALIGN8)
                body(program)
                with operator(program, "aten::mm", (4096, 4096), (4096, 4096)):
                    program.launch(2000 * US, ALIGN8)
                program.synchronise()
        return program

    return build


def falls_back(program: Program) -> None:
    """SDPA with a mask, for heads of 62 elements in fp32."""
    whole = (2, 8, TOKENS, 62)
    with (
        operator(program, SDPA, whole, whole, whole, (TOKENS, TOKENS), dtype="fp32"),
        operator(program, "aten::_scaled_dot_product_attention_math", whole, whole, whole, dtype="fp32"),
    ):
        with operator(program, "aten::mul", whole, dtype="fp32"):
            program.launch(1000 * US, ADD)
        attends(program, dtype="fp32", product="ampere_sgemm_128x64_nn")


def and_back(program: Program) -> None:
    """The backward pass on the same thread: it is known by the numbers of what it differentiates."""
    base = program.now
    for number, (name, kernel) in enumerate(
        (("aten::bmm", ALIGN1), ("aten::_softmax", SOFTMAX), ("aten::bmm", ALIGN1))
    ):
        shapes = ((Q, K), (S,), (S, V))[number]
        with operator(program, name, *shapes, **{"Sequence number": base + number, "Fwd thread id": 0}):
            program.launch(2000 * US, kernel)
    for number in (2, 1, 0):
        name = ("BmmBackward0", "SoftmaxBackward0", "BmmBackward0")[number]
        inside = "aten::bmm" if number != 1 else "aten::_softmax_backward_data"
        with (
            operator(program, name, S, **{"Sequence number": base + number, "Fwd thread id": 1}),
            operator(program, inside, S),
        ):
            program.launch(4000 * US, (ALIGN1, SOFTMAX)[number % 2])


def told(folder: Path, program: Program, device: str | None = H100) -> dict[str, Any] | None:
    rows = overview(opened(folder, program, device)).to_dict("records")
    return next((row for row in rows if row["topic"] == "attention_not_fused"), None)


# of 4 h q k d operations at half of 989.4 TFLOP/s; the bytes of q, k, v and the result take less
FUSED_NS = 4 * HEADS * TOKENS**2 * WIDTH / (0.5 * 989_400)


@pytest.mark.parametrize(
    ("body", "taken", "left", "words"),
    [
        (attends, 8e6, FUSED_NS, ("unaligned kernels", "no multiple of 8", "attn_implementation")),
        (
            lambda program: attends(program, (4, 2048, 2048), (4, 2048, 2048), ALIGN8),
            8e6,
            4 * 4 * 2048**2 * 64 / (0.5 * 989_400),
            ("4 heads x 2,048 queries x 2,048 keys", "attn_implementation"),
        ),
        (
            falls_back,
            9e6,
            4 * HEADS * TOKENS**2 * WIDTH / (0.5 * 66_900),
            ("math path", "62 elements, no multiple of 4", "float32", "a mask", "sdpa_kernel"),
        ),
        (and_back, 18e6, 3.5 * FUSED_NS, ("unaligned kernels",)),
    ],
    ids=["odd length", "even length", "math path", "backward"],
)
def test_attention_that_is_not_fused_is_told(
    tmp_path: Path, body: Callable[[Program], None], taken: float, left: float, words: tuple[str, ...]
) -> None:
    row = told(tmp_path, steps(body)())
    assert row is not None
    whole = taken + 4e6
    # the gaps between kernels and the waits of the host are not attention's
    assert row["share_pct"] == pytest.approx(100 * (taken - left) / whole, abs=0.2)
    assert row["saving_pct"] == pytest.approx(100 * (taken - left) / whole, abs=0.2)
    assert row["section"] == "saves" and row["method"] == "replay" and row["severity"] == "warning"
    said = f"{row['text']} {row['suggestion']}"
    assert all(
        word in said for word in (*words, "H100 SXM", "in nn.Module: Attention_0 at train.py(12): step")
    )
    assert ("unaligned" in said) == ("unaligned kernels" in words)


def test_the_host_is_left_with_one_operator_of_each_pass(tmp_path: Path) -> None:
    rank_trace = opened(tmp_path, steps(and_back)(), H100).rank(0)
    (found,) = replaced_on_host(rank_trace).values()
    frame = Trace.open(rank_trace.path, cache=False).events()
    named = [frame[frame["name"] == name].sort_values("start_ns") for name in ("aten::bmm", "aten::_softmax")]
    outer = frame[frame["name"].str.endswith("Backward0")].sort_values("start_ns")
    # of each step: from the end of the first product on, and the nodes of its backward pass but the first
    first, last = named[0].iloc[0::4], named[0].iloc[1::4]
    later = outer[outer.groupby(np.arange(len(outer)) // 3).cumcount() > 0]
    want = Intervals.union([*first["end_ns"], *later["start_ns"]], [*last["end_ns"], *later["end_ns"]])
    assert len(outer) == 3 * len(STEPS) and len(named[1]) == len(STEPS)
    assert found.length == want.length > 0


@pytest.mark.parametrize("dimension", [-1, 2])
def test_the_last_dimension_has_two_numbers(tmp_path: Path, dimension: int) -> None:
    stated = {"Concrete Inputs": ["", str(dimension), "False"]}
    assert told(tmp_path, steps(lambda program: attends(program, **stated))()) is not None


def routes(program: Program) -> None:
    """Shares of experts: the next product is of something else."""
    attends(program, (1, 4096, 64), (1, 4096, 4096))


def attends_to_columns(program: Program) -> None:
    attends(program, **{"Concrete Inputs": ["", "1", "False"]})


def is_fused(program: Program) -> None:
    with operator(program, SDPA, Q, Q, Q), operator(program, "aten::_flash_attention_forward", Q, Q, Q):
        program.launch(
            8000 * US, "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 64>>()"
        )


def is_fast_already(program: Program) -> None:
    """As fast as a fused kernel would be at half the peak."""
    for name, shapes, ns in (
        ("aten::bmm", (Q, K), 70),
        ("aten::_softmax", (S,), 70),
        ("aten::bmm", (S, V), 70),
    ):
        with operator(program, name, *shapes, dtype="bf16"):
            program.launch(ns * US, ALIGN1)


def in_double(program: Program) -> None:
    attends(program, dtype="fp64")


@pytest.mark.parametrize("body", [routes, attends_to_columns, is_fused, is_fast_already, in_double])
def test_other_work_is_not_attention(tmp_path: Path, body: Callable[[Program], None]) -> None:
    assert told(tmp_path, steps(body)()) is None


@pytest.mark.parametrize(
    ("body", "device", "missing"),
    [
        (attends, None, "name of the device"),
        (lambda program: attends(program, dtype=None), H100, "shapes of operators"),
        (lambda program: program.launch(8000 * US, SOFTMAX), H100, "operators"),
    ],
)
def test_nothing_is_said_without_shapes_operators_or_peaks(
    tmp_path: Path, body: Callable[[Program], None], device: str | None, missing: str
) -> None:
    program = steps(body)()
    assert told(tmp_path, program, device) is None
    rows = overview(opened(tmp_path, program, device))
    gaps = rows.loc[rows["severity"] == OPEN, "text"]
    assert any("whether attention is fused" in gap and f"no {missing}" in gap for gap in gaps), gaps.tolist()
