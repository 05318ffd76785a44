"""Recognises the kind of data parallelism from the gathers and reductions of a step.

Sharded data parallelism gathers the parameters of each unit and reduce-scatters their gradients; replicated
data parallelism all-reduces gradients in buckets.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from hta_widgets.analysis.strategy.messages import FORWARD, HOOK, Message
from hta_widgets.analysis.strategy.reading import (
    DDP,
    FSDP,
    FULL_SHARD,
    NO_SHARD,
    NOT_RECOGNISED,
    SHARD_GRAD_OP,
    ZERO_3,
    ZERO_BELOW_3,
    Reading,
    bytes_of,
    dtypes,
    elements,
    of,
    sent_bytes,
    sizes,
    unknown,
)  # fmt: skip
from hta_widgets.formatting import counted

# FSDP keeps the root's parameters for backward, and users let it keep those of the last unit, too.
_MOST_KEPT = 2


def sharded(floats: Sequence[Message], size: int, wrappers: Set[str]) -> Reading:
    """A step that reduce-scatters gradients; arguments as of `read_step`.

    What is gathered by the thread that runs forward, before gradients are reduced, is gathered for forward.
    FULL_SHARD gathers units again in backward, all but the root; SHARD_GRAD_OP does not. ZeRO stages 1 and 2
    gather what the optimizer has written, after the last reduction.
    """
    gathers = [message for message in of(floats, "allgather") if message.place == FORWARD]
    again = [message for message in of(floats, "allgather") if message.place != FORWARD]
    reductions = [message for message in of(floats, "reduce_scatter") if message.place != FORWARD]
    if not gathers:
        return unknown("gradients are reduce-scattered, but forward gathers nothing")
    blocks = _blocks(reductions, gathers)
    if set(blocks) == {0}:
        return _optimizer_sharded(reductions, gathers, again, size)
    units = next(iter(blocks.values()))
    if 0 in blocks or not _alike(blocks):
        return unknown("not all passes of the step reduce the same gradients")
    forwards, backwards = _blocks(gathers, again or reductions), _blocks(again, gathers)
    if not (_alike(forwards) and _alike(backwards)) or (again and len(forwards) != len(backwards)):
        return unknown("not all passes of the step gather the same parameters")
    first = next(iter(forwards.values()))
    times = _times_gathered(first, units, marked=bool(again))
    if not times:
        return unknown("forward gathers the same repeatedly, be it in passes or for units that are frozen")
    whole, passes = first[: len(first) // times], times * len(forwards)
    if not sizes(units) <= sizes(whole):
        return unknown("what is gathered and what is reduce-scattered have other sizes")
    if not set(sizes(again)) <= set(sizes(gathers)):
        return unknown("backward gathers what forward does not")
    kept = (sizes(gathers) - sizes(again)).total() / passes
    if again and kept > _MOST_KEPT:
        return unknown(f"backward gathers only some of the {len(whole)} units again")
    once, moved = bytes_of(whole), len(blocks) * bytes_of(units)
    if again:
        strategy, gathered = FULL_SHARD, 2 * once - whole[0].nbytes
        how = f"{counted(len(again) // passes, 'unit')} again for backward"
    elif len(whole) > 1:
        strategy, gathered, how = SHARD_GRAD_OP, once, "none again for backward"
    else:
        strategy, gathered, how = FSDP, once, "none again for backward, as either does with a single unit"
    if "FSDP" not in wrappers:
        # Other implementations of ZeRO send the same.
        strategy = ZERO_3 if again else ZERO_BELOW_3
    words = (
        f"gathers {counted(len(whole), 'unit')} for forward, {how}, and reduce-scatters the gradients of "
        f"{len(units)}{_in_passes(passes)}"
    )
    return Reading(
        strategy, words, True, passes, tuple(message.elements for message in whole), elements(whole), once,
        elements(units), dtypes(whole), dtypes(units), tuple(message.kept_elements for message in units),
        (*gathers, *again, *reductions), (size - 1) * (passes * gathered + moved) // size,
    )  # fmt: skip


def _times_gathered(gathers: Sequence[Message], units: Sequence[Message], marked: bool) -> int:
    """The number of passes that these gathers of forward belong to; 0 if unknown.

    Passes that reduce nothing leave no mark between their gathers, unless backward gathers again (`marked`):
    only the same gathers come once more. So they may for units of equal sizes of which some are frozen.
    """
    times = len(gathers) // len(units)
    if sizes(gathers) != repeated(sizes(units), times):
        return 0 if _repeats(gathers) else 1
    values = [message.elements for message in gathers]
    in_turn = values[: len(values) // times] * times == values
    return times if times == 1 or (in_turn and not marked and len(sizes(units)) > 1) else 0


def _optimizer_sharded(
    reductions: Sequence[Message], gathers: Sequence[Message], again: Sequence[Message], size: int
) -> Reading:
    """ZeRO stages 1 and 2: parameters are gathered once, after the optimizer has written its shard."""
    reduced, whole = elements(reductions), elements(gathers)
    if again or abs(reduced - whole) > size * (len(reductions) + len(gathers)):
        return unknown("parameters are gathered after the gradients are reduced, but not as many")
    return Reading(
        ZERO_BELOW_3, "reduce-scatters gradients, and gathers as many parameters after that", True, 1,
        tuple(message.elements for message in reductions), whole, bytes_of(gathers), reduced, dtypes(gathers),
        dtypes(reductions), tuple(message.kept_elements for message in reductions), (*gathers, *reductions),
        (size - 1) * (bytes_of(reductions) + bytes_of(gathers)) // size,
    )  # fmt: skip


def replicated(floats: Sequence[Message], size: int, wrappers: Set[str], forwards: Sequence[int]) -> Reading:
    """A step that all-reduces gradients; arguments as of `read_step`."""
    buckets = [message for message in of(floats, "allreduce") if message.place == HOOK]
    blocks = _by_start(buckets, forwards)
    first = next(iter(blocks.values()))
    words = f"all-reduces gradients in {counted(len(first), 'bucket')} during backward"
    found = Reading(
        DDP if "DDP" in wrappers else NO_SHARD, f"{words}{_in_passes(len(blocks))}", True, len(blocks),
        tuple(message.elements for message in first), elements(first), bytes_of(first), elements(first), "",
        dtypes(first), (), tuple(buckets), 2 * (size - 1) * len(blocks) * bytes_of(first) // size,
    )  # fmt: skip
    if any(elements(block) != elements(first) for block in blocks.values()):
        return replace(
            found, parameters=None, parameter_bytes=None, reduced=None, expected_bytes=None,
            words=f"{words}, of other sizes in each of {len(blocks)} passes",
        )  # fmt: skip
    after = [
        message for message in floats if message.place == FORWARD and message.order_ns > buckets[-1].order_ns
    ]
    for operation, padding in (("broadcast", 0), ("allgather", size * len(after))):
        written = of(after, operation)
        if written and 0 <= elements(written) - elements(first) <= padding:
            used = (*buckets, *written)
            return replace(
                found, strategy=ZERO_BELOW_3, used=used, gathered_dtype=dtypes(written),
                expected_bytes=sent_bytes(used, size),
                words=f"{words}, and then {operation}s as many parameters",
            )  # fmt: skip
    if not wrappers:
        return replace(
            found, strategy=NOT_RECOGNISED, expected_bytes=None,
            words=f"the group {words}, as DDP does, but the trace names neither DDP nor FSDP",
        )  # fmt: skip
    return found


def _in_passes(passes: int) -> str:
    return f", {passes} times per step" if passes > 1 else ""


def _blocks(these: Sequence[Message], others: Sequence[Message]) -> dict[int, list[Message]]:
    """Messages by pass: by how many of the others came before them."""
    return _by_start(these, [message.order_ns for message in others])


def _by_start(these: Sequence[Message], starts: Sequence[int]) -> dict[int, list[Message]]:
    found: dict[int, list[Message]] = {}
    for message in these:
        found.setdefault(bisect_left(starts, message.order_ns), []).append(message)
    return found


def _alike(blocks: Mapping[int, Sequence[Message]]) -> bool:
    """Whether all of them have messages of the same sizes."""
    found = [sizes(block) for block in blocks.values()]
    return all(message == found[0] for message in found)


def _repeats(messages: Sequence[Message]) -> bool:
    """Whether their sizes are a shorter sequence of different ones several times over."""
    values = [message.elements for message in messages]
    parts = [part for part in range(2, len(values) // 2 + 1) if len(values) % part == 0]
    return len(set(values)) > 1 and any(values[:part] * (len(values) // part) == values for part in parts)


def repeated(found: Counter[int], factor: int) -> Counter[int]:
    return Counter({size: factor * count for size, count in found.items()})
