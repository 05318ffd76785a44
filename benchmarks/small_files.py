"""How soon a new process answers about a small recording: most that people open are small."""

from __future__ import annotations

import statistics
from tempfile import mkdtemp

from benchmarks.figure import Figure
from benchmarks.installed import interpreter
from benchmarks.process import Cost, run
from benchmarks.setup import Setup

PANDAS = "import pandas"
EXPLORER = "from hta_widgets import TraceExplorer"
API = """
import statistics
import sys
from hta_widgets import Trace, analysis
analysis.temporal_breakdown(Trace.open(sys.argv[1]))
print("RESULT", int("llvmlite" in sys.modules))
"""
METHOD = """
import statistics
import sys
from {package}.trace_analysis import TraceAnalysis
TraceAnalysis(trace_files={{0: sys.argv[1]}}, trace_dir="").get_temporal_breakdown(visualize=False)
"""
WARM_UP = "import sys; from hta_widgets.cli.run import main; sys.exit(main(['warm-up', '--quiet']))"
MEGABYTES = {1.8: (0.6, 1.5), 8.7: (0.65, 2.4), 26: (0.75, 6.0)}  # size: goal in s, floor


def measure(setup: Setup) -> list[Figure]:
    """CPU of whole processes in turns, after one that compiles; the first ones of a machine at the end."""
    figures = []
    pandas = [run(interpreter(), PANDAS).cpu for _ in range(setup.rounds)]
    figures.append(Figure("`import pandas`, CPU s", pandas))
    explorer = [run(interpreter(), EXPLORER).cpu for _ in range(setup.rounds)]
    figures.append(Figure(f"`{EXPLORER}`, CPU s", explorer, goal=0.5))
    for megabytes, (goal, floor) in MEGABYTES.items():
        if setup.small and megabytes == max(MEGABYTES):  # large files are measured, too
            continue
        path = setup.recording(megabytes)
        ours: list[Cost] = []
        door: list[Cost] = []
        theirs: list[Cost] = []
        run(interpreter(), API, path, **setup.kernels)
        for _ in range(setup.rounds):
            ours.append(run(interpreter(), API, path, **setup.kernels))
            door.append(run(interpreter(), METHOD.format(package="hta_widgets.hta"), path, **setup.kernels))
            theirs.append(run(setup.hta, METHOD.format(package="hta"), path))
        name = f"{megabytes} MB, file to `temporal_breakdown`"
        hta = [cost.cpu for cost in theirs]
        figures += [
            Figure(f"{name}, CPU s", [cost.cpu for cost in ours], hta, goal, floor),
            Figure(
                "... through HTA's names, CPU s",
                [cost.cpu for cost in door],
                hta,
                1.1 * statistics.median(cost.cpu for cost in ours) / setup.pace,
            ),
            Figure(
                "... memory at its peak, MB",
                [cost.peak for cost in ours],
                [cost.peak for cost in theirs],
                goal=130.0,
                floor=0.85,
            ),
            Figure("... processes that load LLVM or numba", [sum(cost.result for cost in ours)], goal=0),
        ]
    if not setup.small:
        figures += first_ever(setup)
    return figures


def first_ever(setup: Setup) -> list[Figure]:
    """Processes on a machine that has compiled nothing yet."""
    path = setup.recording(next(iter(MEGABYTES)))
    empty = {"HTA_WIDGETS_CACHE": "off"}

    def fresh() -> dict[str, str]:
        return {**empty, "NUMBA_CACHE_DIR": mkdtemp(dir=setup.folder)}

    answers = [run(interpreter(), API, path, **fresh()) for _ in range(setup.rounds)]
    everything = run(interpreter(), WARM_UP, **fresh())
    return [
        Figure("the very first answer on a machine, CPU s", [cost.cpu for cost in answers], goal=3.0),
        Figure("`hta-widgets warm-up` on a new machine, CPU s", [everything.cpu], goal=12.0),
    ]
