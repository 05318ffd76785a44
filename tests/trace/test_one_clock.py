"""One clock for the iterations of all ranks, and marks of one rank for those without."""

from pathlib import Path
from typing import Any

import pytest

from hta_widgets import Scope, Trace
from tests.trace.helpers import kernel, slice_, write

Event = dict[str, Any]
STEPS = 6


def loop(behind: float = 0, marked: bool = True, idle: int = -1, offset: float = 0) -> list[Event]:
    """Steps of 100 us with 80 us of work each, that many us after its launch; `idle` has none."""
    events: list[Event] = []
    for number in range(STEPS):
        begin = offset + 100 * number
        if marked:
            events.append(slice_(f"ProfilerStep#{number}", "user_annotation", begin, 100))
        if number != idle:
            events.append(slice_("cudaLaunchKernel", "cuda_runtime", begin + 2, 1, correlation=number + 1))
            events.append(kernel("gemm", begin + 5 + behind, 80, number + 1))
    return events


def job(folder: Path, *ranks: list[Event], **metadata: Any) -> Trace:
    for rank, events in enumerate(ranks):
        told = {"distributedInfo": {"rank": rank, "world_size": len(ranks)}, **metadata}
        write(folder / f"rank{rank}.json", events, **told)
    return Trace.open(folder, cache=False)


def clocks(trace: Trace) -> list[str]:
    return [trace.rank(rank).iteration_clock for rank in trace.ranks]


def test_a_rank_that_runs_behind_decides_for_all(tmp_path: Path) -> None:
    trace = job(tmp_path, loop(), loop(behind=60), loop())
    assert trace.job_clock == "device" and clocks(trace) == ["device"] * 3
    assert set(trace.iterations["clock"]) == {"device"}
    for rank in trace.ranks:
        own = trace.iterations.query(f"rank == {rank}").drop(columns="rank").reset_index(drop=True)
        assert own.equals(trace.rank(rank).iterations)
        assert (own["end_ns"] - own["start_ns"]).tolist()[:-1] == [100_000] * (STEPS - 1)


def test_ranks_that_all_keep_up_are_timed_by_their_hosts(tmp_path: Path) -> None:
    assert clocks(job(tmp_path, loop(), loop(behind=5))) == ["host", "host"]


def test_a_rank_that_the_device_cannot_time_leaves_all_to_the_hosts(tmp_path: Path) -> None:
    """Its device has no work of a step in the middle."""
    assert clocks(job(tmp_path, loop(idle=2), loop(behind=60))) == ["host", "host"]


def test_the_only_step_of_a_job_has_a_clock(tmp_path: Path) -> None:
    """Nothing that lasts was recorded on the other rank."""
    mark = {"ph": "i", "name": "mark", "ts": 3, "pid": 1, "tid": 1}
    trace = job(tmp_path, loop()[:3], [mark])
    assert clocks(trace) == ["host", "host"]
    assert trace.iterations[["rank", "iteration", "clock"]].to_numpy().tolist() == [[0, 0, "host"]]


def test_a_clock_that_is_chosen_times_all(tmp_path: Path) -> None:
    trace = job(tmp_path, loop(), loop(behind=60))
    assert clocks(trace.timed_by("host")) == ["host", "host"]
    assert trace.timed_by("host").timed_by("auto").iterations.equals(trace.iterations)


def test_marks_of_one_rank_serve_the_others(tmp_path: Path) -> None:
    trace = job(tmp_path, loop(), loop(marked=False), baseTimeNanoseconds=0)
    frame = trace.rank(1).iterations
    assert set(frame["source"]) == {"ProfilerStep of rank 0"}
    assert set(frame["known"]) == {"announced"} and set(frame["confidence"]) == {"medium"}
    assert frame["iteration"].tolist() == list(range(STEPS))
    kernels = trace.rank(1).is_device
    assert trace.rank(1).iteration[kernels].tolist() == list(range(STEPS))
    # the last one ends with the recording of that rank, before the mark does
    assert trace.rank(0).iterations["partial"].tolist() == [False] * STEPS
    assert frame["partial"].tolist() == [False] * (STEPS - 1) + [True]
    whole = Scope(ranks=(1,), iterations=(2,))
    assert trace.rank(1).windows(whole).tolist() == trace.rank(0).windows(whole).tolist()


def test_marks_do_not_serve_a_rank_that_recorded_another_time(tmp_path: Path) -> None:
    """On one clock, but long after: nothing says which of its steps they are."""
    trace = job(tmp_path, loop(), loop(marked=False, offset=10_000), baseTimeNanoseconds=0)
    assert not trace.rank(1).iterations["source"].str.contains("rank 0").any()


def test_marks_do_not_serve_without_a_common_clock(tmp_path: Path) -> None:
    write(tmp_path / "rank0.json", loop(), baseTimeNanoseconds=0)
    write(tmp_path / "rank1.json", loop(marked=False))
    trace = Trace.open(tmp_path, cache=False)
    assert trace.clock.method == "start"
    assert not trace.rank(1).iterations["source"].str.contains("rank 0").any()


@pytest.mark.parametrize("clock", ["host", "device"])
def test_a_clock_that_is_chosen_times_lent_marks(tmp_path: Path, clock: Any) -> None:
    trace = job(tmp_path, loop(), loop(marked=False), baseTimeNanoseconds=0).timed_by(clock)
    assert clocks(trace) == [clock, clock]
    assert set(trace.iterations.query("rank == 1")["source"]) == {"ProfilerStep of rank 0"}
