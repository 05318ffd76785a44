"""The order in which each stage of a pipeline runs its microbatches, by schedule.

A slot is (kind, microbatch, chunk): "F" forward; "B" backward; where a schedule runs them apart, "I" the
gradients of inputs and "W" those of weights.
"""

from __future__ import annotations

from collections.abc import Callable

Slot = tuple[str, int, int]


def gpipe(stage: int, stages: int, microbatches: int, chunks: int = 1) -> list[Slot]:
    """All forwards, then all backwards (Huang et al., "GPipe", NeurIPS 2019)."""
    return [(kind, at, 0) for kind in "FB" for at in range(microbatches)]


def one_f_one_b(stage: int, stages: int, microbatches: int, chunks: int = 1) -> list[Slot]:
    """PipeDream-Flush (Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", ICML 2021)."""
    warm = min(stages - stage - 1, microbatches)
    return _alternating(
        [("F", at, 0) for at in range(microbatches)], [("B", at, 0) for at in range(microbatches)], warm
    )


def interleaved(stage: int, stages: int, microbatches: int, chunks: int) -> list[Slot]:
    """Each rank has several chunks (Narayanan et al., "Efficient Large-Scale ... Megatron-LM", SC 2021)."""
    assert microbatches % stages == 0
    forward: list[Slot] = [
        ("F", first + at, chunk)
        for first in range(0, microbatches, stages)
        for chunk in range(chunks)
        for at in range(stages)
    ]
    backward = [("B", at, chunks - 1 - chunk) for _, at, chunk in forward]
    warm = 2 * (stages - stage - 1) + (chunks - 1) * stages
    return _alternating(forward, backward, min(warm, len(forward)))


def zero_bubble(stage: int, stages: int, microbatches: int, chunks: int = 1) -> list[Slot]:
    """ZB-H1 (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024).

    1F1B whose later stages put off the gradients of weights, and fill the drain with them.
    """
    slots: list[Slot] = []
    weights = 0
    for slot in one_f_one_b(stage, stages, microbatches):
        slots.append(("I", *slot[1:]) if slot[0] == "B" else slot)
        if slot[0] == "B" and slot[1] >= stage:
            slots.append(("W", weights, 0))
            weights += 1
    return [*slots, *(("W", at, 0) for at in range(weights, microbatches))]


def dualpipe(stage: int, stages: int, microbatches: int, chunks: int = 2) -> list[Slot]:
    """DualPipe (DeepSeek-V3 Technical Report, 2024, section 3.2.1), whose chunk is the direction.

    Half of the microbatches enter at the first rank, half at the last; the other half of the ranks does the
    same with the directions changed.
    """
    inner, half = min(stage, stages - 1 - stage), stages // 2
    assert microbatches % 2 == 0 and microbatches >= 2 * stages
    turned = int(stage >= half)
    slots: list[Slot] = []
    number = {"F": [0, 0], "B": [0, 0]}
    apart: list[tuple[int, int]] = []

    def run(kind: str, way: int, zero_bubble: bool = False) -> None:
        slot = number[kind][way], way ^ turned
        number[kind][way] += 1
        slots.append(("I" if zero_bubble else kind, *slot))
        if zero_bubble:
            apart.append(slot)

    def weights() -> None:
        slots.append(("W", *apart.pop(0)))

    outer = half - inner - 1
    for _ in range(2 * outer):
        run("F", 0)
    for _ in range(inner + 1):
        run("F", 0)
        run("F", 1)
    for _ in range(outer):
        run("B", 1, True)
        weights()
        run("F", 1)
    for _ in range(microbatches // 2 - stages + inner + 1):
        for kind, way in (("F", 0), ("B", 1), ("F", 1), ("B", 0)):
            run(kind, way)
    for _ in range(outer):
        for kind, way in (("B", 1), ("F", 1), ("B", 0)):
            run(kind, way)
    late = False
    for at in range(inner + 1):
        late |= at == (inner + 1) // 2 and inner % 2 == 1
        run("B", 1, late)
        late |= at == (inner + 1) // 2 and inner % 2 == 0
        run("B", 0, late)
    for _ in range(outer):
        weights()
        run("B", 0, True)
    while apart:
        weights()
    return slots


def _alternating(forward: list[Slot], backward: list[Slot], warm: int) -> list[Slot]:
    steady = [slot for pair in zip(forward[warm:], backward, strict=False) for slot in pair]
    return [*forward[:warm], *steady, *backward[len(forward) - warm :]]


SCHEDULES: dict[str, Callable[[int, int, int, int], list[Slot]]] = {
    "GPipe": gpipe,
    "1F1B": one_f_one_b,
    "interleaved 1F1B": interleaved,
    "zero bubble": zero_bubble,
    "DualPipe": dualpipe,
}
