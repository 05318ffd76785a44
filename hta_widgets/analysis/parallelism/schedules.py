"""Which schedule the stages of a pipeline follow, from the order of their passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hta_widgets.analysis.parallelism.microbatches import FORWARD, WEIGHTS, Passes

GPIPE: Final = "GPipe"
ONE_F_ONE_B: Final = "1F1B"
INTERLEAVED: Final = "interleaved 1F1B"
ZB_H1: Final = "zero bubble (ZB-H1)"
DUALPIPE: Final = "DualPipe"
UNKNOWN: Final = "unknown"

_ENDS_AND_MORE = 4
_APART = 0.1
"""Gradients of weights count as apart if they are this share of backward, on all stages but the first."""


@dataclass(frozen=True)
class Schedule:
    """How a pipeline orders its passes."""

    name: str  # one of the names above
    words: str  # the evidence; if it is unknown, the reason
    # of a step, and parts of the model per rank; 0 if unknown
    microbatches: int = 0
    chunks: int = 0


def schedule_of(stages: Sequence[Passes]) -> Schedule:
    """The schedule of one step, from the passes of each stage, the first stage first.

    All schedules run `warm` forwards, then a forward and a backward by turns, then the rest of the backwards;
    of p stages stage s has `warm` =

    - all of them in GPipe (Huang et al., NeurIPS 2019),
    - p - 1 - s in 1F1B (Narayanan et al., ICML 2021) and, with the gradients of weights computed apart, in
      ZB-H1 (Qi et al., ICLR 2024),
    - 2 (p - 1 - s) + (v - 1) p in interleaved 1F1B with v chunks per rank (Narayanan et al., SC 2021).

    But in DualPipe microbatches enter at both ends (DeepSeek-V3 Technical Report, 2024, section 3.2.1).
    """
    orders = [passes.order for passes in stages]
    count = len(stages)
    if _dualpipe(stages):
        words = "microbatches enter at both ends, and the ranks in between run those of both by turns"
        return Schedule(DUALPIPE, words, orders[1].count("F"), 2)
    forwards, backwards = ({order.count(kind) for order in orders} for kind in "FB")
    if len(forwards | backwards) > 1:
        listed = ", ".join(f"{order.count('F')} and {order.count('B')}" for order in orders)
        return Schedule(UNKNOWN, f"stages run unequal numbers of forward and backward passes: {listed}")
    passes = forwards.pop()
    if passes < 2:
        return Schedule(UNKNOWN, "a step has a single microbatch, which fits every schedule", passes, 1)
    apart = all(_weights(each) >= _APART for each in stages[1:])
    if _warm(orders, [passes] * count):
        if apart:
            return Schedule(UNKNOWN, "all forwards come first, but the gradients of weights are apart")
        return Schedule(GPIPE, "all stages run all forwards first", passes, 1)
    if _warm(orders, [count - 1 - stage for stage in range(count)]):
        words = "stage s of p runs p - 1 - s forwards ahead, then one forward and one backward by turns"
        if apart:
            return Schedule(ZB_H1, f"{words}, and the gradients of weights apart", passes, 1)
        return Schedule(ONE_F_ONE_B, words, passes, 1)
    ahead = _ahead(orders[-1])
    chunks = ahead // count + 1
    interleaved = [2 * (count - 1 - stage) + (chunks - 1) * count for stage in range(count)]
    whole = passes % (chunks * count) == 0
    if chunks > 1 and whole and not apart and _warm(orders, interleaved):
        words = f"stage s of p runs 2 (p - 1 - s) + {chunks - 1} p forwards ahead, as with {chunks} chunks"
        return Schedule(INTERLEAVED, words, passes // chunks, chunks)
    return Schedule(
        UNKNOWN, f"no known schedule has this order: {_shown(orders[0])} on the first stage, "
        f"{_shown(orders[-1])} on the last",
    )  # fmt: skip


def _dualpipe(stages: Sequence[Passes]) -> bool:
    """Whether microbatches enter at both ends, and all ranks in between run them in the order of DualPipe.

    At the ends themselves passes that neither receive nor send cannot be told from those beside them.
    """
    count, inner = len(stages), [passes.order for passes in stages[1:-1]]
    if count < _ENDS_AND_MORE or count % 2 or not (stages[0].enters and stages[-1].enters):
        return False
    passes = inner[0].count("F")
    if passes % 2 or passes < 2 * count:
        return False
    return inner == [_of_dualpipe(stage, count, passes) for stage in range(1, count - 1)]


def _of_dualpipe(stage: int, count: int, passes: int) -> str:
    inner = min(stage, count - 1 - stage)
    outer, turns = count // 2 - inner - 1, passes // 2 - count + inner + 1
    begin = "F" * (2 * outer) + "FF" * (inner + 1) + "BF" * outer
    return begin + "FBFB" * turns + "BFB" * outer + "BB" * (inner + 1) + "B" * outer


def _weights(passes: Passes) -> float:
    """The share of the gradients of weights, where they are apart, in all backward work."""
    took = passes.end - passes.start
    backward = int(took[passes.kind != FORWARD].sum())
    return int(took[passes.kind == WEIGHTS].sum()) / max(backward, 1)


def _ahead(order: str) -> int:
    """The forwards that run ahead: all before the first backward but the one that is its own turn."""
    return max(order.index("B") - 1, 0)


def _warm(orders: Sequence[str], warm: Sequence[int]) -> bool:
    """Whether each stage runs this many forwards ahead."""
    return all(
        order == _alternating(order.count("F"), ahead) for order, ahead in zip(orders, warm, strict=True)
    )


def _alternating(passes: int, ahead: int) -> str:
    ahead = min(ahead, passes)
    return "F" * ahead + "FB" * (passes - ahead) + "B" * ahead


def order_of(schedule: Schedule, stage: int, stages: int, microbatches: int) -> str | None:
    """Forward and backward passes of a stage in a schedule with so many microbatches; None if not modelled.

    Where the gradients of weights are apart, they go where there is room; and so do the passes of DualPipe.
    """
    passes = microbatches * schedule.chunks
    if schedule.name == GPIPE:
        return _alternating(passes, passes)
    if schedule.name == ONE_F_ONE_B:
        return _alternating(passes, stages - 1 - stage)
    if schedule.name == INTERLEAVED:
        return _alternating(passes, 2 * (stages - 1 - stage) + (schedule.chunks - 1) * stages)
    return None


def _shown(order: str) -> str:
    return order if len(order) <= 24 else f"{order[:24]}..."
