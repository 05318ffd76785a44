"""How time and memory grow with ranks and events: the figures of docs/scaling.md.

Of jobs of many small ranks (`tests/job/many_ranks.py`) CPU seconds to open, to answer the overview, and both
again from the cache; with `--layers 195` of ranks of some 50 MB of JSON each, in gzip. Of one real trace,
opened as several ranks: CPU and bytes per event, without a limit and with one that holds two or three of the
ranks. With `--shares`, of a job of which there is only what is kept (`tests/job/kept_shares.py`), what an
explorer asks first; with `--cluster`, of the same job on two worker processes, the notebook's CPU and what
comes from the workers. Each job is in a process of its own.

    python benchmarks/scaling.py 64 256 1024
    python benchmarks/scaling.py 16384 --shares
    python benchmarks/scaling.py 1024 --cluster
    python benchmarks/scaling.py 1024 --layers 195 --gigabytes 6
    python benchmarks/scaling.py trace.json.gz --ranks 8
"""

from __future__ import annotations

import argparse
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

sys.path.insert(0, str(Path(__file__).parents[1]))  # the job is one of the tests'

Answer = TypeVar("Answer")


def spent(what: str, work: Callable[[], Answer], events: int = 0) -> Answer:
    """Do the work, and print the CPU seconds that it took, per event, too, if their number is given."""
    begun, clock = time.process_time(), time.monotonic()
    answer = work()
    seconds = time.process_time() - begun
    each = f", {seconds * 1e9 / events:,.0f} ns per event" if events else ""
    print(f"  {what}: {seconds:.2f} s{each} ({time.monotonic() - clock:.1f} s by the clock)", flush=True)
    return answer


def many(count: int, layers: int | None, limit: int | None, folder: Path) -> None:
    """A job of many ranks: small ones, or with so many layers in each of ten steps."""
    from hta_widgets import Trace, analysis
    from tests.job.many_ranks import write_job

    analysis.overview(Trace.open(write_job(folder / "small", 8, slow=5), cache=False))  # what is loaded once
    size = {} if layers is None else {"steps": 10, "layers": layers, "products": 25, "packed": True}
    job = write_job(folder / "job", count, slow=5, **size)
    print(f"{count:,} ranks, {layers or 'few'} layers", flush=True)
    for when in ("", " again"):
        trace = spent(f"open{when}", lambda: Trace.open(job, memory_limit=limit))
        found = spent(f"overview{when}", lambda trace=trace: analysis.overview(trace))  # type: ignore[misc]
        first = found.iloc[0]
        print(
            f"  {first['topic']} of rank {first['rank']}; ranks dropped: {trace.memory.dropped:,}", flush=True
        )
    kept = [file.stat().st_size for file in (folder / "cache").rglob("*") if file.is_file()]
    print(f"  kept on disk: {sum(kept) / count / 1e3:.1f} kB per rank in {len(kept):,} files")
    told_peak()


def large(path: Path, ranks: int, limited: bool) -> None:
    """A real trace, opened as several ranks."""
    from hta_widgets import Trace, analysis

    job: dict[int, Any] = dict.fromkeys(range(ranks), path)
    Trace.open(job)  # into the cache
    limit = 2 * Trace.open(job).rank(0).events.header.nbytes * 4
    trace = Trace.open(job, memory_limit=limit) if limited else Trace.open(job)
    events = trace.summary["events"]
    print(f"{ranks} ranks, {events:,} events{f', limit {limit / 1e6:.0f} MB' if limited else ''}")

    def linked() -> None:
        for rank in trace.ranks:
            assert len(trace.rank(rank).launch) and len(trace.rank(rank).iteration)

    def held() -> str:
        total = sum(trace.rank(rank).events.held_bytes() for rank in trace.ranks)
        return f"{total / events:,.0f} bytes per event held, {trace.memory.dropped:,} ranks dropped so far"

    spent("columns read, launches and iterations linked", linked, events)
    print(f"  {held()}")
    for name in ("temporal_breakdown", "idle_breakdown", "kernel_breakdown", "stragglers", "overview"):
        spent(name, lambda name=name: getattr(analysis, name)(trace), events)  # type: ignore[misc]
        print(f"  {held()}")
    again = Trace.open(job, memory_limit=limit) if limited else Trace.open(job)
    spent("overview again", lambda: analysis.overview(again), events)
    told_peak()


def shares(count: int, folder: Path) -> None:
    """A job of so many ranks of which there is only what is kept, as an explorer opens it."""
    import json

    import pandas as pd
    from ipywidgets.widgets.widget import _remove_buffers

    from hta_widgets import RankSelector, Scope, analysis
    from hta_widgets.charts.rank_bands import in_bands
    from hta_widgets.widgets.freezing import settle
    from tests.job.kept_shares import simulate

    print(f"{count:,} ranks of which only what is kept is there")
    with simulate(folder, count) as opened:
        kept = [file.stat().st_size for file in (folder / "cache").rglob("*") if file.suffix != ".arrow"]
        print(f"  headers: {sum(kept) / count:,.0f} bytes per rank")
        trace = spent("open", opened)
        spent("summary", lambda: trace.summary)
        spent("temporal_breakdown, all shares", lambda: analysis.temporal_breakdown(trace))
        odd = Scope(ranks=tuple(trace.ranks[1::2]))
        spent("temporal_breakdown, half of them", lambda: analysis.temporal_breakdown(trace, odd))
        steps = spent("iterations", lambda: trace.iterations)
        selector = spent("rank picker", lambda: RankSelector(trace))
        spent("... its bars and outliers", lambda: settle([selector]))
        state, _, buffers = _remove_buffers(selector.get_state())
        sent = len(json.dumps(state, default=str)) + sum(memoryview(each).nbytes for each in buffers)
        print(f"  rank picker: {sent / count:.0f} bytes per rank for the browser; {selector.outliers}")
        lasting = steps["end_ns"] - steps["start_ns"]
        cells = pd.DataFrame({"x": steps["iteration"], "y": steps["rank"], "value": lasting})
        rows, _ = spent("heat map", lambda: in_bands(cells))
        print(f"  heat map: {rows['y'].nunique()} rows; ranks read: {trace.memory.dropped}")
        again = spent("open again", opened)
        spent("temporal_breakdown again", lambda: analysis.temporal_breakdown(again))
    told_peak()


def cluster(count: int, folder: Path) -> None:
    """The same job on two workers, which read the columns of its ranks from the cache."""
    import distributed

    from hta_widgets import Trace
    from hta_widgets.analysis import ANALYSES
    from tests.job.kept_shares import simulate

    with simulate(folder, count):
        pass  # the cache is what is wanted
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as running,
        distributed.Client(running) as client,
    ):
        came = [0, 0]
        gather = client.gather

        def measured(futures: Any, **options: Any) -> Any:
            answers = gather(futures, **options)
            sizes = [len(each if isinstance(each, bytes) else pickle.dumps(each)) for each in answers]
            came[:] = came[0] + sum(sizes), came[1] + len(sizes)
            return answers

        client.gather = measured

        def asked(what: str, work: Callable[[], Answer]) -> Answer:
            came[:] = 0, 0
            answer = spent(what, work)
            print(f"    {came[0] / count:,.0f} bytes per rank in {came[1]:,} messages", flush=True)
            return answer

        print(f"{count:,} ranks on two workers; CPU is the notebook's, with its half of Dask")
        trace = asked("open", lambda: Trace.open(folder / "job", client, cache=folder / "cache"))
        asked("iterations, health", lambda: (trace.iterations, trace.health))
        vars(trace)["fits_a_worker"] = False  # as of ranks that are larger
        for kind in (
            "temporal_breakdown", "kernel_breakdown", "collectives", "stragglers", "rank_waits",
            "step_times", "slowdown",
        ):  # fmt: skip
            asked(kind, lambda kind=kind: ANALYSES[kind].answer(trace))  # type: ignore[misc]
    told_peak()


def told_peak() -> None:
    """Print the most memory that this process had."""
    print(f"  memory at its peak: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:,.0f} MB")


def main() -> None:
    """Measure what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="+", help="numbers of small ranks, or a trace")
    parser.add_argument("--ranks", type=int, default=8, help="how many times a trace is opened")
    parser.add_argument("--layers", type=int, help="of large ranks: 195 for 50 MB")
    parser.add_argument("--gigabytes", type=float, help="that ranks may hold in memory; default half of it")
    parser.add_argument("--shares", action="store_true", help="only what is kept of ranks")
    parser.add_argument("--cluster", action="store_true", help="the same on a cluster of two processes")
    parser.add_argument("--limited", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if not asked.alone:
        for job in asked.jobs:
            for how in ([], ["--limited"])[: 1 if job.isdecimal() else 2]:
                command = [sys.executable, __file__, job, "--ranks", str(asked.ranks)]
                command += [f"--{name}" for name in ("shares", "cluster") if getattr(asked, name)]
                command += [] if asked.layers is None else ["--layers", str(asked.layers)]
                command += [] if asked.gigabytes is None else ["--gigabytes", str(asked.gigabytes)]
                subprocess.run([*command, "--alone", *how], check=True)
        return
    with tempfile.TemporaryDirectory() as name:
        os.environ["HTA_WIDGETS_CACHE"] = f"{name}/cache"
        (job,) = asked.jobs
        if asked.shares or asked.cluster:
            (shares if asked.shares else cluster)(int(job), Path(name))
        elif job.isdecimal():
            many(int(job), asked.layers, asked.gigabytes and int(asked.gigabytes * 1e9), Path(name))
        else:
            large(Path(job), asked.ranks, asked.limited)


if __name__ == "__main__":
    main()
