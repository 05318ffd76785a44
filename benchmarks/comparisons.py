"""Comparing two runs of a quarter of a million events each, in both packages.

HTA compares one step, or all, of two recordings by name (`TraceDiff`); both packages are asked that by the
same names. What only hta_widgets answers is set against `compare_traces` over all steps, HTA's nearest. Each
comparison has a fork of a process that has loaded both sides, as in `methods`.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.figure import Figure
from benchmarks.installed import interpreter
from benchmarks.process import MARK, cpu, import_all, in_a_fork, run
from benchmarks.setup import Setup

RUNS = ("gpt2_baseline", "gpt2_ddp")
MEGABYTES = 100  # of each: HTA's loading grows with the square of the steps
NEAREST = "compare_traces, all steps"
LIMIT_S = 600.0
FLOOR = 1.4
SCRIPT = "import sys; from benchmarks.comparisons import answered; answered(*sys.argv[1:])"


def measure(setup: Setup) -> list[Figure]:
    """CPU s of loading both sides and of each comparison alone."""
    from hta_widgets import examples  # not in HTA's environment, which imports this module, too

    folders = [
        setup.recording(
            10 if setup.small else MEGABYTES, next(iter(sorted(examples.path(name).glob("*.json.gz"))))
        ).parent
        for name in RUNS
    ]
    run(interpreter(), SCRIPT, "hta_widgets.hta", 1, *folders, **setup.kernels)  # compiles
    ours = run(interpreter(), SCRIPT, "hta_widgets.hta", setup.rounds, *folders, **setup.kernels).result
    theirs = run(setup.hta, SCRIPT, "hta", 1, *folders).result  # once: it takes minutes
    figures = []
    for name, samples in ours.items():
        other = theirs.get(name, theirs[NEAREST])
        failed = next((answer for answer in other if isinstance(answer, str)), "")
        figures.append(
            Figure(
                f"{name}, CPU s",
                samples,
                [] if failed else other,
                floor=FLOOR if name in theirs else None,
                failed=failed,
            )
        )
    return figures


def answered(package: str, rounds: str, *folders: str) -> None:
    """Prints CPU s of loading both and of each comparison; runs in the environment of the package."""
    labeled = importlib.import_module(f"{package}.trace_diff").LabeledTrace
    if package != "hta":
        import_all()
    before = cpu()
    sides = [labeled(Path(folder).name, trace_dir=folder) for folder in folders]
    runs = {side.label: side.t.whole for side in sides} if package != "hta" else {}
    for trace in runs.values():
        rank_trace = trace.rank(trace.ranks[0])
        _ = rank_trace.launch, rank_trace.iteration, rank_trace.event_class  # HTA's load makes them
    answers: dict[str, list[float | str]] = {"loading both": [cpu() - before]}
    for name, compare in {**of_both(package, sides), **(own(runs) if runs else {})}.items():
        answers[name] = [in_a_fork(compare, LIMIT_S) for _ in range(int(rounds))]
    print(MARK + json.dumps(answers))


def of_both(package: str, sides: list[Any]) -> dict[str, Callable[[], Any]]:
    """What both packages answer, by the same names."""
    compare: Any = importlib.import_module(f"{package}.trace_diff").TraceDiff
    steps = [sorted({int(number) for number in side.iterations()}) for side in sides]
    everything = dict(zip(("control_iteration", "test_iteration"), steps, strict=True))
    return {
        "compare_traces, one step": lambda: compare.compare_traces(*sides),
        NEAREST: lambda: compare.compare_traces(*sides, **everything),
        "ops_diff, one step": lambda: compare.ops_diff(*sides),
        "ops_diff, all steps": lambda: compare.ops_diff(*sides, **everything),
    }


def own(runs: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """What only hta_widgets answers."""
    from hta_widgets.analysis.compare.compare import diff
    from hta_widgets.analysis.compare.run_table import run_table
    from hta_widgets.analysis.compare.waterfall import step_waterfall

    return {
        "diff by kernel": lambda: diff(runs, "kernel"),
        "diff by op": lambda: diff(runs, "op"),
        "diff by phase": lambda: diff(runs, "phase"),
        "step_waterfall": lambda: step_waterfall(runs),
        "run_table": lambda: run_table(runs),
    }
