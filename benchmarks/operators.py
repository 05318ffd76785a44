"""How long do the tables of operators take on a million events, first and after the selection changed?

CPU of the whole process, in which a small recording was asked before, so that everything is compiled and
imported. First is the first question of its kind to a recording whose launches and iterations are linked;
another selection is the same question about other windows and iterations.

    python benchmarks/operators.py [--events N] [--source TRACE]
"""

from __future__ import annotations

import argparse
import gzip
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from scopes import SOURCE, scopes
from tile_trace import tile

from hta_widgets import analysis
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

Question = Callable[[Trace, Scope], Any]
TABLES: dict[str, Question] = {
    'operators(by="name")': analysis.operators,
    **{
        f'operators(by="{by}")': partial(analysis.operators, by=by)
        for by in ("shapes", "category", "call_path")
    },
    "roofline": analysis.roofline,
    "formula_coverage": analysis.formula_coverage,
    "utilization": analysis.utilization,
}


def measure(path: Path) -> str:
    """A markdown table; each question is put to a recording of its own, which none prepared."""
    lines = []
    for name, ask in TABLES.items():
        trace = Trace.open(path, cache=False)
        rank_trace = trace.rank(trace.ranks[0])
        _ = rank_trace.launch, rank_trace.iteration, rank_trace.parent
        if not lines:
            device = int(rank_trace.is_device.sum())
            lines += [f"{rank_trace.n:,} events, {device:,} of devices; {os.cpu_count()} cores", ""]
            lines += ["| table | first, CPU ms | another selection | slowest |", "|---|--:|--:|--:|"]
        first, *others = (_cpu_ms(ask, trace, scope) for scope in (Scope(), *scopes(trace)))
        shown = (first, statistics.median(others), max(others))
        lines.append(" | ".join([f"| `{name}`", *(f"{item:.0f}" for item in shown)]) + " |")
    return "\n".join(lines)


def _cpu_ms(ask: Question, trace: Trace, scope: Scope) -> float:
    begin = time.process_time()
    ask(trace, scope)
    return 1000 * (time.process_time() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the tables of operators.")
    parser.add_argument("--events", type=int, default=1_000_000, help="events in all")
    parser.add_argument("--source", type=Path, default=SOURCE, help="a recording with shapes, to be repeated")
    arguments = parser.parse_args()
    small = Trace.open(arguments.source, cache=False)
    for ask in TABLES.values():
        ask(small, Scope())
    text = arguments.source.read_bytes()
    size = len(gzip.decompress(text) if arguments.source.suffix == ".gz" else text) / 1e6
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "tiled.json"
        tile(arguments.source, target, size * arguments.events / small.rank(small.ranks[0]).n)
        print(measure(target))


if __name__ == "__main__":
    main()
