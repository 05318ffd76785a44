"""A snapshot beside a recording of the same run: what ran at the peak, or why nobody can say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hta_widgets import MemorySnapshot, Trace
from hta_widgets.errors import MissingDataError
from tests.memory_snapshot.allocator import MB, Allocator, write

EPOCH_US = 1_790_000_000_000_000
BASE_US = EPOCH_US - 5_000  # the file's zero


def recording(path: Path, begin_us: int, base: int | None = BASE_US * 1000, device: int = 0) -> Trace:
    """Three operators of 100 us each, whose kernels run 40 us later; `begin_us` is since the epoch."""
    events: list[dict[str, Any]] = []
    for k, name in enumerate(("aten::mm", "aten::relu", "aten::add")):
        at = begin_us - BASE_US + 100 * k
        common = {"ph": "X", "pid": 1, "tid": 1, "ts": at, "dur": 100}
        events.append({**common, "cat": "cpu_op", "name": name})
        launch = {"name": "cudaLaunchKernel", "cat": "cuda_runtime", "ts": at + 5, "dur": 5}
        events.append({**common, **launch, "args": {"correlation": k + 1}})
        kernel = {"cat": "kernel", "name": f"kernel_{k}", "pid": device, "tid": 7, "ts": at + 40}
        events.append({**common, **kernel, "args": {"correlation": k + 1, "device": device, "stream": 7}})
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 1, "tid": 1}
    events.append({**step, "ts": begin_us - BASE_US, "dur": 300})
    stated = {} if base is None else {"baseTimeNanoseconds": base}
    path.write_text(json.dumps({"traceEvents": events, **stated}))
    return Trace.open(path, cache=False)


def snapshot(folder: Path, *moments: tuple[int, int]) -> MemorySnapshot:
    """Allocates (or frees, if negative) so many MB at so many us since the epoch."""
    allocator = Allocator(900 * MB)
    held: dict[int, int] = {}
    for at, megabytes in moments:
        allocator.now = at - 7 * (2 if megabytes > 0 and not allocator.events else 1)
        if megabytes > 0:
            held[megabytes] = allocator.alloc(megabytes * MB, "/app/model.py:3:forward")
            allocator.events[-1]["time_us"] = at
        else:
            allocator.free(held.pop(-megabytes))
    return MemorySnapshot.open(write(folder / "s.pickle", allocator))


def test_what_ran_at_the_peak_is_found_by_time(tmp_path: Path) -> None:
    trace = recording(tmp_path / "rank-0.json", EPOCH_US)
    held = snapshot(
        tmp_path,
        (EPOCH_US + 20, 30),
        (EPOCH_US + 130, 40),
        (EPOCH_US + 160, -30),
        (EPOCH_US + 250, 20),
    )
    (row,) = held.peak_in(trace).to_dict("records")
    assert row == {
        "rank": 0, "device": 0, "peak_ns": 130_000, "peak_bytes": 70 * MB, "overall_bytes": 70 * MB,
        "iteration": 4, "operator": "aten::relu", "device_work": "kernel_0",
    }  # fmt: skip


def test_a_higher_level_before_the_recording_is_not_the_peak_in_it(tmp_path: Path) -> None:
    trace = recording(tmp_path / "rank-0.json", EPOCH_US)
    held = snapshot(
        tmp_path,
        (EPOCH_US - 900, 90),
        (EPOCH_US - 800, 50),
        (EPOCH_US - 700, -90),
        (EPOCH_US + 220, 10),
    )
    (row,) = held.peak_in(trace).to_dict("records")
    assert (row["peak_bytes"], row["overall_bytes"]) == (60 * MB, 140 * MB)
    assert (row["operator"], row["device_work"]) == ("aten::add", "kernel_1")


def test_what_is_held_when_the_recording_begins_can_be_the_peak(tmp_path: Path) -> None:
    trace = recording(tmp_path / "rank-0.json", EPOCH_US)
    held = snapshot(tmp_path, (EPOCH_US - 900, 90), (EPOCH_US + 100, -90), (EPOCH_US + 220, 10))
    (row,) = held.peak_in(trace).to_dict("records")
    assert (row["peak_bytes"], row["peak_ns"], row["operator"]) == (90 * MB, 0, "aten::mm")


@pytest.mark.parametrize(
    ("begin", "base", "device", "why"),
    [
        (EPOCH_US - 3_000_000, BASE_US * 1000, 0, r"begins 3\.00 s after the recording ends"),
        (EPOCH_US + 3_000_000, BASE_US * 1000, 0, r"ends 3\.00 s before the recording begins"),
        (EPOCH_US + 20, BASE_US * 1000, 0, "nothing was allocated or freed while"),
        (EPOCH_US, None, 0, "does not state when it began"),
        (EPOCH_US, BASE_US * 1000, 3, "no rank works on device 0"),
    ],
)
def test_without_time_in_common_they_stay_apart(
    tmp_path: Path, begin: int, base: int | None, device: int, why: str
) -> None:
    trace = recording(tmp_path / "rank-0.json", begin, base, device)
    held = snapshot(tmp_path, (EPOCH_US, 30), (EPOCH_US + 500, 40))
    with pytest.raises(MissingDataError, match=why):
        held.peak_in(trace)


def test_of_several_ranks_on_a_device_one_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(2):
        recording(folder / f"rank-{rank}.json", EPOCH_US + 100 * rank)
    trace = Trace.open(folder, cache=False)
    held = snapshot(tmp_path, (EPOCH_US + 50, 30), (EPOCH_US + 130, 40))
    with pytest.raises(MissingDataError, match="ranks 0, 1 work on device 0: name one"):
        held.peak_in(trace)
    assert held.peak_in(trace, rank=0)["operator"].tolist() == ["aten::relu"]
    assert held.peak_in(trace, rank=1)["operator"].tolist() == ["aten::mm"]
    with pytest.raises(ValueError, match="no rank 7"):
        held.peak_in(trace, rank=7)


def test_events_without_times_are_not_placed(tmp_path: Path) -> None:
    trace = recording(tmp_path / "rank-0.json", EPOCH_US)
    held = snapshot(tmp_path, (EPOCH_US + 20, 30))
    held.events["time_us"] = -(1 << 63)
    with pytest.raises(MissingDataError, match="have no times"):
        held.peak_in(trace)
