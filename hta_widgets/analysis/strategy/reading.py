"""`Reading`: what one step of one process group shows; the names of strategies, and sums over messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hta_widgets.analysis.strategy.messages import Message

SINGLE: Final = "single device"
DDP: Final = "DDP"
NO_SHARD: Final = "FSDP NO_SHARD"
FULL_SHARD: Final = "FSDP FULL_SHARD"
SHARD_GRAD_OP: Final = "FSDP SHARD_GRAD_OP"
FSDP: Final = "FSDP FULL_SHARD or SHARD_GRAD_OP"
HYBRID_SHARD: Final = "FSDP HYBRID_SHARD"
HYBRID_SHARD_ZERO2: Final = "FSDP _HYBRID_SHARD_ZERO2"
ZERO_3: Final = "ZeRO stage 3"
ZERO_BELOW_3: Final = "ZeRO stage 1 or 2"
TENSOR: Final = "tensor parallel"
PIPELINE: Final = "pipeline parallel"
NOT_RECOGNISED: Final = "not recognised"

_RING = {"allreduce": 2, "allgather": 1, "reduce_scatter": 1, "all_to_all": 1}


@dataclass(frozen=True)
class Reading:
    """What one step of one process group shows."""

    strategy: str  # one of the names above
    words: str  # the evidence; if nothing is recognised, the reason
    reduces: bool = True  # whether gradients are reduced at all
    passes: int = 1  # times that forward ran
    units: tuple[int, ...] = ()  # elements of each unit or bucket, in order
    # of the whole model, as they were sent
    parameters: int | None = None
    parameter_bytes: int | None = None
    reduced: int | None = None  # elements of the whole gradient
    # "" where nothing is gathered or reduced
    gathered_dtype: str = ""
    reduced_dtype: str = ""
    shards: tuple[int, ...] = ()  # elements of the gradient's shards that this rank keeps
    # what the strategy accounts for; the rest of the step's messages are `other_bytes`
    used: tuple[Message, ...] = ()
    expected_bytes: int | None = None  # what `used` should come to


def sent_bytes(messages: Sequence[Message], size: int) -> int:
    """What a rank of a group of `size` sends, by the factors of nccl-tests (doc/PERFORMANCE.md).

    All-reduce 2(n-1)/n of the message, all-gather, reduce-scatter and all-to-all (n-1)/n, others all of it.
    """
    ring = sum(_RING.get(message.operation, 0) * message.nbytes for message in messages)
    return (size - 1) * ring // size + sum(
        message.nbytes for message in messages if message.operation not in _RING
    )


def unknown(reason: str, reduces: bool = True) -> Reading:
    """A step that fits no strategy, and why."""
    return Reading(NOT_RECOGNISED, reason, reduces)


def of(messages: Sequence[Message], operation: str) -> list[Message]:
    """Those of one operation."""
    return [message for message in messages if message.operation == operation]


def sizes(messages: Sequence[Message]) -> Counter[int]:
    """How many there are of each number of elements."""
    return Counter(message.elements for message in messages)


def elements(messages: Sequence[Message]) -> int:
    """Of all together."""
    return sum(message.elements for message in messages)


def bytes_of(messages: Sequence[Message]) -> int:
    """Of all together."""
    return sum(message.nbytes for message in messages)


def dtypes(messages: Sequence[Message]) -> str:
    """The element type; of several, each with its number of elements."""
    count: Counter[str] = Counter()
    for message in messages:
        count[message.dtype] += message.elements
    if len(count) == 1:
        return next(iter(count))
    return ", ".join(f"{dtype} ({number:,})" for dtype, number in sorted(count.items()))
