"""What does loading a trace cost, in CPU and memory: Holistic Trace Analysis against hta_widgets.

Both load the same file, one after the other, each load in a process of its own. CPU is user + system time of
that process and its children during the load, without interpreter start and imports; peak memory is the
largest resident set of any one process of the run, imports included. HTA comes from PyPI into an environment
of its own.

    python benchmarks/against_hta.py trace.json [--venv DIR] [--repeat N]

`benchmarks/tile_trace.py` makes large traces.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

# traceinsight imports psutil and yaml without requiring them, and breaks under pandas 3.
HTA = ("traceinsight==0.6.1", "psutil", "pyyaml", "pandas<3")
DEFAULT_VENV = Path(tempfile.gettempdir()) / "hta_widgets-benchmark-hta"
ROOT = Path(__file__).resolve().parent.parent

MEASURE = """
import json, os, sys, time
def cpu():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
{imports}
before, clock = cpu(), time.perf_counter()
{load}
opened = cpu() - before
{link}
cost = {{"open_cpu": opened, "cpu": cpu() - before, "wall": time.perf_counter() - clock}}
print("RESULT", json.dumps({{**cost, "rows": {rows}}}))
"""
LOAD_HTA = MEASURE.format(
    imports="from hta.trace_analysis import TraceAnalysis",
    load="frame = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir='').t.get_trace(0)",
    link="",
    rows="len(frame)",
)
# HTA links launches and iterations while it loads; here that happens when it is first asked for.
LOAD_OURS = MEASURE.format(
    imports="from hta_widgets.trace.model import Trace",
    load="trace = Trace.open(sys.argv[1])",
    link="rank = trace.rank(trace.ranks[0]); rank.event_class, rank.launch, rank.iteration",
    rows="rank.n",
)


@dataclass(frozen=True)
class Load:
    """One measured load."""

    open_cpu: float  # until the trace is open
    cpu: float  # until every row has its class, launch and iteration too
    wall: float
    rows: int
    peak: float  # MB

    @classmethod
    def measure(cls, python: str, script: str, trace: Path, **environment: str) -> Load:
        """Run `script` on `trace` in a process of its own and read its use of resources from outside."""
        process = subprocess.Popen(
            [python, "-c", script, str(trace)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": "0", **environment},
        )
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"loading {trace} failed, see above")
        result = json.loads(output.rpartition("RESULT ")[2])
        return cls(peak=usage.ru_maxrss / 1024, **result)


def hta_python(directory: Path) -> str:
    """The interpreter of an environment with HTA, made if it does not exist yet."""
    python = directory / "bin" / "python"
    if not python.exists():
        venv.create(directory, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *HTA], check=True)
    return str(python)


def compare(trace: Path, environment: Path, repeat: int) -> str:
    """Measure all four ways to load `trace`; returns a markdown table of medians."""
    with tempfile.TemporaryDirectory() as scratch:
        ours = {"NUMBA_CACHE_DIR": f"{scratch}/numba", "HTA_WIDGETS_CACHE": f"{scratch}/first"}
        off = {**ours, "HTA_WIDGETS_CACHE": "off"}
        here = sys.executable
        first_ever = Load.measure(here, LOAD_OURS, trace, **ours)
        loads = {
            "HTA 0.6.1": [Load.measure(hta_python(environment), LOAD_HTA, trace) for _ in range(repeat)],
            "hta_widgets, first load": [Load.measure(here, LOAD_OURS, trace, **off) for _ in range(repeat)],
            "hta_widgets, very first (compiles)": [first_ever],
            "hta_widgets, re-open (cached)": [
                Load.measure(here, LOAD_OURS, trace, **ours) for _ in range(repeat)
            ],
        }
    base_cpu, base_peak = _median(loads["HTA 0.6.1"], "cpu"), _median(loads["HTA 0.6.1"], "peak")
    lines = [
        f"{trace.name}, {trace.stat().st_size / 1e6:.0f} MB, median of {repeat}, {os.cpu_count()} cores",
        "",
        "| load | open CPU s | + links CPU s | wall s | peak MB | CPU: HTA is | memory: of HTA's | rows |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, runs in loads.items():
        opened, cpu, wall, peak = (_median(runs, field) for field in ("open_cpu", "cpu", "wall", "peak"))
        lines.append(
            f"| {name} | {opened:.3f} | {cpu:.2f} | {wall:.2f} | {peak:.0f} | {base_cpu / cpu:.1f} x | "
            f"{100 * peak / base_peak:.0f} % | {runs[0].rows} |"
        )
    return "\n".join(lines)


def _median(runs: list[Load], field: str) -> float:
    return float(statistics.median(getattr(run, field) for run in runs))


def main() -> None:
    parser = argparse.ArgumentParser(description="Load a trace with HTA and with hta_widgets, and compare.")
    parser.add_argument("trace", type=Path)
    parser.add_argument(
        "--venv", type=Path, default=DEFAULT_VENV, help="environment with HTA, made if missing"
    )
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    print(compare(arguments.trace.resolve(), arguments.venv, arguments.repeat))


if __name__ == "__main__":
    main()
