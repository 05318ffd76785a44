"""How long does an analysis take after the selection changed: 1 M device events, cold and warm.

Cold is the first question ever put to the job, links and all; warm is the same question about another time
window or iteration, as when a user drags the timeline. Wall time, median of the scopes.

    python benchmarks/scopes.py [--events N]
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tile_trace import tile

from hta_widgets import analysis
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "hta_widgets/examples/data/ddp_4ranks/rank-0.pt.trace.json.gz"
ANALYSES = (
    analysis.temporal_breakdown,
    analysis.comm_comp_overlap,
    analysis.idle_breakdown,
    analysis.stream_idle_breakdown,
    analysis.kernel_type_breakdown,
    analysis.kernel_breakdown,
    analysis.kernel_durations,
    analysis.launch_summary,
    analysis.queue_summary,
    analysis.bandwidth_summary,
    analysis.user_annotations,
    analysis.op_counts,
    analysis.call_stacks,
    analysis.critical_path,
)


def scopes(trace: Trace) -> Iterator[Scope]:
    """Windows of every width, and iterations."""
    first, last = trace.extent_ns
    span = last - first
    for begin, end in ((0.0, 0.9), (0.1, 1.0), (0.25, 0.75), (0.4, 0.6), (0.5, 0.51)):
        yield Scope(window_ns=(first + int(begin * span), first + int(end * span)))
    numbers = trace.iterations["iteration"].tolist()
    for count in (1, 10, len(numbers) // 2):
        yield Scope(iterations=tuple(numbers[:count]))


def measure(trace: Trace) -> str:
    """A markdown table."""
    rank_trace = trace.rank(trace.ranks[0])
    begin = time.perf_counter()
    _ = rank_trace.launch, rank_trace.iteration, rank_trace.parent
    linked = 1000 * (time.perf_counter() - begin)
    lines = [
        f"{int(rank_trace.is_device.sum())} device events of {rank_trace.n}; "
        f"links and iterations {linked:.0f} ms; "
        f"{os.cpu_count()} cores",
        "",
        "| analysis | cold, ms | another selection, ms | slowest, ms |",
        "|---|--:|--:|--:|",
    ]
    for function in ANALYSES:
        times = []
        for scope in (Scope(), *scopes(trace)):
            begin = time.perf_counter()
            function(trace, scope)
            times.append(1000 * (time.perf_counter() - begin))
        cold, *others = times
        shown = (cold, statistics.median(others), max(others))
        lines.append(" | ".join([f"| {function.__name__}", *(f"{item:.0f}" for item in shown)]) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time a change of selection.")
    parser.add_argument("--events", type=int, default=1_000_000, help="device events")
    arguments = parser.parse_args()
    small = Trace.open(SOURCE, cache=False)
    device = int(small.rank(small.ranks[0]).is_device.sum())
    with tempfile.TemporaryDirectory() as scratch:
        import gzip

        size = len(gzip.decompress(SOURCE.read_bytes())) / 1e6
        target = Path(scratch) / "tiled.json"
        tile(SOURCE, target, size * arguments.events / device)
        trace = Trace.open(target, cache=False)
    print(measure(trace))


if __name__ == "__main__":
    main()
