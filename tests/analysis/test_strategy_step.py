"""What one step of one process group is recognised as, message by message."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hta_widgets.analysis.strategy.messages import FORWARD, HOOK, NODE, Message
from hta_widgets.analysis.strategy.reading import (
    NOT_RECOGNISED,
    PIPELINE,
    TENSOR,
    ZERO_3,
    ZERO_BELOW_3,
    sent_bytes,
)
from hta_widgets.analysis.strategy.step import read_step
from tests.support import tried


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
        # Split layers whose other parameters are reduced in backward: those are not the model.
        ([("allreduce", 64, FORWARD)] * 4 + [("allreduce", 64, NODE)] * 4 + [("allreduce", 6, HOOK)],
         NOT_RECOGNISED),
        # Metrics after the gradients are no activations, however many there are.
        ([("allreduce", 80, HOOK)] + [("allreduce", 1, FORWARD)] * 3, "DDP"),
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
        Message(item.operation, item.elements, item.nbytes, 0, item.dtype, item.place, moment)
        for item, moment in zip(buckets, moments, strict=True)
    ]
    twice = read_step(buckets, 4, {"DDP"}, forwards=[0, 30])
    assert (twice.parameters, twice.passes) == (80, 2)
    assert twice.words == "all-reduces gradients in 2 buckets during backward, 2 times per step"
    assert twice.expected_bytes == sent_bytes(buckets, 4)
    # With both calls before the only backward, all buckets are of one pass.
    once = read_step(buckets, 4, {"DDP"}, forwards=[0, 5])
    assert (once.parameters, once.passes) == (160, 1)
    assert once.words == "all-reduces gradients in 4 buckets during backward"


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


ROOT, UNIT = ("allgather", 40, FORWARD), ("allgather", 80, FORWARD)
AGAIN, LAST = ("allgather", 80, HOOK), ("reduce_scatter", 40, HOOK)
REDUCED = ("reduce_scatter", 80, HOOK)
FORWARDS, BACKWARD = [ROOT, UNIT, UNIT], [AGAIN, AGAIN, REDUCED, REDUCED, LAST]


@pytest.mark.parametrize(
    "messages",
    [
        # An evaluation gathers for forward only: what belongs to training is not marked.
        FORWARDS * 2 + BACKWARD,
        FORWARDS + BACKWARD + FORWARDS,
        [ROOT, UNIT] * 2 + [AGAIN, REDUCED, LAST],
        # Four units of which one is trained, or one unit in four passes?
        [UNIT] * 4 + [REDUCED],
        [UNIT] * 4 + [REDUCED] * 2,
        # Two passes, or a unit of each size twice, of which some are frozen?
        [ROOT, UNIT] * 2 + [REDUCED],
    ],
)
def test_sharded_steps_that_may_be_two_things_are_not_recognised(
    messages: list[tuple[str, int, str]],
) -> None:
    found = read_step(step(*messages), 4, {"FSDP"})
    assert (found.strategy, found.parameters, found.expected_bytes) == (NOT_RECOGNISED, None, None)


def test_units_without_fsdp_are_some_stage_of_zero() -> None:
    """DeepSpeed and others send what FSDP does: only a second gather tells that parameters are sharded."""
    reduced = [REDUCED, REDUCED, LAST]
    assert read_step(step(*FORWARDS, *BACKWARD), 4).strategy == ZERO_3
    assert read_step(step(*FORWARDS, *reduced), 4).strategy == ZERO_BELOW_3


def test_micro_batches_of_a_model_with_frozen_units_are_one_model() -> None:
    messages = step(*FORWARDS, AGAIN, AGAIN, *FORWARDS, AGAIN, AGAIN, REDUCED)
    found = read_step(messages, 4, {"FSDP"})
    assert (found.strategy, found.passes) == ("FSDP FULL_SHARD", 2)
    assert (found.parameters, found.reduced) == (200, 80)
    assert found.expected_bytes == sent_bytes(messages, 4)


@settings(max_examples=tried(500), deadline=None, derandomize=True)
@given(
    mode=st.sampled_from(["DDP", "FSDP FULL_SHARD", "FSDP SHARD_GRAD_OP"]),
    units=st.lists(st.tuples(st.sampled_from([32, 64, 96, 192]), st.booleans()), max_size=5),
    root=st.booleans(),
    frozen=st.booleans(),
    passes=st.integers(1, 3),
    no_sync=st.booleans(),
    evaluations=st.tuples(st.booleans(), st.booleans()),
)
def test_any_step_is_read_as_what_it_is_or_not_at_all(
    mode: str,
    units: list[tuple[int, bool]],
    root: bool,
    frozen: bool,
    passes: int,
    no_sync: bool,
    evaluations: tuple[bool, bool],
) -> None:
    """Frozen units, accumulated gradients and evaluations, before and after, in every mixture.

    The root unit has a size of its own. Without one, a model whose second half is like its first, which is
    frozen, sends what two passes of the second half do.
    """
    units = [(16, root), *units]
    trained = [is_trained or not frozen or mode == "DDP" for _, is_trained in units]
    assume(any(trained))
    forward = [("allgather", size, FORWARD) for size, _ in units if mode != "DDP"]
    sent, forwards = forward * evaluations[0], []
    for number in range(passes):
        forwards.append(len(sent) - 1)  # DDP's own mark, before the first bucket
        sent = sent + forward
        for place, (size, _) in reversed(list(enumerate(units))):
            if mode == "FSDP FULL_SHARD" and place:
                sent.append(("allgather", size, HOOK))
            if trained[place] and (number == passes - 1 or not no_sync):
                sent.append(("allreduce" if mode == "DDP" else "reduce_scatter", size, HOOK))
    messages = step(*sent, *forward * evaluations[1])
    found = read_step(messages, 4, {mode[:4].strip()}, forwards)
    if found.strategy == NOT_RECOGNISED:
        assert mode != "DDP"
        # Nothing but what is ambiguous is given up.
        assert (frozen and not all(trained)) or any(evaluations) or (no_sync and passes > 1)
        return
    assert found.strategy in (mode, "FSDP FULL_SHARD or SHARD_GRAD_OP" if len(units) == 1 else mode)
    assert found.parameters == sum(size for size, _ in units)
    assert found.reduced == sum(size for (size, _), of_unit in zip(units, trained, strict=True) if of_unit)
    assert found.expected_bytes == sent_bytes(found.used, 4)
