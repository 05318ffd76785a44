"""The simulator obeys the laws of the machine it imitates, and gives the same answer every time."""

import gzip
import json
import os
import subprocess
import sys
from collections import defaultdict
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from examples.simulator import SimulatedJob, Simulation, simulate
from examples.simulator.bundled import JOBS
from examples.simulator.collective import END_JITTER_NS
from examples.simulator.records import Slice
from examples.simulator.truth import occupation
from tests.support import ROOT

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
DDP = SimulatedJob("test", "ddp", ranks=3, steps=2, layers=2, straggler=1, slowdown_permille=1500)


@pytest.fixture(scope="module", params=sorted(JOBS))
def simulation(request: pytest.FixtureRequest) -> Simulation:
    return simulate(JOBS[request.param])


def lanes(simulation: Simulation, categories: set[str] | None) -> list[list[Slice]]:
    """Slices by (rank, process, thread), outer before inner; `None` is all host categories."""
    found: dict[tuple[int, int, int], list[Slice]] = defaultdict(list)
    for rank in simulation.ranks:
        for record in rank.recorder.slices:
            if record.category in categories if categories else record.pid == rank.main.pid:
                found[rank.index, record.pid, record.tid].append(record)
    return [sorted(lane, key=lambda r: (r.start_ns, -r.end_ns)) for lane in found.values()]


def test_streams_run_one_thing_at_a_time(simulation: Simulation) -> None:
    for lane in lanes(simulation, DEVICE):
        assert all(later.start_ns >= earlier.end_ns for earlier, later in pairwise(lane))


def test_streams_run_in_the_order_of_launches(simulation: Simulation) -> None:
    for lane in lanes(simulation, DEVICE):
        correlations = [record.args["correlation"] for record in lane]
        assert correlations == sorted(correlations)


def test_host_calls_nest(simulation: Simulation) -> None:
    for lane in lanes(simulation, None):
        open_calls: list[Slice] = []
        for record in lane:
            assert record.start_ns <= record.end_ns
            while open_calls and open_calls[-1].end_ns <= record.start_ns:
                open_calls.pop()
            assert not open_calls or record.end_ns <= open_calls[-1].end_ns
            open_calls.append(record)


def test_launches_end_before_their_work_starts(simulation: Simulation) -> None:
    for rank in simulation.ranks:
        records = rank.recorder.slices
        launches = {r.args["correlation"]: r for r in records if r.category == "cuda_runtime"}
        for record in records:
            if record.category in DEVICE:
                assert launches[record.args["correlation"]].end_ns < record.start_ns


def test_collectives_end_together_and_wait_for_the_last() -> None:
    simulation = simulate(DDP)
    assert simulation.truth.collectives
    for collective in simulation.truth.collectives:
        assert max(collective.end_ns) - min(collective.end_ns) <= END_JITTER_NS
        assert min(collective.end_ns) > max(collective.start_ns)


def test_the_others_wait_for_the_straggler() -> None:
    simulation = simulate(DDP)
    per_step = len(simulation.truth.collectives) // DDP.steps
    # Later buckets queue behind the first on the NCCL stream, so all ranks reach them together.
    for collective in simulation.truth.collectives[::per_step]:
        assert collective.start_ns.index(max(collective.start_ns)) == DDP.straggler
    waiting = {rank: truth.device_span.communication_ns for rank, truth in simulation.truth.ranks.items()}
    assert min(waiting, key=waiting.__getitem__) == DDP.straggler


def test_the_compute_stream_waits_for_the_gradients() -> None:
    """The optimizer, and the loss copy before it, run after the last all-reduce of their step."""
    for rank in simulate(DDP).ranks:
        collectives = [work for work in rank.device.work if work.collective is not None]
        copies = [work for work in rank.device.work if work.name.startswith("Memcpy DtoH")]
        per_step = len(collectives) // DDP.steps
        for step, copy in enumerate(copies):
            assert copy.start_ns > collectives[(step + 1) * per_step - 1].end_ns


def test_graph_launch_has_many_kernels_under_one_correlation() -> None:
    (rank,) = simulate(JOBS["inference_cuda_graphs"]).ranks
    launches = [r for r in rank.recorder.slices if r.name == "cudaGraphLaunch"]
    kernels = [r for r in rank.recorder.slices if r.category == "kernel"]
    assert len(launches) == JOBS["inference_cuda_graphs"].steps - 1
    for launch in launches:
        nodes = [k for k in kernels if k.args["correlation"] == launch.args["correlation"]]
        assert len(nodes) > 50
        assert len({k.args["graph id"] for k in nodes}) == 1
        assert len({k.args["graph node id"] for k in nodes}) == len(nodes)


def test_truth_adds_up(simulation: Simulation) -> None:
    for rank in simulation.truth.ranks.values():
        for spent in (rank.device_span, *rank.steps.values()):
            parts = (
                spent.compute_ns + spent.exposed_communication_ns + spent.exposed_memory_ns + spent.idle_ns
            )
            assert parts == spent.window_ns


def test_occupation_of_a_case_worked_by_hand() -> None:
    spent = occupation(
        {"compute": [(0, 10), (5, 20)], "communication": [(15, 30)], "memory": [(28, 40)]}, (2, 50)
    )
    assert (spent.compute_ns, spent.communication_ns, spent.memory_ns) == (18, 15, 12)
    assert (spent.exposed_communication_ns, spent.exposed_memory_ns, spent.idle_ns) == (10, 10, 10)


def test_memory_events_balance(simulation: Simulation) -> None:
    for rank in simulation.ranks:
        live: dict[int, int] = {}
        for event in rank.recorder.instants:
            address, change = event.args["Addr"], event.args["Bytes"]
            if change > 0:
                assert address not in live
                live[address] = change
            else:
                assert live.pop(address) == -change
            assert 0 <= event.args["Total Allocated"] <= event.args["Total Reserved"]


def test_times_in_the_file_are_exact(tmp_path: Path) -> None:
    job = SimulatedJob("test", "ddp", ranks=2, steps=1, layers=1, clock_offsets_ns=(0, 1_234_567))
    simulation = simulate(job)
    for rank, path in zip(simulation.ranks, simulation.write(tmp_path), strict=True):
        events = json.loads(gzip.decompress(path.read_bytes()), parse_float=str)["traceEvents"]
        written = [e for e in events if e.get("cat") in DEVICE]
        truth = sorted(rank.device.work, key=lambda work: work.start_ns)
        assert [_ns(e["dur"]) for e in written] == [work.end_ns - work.start_ns for work in truth]
        assert {_ns(e["ts"]) - work.start_ns for e, work in zip(written, truth, strict=True)} == {
            1_036_812_345_678_912 + job.clock_offsets_ns[rank.index]
        }


def test_grouping_by_category_keeps_every_event(tmp_path: Path) -> None:
    job = SimulatedJob("test", "fsdp_full_shard", ranks=2, steps=1, layers=1)
    written = []
    for grouped in (False, True):
        paths = simulate(replace(job, events_by_category=grouped)).write(tmp_path / str(grouped))
        written.append([json.loads(gzip.decompress(path.read_bytes()))["traceEvents"] for path in paths])
    for in_time, grouped in zip(*written, strict=True):
        categories = [event["cat"] for event in grouped if event["ph"] != "M" and "cat" in event]
        assert len(list(groupby(categories))) == len(set(categories))
        assert sorted(map(json.dumps, in_time)) == sorted(map(json.dumps, grouped))


def _ns(microseconds: str) -> int:
    whole, decimals = microseconds.split(".")
    assert len(decimals) == 3
    return int(whole + decimals)


def test_jobs_that_cannot_run_are_refused() -> None:
    with pytest.raises(ValueError, match="one rank"):
        SimulatedJob("test", "single", ranks=2)
    with pytest.raises(ValueError, match="nothing to shard"):
        SimulatedJob("test", "fsdp_full_shard")
    with pytest.raises(ValueError, match="start at 1"):
        SimulatedJob("test", "single", steps=0)


def test_the_hash_seed_changes_nothing(tmp_path: Path) -> None:
    """Two processes with different string hashing write the same bytes."""
    program = (
        "import sys; from pathlib import Path; from examples.simulator import *;"
        "simulate(SimulatedJob('test', 'ddp', ranks=2, steps=1, layers=1)).write(Path(sys.argv[1]))"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        subprocess.run([sys.executable, "-c", program, tmp_path / seed], check=True, env=environment)
    for path in (tmp_path / "1").iterdir():
        assert path.read_bytes() == (tmp_path / "2" / path.name).read_bytes()
