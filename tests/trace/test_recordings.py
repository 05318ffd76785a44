"""Several recordings in one folder, and files that hold several ranks: grouped right, told and selectable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsspec
import pandas as pd
import pytest

from hta_widgets.errors import TraceNotFoundError
from hta_widgets.trace import Trace
from tests.trace.helpers import kernel, slice_, write

# what each layout writes: path -> stated rank (None: no distributedInfo)
TORCHTITAN = {f"iteration_{step}/rank{rank}_trace.json": rank for step in (9, 10, 20) for rank in (0, 1)}
HANDLER = {
    f"host_{pid}.{seconds}{pid}000000.pt.trace.json": rank
    for rank, pid in enumerate((101, 102))
    for seconds in (1718000000, 1718000005)
}
DATED = {
    f"rank-{rank}.{date}.1102.pt.trace.json": rank
    for rank in (0, 1)
    for date in ("Nov_03_18_51_38", "Dec_01_08_00_00")
}
STEPS = {f"rank{rank}_step{step}.json": rank for rank in (0, 1) for step in (100, 20)}
JOBS_BELOW = {f"{job}/rank{rank}.json": rank for job in ("lr_1e3", "lr_1e4") for rank in (0, 1)}
JOBS = {f"{job}_rank{rank}.json": rank for job in ("small", "tiny") for rank in (0, 1)}
DEEP = {f"{job}/rank_{rank}/trace_5.json": rank for job in ("a", "b") for rank in (0, 1)}


def lay(folder: Path, files: dict[str, int | None], stated: bool = True) -> Path:
    """Write the files; each has a kernel named after it."""
    for name, rank in files.items():
        info = {"distributedInfo": {"rank": rank, "world_size": 2}} if stated and rank is not None else {}
        write(folder / name, [kernel(name, 2, 1)], **info)
    return folder


def kernels(trace: Trace) -> set[str]:
    return set(trace.events()["name"])


@pytest.mark.parametrize("stated", [True, False])
@pytest.mark.parametrize(
    ("files", "recordings"),
    [
        (TORCHTITAN, ("iteration_9", "iteration_10", "iteration_20")),
        (HANDLER, ("1", "2")),
        (DATED, ("1", "2")),
        (STEPS, ("step20", "step100")),
    ],
)
def test_one_job_at_several_times(
    tmp_path: Path, files: dict[str, int | None], recordings: tuple[str, ...], stated: bool
) -> None:
    trace = Trace.open(lay(tmp_path, files, stated), cache=False)
    assert (trace.recordings, trace.recording) == (recordings, recordings[-1])
    assert trace.ranks == [0, 1]
    assert "duplicate_rank" not in set(trace.health["check"])
    each = [
        kernels(Trace.open(tmp_path, cache=False, recording=name))
        for name in (*recordings[:-1], len(recordings) - 1)
    ]
    assert set.union(*each) == set(files)
    assert sum(map(len, each)) == len(files)
    told = trace.health.loc[trace.health["check"] == "discovery", "detail"]
    assert any(f"recording={recordings[0]!r}" in text and ", ".join(recordings) in text for text in told)


def test_the_moments_are_in_the_order_of_time(tmp_path: Path) -> None:
    lay(tmp_path, DATED)
    assert all("Dec_01" in name for name in kernels(Trace.open(tmp_path, cache=False)))
    assert all("Nov_03" in name for name in kernels(Trace.open(tmp_path, cache=False, recording=0)))


def test_a_window_that_a_rank_missed(tmp_path: Path) -> None:
    """The only file of a rank belongs to the recording that the others wrote at that time."""
    files = {
        f"host_{pid}.171800{stamp}0000000000{pid}.pt.trace.json": pid for pid in (0, 1) for stamp in (10, 20)
    }
    missed = "host_1.1718001000000000001.pt.trace.json"
    assert missed in files
    lay(tmp_path, {name: rank for name, rank in files.items() if name != missed})
    assert Trace.open(tmp_path, cache=False, recording="1").ranks == [0]
    assert Trace.open(tmp_path, cache=False, recording="2").ranks == [0, 1]


@pytest.mark.parametrize(
    ("files", "recordings"),
    [
        (JOBS_BELOW, ("lr_1e3", "lr_1e4")),
        (JOBS, ("small_rank*.json", "tiny_rank*.json")),
        (DEEP, ("a", "b")),
    ],
)
def test_several_jobs_in_a_folder(
    tmp_path: Path, files: dict[str, int | None], recordings: tuple[str, ...]
) -> None:
    """Certain where the files state ranks that repeat; else all are opened, and it says what to pass."""
    lay(tmp_path / "stated", files)
    trace = Trace.open(tmp_path / "stated", cache=False)
    assert (trace.recordings, trace.recording, trace.ranks) == (recordings, recordings[-1], [0, 1])
    first = Trace.open(tmp_path / "stated", cache=False, recording=recordings[0])
    assert (first.ranks, len(kernels(first) | kernels(trace))) == ([0, 1], 4)

    lay(tmp_path / "silent", files, stated=False)
    doubtful = Trace.open(tmp_path / "silent", cache=False)
    assert (doubtful.recordings, doubtful.recording, len(doubtful.ranks)) == (recordings, "", 4)
    told = " ".join(doubtful.health.loc[doubtful.health["check"] == "discovery", "detail"])
    assert "these may be 2 recordings" in told and f"recording={recordings[0]!r}" in told
    assert kernels(Trace.open(tmp_path / "silent", cache=False, recording=recordings[0])) == kernels(first)


@pytest.mark.parametrize(
    "files",
    [
        {f"rank_{rank}/trace_7.json": rank for rank in range(3)},
        {f"host{rank // 2}/rank{rank}.json": rank for rank in range(4)},
        {f"host{rank // 2}/{rank % 2}.json": rank for rank in range(4)},  # numbers per host, ranks of the job
        {f"step_{rank}.json": rank for rank in range(3)},  # called steps, and ranks
        {f"host_{pid}.171800000000000{pid}.pt.trace.json": pid for pid in range(3)},
        {f"host{rank}_{90 + rank}.171800000000000000{rank}.pt.trace.json": rank for rank in range(3)},
        {"control/control.json": 3, "test/test.json": 1},
        {"profile.json": 0},
    ],
)
def test_what_is_one_recording(tmp_path: Path, files: dict[str, int | None]) -> None:
    trace = Trace.open(lay(tmp_path, files), cache=False)
    assert trace.recordings == ()
    assert trace.ranks == sorted(rank for rank in files.values() if rank is not None)
    assert Trace.open(tmp_path, cache=False, recording=-1).ranks == trace.ranks
    with pytest.raises(TraceNotFoundError, match="one recording only"):
        Trace.open(tmp_path, cache=False, recording="other")


@pytest.mark.parametrize("layout", [TORCHTITAN, HANDLER, JOBS_BELOW])
def test_the_same_on_other_file_systems(tmp_path: Path, layout: dict[str, int | None]) -> None:
    lay(tmp_path, layout)
    for name in layout:
        with fsspec.open(f"memory://{tmp_path.name}/{name}", "wb") as file:
            file.write((tmp_path / name).read_bytes())
    here, there = Trace.open(tmp_path, cache=False), Trace.open(f"memory://{tmp_path.name}", cache=False)
    assert (there.recordings, there.recording) == (here.recordings, here.recording)
    assert kernels(there) == kernels(here)


def test_patterns_of_local_paths(tmp_path: Path) -> None:
    lay(tmp_path, TORCHTITAN)
    assert Trace.open(f"{tmp_path}/iteration_10/rank*", cache=False).ranks == [0, 1]
    assert Trace.open(f"{tmp_path}/*/rank*", cache=False).recordings == (
        "iteration_9",
        "iteration_10",
        "iteration_20",
    )
    assert Trace.open(f"{tmp_path}/iteration_[12]*", cache=False).recordings == (
        "iteration_10",
        "iteration_20",
    )


def test_a_recording_that_is_not_there(tmp_path: Path) -> None:
    lay(tmp_path, TORCHTITAN)
    with pytest.raises(TraceNotFoundError, match="there are iteration_9, iteration_10, iteration_20"):
        Trace.open(tmp_path, cache=False, recording="iteration_1")
    with pytest.raises(TraceNotFoundError, match="there are 3"):
        Trace.open(tmp_path, cache=False, recording=3)


# -- one file of many ranks --------------------------------------------------------------------------------


def events_of(rank: int, shift: float = 0.0) -> list[dict[str, Any]]:
    return [
        slice_(f"aten::op{rank}", "cpu_op", 1 + shift, 5),
        slice_("cudaLaunchKernel", "cuda_runtime", 2 + shift, 1, correlation=7),
        {**kernel(f"gemm{rank}", 4 + shift, 10 + rank, correlation=7), "tid": 7},
        {"ph": "C", "name": "counter", "pid": 0, "tid": 0, "ts": 3 + shift, "args": {"Bytes": rank}},
    ]


def named(pid: object, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}


def offset(rank: int, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**event, "pid": event["pid"] + 1000 * (rank + 1)} for event in events]


def by_names(rank: int) -> list[dict[str, Any]]:
    pids = (1000 * (rank + 1), 1000 * (rank + 1) + 10)
    return [*(named(pid, f"Rank {rank}: python") for pid in pids), *offset(rank, events_of(rank))]


def by_ids(rank: int) -> list[dict[str, Any]]:
    return [{**event, "pid": f"rank{rank} {event['pid']}"} for event in events_of(rank)]


def by_places(rank: int) -> list[dict[str, Any]]:
    return [{**event, "pid": f"[TP{rank:02d}] {event['pid']}"} for event in events_of(rank)]


def plain(trace: Trace) -> pd.DataFrame:
    """Its events without the order of categories, which is that of the file."""
    events = trace.events()
    return events.astype(dict.fromkeys(events.select_dtypes("category"), "str"))


def spread(events: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The ranks' events in turn, as a tool that sorts by time leaves them."""
    return [event for together in zip(*events, strict=True) for event in together]


@pytest.mark.parametrize("write_rank", [by_names, by_ids, by_places])
def test_a_merged_file_is_its_ranks(tmp_path: Path, write_rank: Any) -> None:
    ranks = range(11) if write_rank is by_ids else range(3)
    write(tmp_path / "merged.json", spread([write_rank(rank) for rank in ranks]), distributedInfo={"rank": 2})
    for rank in ranks:
        write(tmp_path / "apart" / f"rank{rank}.json", write_rank(rank), distributedInfo={"rank": rank})
    merged = Trace.open(tmp_path / "merged.json", cache=False)
    apart = Trace.open(tmp_path / "apart", cache=False)
    assert merged.ranks == apart.ranks == list(ranks)
    pd.testing.assert_frame_equal(plain(merged), plain(apart))
    assert (merged.rank(1).launch == apart.rank(1).launch).all() and (merged.rank(1).launch >= 0).any()
    told = " ".join(merged.health["detail"])
    assert f"merged.json holds {len(ranks)} ranks" in told
    assert "merged.json holds" not in " ".join(apart.health["detail"])


def test_a_merged_file_whose_processes_name_no_rank_says_so(tmp_path: Path) -> None:
    events = [
        {**event, "args": {**event["args"], "Rank": rank}}
        for rank in (0, 1)
        for event in offset(rank, [kernel("ncclDevKernel_AllReduce", 4, 1)])
    ]
    trace = Trace.open(write(tmp_path / "merged.json", events), cache=False)
    assert trace.ranks == [0]
    row = trace.health[trace.health["check"] == "merged_ranks"].iloc[0]
    assert (row["severity"], row["count"]) == ("warning", 2)
    assert "of ranks 0, 1" in row["detail"]


def test_a_file_of_one_rank_stays_as_it_is(tmp_path: Path) -> None:
    """Also where its processes are named after the rank, or some of them are not."""
    one = Trace.open(write(tmp_path / "one.json", by_names(3)), cache=False)
    assert (len(one.ranks), one.rank(one.ranks[0]).table.n) == (1, 6)
    some = [*by_names(3), *offset(4, events_of(4))]  # whose rank nothing tells
    assert len(Trace.open(write(tmp_path / "some.json", some), cache=False).ranks) == 1


def test_the_files_of_other_ranks_beside_a_merged_one(tmp_path: Path) -> None:
    write(tmp_path / "merged.json", [*by_names(0), *by_names(1)])
    write(tmp_path / "rank2.json", [kernel("k", 2, 1)], distributedInfo={"rank": 2})
    assert Trace.open(tmp_path, cache=False).ranks == [0, 1, 2]
    assert Trace.open({5: tmp_path / "merged.json"}, cache=False).ranks == [0, 1]
    assert json.loads((tmp_path / "merged.json").read_text())["traceEvents"]
