"""What does the replay across ranks cost: operations, where ranks meet, their order, and all replays.

`slowdown` of jobs of growing length, each rank with launches and operators: two thirds of the events are of
the host. CPU is the time of this process, the least of several rounds, without reading: links and iterations
of the ranks are made before the clock starts. Goal: 10 s for 64 ranks with a million events in all.

    python benchmarks/job.py [--ranks N] [--layers N ...] [--repeat N] [folder ...]

With folders, the jobs in them are measured instead.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from pathlib import Path

import numpy as np

from hta_widgets.analysis import slowdown
from hta_widgets.trace.model import Trace
from tests.job.many_ranks import write_job

STEPS = 10


def opened(folder: Path) -> Trace:
    """A job, with what every analysis needs."""
    trace = Trace.open(folder, cache=False)
    for rank in trace.ranks:
        rank_trace = trace.rank(rank)
        assert len(rank_trace.launch) and len(rank_trace.iteration) and len(rank_trace.iterations)
    return trace


def measure(folder: Path, rounds: int) -> tuple[int, float]:
    """Print the figures of a job: its device events, and CPU seconds."""
    best = math.inf
    for _ in range(rounds):
        trace = opened(folder)
        begin = time.process_time()
        frame = slowdown(trace)
        best = min(best, time.process_time() - begin)
    ranks = [trace.rank(rank) for rank in trace.ranks]
    events = sum(len(rank.name) for rank in ranks)
    device = sum(int(np.count_nonzero(rank.is_device)) for rank in ranks)
    print(
        f"{len(ranks):6,} ranks {events:10,} events {device:10,} on devices {best:7.2f} s "
        f"{1e6 * best / device:6.1f} us each   S {frame['slowdown'].iloc[0]:.4f}"
    )
    return device, best


def main() -> None:
    """Write the jobs, or take those that are there, and measure them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--layers", type=int, nargs="+", default=[6, 24, 98, 195])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("folders", type=Path, nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        slow = min(5, options.ranks - 1)
        # compiles, or loads what is compiled
        measure(write_job(Path(scratch) / "first", options.ranks, slow), 1)
        found = [measure(folder, options.repeat) for folder in options.folders]
        for layers in [] if options.folders else options.layers:
            job = write_job(Path(scratch) / f"{layers}", options.ranks, slow, STEPS, layers)
            found.append(measure(job, options.repeat))
    (few, least), (many, most) = min(found), max(found)
    if many > few:
        print(f"exponent {math.log(most / least) / math.log(many / few):.2f}")


if __name__ == "__main__":
    main()
