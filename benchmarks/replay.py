"""What does a replay cost: building the dependency graph, one replay, and bytes per node.

A trace is tiled (see tile_trace.py) to about the size that is asked for, since figures of a small one are of
fixed costs. CPU is the time of this process, the least of several rounds. Links and iterations of the trace
are made before the clock starts: every analysis needs them. Goals: 0.5 s per million events, 5 ms for a
replay of 500,000 nodes, 100 bytes per node.

    python benchmarks/replay.py [trace.json] [--megabytes N] [--repeat N]

Without a trace it repeats a bundled example.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tile_trace import tile

from hta_widgets import edits, examples
from hta_widgets.analysis.replay.graph import Graph, graph_of
from hta_widgets.analysis.replay.passes import ESTIMATE, happens
from hta_widgets.analysis.replay.plan import Plan
from hta_widgets.analysis.replay.quality import quality_of
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace


def opened(path: Path) -> RankTrace:
    """The first rank of a trace, with what every analysis needs."""
    trace = Trace.open(path, cache=False)
    rank_trace = trace.rank(trace.ranks[0])
    assert len(rank_trace.launch) and len(rank_trace.thread) and len(rank_trace.iterations)
    return rank_trace


def least(rounds: int, work: Callable[[], object]) -> float:
    """Least CPU seconds of a piece of work."""
    best = float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best


def size_of(graph: Graph) -> int:
    """Bytes of the graph's arrays."""
    return sum(value.nbytes for value in vars(graph).values() if isinstance(value, np.ndarray))


def measure(path: Path, rounds: int) -> None:
    """Print the figures of a trace."""
    graph_of(opened(path))  # compiles, or loads what is compiled
    built = []
    for _ in range(rounds):
        fresh = opened(path)  # a graph is kept with its rank
        built.append(least(1, lambda rank=fresh: graph_of(rank)))
    rank_trace = fresh
    graph = graph_of(rank_trace)
    assert graph is not None
    nodes, plan = len(graph.time), Plan(graph, rank_trace)
    edits.kernels(2.0).apply(plan)
    weight = plan.weights(ESTIMATE)
    replay = least(5 * rounds, lambda: happens(graph.first, graph.source, weight))
    weights = least(5 * rounds, lambda: plan.weights(ESTIMATE))
    print(f"{rank_trace.n:,} events, {nodes:,} nodes, {len(graph.kind):,} edges")
    print(f"build    {min(built):.3f} s CPU, {1e6 * min(built) / rank_trace.n:.3f} s per 1 M events")
    print(f"weights  {1e3 * weights:.2f} ms, {5e8 * weights / nodes:.2f} ms per 500,000 nodes")
    print(f"replay   {1e3 * replay:.2f} ms, {5e8 * replay / nodes:.2f} ms per 500,000 nodes")
    print(f"size     {size_of(graph) / nodes:.1f} bytes per node")
    begin = time.process_time()
    quality_of(rank_trace)
    print(f"quality  {time.process_time() - begin:.3f} s CPU")


def main() -> None:
    parser = argparse.ArgumentParser(description="What a replay costs.")
    parser.add_argument("trace", type=Path, nargs="?", help="default: a bundled example")
    parser.add_argument("--megabytes", type=float, default=200.0, help="size of the tiled JSON text")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    source = arguments.trace or next(iter(sorted(examples.path("gpt2_ddp").glob("*.json.gz"))))
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "tiled.json"
        print(f"{source.name}: {tile(source, target, arguments.megabytes)} tiles")
        measure(target, arguments.repeat)


if __name__ == "__main__":
    main()
