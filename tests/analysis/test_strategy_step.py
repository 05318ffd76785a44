"""What one step of one process group is recognised as, message by message."""

from __future__ import annotations

import pytest

from hta_widgets.analysis.strategy.messages import FORWARD, HOOK, NODE, Message
from hta_widgets.analysis.strategy.reading import NOT_RECOGNISED, PIPELINE, TENSOR, ZERO_BELOW_3, sent_bytes
from hta_widgets.analysis.strategy.step import read_step


def step(*sent: tuple[str, int, str], dtype: str = "BFloat16") -> list[Message]:
    """Messages in order: operation, elements, place."""
    return [
        Message(operation, size, 2 * size, size // 4, dtype, place, order)
        for order, (operation, size, place) in enumerate(sent)
    ]


@pytest.mark.parametrize(
    ("messages", "strategy"),
    [
        # Parameters that the optimizer has written travel last.
        ([("reduce_scatter", 80, HOOK), ("allgather", 80, FORWARD)], ZERO_BELOW_3),
        ([("allreduce", 50, HOOK), ("allreduce", 30, HOOK), ("broadcast", 80, FORWARD)], ZERO_BELOW_3),
        ([("allreduce", 50, HOOK), ("allreduce", 30, HOOK), ("allgather", 80, FORWARD)], ZERO_BELOW_3),
        # Buffers travel first and are no parameters, even if there are as many.
        ([("broadcast", 80, FORWARD), ("allreduce", 80, HOOK)], "DDP"),
        # Activations are summed in forward, their gradients in backward.
        ([("allreduce", 64, FORWARD)] * 4 + [("allreduce", 64, NODE)] * 4, TENSOR),
        ([("allgather", 64, FORWARD), ("reduce_scatter", 64, FORWARD)] * 2
         + [("allgather", 64, NODE), ("reduce_scatter", 64, NODE)] * 2, TENSOR),
        # None of these says what it is.
        ([("allreduce", 64, FORWARD)] * 4, NOT_RECOGNISED),
        ([("all_to_all", 64, FORWARD), ("all_to_all", 64, NODE)], NOT_RECOGNISED),
        ([("send", 64, FORWARD), ("recv", 64, FORWARD)], NOT_RECOGNISED),
        ([("reduce_scatter", 64, FORWARD), ("reduce_scatter", 8, FORWARD)], NOT_RECOGNISED),
        ([("reduce_scatter", 64, HOOK)], NOT_RECOGNISED),
        ([("allgather", 16, FORWARD), ("allgather", 48, FORWARD), ("reduce_scatter", 64, HOOK)],
         NOT_RECOGNISED),
        # Batch normalisation over ranks sums statistics in forward and in the gradients of its nodes.
        ([("allgather", 12, FORWARD), ("allreduce", 12, NODE)], NOT_RECOGNISED),
        ([("allgather", 12, FORWARD), ("allreduce", 12, NODE), ("allreduce", 80, HOOK)], "DDP"),
        ([], NOT_RECOGNISED),
    ],
)  # fmt: skip
def test_a_step_by_hand(messages: list[tuple[str, int, str]], strategy: str) -> None:
    found = read_step(step(*messages), 4, {"DDP"})
    assert (found.strategy, bool(found.words)) == (strategy, True)


def test_integers_are_neither_parameters_nor_gradients() -> None:
    bitmap = step(("allreduce", 7, HOOK), dtype="Int")
    found = read_step([*step(("allreduce", 80, HOOK)), *bitmap], 4, {"DDP"})
    assert (found.strategy, found.parameters) == ("DDP", 80)


def test_two_backward_passes_are_one_model() -> None:
    """A step of several micro-batches, each reduced; in DDP forward's marks tell them apart."""
    buckets = step(("allreduce", 50, HOOK), ("allreduce", 30, HOOK)) * 2
    moments = [10, 20, 40, 50]
    buckets = [
        Message(one.operation, one.elements, one.nbytes, 0, one.dtype, one.place, moment)
        for one, moment in zip(buckets, moments, strict=True)
    ]
    twice = read_step(buckets, 4, {"DDP"}, forwards=[0, 30])
    assert (twice.parameters, twice.passes) == (80, 2)
    assert twice.expected_bytes == sent_bytes(buckets, 4)
    # With both calls before the only backward, all buckets are of one pass.
    once = read_step(buckets, 4, {"DDP"}, forwards=[0, 5])
    assert (once.parameters, once.passes) == (160, 1)


@pytest.mark.parametrize("reduced", [1, 2], ids=["no_sync", "both"])
def test_sharded_micro_batches_are_one_model(reduced: int) -> None:
    forward = [("allgather", 40, FORWARD), ("allgather", 80, FORWARD), ("allgather", 80, FORWARD)]
    again = [("allgather", 80, HOOK)] * 2
    reduces = [("reduce_scatter", 80, HOOK)] * 2 + [("reduce_scatter", 40, HOOK)]
    messages = forward + again + (reduces if reduced == 2 else []) + forward + again + reduces
    found = read_step(step(*messages), 4, {"FSDP"})
    assert (found.strategy, found.parameters, found.passes) == ("FSDP FULL_SHARD", 200, 2)
    assert found.expected_bytes == sent_bytes(found.used, 4)


def test_a_single_unit_says_fsdp_and_no_more() -> None:
    found = read_step(step(("allgather", 80, FORWARD), ("reduce_scatter", 80, HOOK)), 4, {"FSDP"})
    assert found.strategy == "FSDP FULL_SHARD or SHARD_GRAD_OP"


def test_a_pipeline_has_to_be_called_one() -> None:
    messages = step(("send", 64, FORWARD), ("recv", 64, FORWARD))
    assert read_step(messages, 4, purpose="mesh_pp").strategy == PIPELINE
    assert read_step(messages, 4, purpose="mesh_cp").strategy == NOT_RECOGNISED


def test_traffic_by_the_factors_of_nccl_tests() -> None:
    assert sent_bytes(step(("allreduce", 400, HOOK)), 4) == 1200
    assert sent_bytes(step(("allgather", 400, HOOK)), 4) == 600
    assert sent_bytes(step(("reduce_scatter", 400, HOOK)), 4) == 600
    assert sent_bytes(step(("broadcast", 400, HOOK)), 4) == 800
