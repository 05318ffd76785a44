"""Launches of Ascend: the call of CANN on the thread that executes a task, not the entry into the queue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hta_widgets import analysis
from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.inspect.around import callers, operator_of, work_in
from hta_widgets.trace import RankTrace, Scope, Trace
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.reader.schema import NULL
from tests.support import shared_input
from tests.trace.helpers import write

PROGRAM, CANN, NPU = 100, 200, 300
MAIN, EXECUTES = 11, 12
ARROWS = ("async_npu", "async_task_queue", "HostToDevice")


@dataclass(frozen=True)
class Task:
    """An operator of the main thread, what executes it, and its kernel; starts and lengths in µs."""

    queued: float
    executed: tuple[float, float]
    kernel: tuple[float, float]
    put: float  # when the call of CANN puts the kernel on its stream
    cann: str = "AscendCL@aclnnMm"


def recorded(
    *tasks: Task,
    arrows: tuple[str, ...] = ARROWS,
    numbered: bool = True,
    text_ids: bool = False,
    cann_thread: int = EXECUTES,
    without: tuple[str, ...] = (),
    more: list[dict[str, Any]] | None = None,
    steps: tuple[tuple[float, float], ...] = ((0, 2000),),
) -> list[dict[str, Any]]:
    """The events of a `trace_view.json`.

    Args:
        arrows: categories of arrows that are recorded.
        numbered: `Enqueue` and `Dequeue` have the number of their task.
        text_ids: ids of arrows are texts. cann_thread: what the calls of CANN say that they ran on.
        without: categories of rows that are not recorded, and "cann".
    """
    found: list[dict[str, Any]] = []

    def row(name: str, at: float, dur: float, pid: int, tid: int, cat: str = "", **args: Any) -> None:
        if cat in without or (pid == CANN and "cann" in without):
            return
        event = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": f"{at:.3f}", "dur": dur, "args": args}
        found.append({**event, "cat": cat} if cat else event)

    def arrow(cat: str, number: int, *ends: tuple[float, int, int]) -> None:
        for phase, (at, pid, tid) in zip("sf", ends, strict=True):
            event = {
                "ph": phase,
                "name": cat,
                "cat": cat,
                "pid": pid,
                "tid": tid,
                "ts": f"{at:.3f}",
                "bp": "e",
            }
            if cat in arrows:
                found.append({**event, "id": str(number) if text_ids else number})

    for pid, name in ((PROGRAM, "Python"), (CANN, "CANN"), (NPU, "Ascend Hardware")):
        found.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}})
    for number, (begin, end) in enumerate(steps):
        row(f"ProfilerStep#{number}", begin, end - begin, PROGRAM, MAIN, "cpu_op")
    for number, task in enumerate(tasks):
        of_task = {"correlation_id": 70 + number} if numbered else {}
        row("aten::mm", task.queued, 8, PROGRAM, MAIN, "cpu_op")
        row("Enqueue", task.queued + 2, 4, PROGRAM, MAIN, "enqueue", **of_task)
        begin, dur = task.executed
        row("Dequeue@aclnnMm", begin, dur, PROGRAM, EXECUTES, "dequeue", **of_task)
        row(task.cann, begin + 1, dur - 2, CANN, cann_thread, connection_id=900 + number)
        at, took = task.kernel
        row("MatMulV2", at, took, NPU, 2, **{"Stream Id": 2, "connection_id": 500 + number})
        arrow("async_npu", 1000 + number, (task.queued, PROGRAM, MAIN), (at, NPU, 2))
        arrow("async_task_queue", 70 + number, (task.queued + 2, PROGRAM, MAIN), (begin, PROGRAM, EXECUTES))
        arrow("HostToDevice", 9000 + number, (task.put, CANN, cann_thread), (at, NPU, 2))
    return [*found, *(more or [])]


def opened(tmp_path: Path, events: list[dict[str, Any]], cache: Any = False) -> Trace:
    return Trace.open(write(tmp_path / "trace_view.json", events), cache=cache)


def rank_of(trace: Trace) -> RankTrace:
    return trace.rank(trace.ranks[0])


def gap_before(trace: Trace, nth: int) -> dict[str, float]:
    """The causes (µs) of the gap that the nth kernel ends."""
    rank = rank_of(trace)
    kernels = np.flatnonzero(rank.is_device)
    event = rank.event_id[kernels[np.argsort(rank.start[kernels])][nth]]
    gaps = analysis.idle_gaps(trace).set_index("event_id")
    row = gaps.loc[event]
    return {name[:-3]: row[name] / 1e3 for name in gaps if name.endswith("_ns") and row[name] and name not in
            ("start_ns", "end_ns", "dur_ns")}  # fmt: skip


def named(rank: RankTrace, rows: list[int]) -> list[str]:
    return [rank.names[rank.name[row]] for row in rows]


FIRST = Task(queued=10, executed=(20, 10), put=25, kernel=(30, 20))
# queued while the first one runs, but compiled for half a millisecond before it is launched
COMPILED = Task(40, (45, 560), (603, 20), put=600, cann="AscendCL@aclopCompileAndExecute")
# launched while the first one runs
QUEUED = Task(24, (32, 10), (52, 20), put=35)


def test_a_kernel_that_cann_compiles_first_is_launched_late(tmp_path: Path) -> None:
    trace = opened(tmp_path, recorded(FIRST, COMPILED))
    assert gap_before(trace, 1) == {"host_busy": 550, "launch_latency": 3}
    gap = analysis.idle_gaps(trace).iloc[-1]
    assert (gap["launch_name"], gap["operator_name"]) == ("AscendCL@aclopCompileAndExecute", "aten::mm")
    assert gap["thread"] == str(EXECUTES)
    said = " ".join(overview(trace)["text"].astype(str))
    assert "of it lies in AscendCL@aclopCompileAndExecute" in said
    assert "although work is launched" not in said


def test_a_kernel_that_waits_behind_others_is_not_launched_late(tmp_path: Path) -> None:
    trace = opened(tmp_path, recorded(FIRST, QUEUED))
    assert gap_before(trace, 1) == {"kernel_wait": 2}


def test_a_kernel_that_does_not_start_though_launched_waits_on_the_device(tmp_path: Path) -> None:
    late = Task(24, (32, 10), (400, 20), put=35)
    assert gap_before(opened(tmp_path, recorded(FIRST, late)), 1) == {"device_wait": 350}


def test_without_arrows_from_cann_the_task_is_the_launch(tmp_path: Path) -> None:
    trace = opened(tmp_path, recorded(FIRST, COMPILED, arrows=ARROWS[:2]))
    rank = rank_of(trace)
    assert set(named(rank, rank.launch[rank.is_device].tolist())) == {"Dequeue@aclnnMm"}
    assert gap_before(trace, 1) == {"host_busy": 553}
    assert "lies in AscendCL@aclopCompileAndExecute" in " ".join(overview(trace)["text"].astype(str))
    behind = opened(tmp_path, recorded(FIRST, QUEUED, arrows=ARROWS[:2]))
    assert gap_before(behind, 1) == {"kernel_wait": 2}


@pytest.mark.parametrize("arrows", [("async_npu",), ("async_npu", "async_task_queue")])
def test_what_is_only_known_to_be_queued_has_no_known_cause(tmp_path: Path, arrows: tuple[str, ...]) -> None:
    trace = opened(tmp_path, recorded(FIRST, COMPILED, arrows=arrows, without=("dequeue", "cann")))
    rank = rank_of(trace)
    work = np.flatnonzero(rank.is_device)
    assert gap_before(trace, 1) == {"unknown": 553}
    assert (rank.launched_at(work) == NULL).all()
    assert named(rank, [operator_of(rank, row) for row in work]) == ["aten::mm"] * 2
    frame = overview(trace).astype(str)
    unknown = frame[frame["text"].str.contains("the cause was not recorded")]
    assert "100 % of the device work" in unknown["text"].iloc[0]
    assert "ProfilerLevel.Level1" in unknown["suggestion"].iloc[0]


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"text_ids": True},
        {"cann_thread": 77},
        {"numbered": False},
        {"arrows": ("async_npu", "HostToDevice")},
        {"arrows": ("async_task_queue", "HostToDevice")},
        {"arrows": ("HostToDevice",)},
        {"arrows": ("async_npu", "HostToDevice"), "numbered": False},
        {"arrows": ("async_npu", "HostToDevice"), "without": ("dequeue",)},
        {"arrows": ("async_npu", "HostToDevice"), "without": ("dequeue", "enqueue")},
        {"without": ("dequeue",), "cann_thread": 77},
    ],
    ids=str,
)
def test_operators_own_their_kernels_whatever_else_is_recorded(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    trace = opened(tmp_path, recorded(FIRST, COMPILED, **changed))
    rank = rank_of(trace)
    work = np.flatnonzero(rank.is_device)
    calls = ["AscendCL@aclnnMm", "AscendCL@aclopCompileAndExecute"]
    assert named(rank, rank.launch[work].tolist()) == calls
    assert gap_before(trace, 1) == {"host_busy": 550, "launch_latency": 3}
    operators = [operator_of(rank, row) for row in work]
    assert [rank.start[row] for row in operators] == [
        rank.start[rank.start == at * 1000][0] for at in (10, 40)
    ]
    table = analysis.operators(trace)
    assert table.set_index("name").loc["aten::mm", "device_self_ns"] == 40_000
    assert [work_in(rank, row).tolist() for row in operators] == [[row] for row in work.tolist()]


def test_the_chain_from_kernel_to_operator(tmp_path: Path) -> None:
    rank = rank_of(opened(tmp_path, recorded(FIRST)))
    (kernel,) = np.flatnonzero(rank.is_device).tolist()
    chain = ["AscendCL@aclnnMm", "Dequeue@aclnnMm", "Enqueue", "aten::mm", "ProfilerStep#0"]
    assert named(rank, callers(rank, kernel)) == chain
    assert named(rank, [int(rank.issuer[kernel])]) == ["Enqueue"]
    dequeue = int(np.flatnonzero(rank.queued_by >= 0)[0])
    assert rank.parent[dequeue] == -1  # callers by time are on one thread


def test_work_belongs_to_the_step_that_queued_it(tmp_path: Path) -> None:
    task = Task(480, (505, 10), (515, 20), put=510)
    rank = rank_of(opened(tmp_path, recorded(FIRST, task, steps=((0, 500), (500, 1000)))))
    assert rank.iteration[rank.is_device].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "data_stall"),
        ("aten::item", "host_sync"),
        ("aten::sort", "host_busy"),
    ],
)
def test_a_thread_without_a_task_waits_for_the_one_that_queues(tmp_path: Path, name: str, cause: str) -> None:
    event = {"ph": "X", "name": name, "pid": PROGRAM, "tid": MAIN, "cat": "cpu_op", "args": {}}
    meanwhile = {**event, "ts": "60.000", "dur": 400}
    later = Task(465, (475, 20), (500, 20), put=490)
    trace = opened(tmp_path, recorded(FIRST, later, more=[meanwhile]))
    causes = gap_before(trace, 1)
    assert causes[cause] >= 400
    if cause == "host_busy":
        said = " ".join(overview(trace)["text"].astype(str))
        assert "of it lies in aten::sort" in said


def test_the_cache_keeps_what_arrows_tell(tmp_path: Path) -> None:
    events = recorded(FIRST, COMPILED)
    for _ in range(2):
        trace = opened(tmp_path, events, cache=tmp_path / "cache")
        assert gap_before(trace, 1) == {"host_busy": 550, "launch_latency": 3}


def test_the_recording_of_ascend_waits_for_the_host() -> None:
    """By hand: eight of nine gaps above 250 µs end in `aclopCompileAndExecute`; no work is queued then."""
    trace = Trace.open(shared_input("recordings/ascend_trace_view"), cache=False)
    rank = rank_of(trace)
    launched = np.flatnonzero(rank.is_device & (rank.launch >= 0))
    assert len(launched) == 274
    assert (rank.event_class[rank.launch[launched]] == EventClass.RUNTIME).all()
    assert set(named(rank, rank.issuer[launched].tolist())) == {"Enqueue"}
    assert all(name.startswith("AscendCL@") for name in named(rank, rank.launch[launched].tolist()))
    table = analysis.operators(trace)
    owned = table["name"] != "(no operator)"
    assert table.loc[owned, "device_self_ns"].sum() == rank.dur[launched].sum()
    steps = Scope(iterations=tuple(rank.iterations["iteration"]))
    gaps = analysis.idle_gaps(trace, steps)
    long = gaps[(gaps["dur_ns"] > 250_000) & (gaps["event_id"] >= 0)]
    assert (long["launch_name"] == "AscendCL@aclopCompileAndExecute").sum() == 8 == len(long) - 1
    assert gaps["device_wait_ns"].sum() == 0
    assert gaps["host_busy_ns"].sum() > 0.8 * gaps["dur_ns"].sum()
    said = overview(trace)["text"].astype(str)
    assert said.str.contains("of it lies in AscendCL@aclopCompileAndExecute").any()
