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


def measure(setup: Setup) -> list[Figure]:
    """CPU s of each analysis in a fork of a process that has read the recording."""
    sizes = SMALL if setup.small else SIZES
    paths = [str(setup.recording(size)) for size in sizes]
    call(answered, paths[0], **setup.kernels)  # compiles
    # in turn: the pace of a machine changes, and would be taken for growth
    rounds = [[call(answered, path, **setup.kernels).result for path in paths] for _ in range(setup.rounds)]
    few, many = (
        {kind: [answers[kind] for answers in of_size] for kind in of_size[0]}
        for of_size in zip(*rounds, strict=True)
    )
    costs = {kind: samples for kind, answers in many.items() if (samples := _numbers(answers))}
    figures = []  # but for what the recording lacks
    for kind, samples in sorted(costs.items(), key=lambda item: -statistics.median(item[1])):
        figures.append(
            Figure(
                f"`{kind}`, {sizes[1]} MB, CPU s",
                samples,
                goal=None if setup.small else GOALS_S.get(kind, GOAL_S),
            )
        )
        if not setup.small and kind in SMALLER_GOALS_S:
            smaller = _numbers(few[kind])
            figures.append(Figure(f"... {sizes[0]} MB, CPU s", smaller, goal=SMALLER_GOALS_S[kind]))
        if not setup.small and statistics.median(samples) >= LEAST_S:
            pairs = zip(_numbers(few[kind]), samples, strict=True)
            grown = [exponent(sizes, pair) for pair in pairs]
            figures.append(Figure("... exponent", grown, goal=EXPONENT))
    return figures


def answered(path: str) -> dict[str, float | str]:
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

    found = {}
    for kind in questions:
        cost(kind)  # a virtual machine's memory costs many times as much where its host has to find it first
        found[kind] = cost(kind)
    return found


def _numbers(answers: list[float | str]) -> list[float]:
    return [answer for answer in answers if not isinstance(answer, str)]
