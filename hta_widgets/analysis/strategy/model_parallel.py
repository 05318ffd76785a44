"""Recognises collectives that carry activations, between parts of a layer or stages of a model."""

from __future__ import annotations

from collections.abc import Sequence

from hta_widgets.analysis.strategy.messages import Message
from hta_widgets.analysis.strategy.reading import PIPELINE, TENSOR, Reading, dtypes, of, sizes, unknown


def tensor_parallel(forward: Sequence[Message], backward: Sequence[Message]) -> Reading:
    """Layers split over ranks sum their activations in forward and the activations' gradients in backward."""
    there, back = of(forward, "allreduce"), of(backward, "allreduce")
    size, times = _most_common(there)
    if times > 1 and sizes(back)[size] > 1:
        used = tuple(message for message in (*there, *back) if message.elements == size)
        words = f"all-reduces equal messages {times} times in forward and {sizes(back)[size]} in backward"
        return Reading(TENSOR, words, units=(size,), reduced_dtype=dtypes(used), used=used)
    if there and not backward:
        return unknown(
            "the group all-reduces outside of the backward pass only, as tensor parallelism, metrics and "
            "gradients that are reduced after it do",
            False,
        )
    return unknown("the group reduces no gradients", False)


def sequence_parallel(forward: Sequence[Message], backward: Sequence[Message]) -> Reading:
    """Tensor parallelism whose activations are split by sequence between layers."""
    size, times = _most_common(of(forward, "reduce_scatter"))
    pairs = [
        sizes(of(part, kind)) for part in (forward, backward) for kind in ("allgather", "reduce_scatter")
    ]
    if times > 1 and all(pair[size] for pair in pairs):
        used = tuple(
            message
            for message in (*forward, *backward)
            if message.elements == size and message.operation in ("allgather", "reduce_scatter")
        )
        words = "gathers and reduce-scatters equal messages in forward and backward (sequence parallelism)"
        return Reading(TENSOR, words, units=(size,), reduced_dtype=dtypes(used), used=used)
    return unknown("forward reduce-scatters, as sharded data parallelism does not")


def stages(messages: Sequence[Message], purpose: str) -> Reading:
    words = purpose.lower().replace("-", "_").split("_")
    if "pp" in words or "pipeline" in words:
        return Reading(PIPELINE, f"only sends and receives, and is called {purpose}", used=tuple(messages))
    return unknown("the group only sends and receives, as pipeline and context parallelism do")


def _most_common(messages: Sequence[Message]) -> tuple[int, int]:
    return max(sizes(messages).items(), key=lambda item: (item[1], item[0]), default=(0, 0))
