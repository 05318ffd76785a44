"""Each of HTA's methods, by its own name, in both packages.

One process per package loads the recording; each method then runs in a fork of it, so that none finds what
another left behind, and one that fails or takes too long is named and the rest goes on. Loaded means the same
for both: HTA imports all its modules at once, and links device work to its launches and steps while it loads;
hta_widgets does so when first asked, and is asked before.
"""

from __future__ import annotations

import importlib
import json
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.figure import Figure
from benchmarks.installed import interpreter
from benchmarks.process import MARK, cpu, import_all, in_a_fork, run
from benchmarks.setup import Setup

MEGABYTES = 100  # HTA's loading grows with the square of the steps
LIMIT_S = 60.0
LEAST_RATIO = 1.0  # none slower than HTA
FLOOR, LONG_FLOOR = 0.7, 8.0  # tens of milliseconds are noise on a busy machine
LONG_S = 1.0
FROM_FILE, SMALL_FROM_FILE = 100.0, 25.0
SCRIPT = "import sys; from benchmarks.methods import answered; answered(*sys.argv[1:])"
Answers = dict[str, list[float | str]]


def methods(analysis: Any, scratch: str) -> dict[str, Callable[[], Any]]:
    """Every method, with its defaults where it has them."""
    a: Any = analysis
    return {
        "get_comm_comp_overlap": lambda: a.get_comm_comp_overlap(visualize=False),
        "get_profiler_steps": lambda: a.get_profiler_steps(),
        "get_temporal_breakdown": lambda: a.get_temporal_breakdown(visualize=False),
        "get_gpu_kernel_breakdown": lambda: a.get_gpu_kernel_breakdown(visualize=False),
        "get_gpu_kernels_with_user_annotations": lambda: a.get_gpu_kernels_with_user_annotations(0),
        "get_gpu_user_annotation_breakdown": lambda: a.get_gpu_user_annotation_breakdown(
            use_gpu_annotation=False, visualize=False
        ),
        "get_idle_time_breakdown": lambda: a.get_idle_time_breakdown(visualize=False),
        "get_cuda_kernel_launch_stats": lambda: a.get_cuda_kernel_launch_stats(visualize=False),
        "get_aten_op_kernels_and_delay": lambda: a.get_aten_op_kernels_and_delay(),
        "get_queue_length_time_series": lambda: a.get_queue_length_time_series(),
        "get_queue_length_summary": lambda: a.get_queue_length_summary(),
        "get_memory_bw_time_series": lambda: a.get_memory_bw_time_series(),
        "get_memory_bw_summary": lambda: a.get_memory_bw_summary(),
        "generate_trace_with_counters": lambda: a.generate_trace_with_counters(output_suffix="_counted"),
        "get_frequent_cuda_kernel_sequences": lambda: a.get_frequent_cuda_kernel_sequences(
            "aten::linear", scratch, visualize=False
        ),
        "critical_path_analysis, one step": lambda: a.critical_path_analysis(0, "ProfilerStep", 0),
        "critical_path_analysis, all steps": lambda: a.critical_path_analysis(0, "", None),
    }


def measure(setup: Setup) -> list[Figure]:
    """CPU s of the call alone, and of loading and one call."""
    path = setup.recording(20 if setup.small else MEGABYTES)
    run(interpreter(), SCRIPT, "hta_widgets.hta", path, 1, **setup.kernels)  # compiles
    ours: Answers = run(interpreter(), SCRIPT, "hta_widgets.hta", path, setup.rounds, **setup.kernels).result
    theirs: Answers = run(setup.hta, SCRIPT, "hta", path, 1).result  # once: it takes minutes
    loads = [_numbers(answers["load"]) for answers in (ours, theirs)]
    from_file = SMALL_FROM_FILE if setup.small else FROM_FILE
    figures = [Figure("loading, CPU s", loads[0], loads[1], floor=from_file)]
    for name in list(ours)[1:]:
        mine, other = _numbers(ours[name]), _numbers(theirs[name])
        why = "" if other else str(theirs[name][-1])
        # the peer's time is this machine's already
        goal = statistics.median(other) / LEAST_RATIO / setup.pace if other else None
        floor = LONG_FLOOR if other and statistics.median(other) > LONG_S else FLOOR
        figures.append(Figure(f"`{name}`, CPU s", mine, other, goal, floor, why))
    return figures


def answered(package: str, path: str, rounds: str) -> None:
    """Prints CPU s of loading and of each method; runs in the environment of the package."""
    import plotly.graph_objects as go

    go.Figure.show = lambda *_, **__: None
    module = importlib.import_module(f"{package}.trace_analysis")
    if package != "hta":
        import_all()
    with tempfile.TemporaryDirectory() as scratch:
        link = Path(scratch) / "trace.json"  # what a method writes beside the trace lands here
        link.symlink_to(path)
        before = cpu()
        analysis = module.TraceAnalysis(trace_files={0: str(link)}, trace_dir="")
        if package != "hta":
            rank_trace = analysis.t.job.rank(0)
            _ = rank_trace.launch, rank_trace.iteration, rank_trace.stream, rank_trace.event_class
        answers: Answers = {"load": [cpu() - before]}
        for name, method in methods(analysis, scratch).items():
            answers[name] = []
            for _ in range(int(rounds)):
                (link.parent / "trace_counted.json").unlink(missing_ok=True)
                answers[name].append(in_a_fork(method, LIMIT_S))
                if isinstance(answers[name][-1], str):
                    break
    print(MARK + json.dumps(answers))


def _numbers(answers: list[float | str]) -> list[float]:
    return [answer for answer in answers if not isinstance(answer, str)]
