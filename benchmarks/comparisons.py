"""What does comparing two runs cost: Holistic Trace Analysis against hta_widgets, on traces of 1 M events.

Both answer in one go, one package after the other. Each has a process of its own, which loads the two traces;
each comparison then runs in a fork of it, as in `analyses.py`, so that none finds what another one left
behind. CPU is user + system time. HTA compares one step, or all, of two traces by name (`TraceDiff`); that is
asked of both packages, by the same names. What only hta_widgets answers is set against `compare_traces` over
all steps, HTA's nearest.

    python benchmarks/comparisons.py before.json.gz after.json.gz [--events N] [--venv DIR] [--repeat N]

The traces are repeated until they have so many events.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from analyses import Answer, cell, cpu, in_a_fork, median, of_both

NEAREST = "compare_traces, all steps"
LIMIT_S = 600.0


def hta_methods(package: str, sides: list[Any]) -> dict[str, Callable[[], Any]]:
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
    from hta_widgets.analysis.compare import diff, run_table, step_waterfall

    return {
        "diff by kernel": lambda: diff(runs, "kernel"),
        "diff by op": lambda: diff(runs, "op"),
        "diff by phase": lambda: diff(runs, "phase"),
        "step_waterfall": lambda: step_waterfall(runs),
        "run_table": lambda: run_table(runs),
    }


def measure(package: str, folders: list[str], repeat: int) -> dict[str, list[Answer]]:
    """Runs in the environment of `package`."""
    labeled = importlib.import_module(f"{package}.trace_diff").LabeledTrace
    before = cpu()
    sides = [labeled(Path(folder).name, trace_dir=folder) for folder in folders]
    runs = {side.label: side.t.whole for side in sides} if package == "hta_widgets" else {}
    for trace in runs.values():
        rank_trace = trace.rank(trace.ranks[0])
        _ = rank_trace.launch, rank_trace.iteration, rank_trace.event_class  # HTA's load makes them
    answers: dict[str, list[Answer]] = {"load": [{"cpu": cpu() - before}]}
    gc.collect()
    gc.freeze()  # a fork copies what its garbage collector touches
    for name, compare in {**hta_methods(package, sides), **(own(runs) if runs else {})}.items():
        answers[name] = [in_a_fork(compare, LIMIT_S) for _ in range(repeat)]
        print(package, name, answers[name], file=sys.stderr)
    return answers


def side_by_side(folders: list[str], python: str, repeat: int) -> str:
    """A markdown table of medians."""
    theirs, ours = of_both(__file__, [*folders, "--repeat", str(repeat)], python)
    loads = [median(item["load"]) for item in (theirs, ours)]
    lines = [
        f"Median of {repeat}, {os.cpu_count()} cores. Loading both: HTA {loads[0]:.1f} s, hta_widgets "
        f"{loads[1]:.2f} s.",
        "",
        "| comparison | HTA, CPU s | hta_widgets, CPU s | HTA needs | from files to answer: HTA needs |",
        "|---|--:|--:|--:|--:|",
    ]
    for name in list(ours)[1:]:
        hta, mine = theirs.get(name, theirs[NEAREST]), ours[name]
        ratios = ["", ""]
        if not any("failed" in item[-1] for item in (hta, mine)):
            item, other = median(hta), max(median(mine), 1e-3)
            ratios = [f"{item / other:.0f} x", f"{(item + loads[0]) / (other + loads[1]):.0f} x"]
        lines.append(
            f"| {name} | {cell(hta) if name in theirs else ''} | {cell(mine)} | {ratios[0]} | {ratios[1]} |"
        )
    return "\n".join(lines)


def enlarged(source: Path, folder: Path, events: int) -> str:
    """A folder of its own with the trace, repeated to about so many events with a duration."""
    from tile_trace import tile

    from hta_widgets import Trace

    with gzip.open(source) if source.suffix == ".gz" else source.open("rb") as file:
        megabytes = len(file.read()) / 1e6
    once = Trace.open(source, cache=False).summary["events"]
    folder.mkdir()
    tile(source, folder / "rank-0.json", megabytes * events / once)
    return str(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time comparisons of two runs with HTA and hta_widgets.")
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--events", type=int, default=1_000_000, help="with a duration, in each")
    parser.add_argument("--venv", type=Path, help="environment with HTA, made if missing")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--measure", choices=["hta", "hta_widgets"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        folders = [str(arguments.before), str(arguments.after)]
        answers = measure(arguments.measure, folders, arguments.repeat)
        print("RESULT", json.dumps(answers))
        return
    from against_hta import DEFAULT_VENV, hta_python

    python = hta_python(arguments.venv or DEFAULT_VENV)
    with tempfile.TemporaryDirectory() as scratch:
        folders = [
            enlarged(getattr(arguments, name), Path(scratch) / name, arguments.events)
            for name in ("before", "after")
        ]
        print(side_by_side(folders, python, arguments.repeat))


if __name__ == "__main__":
    main()
