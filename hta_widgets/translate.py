"""The build's step that translates kernels: `python -m hta_widgets.translate`.

It does what a warm-up does and what only some recordings and HTA's names ask for, notes which kernels that
calls and with what, and writes them as portable code. What cannot be translated is left to numba, and named.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

# code for any processor: before numba reads them
os.environ |= {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_BOUNDSCHECK": "0"}

from hta_widgets import examples
from hta_widgets.cli import warm_up
from hta_widgets.hta.trace_analysis import TraceAnalysis
from hta_widgets.jit import portable
from hta_widgets.jit.machine_code import FOLDER
from hta_widgets.trace.model import Trace
from hta_widgets.trace.reader import scanner

_EVENT = b'{"ph":"X","name":"%d","cat":"kernel","ts":1,"dur":2,"args":{"stream":7}}'
_NAMES = 10_000  # more than a dictionary has room for at first
_HALVES = b'{"traceEvents":[{"ph":"B","name":"a","pid":1,"tid":1,"ts":1},{"ph":"E","pid":1,"tid":1,"ts":2}]}'


def main() -> None:
    """Translate, and say what was not.

    Of two processes one has what numba compiles longest, which no other step needs.
    """
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        parts = list(processes.map(_translated, (LONGEST, [step for step in STEPS if step not in LONGEST])))
    found = {name: each for part, _ in parts for name, each in part.items()}
    left = {name: reason for _, part in parts for name, reason in part.items() if name not in found}
    portable.write(found, FOLDER)
    sys.stdout.write(f"{len(found)} kernels translated\n")
    for name, reason in left.items():
        sys.stdout.write(f"left to numba: {name} ({reason})\n")


def _translated(steps: list[str]) -> tuple[dict[str, portable.Translation], dict[str, str]]:
    with warnings.catch_warnings(), portable.calls() as seen:
        warnings.simplefilter("ignore")  # about the examples
        for step in steps:
            STEPS[step]()
    return portable.translated(seen)


def _many_names() -> None:
    scanner.scan(io.BytesIO(b'{"traceEvents":[%s]}' % b",".join(_EVENT % i for i in range(_NAMES))))


def _halves() -> None:
    """A recording of calls whose begins and ends are events of their own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank0.json"
        path.write_bytes(_HALVES)
        Trace.open(path, cache=False)


def _by_htas_names() -> None:
    """What they answer in ways of their own: the critical path, and recordings with something added."""
    with tempfile.TemporaryDirectory() as folder:
        source = next(examples.path("gpt2_baseline").glob("*.json.gz"))
        path = Path(folder) / source.name
        path.write_bytes(source.read_bytes())
        analysis = TraceAnalysis(trace_files={0: str(path)}, trace_dir=folder)
        analysis.generate_trace_with_counters(output_suffix="_counters")
        found = analysis.critical_path_analysis(0, "ProfilerStep", 0)
        assert found is not None
        analysis.overlay_critical_path_analysis(0, found[0], folder)
        analysis.get_frequent_cuda_kernel_sequences("aten::", folder, 1)


STEPS = {
    "many names": _many_names,
    **warm_up.STEPS,
    "halves": _halves,
    "HTA's names": _by_htas_names,
}
LONGEST = ["reading other formats"]

if __name__ == "__main__":
    main()
