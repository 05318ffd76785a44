"""What a replay costs: building the dependency graph, one replay, and bytes per node.

Links and iterations are made before the clock starts: every analysis needs them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.figure import Figure
from benchmarks.process import call
from benchmarks.setup import Setup
from hta_widgets import edits, examples

MEGABYTES, SMALL = 200, 20
REPLAYS = 15


def measure(setup: Setup) -> list[Figure]:
    """Per million events, per 500,000 nodes, per node."""
    source = next(iter(sorted(examples.path("gpt2_ddp").glob("*.json.gz"))))
    path = setup.recording(SMALL if setup.small else MEGABYTES, source)
    call(answered, path, **setup.kernels)  # compiles
    runs = [call(answered, path, **setup.kernels).result for _ in range(setup.rounds)]
    goals = {
        "the graph, CPU s per 1 M events": 0.5,
        "one replay, CPU ms per 500,000 nodes": 5.0,
        "... the weights of its edges, CPU ms": None,
        "... bytes per node": 100.0,
        "how well the recording is reproduced, CPU s": None,
    }
    return [Figure(what, [times[what] for times in runs], goal=goal) for what, goal in goals.items()]


def answered(path: str) -> dict[str, float]:
    """The figures by their names."""
    from hta_widgets.analysis.replay.graph import graph_of
    from hta_widgets.analysis.replay.passes import ESTIMATE, happens
    from hta_widgets.analysis.replay.plan import Plan
    from hta_widgets.analysis.replay.quality import quality_of
    from hta_widgets.trace.model import Trace

    small = Trace.open(examples.path("gpt2_ddp"), cache=False)
    graph_of(small.rank(small.ranks[0]))
    trace = Trace.open(path)
    rank = trace.rank(trace.ranks[0])
    _ = rank.launch, rank.thread, rank.iterations
    built = _seconds(lambda: graph_of(rank))
    graph = graph_of(rank)
    assert graph is not None
    nodes, plan = len(graph.time), Plan(graph, rank)
    edits.kernels(2.0).apply(plan)
    weight = plan.weights(ESTIMATE)
    arrays = [value for value in vars(graph).values() if isinstance(value, np.ndarray)]
    replays = [_seconds(lambda: happens(graph.first, graph.source, weight)) for _ in range(REPLAYS)]
    weights = [_seconds(lambda: plan.weights(ESTIMATE)) for _ in range(REPLAYS)]
    return {
        "the graph, CPU s per 1 M events": 1e6 * built / rank.n,
        "one replay, CPU ms per 500,000 nodes": 5e8 * min(replays) / nodes,
        "... the weights of its edges, CPU ms": 5e8 * min(weights) / nodes,
        "... bytes per node": sum(array.nbytes for array in arrays) / nodes,
        "how well the recording is reproduced, CPU s": _seconds(lambda: quality_of(rank)),
    }


def _seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun
