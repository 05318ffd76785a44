"""What the first call of each analysis costs, once the events have their launches and iterations."""

from __future__ import annotations

import statistics

from benchmarks.figure import Figure, exponent
from benchmarks.process import call, in_a_fork
from benchmarks.setup import Setup

WINDOW = "critical_path of 90 %"
SIZES = (200, 1000)  # MB
SMALL = (5, 20)
GOAL_S = 0.4
GOALS_S = {"overview": 1.23, WINDOW: 0.385}  # the former asks most of the others
SMALLER_GOALS_S = {"overview": 0.31}
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
        if not setup.small and kind in SMALLER_GOALS_S:
            smaller = [answer for answer in few[kind] if not isinstance(answer, str)]
            figures.append(Figure(f"... {sizes[0]} MB, CPU s", smaller, goal=SMALLER_GOALS_S[kind]))
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
    from hta_widgets.trace.scope import Scope

    trace = Trace.open(path)
    rank = trace.rank(trace.ranks[0])
    _ = rank.event_class, rank.launch, rank.iteration
    first, last = trace.extent_ns
    questions = {kind: (entry, Scope()) for kind, entry in ANALYSES.items()}
    questions[WINDOW] = ANALYSES["critical_path"], Scope(window_ns=(first, first + 9 * (last - first) // 10))

    def cost(kind: str) -> float | str:
        entry, scope = questions[kind]
        return in_a_fork(lambda: entry.function(trace, scope), LIMIT_S)

    # a virtual machine's memory costs many times as much where its host has to find it first: not measured
    return {kind: [cost(kind) for _ in range(1 + int(rounds))][1:] for kind in questions}


def _middle(answers: list[float | str]) -> float:
    numbers = [answer for answer in answers if not isinstance(answer, str)]
    return statistics.median(numbers) if numbers else 0.0
