"""Recognise what one process group does in one step; what fits nothing, or fits two, is not recognised."""

from __future__ import annotations

from collections.abc import Sequence, Set

from hta_widgets.analysis.communication.operations import POINT_TO_POINT
from hta_widgets.analysis.strategy.data_parallel import replicated, sharded
from hta_widgets.analysis.strategy.messages import FORWARD, HOOK, NODE, Message
from hta_widgets.analysis.strategy.model_parallel import sequence_parallel, stages, tensor_parallel
from hta_widgets.analysis.strategy.reading import TENSOR, Reading, of, unknown


def read_step(
    messages: Sequence[Message],
    size: int,
    wrappers: Set[str] = frozenset(),
    forwards: Sequence[int] = (),
    purpose: str = "",
) -> Reading:
    """Recognise the strategy of one step of one rank in one group.

    Args:
        messages: its collectives in order of launch.
        wrappers: the data-parallel wrappers that the trace names, of "DDP" and "FSDP".
        forwards: when DDP's forward began, ns.
        purpose: the group's description.
    """
    floats = [message for message in messages if message.is_float]
    forward = [message for message in floats if message.place == FORWARD]
    backward = [message for message in floats if message.place != FORWARD]
    kinds = {message.operation for message in messages}
    if kinds and kinds <= POINT_TO_POINT:
        return stages(messages, purpose)
    if "all_to_all" in kinds:
        return unknown("the group exchanges all-to-all, as expert parallelism and sharded embeddings do")
    if of(forward, "reduce_scatter"):
        return sequence_parallel(forward, backward)
    if of(backward, "reduce_scatter"):
        return sharded(floats, size, wrappers)
    if any(message.place == HOOK for message in of(backward, "allreduce")):
        activations = tensor_parallel(forward, [message for message in backward if message.place == NODE])
        if activations.strategy == TENSOR:
            return unknown(f"{activations.words}, as tensor parallelism does, and gradients besides")
        return replicated(floats, size, wrappers, forwards)
    return tensor_parallel(forward, backward)
