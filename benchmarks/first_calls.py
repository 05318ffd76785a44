"""What the first call of each analysis costs, once the events have their launches and iterations."""

from __future__ import annotations

import statistics

from benchmarks.figure import Figure, exponent
from benchmarks.process import call, in_a_fork
from benchmarks.setup import Setup

SIZES = (200, 1000)  # MB
SMALL = (5, 20)
GOAL_S = 0.4
GOALS_S = {"overview": 1.6}  # which asks most of the others
EXPONENT = 1.05
LEAST_S = 0.1  # what takes less is the allocator's, whatever it grows with
LIMIT_S = 120.0
Answers = dict[str, list[float | str]]


def measure(setup: Setup) -> list[Figure]:
    """CPU s of each analysis in a fork of a process that has read the recording."""
    sizes = SMALL if setup.small else SIZES
    few, many = (_answers(setup, size) for size in sizes)
    figures = []
    for kind, answers in sorted(many.items(), key=lambda item: -_middle(item[1])):
        samples = [answer for answer in answers if not isinstance(answer, str)]
        if not samples:
            continue  # the recording lacks what it needs
        figures.append(
            Figure(
                f"`{kind}`, {sizes[1]} MB, CPU s",
                samples,
                goal=None if setup.small else GOALS_S.get(kind, GOAL_S),
            )
        )
        if not setup.small and statistics.median(samples) >= LEAST_S:
            grown = exponent(sizes, [_middle(few[kind]), _middle(answers)])
            figures.append(Figure("... exponent", [grown], goal=EXPONENT))
    return figures


def _answers(setup: Setup, size: int) -> Answers:
    path = setup.recording(size)
    call(answered, path, 1, **setup.kernels)  # compiles
    return dict(call(answered, path, setup.rounds, **setup.kernels).result)


def answered(path: str, rounds: str) -> Answers:
    """CPU s of each analysis that answers without arguments; or why it does not."""
    from hta_widgets.analysis.registry import ANALYSES
    from hta_widgets.trace.model import Trace

    trace = Trace.open(path)
    rank = trace.rank(trace.ranks[0])
    _ = rank.event_class, rank.launch, rank.iteration
    return {
        kind: [in_a_fork(lambda entry=entry: entry.function(trace), LIMIT_S) for _ in range(int(rounds))]  # type: ignore[misc]
        for kind, entry in ANALYSES.items()
    }


def _middle(answers: list[float | str]) -> float:
    numbers = [answer for answer in answers if not isinstance(answer, str)]
    return statistics.median(numbers) if numbers else 0.0
