"""What does each analysis cost: Holistic Trace Analysis against hta_widgets, method by method.

One process per package loads the trace; each method then runs in a fork of it, so that no method finds what
another one left behind, and one that crashes or takes too long is named and the rest goes on. CPU is user +
system time of the fork. Loaded means the same for both: HTA links device work to its launches and to its
steps, and parses streams and classes, while it loads; hta_widgets does so when first asked, and is asked
before the clock of the methods starts (its loading time includes it). Figures are not drawn. HTA comes from
PyPI into an environment of its own.

    python benchmarks/analyses.py [trace.json] [--venv DIR] [--repeat N] [--limit SECONDS]

Without a trace it makes one of 200 MB by repeating a bundled example.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
Answer = dict[str, Any]
# No kept columns: both read the file.
ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT), "HTA_WIDGETS_CACHE": "off"}


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
        "critical_path_analysis, everything": lambda: a.critical_path_analysis(0, "", None),
    }


def measure(package: str, trace: str, repeat: int, limit: float) -> dict[str, list[Answer]]:
    """Runs in the environment of `package`."""
    import plotly.graph_objects as go

    go.Figure.show = lambda *_, **__: None
    module = importlib.import_module(f"{package}.trace_analysis")
    with tempfile.TemporaryDirectory() as scratch:
        # What a method writes beside the trace lands here.
        link = Path(scratch) / "trace.json"
        link.symlink_to(trace)
        before = cpu()
        analysis = module.TraceAnalysis(trace_files={0: str(link)}, trace_dir="")
        if package == "hta_widgets":
            rank_trace = analysis.t.job.rank(0)
            _ = rank_trace.launch, rank_trace.iteration, rank_trace.stream, rank_trace.event_class
        results: dict[str, list[Answer]] = {"load": [{"cpu": cpu() - before}]}
        gc.collect()
        gc.freeze()  # a fork copies what its garbage collector touches
        for name, method in methods(analysis, scratch).items():
            results[name] = []
            for _ in range(repeat):
                (link.parent / "trace_counted.json").unlink(missing_ok=True)
                results[name].append(in_a_fork(method, limit))
                print(package, name, results[name][-1], file=sys.stderr)
                if "failed" in results[name][-1]:
                    break
    return results


def cpu() -> float:
    """User and system time of this process and its children; finer than `os.times`."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def in_a_fork(method: Callable[[], Any], limit: float) -> Answer:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        answer: Answer = {}
        with Path(os.devnull).open("w") as nothing:
            os.dup2(nothing.fileno(), 1)
            before = cpu()
            try:
                method()
                answer = {"cpu": cpu() - before}
            except BaseException as error:
                answer = {"failed": f"{type(error).__name__}: {error}"[:80]}
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    end = time.monotonic() + limit
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(reading)
            return {"failed": f"over {limit:.0f} s"}
        time.sleep(0.002)
    message = os.read(reading, 65536)
    os.close(reading)
    return dict(json.loads(message)) if message else {"failed": "killed"}


def of_both(script: str, arguments: list[str], python: str) -> list[dict[str, list[Answer]]]:
    """What a script measures of HTA, whose interpreter is `python`, and then of hta_widgets."""
    measured = []
    for package, interpreter in (("hta", python), ("hta_widgets", sys.executable)):
        run = subprocess.run(
            [interpreter, script, *arguments, "--measure", package],
            stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **ENVIRONMENT},
        )  # fmt: skip
        measured.append(json.loads(run.stdout.rpartition("RESULT ")[2]))
    return measured


def compare(trace: Path, python: str, repeat: int, limit: float) -> str:
    """A markdown table of medians."""
    options = ["--repeat", str(repeat), "--limit", str(limit)]
    theirs, ours = of_both(__file__, [str(trace), *options], python)
    loads = [median(item["load"]) for item in (theirs, ours)]
    lines = [
        f"{trace.name}, {trace.stat().st_size / 1e6:.0f} MB, median of {repeat}, {os.cpu_count()} cores. "
        f"Loading: HTA {loads[0]:.2f} s, hta_widgets {loads[1]:.2f} s.",
        "",
        "| method | HTA, CPU s | hta_widgets, CPU s | HTA needs | with loading |",
        "|---|--:|--:|--:|--:|",
    ]
    for name in list(theirs)[1:]:
        cells = [cell(item[name]) for item in (theirs, ours)]
        ratios = ["", ""]
        if not any("failed" in item[name][-1] for item in (theirs, ours)):
            item, other = median(theirs[name]), max(median(ours[name]), 1e-3)
            ratios = [f"{item / other:.0f} x", f"{(item + loads[0]) / (other + loads[1]):.0f} x"]
        lines.append(f"| {name} | {cells[0]} | {cells[1]} | {ratios[0]} | {ratios[1]} |")
    return "\n".join(lines)


def cell(runs: list[Answer]) -> str:
    return str(runs[-1]["failed"]) if "failed" in runs[-1] else f"{median(runs):.3f}"


def median(runs: list[Answer]) -> float:
    return float(statistics.median(run["cpu"] for run in runs))


def main() -> None:
    parser = argparse.ArgumentParser(description="Time every method of HTA and of hta_widgets on one trace.")
    parser.add_argument("trace", type=Path, nargs="?")
    parser.add_argument("--venv", type=Path, help="environment with HTA, made if missing")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds that a method may take")
    parser.add_argument("--measure", choices=["hta", "hta_widgets"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        results = measure(arguments.measure, str(arguments.trace), arguments.repeat, arguments.limit)
        print("RESULT", json.dumps(results))
        return
    from against_hta import DEFAULT_VENV, hta_python
    from tile_trace import tile

    with tempfile.TemporaryDirectory() as scratch:
        trace = arguments.trace
        if trace is None:
            trace = Path(scratch) / "tiled.json"
            tile(ROOT / "hta_widgets/examples/data/ddp_4ranks/rank-0.pt.trace.json.gz", trace, 200.0)
        python = hta_python(arguments.venv or DEFAULT_VENV)
        print(compare(trace.resolve(), python, arguments.repeat, arguments.limit))


if __name__ == "__main__":
    main()
